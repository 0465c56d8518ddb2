"""
Lookup plans: which block terms a document must share to be a candidate at a distance.

Arithmetic only: from max_distance and the size of the index to radii and a ``minimum_should_match``. The query
that a plan turns into is written in ``query``; what a server answers is nobody's business here.

A fingerprint within k bits of another has block distances d0..d3 that add up to at most k. For radii R, the sum
over the blocks of the number of radii that reach the block's distance therefore never falls below

    msm(k, R) = min over d0 + d1 + d2 + d3 <= k of  sum_i #{ r in R : d_i <= r }

so a bool query with one should clause for each block and radius, and that minimum_should_match, excludes no
near-duplicate. R = (0) is the pigeonhole of Manku, Jain and Das Sarma (WWW 2007, section 3); searching around a
block is multi-index hashing (Norouzi, Punjani and Fleet, CVPR 2012); docs/lookup.md has the proof.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import combinations
from math import comb

from es_simhash.errors import InvalidInputError, shorten

__all__ = [
    "DEFAULT_MAX_DISTANCE",
    "LookupPlan",
    "check_max_distance",
    "minimum_should_match",
    "plan_lookup",
]

DEFAULT_MAX_DISTANCE = 3
BLOCKS = 4
BLOCK_BITS = 16
MAX_RADIUS = 4  # 2,517 terms a block; radius 5 would be 6,885


@dataclass(frozen=True, slots=True)
class LookupPlan:
    """
    A necessary condition, in block terms, for being within a distance.

    Args:
        max_distance:
            Largest distance of a near-duplicate, in bits, that the plan never excludes.
        radii:
            One should clause stands in the query for each block and radius. Empty: every fingerprinted document
            is a candidate.
        minimum_should_match:
            How many of those clauses a candidate matches at least.
        candidate_share:
            Share of the documents expected to be candidates if fingerprints were uniformly random, 0 to 1.
    """

    max_distance: int
    radii: tuple[int, ...]
    minimum_should_match: int
    candidate_share: float

    @property
    def is_scan(self) -> bool:
        """Whether the plan reads every fingerprint."""
        return not self.radii

    @property
    def terms(self) -> int:
        """Number of block terms in the query."""
        return BLOCKS * sum(neighbour_count(radius) for radius in self.radii)

    @property
    def name(self) -> str:
        """Short name: ``r0,1 msm5`` or ``scan``."""
        return "scan" if self.is_scan else f"r{','.join(map(str, self.radii))} msm{self.minimum_should_match}"


def check_max_distance(max_distance: int) -> int:
    """
    Return *max_distance* if it is a whole number of bits from 0 to 64.

    Raises:
        TypeError: If it is not an int.
        InvalidInputError: If it is out of range.
    """
    if isinstance(max_distance, bool) or not isinstance(max_distance, int):
        raise TypeError(f"max_distance must be an int (bits, 0 to 64), not {type(max_distance).__name__}")
    if not 0 <= max_distance <= BLOCKS * BLOCK_BITS:
        raise InvalidInputError(f"max_distance {shorten(max_distance)} is out of range: give 0 to 64 bits")
    return max_distance


@cache
def neighbour_count(radius: int) -> int:
    """Return how many 16-bit blocks are within *radius* bits of one: 1, 17, 137, 697, 2517 for 0 to 4."""
    return sum(comb(BLOCK_BITS, flips) for flips in range(radius + 1))


@cache
def minimum_should_match(max_distance: int, radii: tuple[int, ...]) -> int:
    """
    Return how many of the clauses of *radii* every fingerprint within *max_distance* matches at least.

    One clause stands for one block and one radius. 0 means that the clauses exclude nothing. Computed by a
    dynamic programme over the blocks: ``least[spent]`` is the fewest matches that blocks so far can have when
    their distances add up to ``spent``.
    """
    check_max_distance(max_distance)
    matches = [sum(distance <= radius for radius in radii) for distance in range(BLOCK_BITS + 1)]
    least = {0: 0}
    for _ in range(BLOCKS):
        following: dict[int, int] = {}
        for spent, sofar in least.items():
            for distance in range(min(BLOCK_BITS, max_distance - spent) + 1):
                total = sofar + matches[distance]
                key = spent + distance
                following[key] = min(total, following.get(key, total))
        least = following
    return min(least.values())


@cache
def candidate_share(radii: tuple[int, ...], should_match: int) -> float:
    """Return the chance that a uniformly random fingerprint matches at least *should_match* clauses of *radii*."""
    if should_match <= 0:
        return 1.0
    block: dict[int, int] = {}
    for distance in range(BLOCK_BITS + 1):
        count = sum(distance <= radius for radius in radii)
        block[count] = block.get(count, 0) + comb(BLOCK_BITS, distance)
    ways = {0: 1}
    for _ in range(BLOCKS):
        following: dict[int, int] = {}
        for total, number in ways.items():
            for count, more in block.items():
                following[total + count] = following.get(total + count, 0) + number * more
        ways = following
    return sum(number for total, number in ways.items() if total >= should_match) / 2 ** (BLOCKS * BLOCK_BITS)


def make_plan(max_distance: int, radii: tuple[int, ...]) -> LookupPlan:
    """
    Return the plan that uses *radii* for *max_distance*; a scan where they would exclude nothing.
    """
    should_match = minimum_should_match(max_distance, radii)
    if should_match == 0:
        return LookupPlan(max_distance, (), 0, 1.0)
    return LookupPlan(max_distance, radii, should_match, candidate_share(radii, should_match))


@cache
def _plans(max_distance: int) -> tuple[LookupPlan, ...]:
    radii = [c for n in range(1, MAX_RADIUS + 2) for c in combinations(range(MAX_RADIUS + 1), n)]
    plans = (make_plan(max_distance, each) for each in radii)
    return (*(plan for plan in plans if not plan.is_scan), LookupPlan(max_distance, (), 0, 1.0))


# Relative cost of one term looked up, one posting read and one candidate fetched.
_TERM, _POSTING, _CANDIDATE = 1.0, 0.02, 8.0


def _cost(plan: LookupPlan, documents: int) -> float:
    postings = documents * plan.terms / 2**BLOCK_BITS
    return _TERM * plan.terms + _POSTING * postings + _CANDIDATE * documents * plan.candidate_share


def plan_lookup(max_distance: int = DEFAULT_MAX_DISTANCE, *, documents: int = 1_000_000) -> LookupPlan:
    """
    Return the plan with the least estimated cost for *max_distance* in an index of *documents*.

    Args:
        max_distance:
            Largest distance, in bits, inclusive, 0 to 64.
        documents:
            Number of fingerprinted documents, roughly.

    Raises:
        TypeError: If an argument is not an int.
        InvalidInputError: If max_distance is out of range.

    Examples:
        >>> plan_lookup(3, documents=1000).name
        'r0 msm1'
    """
    check_max_distance(max_distance)
    return min(_plans(max_distance), key=lambda plan: _cost(plan, documents))
