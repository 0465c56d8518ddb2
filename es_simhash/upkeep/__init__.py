"""Looks after an index: creates, checks and removes its fields, backfills it, and follows its changes."""
