"""
The exact table of fingerprints in memory, and the choice of the parts by which near ones are found.

Give part i a radius r_i with ``sum(r_i + 1) = max_distance + 1``: two fingerprints that differ in more than
r_i bits of every part differ in more than ``max_distance`` bits. So a lookup of all words within r_i of each
part finds all that are near (general pigeonhole: Qin, Xiao, Wang and Wang, TKDE 2019). A part may leave bits
out, which only adds candidates.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, combinations, pairwise
from math import ceil, comb, sqrt

import numpy as np
from numpy.typing import NDArray

from es_simhash.hashing.kernels import count_bits

BITS = 64

MOST_PARTS = 8

# A table of first words has about so many entries for each fingerprint, and never fewer or more bits than these.
FEWEST_BITS, MOST_BITS = 4, 24

# Most candidates that are read and compared at once.
WINDOW = 16

# Nanoseconds: to look one word up, to read where it begins, to compare one candidate, or one fingerprint of a scan.
WORD, BEGUN, CANDIDATE, SCANNED = 10.0, 20.0, 4.0, 1.0

# More words than these are not looked up for one fingerprint: it is compared with all.
MOST_WORDS = 1 << 16


@dataclass(frozen=True, slots=True)
class BitRange:
    """Some adjacent bits of a fingerprint: *begin* bits are above them, near ones differ in *radius* at most."""

    begin: int
    width: int
    radius: int

    @property
    def words(self) -> int:
        """How many words are within the radius of one."""
        return sum(comb(self.width, flips) for flips in range(self.radius + 1))


Parts = tuple[BitRange, ...]


def choose_parts(count: int, max_distance: int) -> Parts:
    """
    Return the parts that find all near ones of *count* fingerprints at the least estimated cost, if words are evenly
    spread. Empty if it is cheapest to compare with all. The same arguments always give the same parts.
    """
    choices = _choices(count.bit_length(), max_distance) if count >= WINDOW else ()
    return min(((), *choices), key=lambda parts: _cost(parts, count))


def _cost(parts: Parts, count: int) -> float:
    """Return the nanoseconds that a lookup is expected to take."""
    cost = 0.0 if parts else SCANNED * count
    for part in parts:
        run = count / (1 << part.width)
        read = max(_window(run), run)
        cost += part.words * (WORD + min(1.0, run) * (BEGUN + CANDIDATE * read))
    return cost


def _window(run: float) -> int:
    """Return how many candidates are read at once where a word has *run* of them: most runs are not longer."""
    return min(WINDOW, 1 << ceil(run + sqrt(run)).bit_length())


@cache
def _choices(count_bits: int, max_distance: int) -> tuple[Parts, ...]:
    widest = min(max(count_bits + 1, FEWEST_BITS), MOST_BITS)
    found = (tuple(_cut(parts, max_distance, widest)) for parts in range(1, min(MOST_PARTS, max_distance + 1) + 1))
    return tuple(parts for parts in found if sum(part.words for part in parts) <= MOST_WORDS)


def _cut(parts: int, max_distance: int, widest: int) -> Iterator[BitRange]:
    """Yield so many parts of nearly equal width, the widest ones with the larger radii."""
    edges = [BITS * number // parts for number in range(parts + 1)]
    spare = max_distance + 1 - parts
    for number, (begin, end) in enumerate(pairwise(edges)):
        yield BitRange(begin, min(end - begin, widest), spare // parts + (number < spare % parts))


Fingerprints = NDArray[np.uint64]

Places = NDArray[np.int64]

# Row of the fingerprint asked for, and the fingerprint of the table that is near it; a pair may come several times.
Found = tuple[Places, Fingerprints]

# The fingerprints near one, by that one; what has none near it is left out.
Near = Mapping[int, Sequence[int]]

# So many of the last added are compared one by one.
TAIL = 1 << 11

# A level takes in the one after it when that has more than this share of its size.
SHARE = 1 / 16

# Compared at once: a few arrays of this length stay in a core's second-level cache.
BLOCK = 1 << 16


class FingerprintTable:
    """
    Distinct fingerprints, for lookups within one distance; nothing is ever taken out.
    What was added last is compared one by one. The rest is in levels, sorted once for each part; levels of nearly equal
    size are joined, so that there are few.
    Memory: 8 bytes a fingerprint for each part, of which there are 3 or 4 for most distances, and up to 20 more for the
    table of first words of each; while levels are joined, about twice as much.
    """

    def __init__(self, max_distance: int) -> None:
        self._max_distance = max_distance
        self._levels: list[_Level] = []
        self._tail = np.empty(0, np.uint64)

    def __len__(self) -> int:
        return sum(map(len, self._levels)) + len(self._tail)

    @property
    def nbytes(self) -> int:
        """How many bytes the fingerprints and their tables occupy."""
        levels = sum(bytes_for(len(level), self._max_distance) for level in self._levels)
        return levels + self._tail.nbytes

    def add(self, fingerprints: Fingerprints) -> Fingerprints:
        """Add *fingerprints* and return those that the table did not have, sorted, each once."""
        new = _unique(fingerprints)
        for known in (self._tail, *(level.ordered for level in self._levels)):
            if len(known):
                new = new[known.take(np.searchsorted(known, new), mode="clip") != new]
        if len(new):
            self._tail = np.sort(np.concatenate((self._tail, new)))
            if len(self._tail) > TAIL:
                self._push()
        return new

    def _push(self) -> None:
        """Make a level of the last added, joined with the levels that are not much larger."""
        merged, self._tail = self._tail, self._tail[:0]
        while self._levels and len(self._levels[-1]) * SHARE < len(merged):
            merged = np.concatenate((self._levels.pop().ordered, merged))
        merged.sort(kind="stable")  # runs that are sorted are only merged
        self._levels.append(_Level(merged, self._max_distance))

    def near(self, wanted: Sequence[int]) -> Near:
        """Return the fingerprints of the table within the distance of each of *wanted*, in order."""
        asked = np.asarray(wanted, np.uint64)
        return _by_fingerprint(list(self._near(asked)), asked)

    def near_pairs(self, wanted: Fingerprints) -> Found:
        """Return :meth:`near` as two arrays, each pair once: places in *wanted*, and what is near them, in order."""
        return _each_once(list(self._near(wanted)))

    def _near(self, wanted: Fingerprints) -> Iterator[Found]:
        yield from _near_pairs(wanted, self._tail, self._max_distance)
        for level in self._levels:
            yield from level.near(wanted)

    def near_others(self, wanted: Sequence[int]) -> Near:
        """Return :meth:`near`, and those of *wanted* themselves, but none that is equal."""
        asked = np.asarray(wanted, np.uint64)
        found = chain(_near_pairs(asked, asked, self._max_distance), self._near(asked))
        others = [(row[other], value[other]) for row, value in found if (other := asked.take(row) != value).any()]
        return _by_fingerprint(others, asked)

    def near_among(self, wanted: Sequence[int], others: Fingerprints) -> Near:
        """Return those of *others* within the distance of each of *wanted*, in order."""
        asked = np.asarray(wanted, np.uint64)
        return _by_fingerprint(list(_near_pairs(asked, others, self._max_distance)), asked)


def bytes_for(count: int, max_distance: int) -> int:
    """Return how many bytes *count* sorted fingerprints and their tables occupy, once they were asked."""
    parts = choose_parts(count, max_distance)
    return 8 * count + sum(5 * (1 << part.width) + (8 * count if part.begin else 0) for part in parts)


def _unique(values: Fingerprints) -> Fingerprints:
    """Return *values* sorted, each once; for random ones ten times as fast as :func:`numpy.unique`."""
    ordered = np.sort(values)
    return ordered[np.concatenate(([True], ordered[1:] != ordered[:-1]))] if len(ordered) else ordered


def _each_once(found: list[Found]) -> Found:
    if not found:
        return np.empty(0, np.int64), np.empty(0, np.uint64)
    row, value = map(np.concatenate, zip(*found, strict=True))
    order = np.lexsort((value, row))
    row, value = row[order], value[order]
    is_new = np.ones(len(row), np.bool_)
    is_new[1:] = (row[1:] != row[:-1]) | (value[1:] != value[:-1])
    return row[is_new], value[is_new]


def _by_fingerprint(found: list[Found], wanted: Fingerprints) -> Near:
    """Return the fingerprints *found* for each of *wanted*, sorted, each once."""
    if not found:
        return {}
    row, value = _each_once(found)
    begins = np.flatnonzero(np.concatenate(([True], row[1:] != row[:-1])))
    values, ends = value.tolist(), [*begins[1:].tolist(), len(value)]
    spans = zip(wanted.take(row[begins]).tolist(), begins.tolist(), ends, strict=True)
    return {one: values[begin:end] for one, begin, end in spans}


def _near_pairs(wanted: Fingerprints, values: Fingerprints, max_distance: int) -> Iterator[Found]:
    """Yield every pair of *wanted* and *values* within *max_distance*, comparing each with each."""
    if not len(values):
        return
    columns = min(len(values), BLOCK)
    rows = BLOCK // columns
    for top in range(0, len(wanted), rows):
        for begin in range(0, len(values), columns):
            part = values[begin : begin + columns]
            near = np.flatnonzero(count_bits(wanted[top : top + rows, np.newaxis] ^ part) <= max_distance)
            if len(near):
                row, column = np.divmod(near, len(part))
                yield row + top, part[column]


class _Level:
    """Fingerprints of a table, sorted by part only at the first lookup: a level may be joined before that."""

    def __init__(self, ordered: Fingerprints, max_distance: int) -> None:
        self.ordered = ordered
        self._max_distance = max_distance
        self._columns: list[_Column] | None = None

    def __len__(self) -> int:
        return len(self.ordered)

    def near(self, wanted: Fingerprints) -> Iterator[Found]:
        if self._columns is None:
            parts = choose_parts(len(self.ordered), self._max_distance)
            self._columns = [_Column(self.ordered, part) for part in parts]
        if not self._columns:
            yield from _near_pairs(wanted, self.ordered, self._max_distance)
        for column in self._columns:
            yield from column.near(wanted, self._max_distance)


def _turned(values: Fingerprints, bits: int) -> Fingerprints:
    return values << np.uint64(bits) | values >> np.uint64(BITS - bits) if bits else values


class _Column:
    """The fingerprints of a level sorted by one part, which is turned to the top, and where each word begins."""

    def __init__(self, ordered: Fingerprints, part: BitRange) -> None:
        self._begin, self._shift = part.begin, np.uint64(BITS - part.width)
        self._values = np.sort(_turned(ordered, part.begin)) if part.begin else ordered
        sizes = np.bincount((self._values >> self._shift).astype(np.int64), minlength=1 << part.width)
        self._starts = np.zeros(len(sizes) + 1, np.uint32)
        np.cumsum(sizes, out=self._starts[1:])
        self._window = _window(len(ordered) / len(sizes))
        # Every so many values that follow one another, without a copy of them.
        self._windows: NDArray[np.void] = np.ndarray(
            (len(self._values) - self._window + 1,), f"V{8 * self._window}", self._values, strides=(8,)
        )
        # Small enough for a core's second-level cache, where most words that are looked up have no fingerprint.
        self._is_filled = sizes > 0
        flips = (
            sum(1 << bit for bit in bits) for n in range(part.radius + 1) for bits in combinations(range(part.width), n)
        )
        self._flips = np.fromiter(flips, np.int64, part.words)

    def near(self, wanted: Fingerprints, max_distance: int) -> Iterator[Found]:
        turned = _turned(wanted, self._begin)
        words = (turned >> self._shift).astype(np.int64)
        rows = max(1, BLOCK // len(self._flips))
        for top in range(0, len(wanted), rows):
            looked_up = (words[top : top + rows, np.newaxis] ^ self._flips).ravel()
            filled = np.flatnonzero(self._is_filled.take(looked_up))
            found = looked_up.take(filled)
            starts, ends = (self._starts.take(word).astype(np.int64) for word in (found, found + 1))
            yield from self._compare(turned, filled // len(self._flips) + top, starts, ends, max_distance)

    def _compare(
        self, turned: Fingerprints, whose: Places, starts: Places, ends: Places, max_distance: int
    ) -> Iterator[Found]:
        """
        Yield what is near in the runs from *starts* to *ends*, each of which belongs to a row *whose*.
        A run is read by windows of equal length, which takes fewer passes than by its own: what follows it, or stands
        before it at the end of the table, may be near too.
        """
        window, rows = self._window, BLOCK // self._window
        last = len(self._values) - window
        while len(starts):
            for first in range(0, len(starts), rows):
                row = whose[first : first + rows]
                windows = self._windows[np.minimum(starts[first : first + rows], last)]
                values = windows.view(np.uint64).reshape(-1, window)
                asked = turned.take(row)[:, np.newaxis]
                apart = np.bitwise_xor(values, asked, out=values)
                near = np.flatnonzero(count_bits(apart) <= max_distance)
                if len(near):
                    found = values.take(near) ^ turned.take(row.take(near // window))
                    yield row.take(near // window), _turned(found, BITS - self._begin if self._begin else 0)
            starts = starts + window
            longer = np.flatnonzero(starts < ends)
            starts, ends, whose = starts.take(longer), ends.take(longer), whose.take(longer)
