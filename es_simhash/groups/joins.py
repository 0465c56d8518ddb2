"""
Families of keys such that near fingerprints agree in at least one key; scans, and the cost model.

Proof: cut the bits into parts with radii r_i, ``sum(r_i + 1) = max_distance + 1``. A pair that differs in
more than r_i bits of every part is not near, so a near pair differs in at most r_i bits of some part i
(general pigeonhole: Qin, Xiao, Wang and Wang, TKDE 2019). Of its ``agreeing + r_i`` pieces at least
``agreeing`` are equal; the keys are all choices of ``agreeing`` pieces (Manku, Jain and Sarma, WWW 2007, with
one part). This holds for any choice of bits. A wrong cost estimate makes the search slower, never less exact.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from math import comb
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from es_simhash.hashing.kernels import count_bits

MOST_KEYS = 1_500
"""Families with more keys are not considered."""


@dataclass(frozen=True, slots=True)
class Family:
    """One way to choose keys, each of *agreeing* pieces; 0 *parts* is one key without bits."""

    max_distance: int
    parts: int
    agreeing: int

    @property
    def radii(self) -> list[int]:
        """In how many bits of each part a pair may differ."""
        spare = self.max_distance + 1 - self.parts
        return [spare // self.parts + (number < spare % self.parts) for number in range(self.parts)]

    @property
    def pieces(self) -> int:
        """Into how many pieces all parts together are cut."""
        return sum(self.agreeing + radius for radius in self.radii) if self.parts else 0

    @property
    def count(self) -> int:
        """How many keys it has."""
        return sum(comb(self.agreeing + radius, radius) for radius in self.radii) if self.parts else 1

    def keys(self, bits: Sequence[int]) -> list[int]:
        """Return the keys as masks; *bits* are bit numbers in the order of cutting, no fewer than pieces."""
        if not self.parts:
            return [0]
        keys, cuts = [], iter(_cut(bits, self.pieces))
        for radius in self.radii:
            pieces = [next(cuts) for _ in range(self.agreeing + radius)]
            keys += [sum(chosen) for chosen in combinations(pieces, self.agreeing)]
        return keys


def _cut(bits: Sequence[int], pieces: int) -> Iterator[int]:
    """Yield *bits* as masks of nearly equal width."""
    for number in range(pieces):
        begin, end = number * len(bits) // pieces, (number + 1) * len(bits) // pieces
        yield sum(1 << bit for bit in bits[begin:end])


@cache
def families(bits: int, max_distance: int) -> tuple[Family, ...]:
    """Return the families for fingerprints of so many *bits*; the last one has a single key without bits."""
    found = []
    for parts in range(1, max_distance + 2):
        for agreeing in range(1, bits + 1):
            family = Family(max_distance, parts, agreeing)
            if family.pieces > bits or family.count > MOST_KEYS:
                break
            found.append(family)
    return (*found, Family(max_distance, 0, 0))


BITS = 64
# Exchanged at once: two arrays of this length stay in a core's second-level cache.
WINDOW = 1 << 15


class Swaps:
    """The exchange that moves the bits of *key*, a mask, to the top; distances stay the same."""

    def __init__(self, key: int) -> None:
        self.width = key.bit_count()
        """How many bits the key has: so many are at the top after the exchange."""
        top = (1 << BITS) - (1 << (BITS - self.width))
        self._steps = [(np.uint64(low), np.uint64(shift)) for low, shift in _steps(key & ~top, top & ~key)]

    def apply(self, values: NDArray[np.uint64]) -> None:
        """Exchange the bits of *values* in place; a second time restores them."""
        if not self._steps:
            return
        spare = np.empty(min(WINDOW, len(values)), np.uint64)
        for begin in range(0, len(values), WINDOW):
            part = values[begin : begin + WINDOW]
            moved = spare[: len(part)]
            for low, shift in self._steps:
                # Where the two bits of an exchange differ, both are flipped.
                np.right_shift(part, shift, out=moved)
                np.bitwise_xor(moved, part, out=moved)
                np.bitwise_and(moved, low, out=moved)
                np.bitwise_xor(part, moved, out=part)
                np.left_shift(moved, shift, out=moved)
                np.bitwise_xor(part, moved, out=part)


def _steps(below: int, free: int) -> list[tuple[int, int]]:
    """
    Return (lower bits, shift) of exchanges that together move every bit of *below* to one of *free*.
    All bits that move by the same shift are exchanged in one step, so large steps are taken first.
    """
    steps = []
    while below:
        shift = max(range(1, BITS), key=lambda shift: (below & free >> shift).bit_count())
        low = below & free >> shift
        steps.append((low, shift))
        below &= ~low
        free &= ~(low << shift)
    return steps


Fingerprints = NDArray[np.uint64]
Places = NDArray[np.int64]
PlacePairs = tuple[Places, Places]
# Fingerprints whose buckets are found at once.
SCAN_WINDOW = 1 << 18
# Candidates compared at once: a few arrays of this length stay in a core's second-level cache.
BLOCK = 1 << 16
# A bucket of more is not compared pair by pair: it is given back.
HOT = 1 << 13
# Pairs that are handed on at once.
FOUND = 1 << 17
_ROWS = 32


# The largest size of each band of buckets, which are compared together: sizes in one differ by an eighth at most.
_LIMITS = np.unique((2 * 1.125 ** np.arange(72)).astype(np.int64))


def scan(values: Fingerprints, width: int, max_distance: int, hot: list[slice]) -> Iterator[PlacePairs]:
    """Yield near pairs of places with equal top *width* bits in sorted *values*; note *hot* buckets instead."""
    begin, low = 0, np.uint64((1 << (BITS - width)) - 1)
    while begin < len(values):
        end = min(begin + SCAN_WINDOW, len(values))
        # On to the end of the bucket that the end is in.
        end = begin + int(np.searchsorted(values[begin:], values[end - 1] | low, side="right"))
        starts, sizes = _buckets(values[begin:end], low)
        is_hot, starts = sizes > HOT, starts + begin
        hot += map(slice, starts[is_hot].tolist(), (starts + sizes)[is_hot].tolist())
        yield from _scan_buckets(values, starts[~is_hot], sizes[~is_hot], max_distance)
        begin = end


def _scan_buckets(values: Fingerprints, starts: Places, sizes: Places, max_distance: int) -> Iterator[PlacePairs]:
    bands = np.searchsorted(_LIMITS, sizes).astype(np.uint8)
    order = np.argsort(bands, kind="stable")
    starts, sizes = starts[order], sizes[order]
    ends = np.cumsum(np.bincount(bands, minlength=len(_LIMITS)))
    for limit, begin, end in zip(_LIMITS.tolist(), [0, *ends.tolist()], ends.tolist(), strict=False):
        step = max(1, BLOCK // limit)
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
    # One number for the offset, row and column of each pair found: few calls where there are few pairs, and no more
    # than some at once where nearly all are near.
    found: list[Places] = []
    count = 0
    for offset in range(1, limit):
        rows = limit - offset
        np.bitwise_xor(table[offset:], table[:rows], out=differing[:rows])
        count_bits(differing[:rows], out=bits[:rows])
        (places,) = np.less_equal(bits[:rows], max_distance, out=near[:rows]).ravel().nonzero()
        if len(places):
            found.append(places + offset * table.size)
            count += len(places)
        if count and (count >= FOUND or offset == limit - 1):
            offsets, places = np.divmod(np.concatenate(found), table.size)
            row, column = np.divmod(places, len(starts))
            is_inside = row + offsets < sizes[column]
            left = starts[column[is_inside]] + row[is_inside]
            yield left, left + offsets[is_inside]
            found, count = [], 0


def every_pair(values: Fingerprints, max_distance: int, rows: slice | None = None) -> Iterator[PlacePairs]:
    """Yield the pairs of places within *max_distance*, comparing all; *rows* are the first places."""
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


SAMPLE = 1 << 14
# Keys of a family that are tried on the sample.
_TRIED = 8


@dataclass(frozen=True, slots=True)
class Costs:
    """Nanoseconds of one core to move, sort and scan an element, compare a candidate and begin a join."""

    element: float
    candidate: float
    join: float


IN_MEMORY = Costs(35.0, 1.3, 300_000.0)


def choose_keys(
    values: Fingerprints, bits: list[int], max_distance: int, *, count: int | None = None, costs: Costs | None = None
) -> list[int]:
    """
    Return the keys that find all near pairs of distinct *values* at the least estimated cost.
    The same values in the same order always get the same keys. *count*: how many fingerprints there are, if *values*
    are a random sample of them.
    """
    costs = costs or IN_MEMORY
    count = len(values) if count is None else count
    if costs.candidate * count * (count - 1) / 2 <= costs.join:
        return [0]
    sample = sample_of(values)
    varying = int(np.bitwise_or.reduce(sample ^ sample[0])) if len(sample) else 0
    # A bit that is the same in all of the sample tells nothing apart.
    bits = [bit for bit in bits if varying >> bit & 1]
    estimates = [
        (_uniform_cost(family, count, len(bits), costs), family) for family in families(len(bits), max_distance)
    ]
    *rest, (best, without_key) = estimates
    for cost, family in sorted(rest, key=itemgetter(0)):
        # Uneven keys only add to the cost of even ones.
        if cost >= best:
            break
        measured = _measured_cost(family.keys(bits), count, sample, costs)
        if measured < best:
            best, without_key = measured, family
    return without_key.keys(bits)


def sample_of(values: Fingerprints) -> Fingerprints:
    """Return some of *values*, at random but always the same ones."""
    if len(values) <= SAMPLE:
        return values
    chance = np.random.default_rng(0)
    return values[np.unique(chance.integers(0, len(values), SAMPLE))]


def _uniform_cost(family: Family, count: int, bits: int, costs: Costs) -> float:
    pairs = count * (count - 1) / 2
    if not family.parts:
        return costs.candidate * pairs
    width = bits * family.agreeing / family.pieces
    return family.count * (costs.join + costs.element * count + costs.candidate * pairs / 2**width)


def _measured_cost(keys: list[int], count: int, sample: Fingerprints, costs: Costs) -> float:
    """Estimate the cost from the buckets that some of the keys make of the sample."""
    tried = keys[:: -(-len(keys) // _TRIED)]
    scale = count / len(sample)
    total = 0.0
    for key in tried:
        masked = np.sort(sample & np.uint64(key))
        sizes = np.diff(np.flatnonzero(np.concatenate(([True], masked[1:] != masked[:-1], [True]))))
        # A fingerprint of the sample has sizes - 1 others in its bucket, and of all fingerprints scale times as many.
        others = np.minimum((sizes - 1) * scale, HOT)
        total += float((others * sizes).sum()) * scale / 2
    pairs = max(total / len(tried), count * (count - 1) / 2 / 2 ** max(key.bit_count() for key in tried))
    return float(len(keys) * (costs.join + costs.element * count + costs.candidate * pairs))
