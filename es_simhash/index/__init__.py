"""Fingerprints to plain dicts for a search server: pure, without I/O, changing nothing that is given."""
