"""Transfer to and from the server: pages, slices, buckets, retries, raw JSON. Knows no fingerprint."""
