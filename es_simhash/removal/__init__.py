"""Removal of duplicates: plan, review, apply with an archive, restore, tag. Duplicates are decided in ``groups``."""
