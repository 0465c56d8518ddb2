"""
All pairs of fingerprints within a distance, exact, in bounded memory, on all cores, or in shares for machines without
common memory. Loads numpy: import lazily.

A join sorts fingerprints so that equal keys are adjacent; near pairs come out as fingerprints, without positions, each
of exactly one join. ``joins`` chooses keys and compares.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from es_simhash.groups.joins import (
    BITS,
    Costs,
    Fingerprints,
    PlacePairs,
    Places,
    Swaps,
    choose_keys,
    every_pair,
    scan,
)
from es_simhash.hashing.kernels import count_bits
from es_simhash.mapping.meta import check_max_distance

_T = TypeVar("_T")


def usable_cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _results(task: Callable[[], Iterable[_T]]) -> list[_T]:
    return list(task())


def in_order(tasks: Iterable[Callable[[], Iterable[_T]]], threads: int) -> Iterator[_T]:
    """
    Yield what *tasks* yield, the first task's results first, while up to *threads* threads run tasks.
    The results of a few tasks wait at a time. A caller who stops early waits for the tasks that run.
    """
    with ThreadPoolExecutor(threads) as pool:
        waiting: deque[Future[list[_T]]] = deque()
        try:
            for task in tasks:
                waiting.append(pool.submit(_results, task))
                if len(waiting) > threads:
                    yield from waiting.popleft().result()
            while waiting:
                yield from waiting.popleft().result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


# What the joins of all threads together may sort at once, unless one alone needs more.
MEMORY_BYTES = 2 << 30
# Pairs made at once of fingerprints that several places have.
CHUNK = 1 << 20
# Fewer fingerprints are joined by one thread.
_THREADED = 1 << 17


def distances_between(left: Fingerprints, right: Fingerprints) -> NDArray[np.uint8]:
    """Return the distance of each fingerprint in *left* to the one at the same place in *right*, in bits."""
    return count_bits(left ^ right)


def distinct_pairs(ordered: Fingerprints, max_distance: int) -> Iterator[PlacePairs]:
    """
    Yield the near pairs of places of *ordered*, which are distinct and sorted; the first place is the smaller.
    The same fingerprints are yielded in the same order whatever the number of threads; how many are in one part may
    differ. Memory: 8 bytes a fingerprint, and 8 for each thread.

    >>> [(left, right)] = distinct_pairs(np.array([0, 7, 1 << 63], np.uint64), 2)
    >>> left.tolist(), right.tolist()
    ([0], [2])
    """
    check_max_distance(max_distance)
    if len(ordered) < 2 or not max_distance:
        return
    tasks = [partial(_placed, share, ordered) for share in share_joins(ordered, max_distance)]
    if len(ordered) >= _THREADED:
        yield from in_order(tasks, max(1, min(usable_cores(), MEMORY_BYTES // (8 * len(ordered)))))
    else:
        for task in tasks:
            yield from task()


def _placed(share: Share, ordered: Fingerprints) -> Iterator[PlacePairs]:
    for left, right in share():
        yield ordered.searchsorted(np.minimum(left, right)), ordered.searchsorted(np.maximum(left, right))


def expand_ranges(left: Places, first: Places, last: Places) -> Iterator[PlacePairs]:
    """Yield each of *left* with every number from *first* to before *last*, in parts of bounded size."""
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
        hot: list[slice] = []
        near = scan(taken, swaps.width, self.max_distance, hot)
        for found in _merged((taken[left], taken[right]) for left, right in near):
            for side in found:
                swaps.apply(side)
            yield from self.unseen(*found)
        for bucket in hot:
            yield from self._within(taken[bucket], swaps)

    def unseen(self, left: Fingerprints, right: Fingerprints) -> Iterator[ValuePairs]:
        """Yield those of the pairs of *left* and *right* that no join before this one finds."""
        differing = left ^ right
        for key in (*self.before, *self.keys[: self.number]):
            if not len(left):
                return
            is_new = (differing & np.uint64(key)) != 0
            left, right, differing = left[is_new], right[is_new], differing[is_new]
        yield left, right

    def all_pairs(self, rows: slice) -> Iterator[ValuePairs]:
        """Yield the near pairs whose first place is one of *rows*, comparing every two."""
        pairs = every_pair(self.values, self.max_distance, rows)
        for found in _merged((self.values[left], self.values[right]) for left, right in pairs):
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


def _merged(found: Iterable[ValuePairs]) -> Iterator[ValuePairs]:
    """Put pairs together to fewer and larger arrays."""
    waiting: list[ValuePairs] = []
    count = 0
    for part in found:
        waiting.append(part)
        count += len(part[0])
        if count >= STEP:
            yield _join_pairs(waiting)
            waiting, count = [], 0
    if waiting:
        yield _join_pairs(waiting)


def _join_pairs(parts: list[ValuePairs]) -> ValuePairs:
    return np.concatenate([left for left, _ in parts]), np.concatenate([right for _, right in parts])


ALL_BITS = tuple(range(BITS - 1, -1, -1))
# A fingerprint that passes between processes costs more than one that is moved in memory; candidates cost the same.
COSTS = Costs(400.0, 1.3, 5_000_000.0)
# About so many fingerprints make a share: small enough for the memory of any task, large enough for numpy.
SHARE = 1 << 19
# An odd number without pattern, so that the first bits of a product depend on all bits.
_MIX = np.uint64(0x9E37_79B9_7F4A_7C15)


@dataclass(frozen=True, slots=True)
class Shares:
    """
    The shares of a set of fingerprints: for each of *keys*, as masks, so many *sections* by the value of the key.
    Where no key pays (``[0]``), each section has them all, and compares its part of them with all.
    """

    max_distance: int
    keys: list[int]
    sections: int

    @classmethod
    def plan(cls, sample: Fingerprints, count: int, max_distance: int) -> Self:
        """Return the shares for *count* distinct fingerprints; a *sample* that is not random makes them uneven."""
        keys = choose_keys(sample, list(ALL_BITS), max_distance, count=count, costs=COSTS)
        return cls(max_distance, keys, -(-count // SHARE))

    def route(self, values: Fingerprints) -> Iterator[tuple[int, Fingerprints]]:
        """Yield the numbers of shares, and which of *values* go there."""
        for number, key in enumerate(self.keys):
            parts = [values] * self.sections
            if key:
                section = (((values & np.uint64(key)) * _MIX >> np.uint64(32)) % np.uint64(self.sections)).astype(int)
                ends = np.cumsum(np.bincount(section, minlength=self.sections))
                parts = np.split(values[np.argsort(section, kind="stable")], ends[:-1])
            yield from ((share, part) for share, part in enumerate(parts, number * self.sections) if len(part))

    def pairs(self, share: int, values: Fingerprints) -> Iterator[ValuePairs]:
        """Yield the pairs of a share; *values* are all that were sent to it, each once, in any order."""
        number, place = divmod(share, self.sections)
        join = Join(np.sort(values), list(ALL_BITS), self.keys, number, self.max_distance, ())
        if join.key:
            yield from join.pairs()
        else:
            ends = np.linspace(0, len(values), self.sections + 1).astype(int).tolist()
            yield from join.all_pairs(slice(ends[place], ends[place + 1]))
