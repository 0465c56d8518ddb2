"""
Into which parts fingerprints are cut so that near ones are found by looking parts up: the choice, by cost.

Plain integers: no arrays of fingerprints. Give part i a radius r_i with ``sum(r_i + 1) = max_distance + 1``: two
fingerprints that differed in more than r_i bits of every part would differ in more than ``max_distance`` bits. So those
within the distance differ in at most r_i bits of some part i, and a lookup of all words within r_i of that part finds
them (general pigeonhole: Qin, Xiao, Wang and Wang, TKDE 2019). A part may leave bits out, which only adds candidates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from math import comb

__all__ = ["Part", "Parts", "choose_parts"]

BITS = 64
MOST_PARTS = 8
# A table of first words has about so many entries for each fingerprint, and never fewer or more bits than these.
FEWEST_BITS, MOST_BITS = 4, 24
# Nanoseconds: to look one word up, to compare one candidate, to compare one fingerprint of a scan.
WORD, CANDIDATE, SCANNED = 15.0, 15.0, 1.0
# More words than these are not looked up for one fingerprint: it is compared with all.
MOST_WORDS = 1 << 16


@dataclass(frozen=True, slots=True)
class Part:
    """
    Some bits of a fingerprint that stand side by side.

    Attributes:
        begin:
            How many bits are above it.
        width:
            How many bits it has.
        radius:
            In how many of them a near fingerprint may differ.
    """

    begin: int
    width: int
    radius: int

    @property
    def words(self) -> int:
        """How many words are within the radius of one."""
        return sum(comb(self.width, flips) for flips in range(self.radius + 1))


Parts = tuple[Part, ...]


def choose_parts(count: int, max_distance: int, density: Callable[[Part], float] = lambda _: 1.0) -> Parts:
    """
    Return the parts that find all of *count* fingerprints within *max_distance* of one at the least estimated cost.

    Empty if it is cheapest to compare each with all. The same arguments always give the same parts.

    Args:
        count:
            How many fingerprints there are.
        max_distance:
            Largest distance in bits, inclusive.
        density:
            Returns how many times more fingerprints have the word of a part than if words were evenly spread.
    """
    best, chosen = SCANNED * count, Parts()
    for parts in sorted(_choices(count.bit_length(), max_distance), key=lambda each: _cost(each, count)):
        if _cost(parts, count) >= best:
            break  # uneven words only add to the cost
        cost = _cost(parts, count, density)
        if cost < best:
            best, chosen = cost, parts
    return chosen


def _cost(parts: Parts, count: int, density: Callable[[Part], float] = lambda _: 1.0) -> float:
    """Return the nanoseconds that a lookup is expected to take."""
    return sum((each.words * (WORD + CANDIDATE * count * density(each) / (1 << each.width)) for each in parts), 0.0)


@cache
def _choices(count_bits: int, max_distance: int) -> tuple[Parts, ...]:
    widest = min(max(count_bits + 1, FEWEST_BITS), MOST_BITS)
    found = (tuple(_cut(parts, max_distance, widest)) for parts in range(1, min(MOST_PARTS, max_distance + 1) + 1))
    return tuple(parts for parts in found if sum(each.words for each in parts) <= MOST_WORDS)


def _cut(parts: int, max_distance: int, widest: int) -> Iterator[Part]:
    """Yield so many parts of nearly equal width, the widest ones with the larger radii."""
    edges = [BITS * number // parts for number in range(parts + 1)]
    spare = max_distance + 1 - parts
    for number, (begin, end) in enumerate(pairwise(edges)):
        yield Part(begin, min(end - begin, widest), spare // parts + (number < spare % parts))
