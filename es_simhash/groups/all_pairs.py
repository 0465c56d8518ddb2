"""All pairs of fingerprints within a distance, exact, in bounded memory, on all cores. Loads numpy: import lazily."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from es_simhash.groups.joins import Fingerprints, PlacePairs, Places
from es_simhash.groups.shares import Share, share_joins
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


@dataclass(frozen=True, slots=True)
class Pairs:
    """Some of the pairs found: positions of two different fingerprints, and distances in bits."""

    left: Places
    right: Places
    distance: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.left)


def distances_between(left: Fingerprints, right: Fingerprints) -> NDArray[np.uint8]:
    """Return the distance of each fingerprint in *left* to the one at the same place in *right*, in bits."""
    return count_bits(left ^ right)


def near_pairs(values: Fingerprints, max_distance: int) -> Iterator[Pairs]:
    """
    Yield every pair of *values* within *max_distance*, each once, in parts of bounded size.

    The same fingerprints are yielded in the same order whatever the number of threads; how many are in one part may
    differ. Equal values make pairs with each other: collapse them first (``numpy.unique``) where there may be many.
    Memory: 8 bytes a fingerprint where they are sorted and distinct, else 24, and 8 for each thread.

    >>> [found] = near_pairs(np.array([0, 7, 1 << 63], np.uint64), 2)
    >>> found.left.tolist(), found.right.tolist(), found.distance.tolist()
    ([0], [2], [1])
    """
    check_max_distance(max_distance)
    values = np.ascontiguousarray(values, np.uint64)
    if _is_increasing(values):
        yield from _distinct_pairs(values, max_distance)
        return
    places = np.argsort(values, kind="stable")
    ordered = values[places]
    is_first = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    if is_first.all():
        for found in _distinct_pairs(ordered, max_distance):
            yield Pairs(places[found.left], places[found.right], found.distance)
        return
    starts = np.append(np.flatnonzero(is_first), len(ordered))
    followed = np.flatnonzero(~is_first[1:])
    ends = starts[np.searchsorted(starts, followed, side="right")]
    for left, right in expand_ranges(followed, followed + 1, ends):
        yield Pairs(places[left], places[right], np.zeros(len(left), np.uint8))
    del followed, ends
    for found in _distinct_pairs(ordered[starts[:-1]], max_distance):
        for pair, left in expand_ranges(np.arange(len(found)), starts[found.left], starts[found.left + 1]):
            other = found.right[pair]
            for row, right in expand_ranges(np.arange(len(pair)), starts[other], starts[other + 1]):
                yield Pairs(places[left[row]], places[right], found.distance[pair[row]])


def _is_increasing(values: Fingerprints) -> bool:
    return all(
        (values[begin + 1 : begin + CHUNK + 1] > values[begin : begin + CHUNK][: len(values) - begin - 1]).all()
        for begin in range(0, len(values), CHUNK)
    )


def _distinct_pairs(ordered: Fingerprints, max_distance: int) -> Iterator[Pairs]:
    """Yield the near pairs of places of *ordered*, which are distinct and sorted; the first place is the smaller."""
    if len(ordered) < 2 or not max_distance:
        return
    tasks = [partial(_placed, share, ordered) for share in share_joins(ordered, max_distance)]
    if len(ordered) >= _THREADED:
        yield from in_order(tasks, max(1, min(usable_cores(), MEMORY_BYTES // (8 * len(ordered)))))
    else:
        for task in tasks:
            yield from task()


def _placed(share: Share, ordered: Fingerprints) -> Iterator[Pairs]:
    for left, right in share():
        smaller, larger = np.minimum(left, right), np.maximum(left, right)
        yield Pairs(ordered.searchsorted(smaller), ordered.searchsorted(larger), distances_between(left, right))


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
