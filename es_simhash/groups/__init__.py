"""
Writing and reading groups: ingest with a decision for each document, reconcile, groups, pairs.
"""
