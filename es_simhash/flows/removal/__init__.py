"""
Removing duplicates on a server: plan, apply, restore. The formats of the files are in ``es_simhash.removal``.
"""
