"""Lookups of near-duplicates: by text, by document, many at once, as a stream. Reads only; groups nothing."""
