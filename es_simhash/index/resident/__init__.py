"""
The fingerprints of an index in memory: which of them are within a distance of others? Arrays only; no documents.
"""
