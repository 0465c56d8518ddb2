"""
Removing duplicates, without a server: the plan file, the archive, and the guard rails. Pure apart from these files.

What is planned and applied is decided in ``flows.removal``. Nothing here searches.
"""
