"""
Lookup plans: which block terms a document must share to be a candidate at a distance.

Arithmetic only: from max_distance, the size of the index and what the server allows, to radii and a
``minimum_should_match``. The query that a plan turns into is written in ``query``; what a server answers is nobody's
business here.

A fingerprint within k bits of another has block distances d0..d3 that add up to at most k. For radii R0..R3 of the
blocks, the number of radii that reach their block's distance therefore never falls below

    msm(k, R) = min over d0 + d1 + d2 + d3 <= k of  sum_i #{ r in R_i : d_i <= r }

so a bool query with one should clause for each block and radius, and that minimum_should_match, excludes no
near-duplicate. R_i = {0} is the pigeonhole of Manku, Jain and Das Sarma (WWW 2007, section 3); searching around a
block is multi-index hashing (Norouzi, Punjani and Fleet, CVPR 2012); a radius for each block is the general pigeonhole
of Qin and others (ICDE 2018). docs/lookup.md has the proof.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, lru_cache
from math import comb

from es_simhash.errors import InvalidInputError, shorten
from es_simhash.hashing import BLOCK_BITS, BLOCKS

__all__ = [
    "DEFAULT_MAX_DISTANCE",
    "IndexStats",
    "Limits",
    "LookupPlan",
    "PlanEstimate",
    "check_max_distance",
    "check_plan",
    "explain_plan",
    "make_plan",
    "minimum_should_match",
    "plan_lookup",
]

DEFAULT_MAX_DISTANCE = 3
# Up to here block terms taken from a stored document, which have no neighbours around them, exclude enough.
LOOKUP_BY_ID_DISTANCE = 3
DEFAULT_MAX_TERMS = 65_536  # of index.max_terms_count, on both products
MAX_RADIUS = 4  # 2,517 terms a block; radius 5 would be 6,885

Radii = tuple[int, ...]  # of one block


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
            Whether documents can be looked for by their fingerprints, so that many candidates need not be read whole.
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
class IndexStats:
    """
    What is known of an index's fingerprints.

    Attributes:
        documents:
            Number of fingerprinted documents.
        density:
            How many times longer the posting list of a document's own block term is, on average, than it would be
            if fingerprints were uniformly random; 1 or more.
    """

    documents: int = 1_000_000
    density: float = 1.0


@dataclass(frozen=True, slots=True)
class LookupPlan:
    """
    A necessary condition, in block terms, for being within a distance.

    Attributes:
        max_distance:
            Largest distance of a near-duplicate, in bits, that the plan never excludes.
        radii:
            The radii of each of the four blocks: one should clause stands in the query for each block and radius.
            Empty: every fingerprinted document passes.
        minimum_should_match:
            How many of those clauses a document matches at least.
        script:
            Whether a script on the server checks the distance of what passes, so that only near-duplicates are hits.
        max_terms:
            Most values in one ``terms`` list; longer ones are split, which keeps the count, since a block is in one
            part at most.

    Raises:
        TypeError: If max_distance is not an int.
        InvalidInputError: If max_distance is out of range, or the clauses asked for would lose near-duplicates.
    """

    max_distance: int
    radii: tuple[Radii, ...]
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
        return _terms(self.radii)

    @property
    def clauses(self) -> int:
        """Number of ``terms`` clauses in the query."""
        return _clauses(self.radii, self.max_terms)

    @property
    def pass_share(self) -> float:
        """Share of uniformly random fingerprints that match the block terms, 0 to 1."""
        return _pass_share(self.radii, self.minimum_should_match)

    @property
    def name(self) -> str:
        """Short name, such as ``r0,1 msm5``, ``r0|0|1|1 msm2``, ``r2 msm1 + script`` or ``scan``."""
        each = [",".join(map(str, radii)) for radii in self.radii]
        spelt = each[0] if len(set(each)) == 1 else "|".join(each)
        terms = "scan" if self.is_scan else f"r{spelt} msm{self.minimum_should_match}"
        return f"{terms} + script" if self.script else terms


def check_plan(plan: LookupPlan, max_distance: int) -> LookupPlan:
    """
    Return *plan* if it loses nothing within *max_distance*.

    Raises:
        InvalidInputError: If it is for a smaller distance.
    """
    if plan.max_distance < max_distance:
        raise InvalidInputError(
            f"plan {plan.name} is exact up to distance {plan.max_distance}, not {max_distance}: plan for {max_distance}"
        )
    return plan


def fits(plan: LookupPlan, limits: Limits) -> bool:
    """
    Return whether a server with *limits* takes *plan*.
    """
    longest = max((neighbour_count(radius) for each in plan.radii for radius in each), default=0)
    return (
        limits.scripts >= plan.script
        and limits.max_terms >= min(longest, plan.max_terms)
        and limits.max_clauses >= plan.clauses
    )


@dataclass(frozen=True, slots=True)
class PlanEstimate:
    """
    What a plan is expected to cost in an index.

    Attributes:
        plan:
            The plan.
        postings:
            Postings read.
        passing:
            Documents that match the block terms.
        hits:
            Candidates sent to the client; with a script, only near-duplicates are, which are not counted here.
        milliseconds:
            Time of the search beyond that of an empty one, by the cost model; good for comparing plans.
    """

    plan: LookupPlan
    postings: float
    passing: float
    hits: float
    milliseconds: float


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
    """
    Return how many 16-bit blocks are within *radius* bits of one: 1, 17, 137, 697, 2517 for 0 to 4.
    """
    return sum(comb(BLOCK_BITS, flips) for flips in range(radius + 1))


def minimum_should_match(max_distance: int, radii: Radii | tuple[Radii, ...]) -> int:
    """
    Return how many of the clauses of *radii* every fingerprint within *max_distance* matches at least.

    One clause stands for one block and one radius; radii that are ints are those of every block. 0 means that the
    clauses exclude nothing.
    """
    check_max_distance(max_distance)
    return _fewest_matches(max_distance, for_each_block(radii))


def for_each_block(radii: Radii | tuple[Radii, ...]) -> tuple[Radii, ...]:
    """
    Return the radii of the four blocks: *radii* themselves, or, if they are ints, these for each; nothing for none.

    Raises:
        InvalidInputError: If they are neither ints nor a tuple of ints for each of the four blocks.
    """
    ints = tuple(each for each in radii if isinstance(each, int))
    tuples = tuple(each for each in radii if isinstance(each, tuple))
    if len(ints) == len(radii):
        return (ints,) * BLOCKS if ints else ()
    if len(tuples) != len(radii) or len(tuples) != BLOCKS:
        raise InvalidInputError(
            f"radii {shorten(radii)} fit no plan: give ints, or a tuple of ints for each of 4 blocks"
        )
    return tuples


@cache
def _fewest_matches(max_distance: int, radii: tuple[Radii, ...]) -> int:
    from es_simhash.index.matches import count_matches, fewest_matches  # noqa: PLC0415 -- numpy is slow to load

    return int(fewest_matches(count_matches([radii]), max_distance)[0]) if radii else 0


@cache
def _pass_share(radii: tuple[Radii, ...], should_match: int) -> float:
    from es_simhash.index.matches import count_matches, pass_shares  # noqa: PLC0415 -- numpy is slow to load

    return float(pass_shares(count_matches([radii]), [should_match])[0]) if radii else 1.0


def make_plan(
    max_distance: int,
    radii: Radii | tuple[Radii, ...],
    *,
    script: bool = False,
    max_terms: int = DEFAULT_MAX_TERMS,
) -> LookupPlan:
    """
    Return the plan that uses *radii* for *max_distance*; one without block terms where they would exclude nothing.

    Args:
        max_distance:
            Largest distance, in bits, inclusive, 0 to 64.
        radii:
            Radii of the clauses, each 0 to 16: the same for every block, or a tuple for each of the four.
        script:
            Whether a script checks the distance behind the clauses.
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
    should_match = minimum_should_match(max_distance, radii)
    return LookupPlan(max_distance, for_each_block(radii) if should_match else (), should_match, script, max_terms)


