"""
What a caller may choose of lookups in memory, and when they pay. No request is made here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from es_simhash.arguments import check_choice, check_count

__all__ = ["MEMORY_BYTES", "LookupRequest", "Lookups", "pays"]

Lookups = Literal["auto", "server", "memory"]

MEMORY_BYTES = 1 << 30
# Fewer lookups than these are never worth a table.
FEWEST = 2_000
# Milliseconds to read one fingerprint, and of a lookup by block terms beyond what the cost model counts: estimates from
# runs of bench/memory.py and bench/many.py. They decide only which way is faster.
READING, ASKING = 0.01, 0.7


@dataclass(frozen=True, slots=True)
class LookupRequest:
    """
    How to look up: two keyword arguments of the client's methods.

    Raises:
        TypeError: If one has the wrong type.
        InvalidInputError: If one has a value that cannot be used.
    """

    lookups: Lookups = "auto"
    memory_bytes: int | None = None

    def __post_init__(self) -> None:
        check_choice("lookups", self.lookups, get_args(Lookups))
        if self.memory_bytes is not None:
            check_count("memory_bytes", self.memory_bytes)

    @property
    def most_bytes(self) -> int:
        """Most bytes that fingerprints may occupy."""
        return self.memory_bytes or MEMORY_BYTES


def pays(lookups: int, *, milliseconds: float, documents: int) -> bool:
    """
    Return whether so many *lookups* by block terms cost more than to read the fingerprints of so many *documents*.

    *milliseconds* is what the cost model says of one lookup.
    """
    return lookups >= FEWEST and lookups * (ASKING + milliseconds) > READING * documents
