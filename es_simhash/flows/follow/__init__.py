"""
Following an index: what arrives without a fingerprint, or with a stale one, gets one, and then its group.
"""
