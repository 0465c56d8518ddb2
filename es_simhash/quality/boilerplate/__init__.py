"""
Learns from sampled texts which passages are template text, for a mask that leaves them out of fingerprints.

No request is made here, and no file is opened.
"""