@lru_cache(maxsize=256)
def _plans(max_distance: int, limits: Limits) -> tuple[LookupPlan, ...]:
    """
    Return every plan worth a thought within *limits*; the scan without a script is always the last.

    Not worth a thought is one that another equals or beats in terms, in what passes, and in the number of blocks in
    which what passes is near (which skew multiplies).
    """
    from es_simhash.index.matches import families, fewest_matches, pass_shares  # noqa: PLC0415 -- numpy is slow to load

    radii_of_each, matches = families(MAX_RADIUS)
    should_match = fewest_matches(matches, max_distance)
    shares = pass_shares(matches, should_match)
    allowed = [
        (_terms(radii), share, _blocks_needed(radii, most), radii)
        for radii, share, most in zip(radii_of_each, shares.tolist(), should_match.tolist(), strict=True)
        if most and _clauses(radii, limits.max_terms) <= limits.max_clauses
    ]
    kept: list[tuple[int, float, int, tuple[Radii, ...]]] = []
    for each in sorted(allowed, key=lambda each: each[:3]):
        if not any(share <= each[1] and needed <= each[2] for _, share, needed, _ in kept):
            kept.append(each)
    useful = [make_plan(max_distance, radii, max_terms=limits.max_terms) for *_, radii in kept]
    scripted = [replace(plan, script=True) for plan in useful] if limits.scripts else []
    scan = LookupPlan(max_distance, (), 0)
    return (*useful, *scripted, *([replace(scan, script=True)] if limits.scripts else []), scan)


