"""
Lookup plans: which block terms a document must share to be a candidate at a distance.

Arithmetic only. Counting radii lives in ``plan_radii``, costs in ``plan_cost``, the choice among plans in
``explain_plan``, and the query that a plan turns into in ``query``.

A fingerprint within k bits of another has block distances d0..d3 that add up to at most k. For radii R0..R3 of the
blocks, the number of radii that reach their block's distance therefore never falls below

    msm(k, R) = min over d0 + d1 + d2 + d3 <= k of  sum_i #{ r in R_i : d_i <= r }

so a bool query with one should clause for each block and radius, and that minimum_should_match, excludes no
near-duplicate. R_i = {0} is the pigeonhole of Manku, Jain and Das Sarma (WWW 2007, section 3); searching around a
block is multi-index hashing (Norouzi, Punjani and Fleet, CVPR 2012); a radius for each block is the general pigeonhole
of Qin and others (ICDE 2018). docs/lookup.md has the proof.
"""

from __future__ import annotations

from dataclasses import dataclass

from es_simhash.arguments import check_count, check_items
from es_simhash.errors import InvalidInputError, WrongTypeError
from es_simhash.hashing import BLOCK_BITS, BLOCKS
from es_simhash.index.plan_radii import (
    BlockRadii,
    Radii,
    count_clauses,
    count_terms,
    fewest_matches,
    for_each_block,
    neighbour_count,
    pass_share,
)

__all__ = [
    "DEFAULT_MAX_DISTANCE",
    "DEFAULT_MAX_TERMS",
    "LOOKUP_BY_ID_DISTANCE",
    "Limits",
    "LookupPlan",
    "check_max_distance",
    "check_plan",
    "fits",
    "make_plan",
    "minimum_should_match",
]

DEFAULT_MAX_DISTANCE = 3
# Block terms that the server takes from a stored document have no neighbours around them; up to here they are enough.
LOOKUP_BY_ID_DISTANCE = 3
DEFAULT_MAX_TERMS = 65_536  # of index.max_terms_count, on both products


@dataclass(frozen=True, slots=True)
class Limits:
    """
    What a server allows a query.

    Attributes:
        scripts:
            Whether a script may filter.
        max_terms:
            Most values in one ``terms`` query (``index.max_terms_count``); longer lists are split.
        max_clauses:
            Most clauses in one query (``indices.query.bool.max_clause_count``).
        skims:
            Whether documents can be searched by their fingerprints, so that many candidates need not be read whole.
    """

    scripts: bool = True
    max_terms: int = DEFAULT_MAX_TERMS
    max_clauses: int = 1_024
    skims: bool = True

    def within(self, other: Limits) -> Limits:
        """Return the limits that allow what both these and the *other* allow."""
        return Limits(
            self.scripts and other.scripts,
            min(self.max_terms, other.max_terms),
            min(self.max_clauses, other.max_clauses),
            self.skims and other.skims,
        )


@dataclass(frozen=True, slots=True)
class LookupPlan:
    """
    A necessary condition, in block terms, for being within a distance.

    Attributes:
        max_distance:
            Largest distance of a near-duplicate, in bits, that the plan never excludes.
        radii:
            The radii of each of the four blocks: the query has one should clause for each block and radius.
            Empty: every fingerprinted document passes.
        minimum_should_match:
            How many of those clauses a document matches at least.
        script:
            Whether a script on the server checks the distance of what passes, so that only near-duplicates are hits.
        max_terms:
            Most values in one ``terms`` list. Longer lists are split, which keeps the count right, since a block is
            in one part at most.

    Raises:
        TypeError: If max_distance is not an int.
        InvalidInputError: If max_distance is out of range, or so many clauses would lose near-duplicates.
    """

    max_distance: int
    radii: BlockRadii
    minimum_should_match: int
    script: bool = False
    max_terms: int = DEFAULT_MAX_TERMS

    def __post_init__(self) -> None:
        check_max_distance(self.max_distance)
        most = minimum_should_match(self.max_distance, self.radii)
        if not 0 <= self.minimum_should_match <= most:
            raise InvalidInputError(
                f"minimum_should_match {self.minimum_should_match} of radii {self.radii} would lose near-duplicates at "
                f"distance {self.max_distance}: give at most {most}, or let make_plan work it out"
            )

    @property
    def is_scan(self) -> bool:
        """Whether no block term excludes anything."""
        return not self.radii

    @property
    def terms(self) -> int:
        """Number of block terms in the query."""
        return count_terms(self.radii)

    @property
    def clauses(self) -> int:
        """Number of ``terms`` clauses in the query."""
        return count_clauses(self.radii, self.max_terms)

    @property
    def pass_share(self) -> float:
        """Share of uniformly random fingerprints that match the block terms, 0 to 1."""
        return pass_share(self.radii, self.minimum_should_match)

    @property
    def name(self) -> str:
        """Short name, such as ``r0,1 msm5``, ``r0|0|1|1 msm2``, ``r2 msm1 + script`` or ``scan``."""
        each = [",".join(map(str, radii)) for radii in self.radii]
        radii = each[0] if len(set(each)) == 1 else "|".join(each)
        terms = "scan" if self.is_scan else f"r{radii} msm{self.minimum_should_match}"
        return f"{terms} + script" if self.script else terms


