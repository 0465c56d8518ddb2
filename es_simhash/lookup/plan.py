"""
Lookup plans: which block terms a document must share to be a candidate at a distance; their cost, and the cheapest.

A fingerprint within k bits of another has block distances d0..d3 that add up to at most k. For radii R0..R3 of
the blocks, the number of radii that reach their block's distance therefore never falls below

    msm(k, R) = min over d0 + d1 + d2 + d3 <= k of  sum_i #{ r in R_i : d_i <= r }

so a bool query with one should clause for each block and radius, and that minimum_should_match, excludes no
near-duplicate. R_i = {0} is the pigeonhole of Manku, Jain and Das Sarma (WWW 2007, section 3); searching around
a block is multi-index hashing (Norouzi, Punjani and Fleet, CVPR 2012); a radius for each block is the general
pigeonhole of Qin and others (ICDE 2018). docs/proofs.md has the proof.

A wrong estimate of costs makes a lookup slower, never less exact. The last functions read the size of an index, which
the cost depends on; all else is arithmetic. The first function that counts loads numpy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import combinations
from math import comb
from typing import Any, TypeAlias

from es_simhash.hashing import BLOCK_BITS, BLOCKS
from es_simhash.mapping.context import ASSUMED, IndexStats
from es_simhash.mapping.fields import Fields
from es_simhash.mapping.port import Port
from es_simhash.transport.protocol import Index, status_of

Radii: TypeAlias = tuple[int, ...]
"""The radii of one block."""

BlockRadii: TypeAlias = tuple[Radii, ...]
"""The radii of each of the four blocks; empty for a plan without block terms."""


MAX_RADIUS = 4  # 2,517 terms a block; radius 5 would be 6,885


@cache
def neighbour_count(radius: int) -> int:
    """Return how many 16-bit blocks are within *radius* bits of one: 1, 17, 137, 697, 2517 for 0 to 4."""
    return sum(comb(BLOCK_BITS, flips) for flips in range(radius + 1))


def for_each_block(radii: Radii | BlockRadii) -> BlockRadii:
    """Return the radii of the four blocks: *radii* itself, or, if it has ints, the same ints for each block."""
    ints = tuple(radius for radius in radii if isinstance(radius, int))
    return (ints,) * BLOCKS if ints else tuple(of_block for of_block in radii if isinstance(of_block, tuple))


def count_terms(radii: BlockRadii) -> int:
    """Return how many block terms a query with *radii* has."""
    return sum(neighbour_count(radius) for of_block in radii for radius in of_block)


def blocks_needed(radii: BlockRadii, should_match: int) -> int:
    """Return the least number of blocks in which a document is near, if it matches *should_match* clauses."""
    counts = sorted(map(len, radii), reverse=True)
    return next((n for n in range(len(counts) + 1) if sum(counts[:n]) >= should_match), len(counts))


@cache
def pass_share(radii: BlockRadii, should_match: int) -> float:
    """Return the share, 0 to 1, of uniformly random fingerprints that match at least *should_match* clauses."""
    return float(pass_shares(count_matches([radii]), [should_match])[0]) if radii else 1.0


@cache
def radii_to_try(largest: int) -> tuple[list[BlockRadii], Any]:
    """Return all radii for plans, one set for all blocks or two that share them, and their :func:`count_matches`."""
    sets = [radii for count in range(1, largest + 2) for radii in combinations(range(largest + 1), count)]
    mixed = [(one,) * n + (other,) * (BLOCKS - n) for one, other in combinations(sets, 2) for n in range(1, BLOCKS)]
    found = [*((one,) * BLOCKS for one in sets), *mixed]
    return found, count_matches(found)


def count_matches(radii: list[BlockRadii]) -> Any:
    """Return how many radii reach each distance of each block: ints by (element of *radii*, block, distance)."""
    import numpy as np  # noqa: PLC0415 -- numpy is slow to load

    distances = np.arange(BLOCK_BITS + 1)
    different = {of_block for blocks in radii for of_block in blocks}
    reached = {of_block: (distances <= np.array(of_block, int)[:, None]).sum(axis=0) for of_block in different}
    return np.array([[reached[of_block] for of_block in blocks] for blocks in radii])


def least_matches(matches: Any, max_distance: int) -> Any:
    """
    Return, for each element, the fewest *matches* at block distances that add up to at most *max_distance*.
    *matches*: counts of :func:`count_matches`. This is a dynamic programme over the blocks: ``least[:, spent]`` is the
    fewest matches of the blocks so far when their distances add up to ``spent``.
    """
    import numpy as np  # noqa: PLC0415 -- numpy is slow to load

    number, blocks, distances = matches.shape
    impossible = blocks * distances
    least = np.full((number, max_distance + 1), impossible)
    least[:, 0] = 0
    for block in range(blocks):
        following = np.full_like(least, impossible)
        for distance in range(min(distances, max_distance + 1)):
            reached = least[:, : max_distance + 1 - distance] + matches[:, block, distance, None]
            np.minimum(following[:, distance:], reached, out=following[:, distance:])
        least = following
    return least.min(axis=1)


def pass_shares(matches: Any, should_match: Any) -> Any:
    """
    Return, for each element, the share of uniformly random fingerprints with its *should_match* or more.
    *matches*: counts of :func:`count_matches`.
    """
    import numpy as np  # noqa: PLC0415 -- numpy is slow to load

    number, blocks, distances = matches.shape
    chance = np.array([comb(BLOCK_BITS, distance) for distance in range(distances)]) / 2**BLOCK_BITS
    most = int(matches.max())
    ways = np.zeros((number, blocks * most + 1))
    ways[:, 0] = 1
    for block in range(blocks):
        following = np.zeros_like(ways)
        for count in range(most + 1):
            share = (matches[:, block] == count) @ chance
            following[:, count:] += ways[:, : ways.shape[1] - count] * share[:, None]
        ways = following
    return (ways * (np.arange(ways.shape[1]) >= np.asarray(should_match)[:, None])).sum(axis=1)


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
    """

    max_distance: int
    radii: BlockRadii
    minimum_should_match: int
    script: bool = False

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
        return sum(map(len, self.radii))

    @property
    def pass_share(self) -> float:
        """Share of uniformly random fingerprints that match the block terms, 0 to 1."""
        return pass_share(self.radii, self.minimum_should_match)

    @property
    def name(self) -> str:
        """Short name, such as ``r0,1 msm5``, ``r0|0|1|1 msm2``, ``r2 msm1 + script`` or ``scan``."""
        by_block = [",".join(map(str, radii)) for radii in self.radii]
        radii = by_block[0] if len(set(by_block)) == 1 else "|".join(by_block)
        terms = "scan" if self.is_scan else f"r{radii} msm{self.minimum_should_match}"
        return f"{terms} + script" if self.script else terms


