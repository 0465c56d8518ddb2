"""
Looking after an index: create, check and remove its fields, backfill, and measure its texts.
"""
