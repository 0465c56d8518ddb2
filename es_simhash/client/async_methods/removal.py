# Generated from sync_methods/removal.py by tools/generate_async_client.py: change that file, then run `make client`.
"""
Methods that remove duplicates: plan, apply, restore, dedupe.

A flow is imported when its method is first called, so that a program that only looks up does not load the others.
"""

from __future__ import annotations

from es_simhash.client.base import AsyncBase

__all__ = ["AsyncRemovalMethods"]


class AsyncRemovalMethods(AsyncBase):
    """Removal of duplicates."""
