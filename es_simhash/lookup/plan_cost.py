"""
The cost of lookup plans in an index, and the choice of the cheapest. Arithmetic only.

``plan`` defines plans; ``question_flow`` reads the statistics of an index. A wrong estimate makes a lookup
slower, never less exact.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from es_simhash.errors import WrongTypeError, shorten
from es_simhash.hashing import BLOCK_BITS
from es_simhash.lookup.plan import (
    MAX_RADIUS,
    BlockRadii,
    LookupPlan,
    blocks_needed,
    count_clauses,
    count_terms,
    least_matches,
    make_plan,
    pass_shares,
    radii_to_try,
)
from es_simhash.mapping.context import IndexStats, Limits
from es_simhash.mapping.meta import DEFAULT_MAX_DISTANCE, check_max_distance


@dataclass(frozen=True, slots=True)
class PlanEstimate:
    """
    The expected cost of a plan in an index.

    Attributes:
        plan:
            The plan.
        postings:
            Postings read.
        passing:
            Documents that match the block terms.
        hits:
            Candidates sent to the client. With a script only near-duplicates are sent, which are not counted here.
        milliseconds:
            Time of the search beyond that of an empty one, by the cost model; good for comparing plans.
    """

    plan: LookupPlan
    postings: float
    passing: float
    hits: float
    milliseconds: float


# Milliseconds by the thousand, fitted to measurements on both products by bench/plans.py; see docs/lookup.md. A term
# is looked up in each of eight segments; a posting list is read to its end; a check is a script run for one document;
# a hit is fetched, sent and rescored; a skimmed hit is sent without its _id. Only their proportions decide.
PER_THOUSAND = {"terms": 6.5, "postings": 0.01, "checks": 0.05, "hits": 36.0, "skimmed": 6.0}


# Where more hits are expected, it is faster to read their fingerprints first, and then the ids of what is near.
SKIMMED_FROM = 600


def estimate(plan: LookupPlan, stats: IndexStats) -> PlanEstimate:
    """Return what *plan* is expected to cost in an index like *stats*."""
    # The list of a neighbour is less skewed than that of the own block, so the density is an upper bound for all.
    postings = stats.documents * stats.density * plan.terms / 2**BLOCK_BITS
    # Each block in which a document has to be near multiplies its chance to pass by the density.
    skew: float = stats.density ** blocks_needed(plan.radii, plan.minimum_should_match)
    passing = stats.documents * min(1.0, plan.pass_share * skew)
    hits = 0.0 if plan.script else passing
    thousands = {
        "terms": plan.terms,
        "postings": postings,
        "checks": passing if plan.script else 0.0,
        "hits": min(hits, SKIMMED_FROM),
        "skimmed": max(hits - SKIMMED_FROM, 0.0),
    }
    milliseconds = sum(PER_THOUSAND[name] * amount / 1000 for name, amount in thousands.items())
    return PlanEstimate(plan, postings, passing, hits, milliseconds)


@lru_cache(maxsize=256)
def _plans(max_distance: int, limits: Limits) -> tuple[LookupPlan, ...]:
    """
    Return the plans within *limits* that no other plan dominates; the last is the scan without a script.

    A plan dominates another one that has at least as many terms, lets at least as many documents pass, and is no
    stricter about the number of blocks in which a document must be near (which skew multiplies).
    """
    all_radii, matches = radii_to_try(MAX_RADIUS)
    should_match = least_matches(matches, max_distance)
    shares = pass_shares(matches, should_match)
    allowed = [
        (count_terms(radii), share, blocks_needed(radii, most), radii)
        for radii, share, most in zip(all_radii, shares.tolist(), should_match.tolist(), strict=True)
        if most and count_clauses(radii, limits.max_terms) <= limits.max_clauses
    ]
    kept: list[tuple[int, float, int, BlockRadii]] = []
    for each in sorted(allowed, key=lambda each: each[:3]):
        if not any(share <= each[1] and needed <= each[2] for _, share, needed, _ in kept):
            kept.append(each)
    useful = [make_plan(max_distance, radii, max_terms=limits.max_terms) for *_, radii in kept]
    scripted = [replace(plan, script=True) for plan in useful] if limits.scripts else []
    scan = LookupPlan(max_distance, (), 0)
    return (*useful, *scripted, *([replace(scan, script=True)] if limits.scripts else []), scan)


def explain_plan(
    max_distance: int = DEFAULT_MAX_DISTANCE, *, stats: IndexStats | None = None, limits: Limits | None = None
) -> tuple[PlanEstimate, ...]:
    """
    Return the estimates of the plans for *max_distance*, cheapest first: the first is the one that is used.

    Plans that have more terms than another one and let more documents pass are left out.

    Args:
        max_distance:
            Largest distance, in bits, inclusive, 0 to 64.
        stats:
            What is known of the index; by default a million random fingerprints.
        limits:
            What the server allows; by default everything.

    Raises:
        TypeError: If max_distance is not an int.
        InvalidInputError: If it is out of range.

    Examples:
        >>> explain_plan(64, limits=Limits(scripts=False))[0].plan.name
        'scan'
    """
    check_max_distance(max_distance)
    stats, limits = _checked(stats, limits)
    estimates = [estimate(plan, stats) for plan in _plans(max_distance, limits)]
    return tuple(sorted(estimates, key=lambda each: each.milliseconds))


def _checked(stats: IndexStats | None, limits: Limits | None) -> tuple[IndexStats, Limits]:
    """Return both, or what they stand for where they are left out."""
    for name, value, kind in (("stats", stats, IndexStats), ("limits", limits, Limits)):
        if value is not None and not isinstance(value, kind):
            raise WrongTypeError(f"{name} must be {kind.__name__} or None, not {type(value).__name__} {shorten(value)}")
    return stats or IndexStats(), limits or Limits()


@lru_cache(maxsize=1024)
def _cheapest(max_distance: int, stats: IndexStats, limits: Limits) -> LookupPlan:
    return explain_plan(max_distance, stats=stats, limits=limits)[0].plan


def plan_lookup(
    max_distance: int = DEFAULT_MAX_DISTANCE, *, stats: IndexStats | None = None, limits: Limits | None = None
) -> LookupPlan:
    """
    Return the plan with the least estimated cost; arguments and errors as :func:`explain_plan`.

    Examples:
        >>> plan_lookup(3).max_distance
        3
    """
    check_max_distance(max_distance)
    return _cheapest(max_distance, *_checked(stats, limits))
