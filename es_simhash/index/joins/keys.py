"""
Families of keys such that any two fingerprints within a distance agree in all bits of at least one key.

Plain integers: no arrays, and no estimate of what a family costs (``cost``).

The bits are cut into parts. Give part i a radius r_i with ``sum(r_i + 1) = max_distance + 1``: two fingerprints that
differed in more than r_i bits of every part would differ in at least ``sum(r_i + 1) > max_distance`` bits, so they
differ in at most r_i bits of some part i (general pigeonhole: Qin, Xiao, Wang and Wang, TKDE 2019). Cut this part into
``agreeing + r_i`` pieces: at most r_i of them contain a difference, so at least ``agreeing`` pieces are equal. The keys
of a part are therefore all choices of ``agreeing`` of its pieces (Manku, Jain and Sarma, WWW 2007, who have one part).

Bits that are left out of all parts change nothing in this proof: fingerprints within a distance are also within it in
any choice of their bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from math import comb

__all__ = ["Family", "families"]

MOST_KEYS = 1_500
"""Families with more keys are not considered."""


@dataclass(frozen=True, slots=True)
class Family:
    """
    One way to choose keys.

    Attributes:
        max_distance:
            The distance in bits that it is for, inclusive.
        parts:
            Into how many parts the bits are cut; 0 for the family of one key without bits, in which all agree.
        agreeing:
            Of how many pieces a key consists.
    """

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
        """
        Return the keys as masks of a fingerprint.

        Args:
            bits:
                Numbers of the bits that keys are made of, in the order in which they are cut; at least as many as there
                are pieces.
        """
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
    """
    Return the families for fingerprints of so many *bits*; the last one has a single key without bits.
    """
    found = []
    for parts in range(1, max_distance + 2):
        for agreeing in range(1, bits + 1):
            family = Family(max_distance, parts, agreeing)
            if family.pieces > bits or family.count > MOST_KEYS:
                break
            found.append(family)
    return (*found, Family(max_distance, 0, 0))
