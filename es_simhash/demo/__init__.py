"""The demo: a small corpus with known near-duplicates, and a judgement of what a search found in it; no requests."""
