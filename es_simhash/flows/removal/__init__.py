"""
Removing duplicates on a server: plan, apply, dedupe, restore. The formats of the files are in ``es_simhash.removal``.
"""
