"""Turns fingerprints into plain dicts for a search server. Pure: no I/O, and arguments are not changed."""
