"""Ingest: fingerprints put into bulk actions, and a decision about each document while it is written."""