def check_plan(plan: LookupPlan, max_distance: int) -> LookupPlan:
    """
    Return *plan* if it finds everything within *max_distance*.

    Raises:
        TypeError: If it is not a LookupPlan.
        InvalidInputError: If it is for a smaller distance.
    """
    if not isinstance(plan, LookupPlan):
        raise WrongTypeError(f"plan must be a LookupPlan, such as plan_lookup returns, not {type(plan).__name__}")
    if plan.max_distance < max_distance:
        raise InvalidInputError(
            f"plan {plan.name} is exact up to distance {plan.max_distance}, not {max_distance}: plan for {max_distance}"
        )
    return plan


def fits(plan: LookupPlan, limits: Limits) -> bool:
    """
    Return whether a server with *limits* accepts *plan*.
    """
    longest = max((neighbour_count(radius) for each in plan.radii for radius in each), default=0)
    return (
        limits.scripts >= plan.script
        and limits.max_terms >= min(longest, plan.max_terms)
        and limits.max_clauses >= plan.clauses
    )


def check_max_distance(max_distance: int) -> int:
    """
    Return *max_distance* if it is a whole number of bits from 0 to 64.

    Raises:
        TypeError: If it is not an int.
        InvalidInputError: If it is out of range.
    """
    return check_count("max_distance", max_distance, 0, BLOCKS * BLOCK_BITS)


def minimum_should_match(max_distance: int, radii: Radii | BlockRadii) -> int:
    """
    Return the least number of clauses of *radii* that a fingerprint within *max_distance* matches.

    There is one clause for each block and radius; radii that are ints apply to every block. 0 means that the clauses
    exclude nothing.
    """
    check_max_distance(max_distance)
    return fewest_matches(max_distance, for_each_block(radii))


def make_plan(
    max_distance: int,
    radii: Radii | BlockRadii,
    *,
    script: bool = False,
    max_terms: int = DEFAULT_MAX_TERMS,
) -> LookupPlan:
    """
    Return the plan that uses *radii* for *max_distance*; it has no block terms if they would exclude nothing.

    Args:
        max_distance:
            Largest distance, in bits, inclusive, 0 to 64.
        radii:
            Radii of the clauses, each 0 to 16: the same for every block, or a tuple for each of the four.
        script:
            Whether a script checks the distance of what the clauses let pass.
        max_terms:
            Most values in one ``terms`` list.

    Raises:
        TypeError: If max_distance is not an int.
        InvalidInputError: If it is out of range, or the radii are for another number of blocks.

    Examples:
        >>> make_plan(10, (0, 1, 2, 3)).minimum_should_match
        6
        >>> make_plan(8, ((1,), (1,), (1,), (2,))).name
        'r1|1|1|2 msm1'
    """
    check_count("max_terms", max_terms)
    for each in check_items("radii", radii, of="radii"):
        for radius in each if isinstance(each, tuple) else (each,):
            check_count("radius", radius, 0, BLOCK_BITS)
    should_match = minimum_should_match(max_distance, radii)
    return LookupPlan(max_distance, for_each_block(radii) if should_match else (), should_match, script, max_terms)
