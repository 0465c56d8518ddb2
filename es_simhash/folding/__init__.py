"""Search results and lists of texts without near-duplicates. What is a duplicate is decided below, in ``groups``."""
