"""All pairs of fingerprints within a distance, exact, in bounded memory, on all cores. Loads numpy: import lazily."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from queue import Queue
from threading import Event, Lock, Semaphore, Thread
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from es_simhash.groups.joins import Fingerprints, PlacePairs, Places
from es_simhash.groups.shares import Ranks, ValuePairs, share_joins, sort_places
from es_simhash.hashing.kernels import count_bits
from es_simhash.mapping.meta import check_max_distance

_T = TypeVar("_T")
# Results of one task that wait at most.
_WAITING = 4


def usable_cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def in_order(tasks: Sequence[Callable[[], Iterator[_T]]], threads: int) -> Iterator[_T]:
    """
    Yield what *tasks* yield, the first task's results first, while up to *threads* threads run tasks.
    Few results wait at a time. An exception of a task is raised in its place. When the caller stops early, the threads
    end at the next result of their tasks.
    """
    if threads <= 1 or len(tasks) <= 1:
        for task in tasks:
            yield from task()
        return
    waiting: list[Queue[_T | None]] = [Queue(_WAITING) for _ in tasks]
    failures: dict[int, BaseException] = {}
    numbers, lock, is_stopped = iter(range(len(tasks))), Lock(), Event()
    # How far tasks may run ahead of the one that is read.
    ahead = Semaphore(2 * threads)

    def work() -> None:
        while ahead.acquire() and not is_stopped.is_set():
            with lock:
                number = next(numbers, None)
            if number is None:
                return
            try:
                for result in tasks[number]():
                    waiting[number].put(result)
                    if is_stopped.is_set():
                        return
            except BaseException as error:  # noqa: BLE001 -- raised where the results are read
                failures[number] = error
            waiting[number].put(None)

    # Daemons: a program that ends while results are left does not wait for them.
    workers = [Thread(target=work, daemon=True) for _ in range(min(threads, len(tasks)))]
    for each in workers:
        each.start()
    try:
        for number, results in enumerate(waiting):
            while (found := results.get()) is not None:
                yield found
            if number in failures:
                raise failures[number]
            ahead.release()
    finally:
        is_stopped.set()
        ahead.release(len(workers))
        for each in workers:
            while each.is_alive():
                for results in waiting:  # a thread may wait for room
                    while not results.empty():
                        results.get()
                each.join(0.01)


MEMORY_BYTES = 2 << 30
"""What the joins of all threads together sort at once, in bytes, unless the caller says otherwise."""
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


def near_pairs(
    values: Fingerprints, max_distance: int, *, threads: int | None = None, memory_bytes: int | None = None
) -> Iterator[Pairs]:
    """
    Yield every pair of *values* within *max_distance*, each once, in parts of bounded size.

    The same fingerprints are yielded in the same order whatever the number of threads and the bound; how many are in
    one part may differ. Equal values make pairs with each other: collapse them first (``numpy.unique``) where there may
    be many. *threads*: by default one for each core. *memory_bytes*: what all threads together sort at once; less than
    8 bytes a fingerprint and thread costs time, and fingerprints that agree in the first bits of a key are not divided,
    even beyond it. Memory: 8 bytes a fingerprint where they are sorted and distinct, else 24, *memory_bytes*, and
    100 MB.

    >>> [found] = near_pairs(np.array([0, 7, 1 << 63], np.uint64), 2)
    >>> found.left.tolist(), found.right.tolist(), found.distance.tolist()
    ([0], [2], [1])
    """
    check_max_distance(max_distance)
    values = np.ascontiguousarray(values, np.uint64)
    if _is_increasing(values):
        yield from _distinct_pairs(values, max_distance, threads, memory_bytes)
        return
    ordered, places = sort_places(values)
    is_first = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    if is_first.all():
        for found in _distinct_pairs(ordered, max_distance, threads, memory_bytes):
            yield Pairs(places[found.left], places[found.right], found.distance)
        return
    starts = np.append(np.flatnonzero(is_first), len(ordered))
    followed = np.flatnonzero(~is_first[1:])
    ends = starts[np.searchsorted(starts, followed, side="right")]
    for left, right in expand_ranges(followed, followed + 1, ends):
        yield Pairs(places[left], places[right], np.zeros(len(left), np.uint8))
    del followed, ends
    for found in _distinct_pairs(ordered[starts[:-1]], max_distance, threads, memory_bytes):
        for pair, left in expand_ranges(np.arange(len(found)), starts[found.left], starts[found.left + 1]):
            other = found.right[pair]
            for row, right in expand_ranges(np.arange(len(pair)), starts[other], starts[other + 1]):
                yield Pairs(places[left[row]], places[right], found.distance[pair[row]])


def _is_increasing(values: Fingerprints) -> bool:
    return all(
        (values[begin + 1 : begin + CHUNK + 1] > values[begin : begin + CHUNK][: len(values) - begin - 1]).all()
        for begin in range(0, len(values), CHUNK)
    )


def _distinct_pairs(
    ordered: Fingerprints, max_distance: int, threads: int | None, memory_bytes: int | None
) -> Iterator[Pairs]:
    """Yield the near pairs of places of *ordered*, which are distinct and sorted; the first place is the smaller."""
    if len(ordered) < 2 or not max_distance:
        return
    workers = (threads or usable_cores()) if len(ordered) >= _THREADED else 1
    most = max(1, (memory_bytes or MEMORY_BYTES) // (8 * workers))
    shares = share_joins(ordered, max_distance, at_least=2 * workers if workers > 1 else 1, most=most)
    ranks = Ranks(ordered)
    yield from in_order([partial(_placed, share, ranks) for share in shares], workers)


def _placed(share: Callable[[], Iterator[ValuePairs]], ranks: Ranks) -> Iterator[Pairs]:
    for left, right in share():
        smaller, larger = np.minimum(left, right), np.maximum(left, right)
        yield Pairs(ranks.of(smaller), ranks.of(larger), distances_between(left, right))


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
