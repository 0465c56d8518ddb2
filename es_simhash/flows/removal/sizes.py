"""
How much a removal or a restore does at once.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["SIZES", "RemovalSizes"]


@dataclass(frozen=True, slots=True)
class RemovalSizes:
    """
    The sizes of batches.

    Attributes:
        removed:
            Documents that are archived and deleted together.
        restored:
            Most documents that are put back together.
        characters:
            About how many characters these may have.
        few:
            Up to so many restored documents, only the groups that these may have changed are judged.
        common:
            A term of passages that more documents have says nothing: they are not compared for it.
    """

    removed: int = 200
    restored: int = 500
    characters: int = 8_000_000
    few: int = 1_000
    common: int = 1_000


SIZES = RemovalSizes()
"""The sizes that are used where none are given."""
