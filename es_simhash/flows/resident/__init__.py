"""
The fingerprints of an index, read into memory: of one point in time, or kept current. No lookup is made here.
"""
