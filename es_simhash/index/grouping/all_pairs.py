"""
All pairs of fingerprints within a distance: exact, vectorised, in bounded memory.

Arrays in, arrays out: no documents, no server. ``assign`` makes groups of the pairs. numpy is loaded here, so callers
import this module when they first need it.

The 64 bits are cut into p parts. Give part i a radius r_i with ``sum(r_i + 1) = max_distance + 1``: if two fingerprints
differed in more than r_i bits of every part, they would differ in at least ``sum(r_i + 1) > max_distance`` bits. So
each pair wanted is within r_i in some part i, and is found by joining, for each mask of at most r_i bits, the
fingerprints with those whose part differs by exactly that mask (general pigeonhole: Qin, Xiao, Wang and Wang, TKDE
2019). A pair that several parts find is kept by the first of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from es_simhash.index.plan import check_max_distance

__all__ = ["Pairs", "distances_between", "expand_ranges", "near_pairs"]

Fingerprints = NDArray[np.uint64]

BITS = 64
# Candidates compared at once: some ten arrays of this length are alive, 8 bytes an element.
CHUNK = 1 << 20
# Relative cost of one element of a join and of one candidate compared: assumed equal, not measured.
_ELEMENT, _CANDIDATE = 1.0, 1.0
MOST_PARTS = 8


@dataclass(frozen=True, slots=True)
class Pairs:
    """
    Some of the pairs found.

    Attributes:
        left:
            Positions of the first of each pair.
        right:
            Positions of the second; never equal to the first.
        distance:
            Their distances in bits.
    """

    left: NDArray[np.int64]
    right: NDArray[np.int64]
    distance: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.left)


@dataclass(frozen=True, slots=True)
class _Part:
    """Bits *shift* to *shift* + *width* of a fingerprint, in which a pair may differ by *radius*."""

    shift: int
    width: int
    radius: int

    def of(self, values: Fingerprints) -> Fingerprints:
        return values >> np.uint64(self.shift) & np.uint64((1 << self.width) - 1)

    def masks(self) -> Iterator[int]:
        for flips in range(self.radius + 1):
            for bits in combinations(range(self.width), flips):
                yield sum(1 << bit for bit in bits)


def distances_between(left: Fingerprints, right: Fingerprints) -> NDArray[np.uint8]:
    """
    Return the distance of each fingerprint in *left* to the one at the same place in *right*, in bits.
    """
    from es_simhash.hashing import hamming_distances  # noqa: PLC0415

    return hamming_distances(0, left ^ right)


def near_pairs(values: Fingerprints, max_distance: int) -> Iterator[Pairs]:
    """
    Yield every pair of *values* within *max_distance*, each once, in parts of bounded size and no stated order.

    Equal values make pairs with each other: collapse them first (``numpy.unique``) where there may be many. Memory:
    about 30 bytes a fingerprint, and 100 MB.

    Args:
        values:
            Fingerprints, ``numpy.uint64``.
        max_distance:
            Largest distance of a pair in bits, inclusive, 0 to 64.

    Raises:
        TypeError: If max_distance is not an int.
        InvalidInputError: If it is out of range.

    Examples:
        >>> [found] = near_pairs(np.array([0, 7, 1 << 63], np.uint64), 2)
        >>> found.left.tolist(), found.right.tolist(), found.distance.tolist()
        ([0], [2], [1])
    """
    check_max_distance(max_distance)
    values = np.ascontiguousarray(values, np.uint64)
    parts = _choose_parts(_order_of_magnitude(len(values)), max_distance)
    for number, part in enumerate(parts):
        for found in _join(values, part, max_distance):
            fresh = np.ones(len(found), np.bool_)
            for earlier in parts[:number]:
                difference = earlier.of(values[found.left]) ^ earlier.of(values[found.right])
                fresh &= distances_between(difference, np.zeros_like(difference)) > earlier.radius
            if fresh.all():
                yield found
            elif fresh.any():
                yield Pairs(found.left[fresh], found.right[fresh], found.distance[fresh])


def _order_of_magnitude(count: int) -> int:
    """Round *count* up to a power of two, so that plans are computed for few sizes."""
    return 1 << max(0, count - 1).bit_length()


@cache
def _choose_parts(count: int, max_distance: int) -> tuple[_Part, ...]:
    """Return the parts with the least estimated cost for *count* uniform fingerprints."""
    plans = [
        tuple(_cut(pieces, max_distance))
        for pieces in range(1, min(MOST_PARTS, max_distance + 1) + 1)
        if max_distance < BITS
    ]
    # One part of no bits: every pair is a candidate.
    plans.append((_Part(0, 0, 0),))
    return min(plans, key=lambda parts: sum(_cost(part, count) for part in parts))


def _cut(pieces: int, max_distance: int) -> Iterator[_Part]:
    shift, spare = 0, max_distance + 1 - pieces
    for number in range(pieces):
        width = BITS // pieces + (number < BITS % pieces)
        radius = spare // pieces + (number < spare % pieces)
        yield _Part(shift, width, min(radius, width))
        shift += width


def _cost(part: _Part, count: int) -> float:
    joins = sum(comb(part.width, flips) for flips in range(part.radius + 1))
    # A table of offsets per part value is what makes a join quick: wide parts cannot have one.
    if part.width > _WIDEST:
        return float("inf")
    return float(joins * (_ELEMENT * (count + 1000) + _CANDIDATE * count * count / 2 ** (part.width + 1)))


_WIDEST = 26


def _join(values: Fingerprints, part: _Part, max_distance: int) -> Iterator[Pairs]:
    """Yield the pairs within *max_distance* that are within the part's radius in that part."""
    keys = part.of(values).astype(np.int32)
    order = np.argsort(keys, kind="stable")
    keys, ordered = keys[order], values[order]
    counts = np.bincount(keys, minlength=1 << part.width)
    starts = np.zeros((1 << part.width) + 1, np.int64)
    np.cumsum(counts, out=starts[1:])
    # One byte a key: small enough to stay in a core's cache, and it settles most places of a sparse table.
    is_present = counts > 0
    for mask in part.masks():
        if mask:
            other = keys ^ mask
            # Of the two keys that differ by the mask, the smaller is on the left.
            left = np.flatnonzero(is_present[other] & (keys < other))
            other = other[left]
            first, last = starts[other], starts[other + 1]
        else:
            left = np.flatnonzero((counts > 1)[keys])
            first, last = left + 1, starts[keys[left] + 1]
        yield from _compare(ordered, order, left, first, last, max_distance)


