"""The fingerprint on the server: an ingest pipeline in Painless, its probes, and its installation."""