@cache
def minimum_should_match(max_distance: int, radii: Radii | BlockRadii) -> int:
    """
    Return the fewest clauses, one for each block and radius, that a fingerprint within the distance matches.
    0: the clauses exclude nothing.
    """
    by_block = for_each_block(radii)
    return int(least_matches(count_matches([by_block]), max_distance)[0]) if by_block else 0


def make_plan(max_distance: int, radii: Radii | BlockRadii, *, script: bool = False) -> LookupPlan:
    """
    Return the plan that uses *radii* for *max_distance*; it has no block terms if they would exclude nothing.
    *radii*: of the clauses, the same for every block, or a tuple for each of the four. *script*: whether one checks the
    distance of what the clauses let pass.

    >>> make_plan(10, (0, 1, 2, 3)).minimum_should_match
    6
    >>> make_plan(8, ((1,), (1,), (1,), (2,))).name
    'r1|1|1|2 msm1'
    """
    should_match = minimum_should_match(max_distance, radii)
    return LookupPlan(max_distance, for_each_block(radii) if should_match else (), should_match, script)


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


# Milliseconds by the thousand, fitted to measurements on both products by bench/plans.py (docs/benchmarks.md). A term
# is looked up in each of eight segments; a posting list is read to its end; a check is a script run for one document;
# a hit is fetched, sent and rescored. Only their proportions decide.
MS_PER_THOUSAND = {"terms": 6.5, "postings": 0.01, "checks": 0.05, "hits": 36.0}


def estimate(plan: LookupPlan, stats: IndexStats) -> PlanEstimate:
    """Return what *plan* is expected to cost in an index like *stats*."""
    # The list of a neighbour is less skewed than that of the block itself: the density is an upper bound for all.
    postings = stats.documents * stats.density * plan.terms / 2**BLOCK_BITS
    # Each block in which a document has to be near multiplies its chance to pass by the density.
    skew: float = stats.density ** blocks_needed(plan.radii, plan.minimum_should_match)
    passing = stats.documents * min(1.0, plan.pass_share * skew)
    hits = 0.0 if plan.script else passing
    thousands = {
        "terms": plan.terms,
        "postings": postings,
        "checks": passing if plan.script else 0.0,
        "hits": hits,
    }
    milliseconds = sum(MS_PER_THOUSAND[name] * amount / 1000 for name, amount in thousands.items())
    return PlanEstimate(plan, postings, passing, hits, milliseconds)


@lru_cache(maxsize=256)
def _plans(max_distance: int, *, scripts: bool) -> tuple[LookupPlan, ...]:
    """
    Return the plans, with *scripts* or without, that no other plan dominates; the last is the scan without a script.
    A plan dominates another one that has at least as many terms, lets at least as many documents pass, and is no
    stricter about the number of blocks in which a document must be near (which skew multiplies).
    """
    all_radii, matches = radii_to_try(MAX_RADIUS)
    should_match = least_matches(matches, max_distance)
    shares = pass_shares(matches, should_match)
    allowed = [
        (count_terms(radii), share, blocks_needed(radii, most), radii)
        for radii, share, most in zip(all_radii, shares.tolist(), should_match.tolist(), strict=True)
        if most
    ]
    kept: list[tuple[int, float, int, BlockRadii]] = []
    for terms, share, needed, radii in sorted(allowed, key=lambda plan: plan[:3]):
        if not any(other_share <= share and other_needed <= needed for _, other_share, other_needed, _ in kept):
            kept.append((terms, share, needed, radii))
    useful = [make_plan(max_distance, radii) for *_, radii in kept]
    scan = LookupPlan(max_distance, (), 0)
    scripted = [replace(plan, script=True) for plan in (*useful, scan)] if scripts else []
    return (*useful, *scripted, scan)


