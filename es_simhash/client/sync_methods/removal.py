"""
Methods that remove duplicates: plan, apply, restore, dedupe.

A flow is imported when its method is first called, so that a program that only looks up does not load the others.
"""

from __future__ import annotations

from es_simhash.client.base import SyncBase

__all__ = ["RemovalMethods"]


class RemovalMethods(SyncBase):
    """Removal of duplicates."""
