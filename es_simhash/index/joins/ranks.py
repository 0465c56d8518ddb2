"""
Fingerprints and their places: sorting a set so that pairs of fingerprints can be turned into pairs of places.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["Ranks", "sort_places"]

Fingerprints = NDArray[np.uint64]
Places = NDArray[np.int64]

BITS = 64
# Entries of the table of first bits: at most so many, and one for every few fingerprints.
_MOST_BITS = 22
# After so many halvings the search of numpy is faster.
_MOST_HALVINGS = 8


def sort_places(values: Fingerprints) -> tuple[Fingerprints, Places]:
    """
    Return *values* sorted, and the place of each before; equal ones in the order of their places.

    Sorting numbers is several times as fast as sorting places, so a number is made of the first bits of each
    fingerprint and its place. Those whose first bits are equal are put in order afterwards.
    """
    if not len(values):
        return values.copy(), np.empty(0, np.int64)
    low = np.uint64((1 << (len(values) - 1).bit_length()) - 1)
    packed = values & ~low
    packed |= np.arange(len(values), dtype=np.uint64)
    packed.sort()
    is_tied = np.zeros(len(values) + 1, np.bool_)
    np.less_equal(packed[1:] ^ packed[:-1], low, out=is_tied[1:-1])
    packed &= low
    places = packed.view(np.int64)
    ordered = values[places]
    tied = np.flatnonzero(is_tied[1:] | is_tied[:-1])
    if len(tied):
        # Stable: places of equal fingerprints stay in order. Runs stay where they are: their first bits differ.
        again = np.argsort(ordered[tied], kind="stable")
        ordered[tied], places[tied] = ordered[tied[again]], places[tied[again]]
    return ordered, places


class Ranks:
    """
    Looks up fingerprints in a sorted array.

    A table of their first bits leaves few places to search, unless their first bits are much alike.

    Args:
        ordered:
            Distinct fingerprints, sorted.
    """

    def __init__(self, ordered: Fingerprints) -> None:
        self._ordered = ordered
        bits = min(_MOST_BITS, max(1, len(ordered).bit_length() - 2))
        self._shift = np.uint64(BITS - bits)
        firsts = np.arange(1 << bits, dtype=np.uint64) << self._shift
        self._starts = np.append(np.searchsorted(ordered, firsts), len(ordered))
        self._halvings = int(np.diff(self._starts).max()).bit_length()

    def of(self, values: Fingerprints) -> Places:
        """Return the place of each of *values*, all of which are in the array."""
        if self._halvings > _MOST_HALVINGS:
            return np.searchsorted(self._ordered, values)
        first = (values >> self._shift).astype(np.int64)
        low, high = self._starts[first], self._starts[first + 1]
        for _ in range(self._halvings):
            middle = (low + high) >> 1
            is_before = self._ordered.take(middle, mode="clip") < values
            is_before &= low < high
            low, high = np.where(is_before, middle + 1, low), np.where(is_before, high, middle)
        return low
