"""
Passages: the runs of text that two texts share, what a lookup of them finds, and its queries. Pure.
"""
