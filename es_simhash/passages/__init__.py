"""Lookups of passages: the documents that share runs of text with a text, whatever surrounds these."""
