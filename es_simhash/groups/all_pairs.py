"""
All pairs of fingerprints within a distance: exact, on all cores, in bounded memory.

Arrays in, arrays out: no documents, no server. ``index.joins`` finds the pairs of distinct fingerprints; here they
become pairs of places. ``assign`` makes groups of the pairs. numpy is loaded here, so callers import this module when
they first need it.

Pairs of neighbours, kept for as many rounds as the rules of grouping need: in memory, and in the caller's file beyond.

Arrays only; what the pairs mean is decided in ``assign``. No file is made here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import IO, Self

import numpy as np
from numpy.typing import NDArray

from es_simhash.groups.join import Ranks, ValuePairs, share_joins, sort_places
from es_simhash.groups.threads import in_order, usable_cores
from es_simhash.hashing.kernels import count_bits
from es_simhash.mapping.limits import check_max_distance

Fingerprints = NDArray[np.uint64]


Places = NDArray[np.int64]


MEMORY_BYTES = 2 << 30
"""What the joins of all threads together sort at once, in bytes, unless the caller says otherwise."""


# Pairs made at once of fingerprints that several places have.
CHUNK = 1 << 20


# Fewer fingerprints are joined by one thread.
_THREADED = 1 << 17


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

    left: Places
    right: Places
    distance: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.left)


def distances_between(left: Fingerprints, right: Fingerprints) -> NDArray[np.uint8]:
    """
    Return the distance of each fingerprint in *left* to the one at the same place in *right*, in bits.
    """
    return count_bits(left ^ right)


def near_pairs(
    values: Fingerprints, max_distance: int, *, threads: int | None = None, memory_bytes: int | None = None
) -> Iterator[Pairs]:
    """
    Yield every pair of *values* within *max_distance*, each once, in parts of bounded size.

    The same fingerprints are yielded in the same order whatever the number of threads and the bound; how many are in
    one part may differ. Equal values make pairs with each other: collapse them first (``numpy.unique``) where there may
    be many. Memory: 8 bytes a fingerprint where they are sorted and distinct, else 24, *memory_bytes*, and 100 MB.

    Args:
        values:
            Fingerprints, ``numpy.uint64``.
        max_distance:
            Largest distance of a pair in bits, inclusive, 0 to 64.
        threads:
            How many threads search; by default one for each core.
        memory_bytes:
            How much is sorted at once by all threads together, in bytes. Less than 8 bytes a fingerprint and thread
            costs time. Fingerprints that agree in the first bits of a key are not divided, even beyond this bound.

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


# Pairs kept in memory where there is a file for the others. A pair takes 8 bytes, and 16 where there are more than
# 2**32 places.
MOST_EDGES = 20_000_000


# Pairs read from the file at once.
STEP = 1 << 20


class Edges:
    """
    Pairs of places, which can be read again and again in the same order.

    Use it in a ``with`` statement: the file is closed at its end.

    Args:
        count:
            How many places there are.
        pairs:
            The pairs; each array is read once.
        spill:
            Opens an empty file, to be written and read, for the pairs beyond :data:`MOST_EDGES`; ``None`` keeps all
            pairs in memory.
    """

    def __init__(
        self, count: int, pairs: Iterable[tuple[Places, Places]], spill: Callable[[], IO[bytes]] | None = None
    ) -> None:
        self._spill = spill
        self._type = np.dtype(np.uint32 if count <= 1 << 32 else np.uint64)
        self._parts: list[NDArray[np.unsignedinteger]] = []
        self._file: IO[bytes] | None = None
        try:
            self._keep(pairs)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[tuple[Places, Places]]:
        """Yield the pairs as (earlier, later)."""
        for part in self._parts:
            yield part[:, 0].astype(np.int64), part[:, 1].astype(np.int64)
        if self._file is not None:
            self._file.seek(0)
            while data := self._file.read(2 * STEP * self._type.itemsize):
                part = np.frombuffer(data, self._type).reshape(-1, 2)
                yield part[:, 0].astype(np.int64), part[:, 1].astype(np.int64)

    def _keep(self, pairs: Iterable[tuple[Places, Places]]) -> None:
        kept = 0
        for left, right in pairs:
            part = np.stack((np.minimum(left, right), np.maximum(left, right)), axis=1).astype(self._type)
            kept += len(part)
            if kept <= MOST_EDGES or self._spill is None:
                self._parts.append(part)
            else:
                self._file = self._file or self._spill()
                self._file.write(part.tobytes())

    def close(self) -> None:
        """Close the file, where there is one."""
        if self._file is not None:
            self._file.close()
