"""Writes documents: bulk requests, conditional writes, and the indices that a write reaches. No grouping here."""
