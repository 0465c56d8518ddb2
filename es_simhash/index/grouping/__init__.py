"""
Groups of near-duplicates, as arrays and plain values: the rule, the decision about a document, all pairs. Pure.
"""
