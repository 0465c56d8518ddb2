"""
The joins of a set of fingerprints in shares: for any thread, and for machines without common memory. Loads numpy.

A join sorts fingerprints so that equal keys are adjacent; near pairs come out as fingerprints, without
positions, each of exactly one share. ``joins`` chooses keys and compares. No threads are started here.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from es_simhash.groups.joins import BITS, Costs, Fingerprints, Swaps, choose_keys, every_pair, scan
from es_simhash.hashing.kernels import count_bits

ValuePairs = tuple[Fingerprints, Fingerprints]
Share = Callable[[], Iterator[ValuePairs]]
_ROWS = 1 << 13
# Pairs that are handed on at once.
STEP = 1 << 17


@dataclass(frozen=True, slots=True)
class Join:
    """
    One join of the distinct *values*: the one of key *number* among *keys*, which are masks.
    *before*: keys of an enclosing join and those before it; a pair that agrees in one of them is yielded there.
    """

    values: Fingerprints
    bits: list[int]
    keys: list[int]
    number: int
    max_distance: int
    before: Sequence[int]

    @property
    def key(self) -> int:
        return self.keys[self.number]

    def pairs(self) -> Iterator[ValuePairs]:
        """Yield the pairs of the join that no key before finds."""
        swaps = Swaps(self.key)
        taken = self.values.copy()
        swaps.apply(taken)
        taken.sort()
        for found in _collect(self._scan(taken, swaps.width)):
            if not isinstance(found, tuple):
                yield from self._within(found, swaps)
            else:
                for side in found:
                    swaps.apply(side)
                yield from self.unseen(*found)

    def _scan(self, taken: Fingerprints, width: int) -> Iterator[ValuePairs | Fingerprints]:
        for found in scan(taken, width, self.max_distance):
            yield taken[found] if isinstance(found, slice) else (taken[found[0]], taken[found[1]])

    def unseen(self, left: Fingerprints, right: Fingerprints) -> Iterator[ValuePairs]:
        """Yield those of the pairs of *left* and *right* that no join before this one finds."""
        yield from _unseen(left, right, (*self.before, *self.keys[: self.number]))

    def all_pairs(self, rows: slice) -> Iterator[ValuePairs]:
        """Yield the near pairs whose first place is one of *rows*, comparing every two."""
        pairs = every_pair(self.values, self.max_distance, rows)
        for found in _collect((self.values[left], self.values[right]) for left, right in pairs):
            yield from self.unseen(*found)

    def _within(self, bucket: Fingerprints, swaps: Swaps) -> Iterator[ValuePairs]:
        """Yield the pairs of a hot bucket: by joins of their own, of the bits that are not of the key."""
        values = bucket.copy()
        swaps.apply(values)
        bits = [bit for bit in self.bits if not self.key >> bit & 1]
        before = (*self.before, *self.keys[: self.number])
        for share in share_joins(values, self.max_distance, bits=bits, before=before):
            yield from share()


def share_joins(
    values: Fingerprints, max_distance: int, *, bits: list[int] | None = None, before: Sequence[int] = ()
) -> list[Share]:
    """
    Return functions that together yield every pair of distinct *values* within *max_distance* once.
    *bits* may differ, the most significant first. *before*: keys; a pair that agrees in one of them is left out. Each
    sorts a copy of the fingerprints, 8 bytes each.
    """
    bits = list(ALL_BITS) if bits is None else bits
    keys = choose_keys(values, bits, max_distance)
    joins = [Join(values, bits, keys, number, max_distance, before) for number in range(len(keys))]
    if keys == [0]:
        rows = range(0, len(values), _ROWS)
        return [partial(joins[0].all_pairs, slice(first, first + _ROWS)) for first in rows]
    return [join.pairs for join in joins]


def _collect(found: Iterable[ValuePairs | Fingerprints]) -> Iterator[ValuePairs | Fingerprints]:
    """Put pairs together to fewer and larger arrays; hot buckets keep their place between them."""
    waiting: list[ValuePairs] = []
    count = 0
    for each in found:
        if isinstance(each, tuple):
            waiting.append(each)
            count += len(each[0])
            if count < STEP:
                continue
        if waiting:
            yield _join_pairs(waiting)
            waiting, count = [], 0
        if not isinstance(each, tuple):
            yield each
    if waiting:
        yield _join_pairs(waiting)


def _join_pairs(parts: list[ValuePairs]) -> ValuePairs:
    return np.concatenate([left for left, _ in parts]), np.concatenate([right for _, right in parts])


def _unseen(left: Fingerprints, right: Fingerprints, keys: Sequence[int]) -> Iterator[ValuePairs]:
    """Yield the pairs that agree in none of *keys*."""
    differing = left ^ right
    places = np.arange(len(left))
    for key in keys:
        if not len(places):
            return
        is_new = (differing & np.uint64(key)) != 0
        if not is_new.all():
            places, differing = places[is_new], differing[is_new]
    if len(places):
        yield left[places], right[places]


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
    The shares of a set of fingerprints, numbered from *first*.
    *keys* are masks; ``[0]``: all are compared with all. *before*: keys of earlier joins; a pair that agrees in one
    comes out there. *parts*: into how many sections each join is cut, by the first bits of its key; without keys, the
    number of chunks. *hot*: for each join, key values that too many fingerprints have, and the routes that divide these
    further.
    """

    max_distance: int
    bits: Sequence[int]
    keys: Sequence[int]
    before: Sequence[int]
    parts: Sequence[int]
    first: int = 0
    hot: Sequence[Sequence[tuple[int, Routes]]] = field(default=())

    @property
    def direct(self) -> int:
        """How many shares it has, without those of the hot keys."""
        return sum(self.parts) if self.keys != [0] else self.parts[0] * (self.parts[0] + 1) // 2

    @property
    def count(self) -> int:
        """How many shares it has."""
        return self.direct + sum(routes.count for each in self.hot for _, routes in each)

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
        """Yield the pairs of a share; *values* are all that were sent to it, each once, in any order."""
        if share >= self.first + self.direct:
            inner = [routes for each in self.hot for _, routes in each]
            chosen = inner[bisect_right([each.first for each in inner], share) - 1]
            yield from chosen.pairs(share, values)
        elif self.keys == [0]:
            yield from self._chunk_pairs(share - self.first, values)
        else:
            ends = np.cumsum(self.parts).tolist()
            number = bisect_right(ends, share - self.first)
            yield from self._join(values, number).pairs()

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
    Return the shares for *count* distinct fingerprints; a bad *sample* makes them uneven, never wrong.
    *sample* is random. *before*: keys; a pair that agrees in one of them is left out.
    """
    keys = choose_keys(sample, list(bits), max_distance, count=count, costs=COSTS)
    if keys == [0]:
        return Routes(max_distance, bits, keys, before, [max(1, -(-count // CHUNK))], first)
    wanted = max(0, (count // SHARE).bit_length())
    parts = [1 << min(key.bit_count(), wanted) for key in keys]
    planned = Routes(max_distance, bits, keys, before, parts, first)
    after = first + planned.direct
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