def _terms(radii: tuple[Radii, ...]) -> int:
    return sum(neighbour_count(radius) for each in radii for radius in each)


def _clauses(radii: tuple[Radii, ...], max_terms: int) -> int:
    return sum(-(-neighbour_count(radius) // max_terms) for each in radii for radius in each)


def _blocks_needed(radii: tuple[Radii, ...], should_match: int) -> int:
    """Return in how many blocks at least a passing document is near: each multiplies its chance by the density."""
    counts = sorted(map(len, radii), reverse=True)
    return next((n for n in range(len(counts) + 1) if sum(counts[:n]) >= should_match), len(counts))


# Milliseconds by the thousand, fitted to measurements on both products by bench/plans.py; see docs/lookup.md. A term is
# looked up in each of eight segments; postings are read whole; a check is one document's; a hit is fetched, sent and
# rescored, and one that is skimmed comes without its id. Only their proportions decide.
PER_THOUSAND = {"terms": 6.5, "postings": 0.01, "checks": 0.05, "hits": 36.0, "skimmed": 6.0}
# From so many hits on, it pays to read their fingerprints first, and the ids of what is near after that.
SKIMMED_FROM = 600


def estimate(plan: LookupPlan, stats: IndexStats) -> PlanEstimate:
    """
    Return what *plan* is expected to cost in an index like *stats*.
    """
    # A list of neighbours is less skewed than the list of one's own block: take the density as a bound for all.
    postings = stats.documents * stats.density * plan.terms / 2**BLOCK_BITS
    passing = stats.documents * min(
        1.0, plan.pass_share * stats.density ** _blocks_needed(plan.radii, plan.minimum_should_match)
    )
    hits = 0.0 if plan.script else passing
    checks = passing if plan.script else 0.0
    thousands = {
        "terms": plan.terms,
        "postings": postings,
        "checks": checks,
        "hits": min(hits, SKIMMED_FROM),
        "skimmed": max(hits - SKIMMED_FROM, 0.0),
    }
    cost = sum(PER_THOUSAND[name] * amount / 1000 for name, amount in thousands.items())
    return PlanEstimate(plan, postings, passing, hits, cost)


def explain_plan(
    max_distance: int = DEFAULT_MAX_DISTANCE, *, stats: IndexStats | None = None, limits: Limits | None = None
) -> tuple[PlanEstimate, ...]:
    """
    Return the estimates of the plans for *max_distance*, cheapest first: the first is the one that is used.

    Left out are plans that have more terms than another and let more pass.

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
    stats = stats or IndexStats()
    estimates = [estimate(plan, stats) for plan in _plans(max_distance, limits or Limits())]
    return tuple(sorted(estimates, key=lambda each: each.milliseconds))


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
    return _cheapest(max_distance, stats or IndexStats(), limits or Limits())
