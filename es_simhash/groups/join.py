"""
Fingerprints and their places: sorting a set so that pairs of fingerprints can be turned into pairs of places.

The joins of a set of fingerprints, each in shares that can be made one by one, in any thread.

A join brings the fingerprints with an equal key together by sorting them. No position is carried along: near pairs come
out as pairs of fingerprints. Which joins are made is decided in ``cost``, what is compared in ``scan``; threads are not
started here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from es_simhash.groups.joins import Swaps, choose_keys, every_pair, sample_of, scan

Fingerprints = NDArray[np.uint64]


Places = NDArray[np.int64]


BITS = 64


# Entries of the table of first bits: at most so many, and one for every few fingerprints.
_MOST_BITS = 22


# After so many halvings the search of numpy is faster.
_MOST_HALVINGS = 8


def sort_places(values: Fingerprints) -> tuple[Fingerprints, Places]:
    """
    Return *values* sorted, and the place of each before; equal ones in the order of their places.

    Sorting numbers is several times as fast as sorting places, so a number is made of the first bits of each
    fingerprint and its place. Those whose first bits are equal are put in order afterwards.
    """
    if not len(values):
        return values.copy(), np.empty(0, np.int64)
    low = np.uint64((1 << (len(values) - 1).bit_length()) - 1)
    packed = values & ~low
    packed |= np.arange(len(values), dtype=np.uint64)
    packed.sort()
    is_tied = np.zeros(len(values) + 1, np.bool_)
    np.less_equal(packed[1:] ^ packed[:-1], low, out=is_tied[1:-1])
    packed &= low
    places = packed.view(np.int64)
    ordered = values[places]
    tied = np.flatnonzero(is_tied[1:] | is_tied[:-1])
    if len(tied):
        # Stable: places of equal fingerprints stay in order. Runs stay where they are: their first bits differ.
        again = np.argsort(ordered[tied], kind="stable")
        ordered[tied], places[tied] = ordered[tied[again]], places[tied[again]]
    return ordered, places


class Ranks:
    """
    Looks up fingerprints in a sorted array.

    A table of their first bits leaves few places to search, unless their first bits are much alike.

    Args:
        ordered:
            Distinct fingerprints, sorted.
    """

    def __init__(self, ordered: Fingerprints) -> None:
        self._ordered = ordered
        bits = min(_MOST_BITS, max(1, len(ordered).bit_length() - 2))
        self._shift = np.uint64(BITS - bits)
        firsts = np.arange(1 << bits, dtype=np.uint64) << self._shift
        self._starts = np.append(np.searchsorted(ordered, firsts), len(ordered))
        self._halvings = int(np.diff(self._starts).max()).bit_length()

    def of(self, values: Fingerprints) -> Places:
        """Return the place of each of *values*, all of which are in the array."""
        if self._halvings > _MOST_HALVINGS:
            return np.searchsorted(self._ordered, values)
        first = (values >> self._shift).astype(np.int64)
        low, high = self._starts[first], self._starts[first + 1]
        for _ in range(self._halvings):
            middle = (low + high) >> 1
            is_before = self._ordered.take(middle, mode="clip") < values
            is_before &= low < high
            low, high = np.where(is_before, middle + 1, low), np.where(is_before, high, middle)
        return low


ValuePairs = tuple[Fingerprints, Fingerprints]


Share = Callable[[], Iterator[ValuePairs]]


# A section of a join has about so many fingerprints; shares are made of whole sections.
SECTION = 1 << 17


# Fingerprints of the table looked at once, to pick those of a share.
WINDOW = 1 << 16


_ROWS = 1 << 13


# Pairs that are handed on at once.
STEP = 1 << 17


@dataclass(frozen=True, slots=True)
class Join:
    """
    One join of *values*.

    Attributes:
        values:
            Distinct fingerprints.
        bits:
            Which bits of them differ at all within this set.
        keys:
            The keys of all joins, as masks.
        number:
            Which of them this one is.
        max_distance:
            Largest distance in bits, inclusive.
        before:
            Keys of an enclosing join and those before it: a pair that agrees in one of them is yielded there.
    """

    values: Fingerprints
    bits: list[int]
    keys: list[int]
    number: int
    max_distance: int
    before: Sequence[int]

    @property
    def key(self) -> int:
        """The key of this join, as a mask."""
        return self.keys[self.number]

    def pairs(self, begin: int, end: int, sections: int) -> Iterator[ValuePairs]:
        """Yield the pairs of the sections from *begin* up to *end*, of so many, that no key before finds."""
        swaps = Swaps(self.key)
        section_bits = sections.bit_length() - 1
        taken = self._take(swaps, begin, end, section_bits)
        taken.sort()
        edges = [np.searchsorted(taken, np.uint64(each << (BITS - section_bits))) for each in range(begin + 1, end)]
        # Sections are scanned one by one, so that the order of pairs does not depend on the size of a share.
        for found in _collect(self._scan(np.split(taken, edges), swaps.width)):
            if not isinstance(found, tuple):
                yield from self._within(found, swaps)
            else:
                for side in found:
                    swaps.apply(side)
                yield from self.unseen(*found)

    def _scan(self, sections: list[Fingerprints], width: int) -> Iterator[ValuePairs | Fingerprints]:
        for section in sections:
            for found in scan(section, width, self.max_distance):
                if isinstance(found, slice):
                    yield section[found]
                else:
                    yield section[found[0]], section[found[1]]

    def unseen(self, left: Fingerprints, right: Fingerprints) -> Iterator[ValuePairs]:
        """Yield those of the pairs of *left* and *right* that no join before this one finds."""
        yield from _unseen(left, right, (*self.before, *self.keys[: self.number]))

    def all_pairs(self, rows: slice) -> Iterator[ValuePairs]:
        """Yield the near pairs whose first place is one of *rows*, comparing every two."""
        pairs = every_pair(self.values, self.max_distance, rows)
        for found in _collect((self.values[left], self.values[right]) for left, right in pairs):
            yield from self.unseen(*found)

    def _take(self, swaps: Swaps, begin: int, end: int, section_bits: int) -> Fingerprints:
        """Return a copy of the fingerprints of the sections, with the key at the top."""
        if end - begin == 1 << section_bits:
            taken = self.values.copy()
            swaps.apply(taken)
            return taken
        # Only as much of this as is written to takes memory.
        taken, count = np.empty(len(self.values), np.uint64), 0
        first, size = np.uint64(begin << (BITS - section_bits)), np.uint64((end - begin << (BITS - section_bits)) - 1)
        for place in range(0, len(self.values), WINDOW):
            part = self.values[place : place + WINDOW].copy()
            swaps.apply(part)
            part = part[part - first <= size]
            taken[count : count + len(part)] = part
            count += len(part)
        return taken[:count]

    def _within(self, bucket: Fingerprints, swaps: Swaps) -> Iterator[ValuePairs]:
        """Yield the pairs of a hot bucket: by joins of their own, of the bits that are not of the key."""
        values = bucket.copy()
        swaps.apply(values)
        bits = [bit for bit in self.bits if not self.key >> bit & 1]
        before = (*self.before, *self.keys[: self.number])
        for share in share_joins(values, self.max_distance, bits=bits, before=before):
            yield from share()


def share_joins(
    values: Fingerprints,
    max_distance: int,
    *,
    bits: list[int] | None = None,
    before: Sequence[int] = (),
    at_least: int = 1,
    most: int | None = None,
) -> list[Share]:
    """
    Return functions which together yield every pair of *values* within *max_distance* once.

    Each sorts a part of the fingerprints, which takes 8 bytes for each of them. One after the other, they yield the
    same pairs in the same order, however many they are.

    Args:
        values:
            Distinct fingerprints.
        max_distance:
            Largest distance in bits, inclusive.
        bits:
            The bits in which they may differ, the most significant first; by default all.
        before:
            Keys: a pair that agrees in one of them is left out.
        at_least:
            How many functions are wanted, so that each thread has work.
        most:
            How many fingerprints each may sort; by default all. A section, into which keys are cut by their first bits,
            is never divided, even where it has more.
    """
    bits = list(range(BITS - 1, -1, -1)) if bits is None else bits
    keys = choose_keys(values, bits, max_distance)
    joins = [Join(values, bits, keys, number, max_distance, before) for number in range(len(keys))]
    if keys == [0]:
        rows = range(0, len(values), _ROWS)
        return [partial(joins[0].all_pairs, slice(first, first + _ROWS)) for first in rows]
    found: list[Share] = []
    sample = sample_of(values)
    for join in joins:
        sections = 1 << min(join.key.bit_count(), max(0, (len(values) // SECTION).bit_length() - 1))
        shares = max(-(-at_least // len(joins)), -(-len(values) // (most or len(values))))
        for begin, end in _divide(sample, join.key, sections, shares):
            found.append(partial(join.pairs, begin, end, sections))
    return found


def _divide(sample: Fingerprints, key: int, sections: int, shares: int) -> list[tuple[int, int]]:
    """Return ranges of sections which have nearly equal shares of the sample."""
    if shares == 1 or sections == 1:
        return [(0, sections)]
    swapped = sample.copy()
    Swaps(key).apply(swapped)
    swapped.sort()
    numbers = (swapped >> np.uint64(BITS + 1 - sections.bit_length())).astype(np.int64)
    edges = {0, sections}
    for share in range(1, shares):
        edges.add(int(numbers[share * len(numbers) // shares]))
    ordered = sorted(edges)
    return list(pairwise(ordered))


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
