"""
Joins in shares for machines that have no memory in common: which shares a fingerprint goes to, and the pairs of one.

A share has a number, and consists of the fingerprints that were sent to it. Each pair within the distance comes out of
exactly one share. Arrays only; who carries fingerprints to a share is not known here.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from es_simhash.groups.join import Join, ValuePairs
from es_simhash.groups.joins import Costs, Swaps, choose_keys
from es_simhash.hashing.kernels import count_bits

Fingerprints = NDArray[np.uint64]

BITS = 64
ALL_BITS = tuple(range(BITS - 1, -1, -1))
# A fingerprint that passes between processes costs more than one that is moved in memory; candidates cost the same.
COSTS = Costs(400.0, 1.3, 5_000_000.0)
# About so many fingerprints make a share: small enough for the memory of any task, large enough for numpy.
SHARE = 1 << 19
# Where no key is used, all are compared with all: so many in one share.
CHUNK = 1 << 15
# Fingerprints of a side that are compared at once with those of the other.
ROWS = 32
# An odd number without pattern, so that the first bits of a product depend on all bits.
_MIX = np.uint64(0x9E37_79B9_7F4A_7C15)


@dataclass(frozen=True)
class Routes:
    """
    The shares of a set of fingerprints.

    Attributes:
        max_distance:
            Largest distance of a pair in bits, inclusive.
        bits:
            The bits that keys are made of.
        keys:
            The keys of the joins, as masks; ``[0]`` where all are compared with all.
        before:
            Keys of the joins before these: a pair that agrees in one of them comes out there.
        parts:
            Into how many sections each join is cut, by the first bits of its key; without keys, the number of chunks
            that the fingerprints are cut into.
        first:
            Number of the first share.
        hot:
            For each join, the values of its key that too many fingerprints have, and the routes that divide these
            further, by their other bits.
    """

    max_distance: int
    bits: Sequence[int]
    keys: Sequence[int]
    before: Sequence[int]
    parts: Sequence[int]
    first: int = 0
    hot: Sequence[Sequence[tuple[int, Routes]]] = field(default=())

    @property
    def own(self) -> int:
        """How many shares it has, without those of the hot keys."""
        return sum(self.parts) if self.keys != [0] else self.parts[0] * (self.parts[0] + 1) // 2

    @property
    def count(self) -> int:
        """How many shares it has."""
        return self.own + sum(routes.count for each in self.hot for _, routes in each)

    def route(self, values: Fingerprints) -> Iterator[tuple[int, Fingerprints]]:
        """Yield the numbers of shares, and which of *values* go there."""
        if self.keys == [0]:
            yield from self._route_chunks(values)
            return
        first = self.first
        for number, key in enumerate(self.keys):
            rest = values
            for hot, routes in self.hot[number]:
                is_hot = (rest & np.uint64(key)) == hot
                yield from routes.route(rest[is_hot])
                rest = rest[~is_hot]
            yield from _cut(rest, _sections(rest, key, self.parts[number]), first)
            first += self.parts[number]

    def _route_chunks(self, values: Fingerprints) -> Iterator[tuple[int, Fingerprints]]:
        chunks = self.parts[0]
        chunk = _chunk(values, chunks)
        share = self.first
        for left in range(chunks):
            for right in range(left, chunks):
                yield share, values[(chunk == left) | (chunk == right)]
                share += 1

    def pairs(self, share: int, values: Fingerprints) -> Iterator[ValuePairs]:
        """
        Yield the pairs of a share.

        Args:
            share:
                Its number.
            values:
                All fingerprints that were sent there; each once, in any order.
        """
        if share >= self.first + self.own:
            inner = [routes for each in self.hot for _, routes in each]
            chosen = inner[bisect_right([each.first for each in inner], share) - 1]
            yield from chosen.pairs(share, values)
        elif self.keys == [0]:
            yield from self._chunk_pairs(share - self.first, values)
        else:
            ends = np.cumsum(self.parts).tolist()
            number = bisect_right(ends, share - self.first)
            yield from self._join(values, number).pairs(0, 1, 1)

    def _join(self, values: Fingerprints, number: int) -> Join:
        return Join(values, list(self.bits), list(self.keys), number, self.max_distance, self.before)

    def _chunk_pairs(self, place: int, values: Fingerprints) -> Iterator[ValuePairs]:
        chunks = self.parts[0]
        left = 0
        while place >= chunks - left:
            place -= chunks - left
            left += 1
        chunk = _chunk(values, chunks)
        lefts, rights = values[chunk == left], values[chunk == left + place]
        if not place:
            yield from self._join(values, 0).all_pairs(slice(None))
            return
        for begin in range(0, len(lefts), ROWS):
            rows = lefts[begin : begin + ROWS]
            found = np.nonzero(count_bits(rows[:, np.newaxis] ^ rights) <= self.max_distance)
            yield from self._join(values, 0).unseen(rows[found[0]], rights[found[1]])


def plan_routes(
    sample: Fingerprints,
    count: int,
    max_distance: int,
    *,
    bits: Sequence[int] = ALL_BITS,
    before: Sequence[int] = (),
    first: int = 0,
) -> Routes:
    """
    Return the shares for *count* fingerprints.

    A bad sample makes shares uneven, never wrong.

    Args:
        sample:
            A random sample of the fingerprints, or all of them.
        count:
            How many there are. They are distinct.
        max_distance:
            Largest distance of a pair in bits, inclusive.
        bits:
            The bits in which they may differ, the most significant first.
        before:
            Keys: a pair that agrees in one of them is left out.
        first:
            Number of the first share.
    """
    keys = choose_keys(sample, list(bits), max_distance, count=count, costs=COSTS)
    if keys == [0]:
        return Routes(max_distance, bits, keys, before, [max(1, -(-count // CHUNK))], first)
    wanted = max(0, (count // SHARE).bit_length())
    parts = [1 << min(key.bit_count(), wanted) for key in keys]
    planned = Routes(max_distance, bits, keys, before, parts, first)
    after = first + planned.own
    hot: list[list[tuple[int, Routes]]] = []
    for number, key in enumerate(keys):
        hot.append([])
        rest = [bit for bit in bits if not key >> bit & 1]
        for value, inside in _hot_keys(sample, key, count):
            size = len(inside) * count // len(sample)
            inner = plan_routes(inside, size, max_distance, bits=rest, before=(*before, *keys[:number]), first=after)
            after += inner.count
            hot[-1].append((value, inner))
    return Routes(max_distance, bits, keys, before, parts, first, hot)


def _hot_keys(sample: Fingerprints, key: int, count: int) -> Iterator[tuple[int, Fingerprints]]:
    """Yield the values of *key* that more fingerprints have than make a share, and those of the sample that do."""
    masked = sample & np.uint64(key)
    values, counts = np.unique(masked, return_counts=True)
    for value in values[counts * (count / len(sample)) > SHARE].tolist():
        yield value, sample[masked == value]


def _chunk(values: Fingerprints, chunks: int) -> NDArray[np.uint64]:
    return ((values * _MIX) >> np.uint64(32)) % np.uint64(chunks)


def _sections(values: Fingerprints, key: int, sections: int) -> NDArray[np.int64]:
    """Return the section of each of *values*: the first bits of its key."""
    if sections == 1:
        return np.zeros(len(values), np.int64)
    swapped = values.copy()
    Swaps(key).apply(swapped)
    return (swapped >> np.uint64(BITS + 1 - sections.bit_length())).astype(np.int64)


def _cut(values: Fingerprints, sections: NDArray[np.int64], first: int) -> Iterator[tuple[int, Fingerprints]]:
    order = np.argsort(sections, kind="stable")
    ordered = sections[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=-1))
    for part, section in zip(np.split(values[order], starts[1:]), ordered[starts].tolist(), strict=False):
        yield first + section, part
