"""
All pairs of fingerprints within a distance: which joins find them, and how one join is made. Arrays only; no documents.
"""