def _compare(
    ordered: Fingerprints,
    order: NDArray[np.int64],
    left: NDArray[np.int64],
    first: NDArray[np.int64],
    last: NDArray[np.int64],
    max_distance: int,
) -> Iterator[Pairs]:
    """Compare each place in *left* with the places from *first* up to *last*, a bounded number at once."""
    for lefts, rights in expand_ranges(left, first, last):
        distance = distances_between(ordered[lefts] ^ ordered[rights], np.zeros((), np.uint64))
        near = np.flatnonzero(distance <= max_distance)
        if len(near):
            yield Pairs(order[lefts[near]], order[rights[near]], distance[near])


def expand_ranges(
    left: NDArray[np.int64], first: NDArray[np.int64], last: NDArray[np.int64]
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """
    Yield each of *left* with every number from *first* up to *last*, in parts of bounded size.

    Examples:
        >>> [(lefts, rights)] = expand_ranges(np.array([7, 8]), np.array([0, 5]), np.array([2, 6]))
        >>> lefts.tolist(), rights.tolist()
        ([7, 7, 8], [0, 1, 5])
    """
    counts = last - first
    some = counts > 0
    left, first, counts = left[some], first[some], counts[some]
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    for begin in range(0, total, CHUNK):
        end = min(begin + CHUNK, total)
        low, high = np.searchsorted(ends, [begin, end - 1], side="right")
        rows = slice(int(low), int(high) + 1)
        before = ends[rows] - counts[rows]
        taken = np.minimum(ends[rows], end) - np.maximum(before, begin)
        yield (
            np.repeat(left[rows], taken),
            np.arange(begin, end, dtype=np.int64) + np.repeat(first[rows] - before, taken),
        )
