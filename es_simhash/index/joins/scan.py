"""
Comparing fingerprints whose keys are equal: candidates in, near pairs out, a bounded number at once.

The fingerprints are sorted and have their key at the top, so those with an equal key, a bucket, stand side by side.
Only places in an array come out; whether a pair was found by another key before is decided in ``join``.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from es_simhash.hashing.kernels import count_bits

__all__ = ["HOT", "PlacePairs", "every_pair", "scan"]

Fingerprints = NDArray[np.uint64]
Places = NDArray[np.int64]
PlacePairs = tuple[Places, Places]

BITS = 64
# Fingerprints whose buckets are found at once.
WINDOW = 1 << 18
# Candidates compared at once: a few arrays of this length stay in a core's second-level cache.
BLOCK = 1 << 16
# A bucket of more is not compared pair by pair: it is given back.
HOT = 1 << 13
# A bucket of more is compared by itself, smaller ones together with others of nearly the same size.
_SINGLE = 512
_ROWS = 32


def _band_limits() -> NDArray[np.int64]:
    """Return the largest size of each band: sizes in one differ by an eighth at most."""
    limits = [2]
    while limits[-1] < _SINGLE:
        limits.append(limits[-1] + max(1, limits[-1] // 8))
    return np.array(limits, np.int64)


_LIMITS = _band_limits()


def scan(values: Fingerprints, width: int, max_distance: int) -> Iterator[PlacePairs | slice]:
    """
    Yield the pairs of places within *max_distance* whose keys are equal; for each hot bucket, its places instead.

    Args:
        values:
            Sorted, with the key at the top.
        width:
            How many bits the key has, 1 or more.
        max_distance:
            Largest distance in bits, inclusive.
    """
    begin, low = 0, np.uint64((1 << (BITS - width)) - 1)
    while begin < len(values):
        end = min(begin + WINDOW, len(values))
        if end < len(values):
            # Back to the start of the bucket that the end is in.
            end = int(np.searchsorted(values[begin:end], values[end] & ~low)) + begin
        if end == begin:
            end = begin + int(np.searchsorted(values[begin:], values[begin] | low, side="right"))
            yield slice(begin, end)
        else:
            for found in _scan_window(values[begin:end], low, max_distance):
                if isinstance(found, slice):
                    yield slice(found.start + begin, found.stop + begin)
                else:
                    yield found[0] + begin, found[1] + begin
        begin = end


def _scan_window(values: Fingerprints, low: np.uint64, max_distance: int) -> Iterator[PlacePairs | slice]:
    starts, sizes = _buckets(values, low)
    is_single = sizes > _SINGLE
    if is_single.any():
        for start, size in zip(starts[is_single].tolist(), sizes[is_single].tolist(), strict=True):
            if size > HOT:
                yield slice(start, start + size)
            else:
                for left, right in every_pair(values[start : start + size], max_distance):
                    yield left + start, right + start
        starts, sizes = starts[~is_single], sizes[~is_single]
    bands = np.searchsorted(_LIMITS, sizes).astype(np.uint8)
    order = np.argsort(bands, kind="stable")
    starts, sizes = starts[order], sizes[order]
    ends = np.cumsum(np.bincount(bands, minlength=len(_LIMITS)))
    for limit, begin, end in zip(_LIMITS.tolist(), [0, *ends.tolist()], ends.tolist(), strict=False):
        step = BLOCK // limit
        for first in range(begin, end, step):
            part = slice(first, min(first + step, end))
            yield from _compare_band(values, starts[part], sizes[part], limit, max_distance)


def _buckets(values: Fingerprints, low: np.uint64) -> tuple[Places, Places]:
    """Return where the buckets of two and more start, and their sizes."""
    # Places whose next neighbour has the same key; a bucket is a run of them and the place after it.
    same = np.flatnonzero((values[1:] ^ values[:-1]) <= low)
    if not len(same):
        return same, same
    breaks = np.flatnonzero(np.diff(same) > 1)
    starts = same[np.concatenate(([0], breaks + 1))]
    return starts, same[np.concatenate((breaks, [len(same) - 1]))] + 2 - starts


def _compare_band(
    values: Fingerprints, starts: Places, sizes: Places, limit: int, max_distance: int
) -> Iterator[PlacePairs]:
    """Yield the near pairs of buckets of up to *limit* fingerprints each: a column is a bucket, and what follows it."""
    table = values.take(starts + np.arange(limit)[:, np.newaxis], mode="clip")
    differing, bits, near = np.empty_like(table), np.empty(table.shape, np.uint8), np.empty(table.shape, np.bool_)
    # One number for the offset, row and column of each pair found: few calls where there are few pairs.
    found: list[Places] = []
    for offset in range(1, limit):
        rows = limit - offset
        np.bitwise_xor(table[offset:], table[:rows], out=differing[:rows])
        count_bits(differing[:rows], out=bits[:rows])
        (places,) = np.less_equal(bits[:rows], max_distance, out=near[:rows]).ravel().nonzero()
        if len(places):
            found.append(places + offset * table.size)
    if found:
        offsets, places = np.divmod(np.concatenate(found), table.size)
        row, column = np.divmod(places, len(starts))
        is_inside = row + offsets < sizes[column]
        left = starts[column[is_inside]] + row[is_inside]
        yield left, left + offsets[is_inside]


def every_pair(values: Fingerprints, max_distance: int, rows: slice | None = None) -> Iterator[PlacePairs]:
    """
    Yield the pairs of places of *values* within *max_distance*, comparing each with every other one.

    Args:
        values:
            In any order.
        max_distance:
            Largest distance in bits, inclusive.
        rows:
            Which places are the first of a pair; by default all.
    """
    first, last, _ = (rows or slice(None)).indices(len(values))
    columns = BLOCK // _ROWS
    for top in range(first, last, _ROWS):
        bottom = min(top + _ROWS, last)
        for begin in range(top + 1, len(values), columns):
            differing = values[top:bottom, np.newaxis] ^ values[begin : begin + columns]
            found = np.flatnonzero(count_bits(differing) <= max_distance)
            if len(found):
                row, column = np.divmod(found, differing.shape[1])
                left, right = row + top, column + begin
                yield left[left < right], right[left < right]