def explain_plan(max_distance: int, *, stats: IndexStats = ASSUMED, scripts: bool = True) -> tuple[PlanEstimate, ...]:
    """
    Return the estimates of the plans for *max_distance*, cheapest first: the first is the one that is used.
    Plans that have more terms than another one and let more documents pass are left out.

    >>> explain_plan(64, scripts=False)[0].plan.name
    'scan'
    """
    estimates = [estimate(plan, stats) for plan in _plans(max_distance, scripts=scripts)]
    return tuple(sorted(estimates, key=lambda one: one.milliseconds))


@lru_cache(maxsize=1024)
def plan_lookup(max_distance: int, *, stats: IndexStats = ASSUMED, scripts: bool = True) -> LookupPlan:
    """Return the plan with the least estimated cost."""
    return explain_plan(max_distance, stats=stats, scripts=scripts)[0].plan


UNMEASURED = IndexStats(documents=64_000_000, density=8.0)
"""The size that plans are made for where it was not measured: they suit a large and skewed index."""

# Up to this distance such a plan costs little more in a small index.
STATS_FROM_DISTANCE = 2
# Documents whose block terms are counted.
SAMPLE_DOCUMENTS = 40


async def index_stats(
    server: Port, index: Index, max_distance: int | None = None, *, again: bool = False
) -> IndexStats:
    """
    Return the size and skew of *index*, which a lookup is planned for.
    Cost: two requests, once in ten minutes; with *again* in any case. None within a small *max_distance*, where the
    size of the index decides little; *max_distance* is ``None`` for many lookups. If the server refuses, a million
    random fingerprints are assumed.
    """
    if max_distance is not None and max_distance <= STATS_FROM_DISTANCE:
        return UNMEASURED
    known = None if again else server.context.recall_stats(index)
    if known is None:
        try:
            known = await sample_stats(server, index)
        except Exception as error:
            if status_of(error) is None:
                raise
            known = ASSUMED
        server.context.learn_stats(index, known)
    return known


async def sample_stats(server: Port, index: Index) -> IndexStats:
    """Return the size and skew of *index*, by two requests."""
    fields = Fields(server.prefix)
    body = {
        "size": SAMPLE_DOCUMENTS,
        "query": {"exists": {"field": fields.fingerprint}},
        "docvalue_fields": list(fields.blocks),
        "_source": False,
        "track_total_hits": True,
    }
    answer = await server.search(index=index, body=body)
    documents = answer["hits"]["total"]["value"]
    shown = [hit.get("fields", {}) for hit in answer["hits"]["hits"]]
    sampled = {block: [values[block][0] for values in shown if block in values] for block in fields.blocks}
    # For each block: how many documents have any of the terms, and how many have each that was seen again.
    repeated = {
        block: [term for term, count in Counter(terms).items() if count > 1] for block, terms in sampled.items()
    }
    lines: list[Any] = []
    for block, terms in sampled.items():
        for wanted in (sorted(set(terms)), *([term] for term in repeated[block])):
            counted = {"size": 0, "query": {"terms": {block: wanted}}, "track_total_hits": True}
            lines += [{"index": index}, counted]
    answers = iter((await server.msearch(body=lines))["responses"])
    lengths = []
    for block, terms in sampled.items():
        of_block = [next(answers) for _ in range(1 + len(repeated[block]))]
        if terms and not any("error" in one for one in of_block):
            together, *alone = (one["hits"]["total"]["value"] for one in of_block)
            lengths.append(mean_length(terms, together, dict(zip(repeated[block], alone, strict=True))))
    # A posting list has the document's own entry, or as many entries as chance would put there.
    chance = max(documents / 2**BLOCK_BITS, 1.0)
    mean = sum(lengths) / len(lengths) if lengths else 0.0
    return IndexStats(max(1, documents), max(1.0, mean / chance))


def mean_length(terms: Sequence[str], together: int, alone: Mapping[str, int]) -> float:
    """
    Return the mean length of the posting lists of *terms*, one term for each sampled document.
    *together*: number of documents with any of the terms. *alone*: number of documents with each term that is repeated
    among *terms*; the other terms share the rest. The sample cannot show *alone*: a term of two documents out of 40 may
    be that of a twentieth of the index, or of these two only.
    """
    rest = len(set(terms)) - len(alone)
    ordinary = max(1.0, (together - sum(alone.values())) / rest) if rest else 0.0
    return sum(alone.get(term, ordinary) for term in terms) / len(terms)
