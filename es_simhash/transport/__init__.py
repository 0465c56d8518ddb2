"""
Carrying documents to and from the server: pages, slices, bulk, conditional writes, texts. Knows no fingerprint.
"""
