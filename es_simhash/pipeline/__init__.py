"""
The fingerprint on the server: an ingest pipeline in Painless, built as plain dicts. No request is made here.
"""
