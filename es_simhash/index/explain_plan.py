"""
Chooses the lookup plan: every plan that no other plan dominates, with its estimate, the cheapest first.

Arithmetic only. ``plan`` defines plans, and ``plan_cost`` estimates their cost.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from es_simhash.errors import WrongTypeError, shorten
from es_simhash.index.plan import DEFAULT_MAX_DISTANCE, Limits, LookupPlan, check_max_distance, make_plan
from es_simhash.index.plan_cost import IndexStats, PlanEstimate, estimate
from es_simhash.index.plan_radii import (
    MAX_RADIUS,
    BlockRadii,
    blocks_needed,
    count_clauses,
    count_terms,
    least_matches,
    pass_shares,
    radii_to_try,
)

__all__ = ["explain_plan", "plan_lookup"]


@lru_cache(maxsize=256)
def _plans(max_distance: int, limits: Limits) -> tuple[LookupPlan, ...]:
    """
    Return every plan within *limits* that no other plan dominates; the scan without a script is always the last.

    A plan dominates another one that has at least as many terms, lets at least as many documents pass, and is no
    stricter about the number of blocks in which a document has to be near (which skew multiplies).
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
