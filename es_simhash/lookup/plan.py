"""
Lookup plans: which block terms a document must share to be a candidate at a distance; their cost, and the cheapest.

A fingerprint within k bits of another has block distances d0..d3 that add up to at most k. Give block i a depth n_i:
then also ``sum min(d_i, n_i) <= k``. A bool query with a should clause for each block i and each radius below n_i
matches ``sum n_i - min(d_i, n_i)`` of them, so with ``minimum_should_match = sum n_i - k`` it excludes no
near-duplicate. Four depths of 1 are the pigeonhole of Manku, Jain and Das Sarma (WWW 2007, section 3); searching around
a block is multi-index hashing (Norouzi, Punjani and Fleet, CVPR 2012); a depth for each block is the general
pigeonhole of Qin and others (ICDE 2018). docs/proofs.md has the proof.

A wrong estimate of costs makes a lookup slower, never less exact. The last functions read the size of an index, which
the cost depends on; all else is arithmetic.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import accumulate
from math import comb
from typing import Any, TypeAlias

from es_simhash.hashing import BLOCK_BITS, BLOCKS
from es_simhash.mapping.context import ASSUMED, IndexStats
from es_simhash.mapping.fields import Fields
from es_simhash.mapping.port import Port
from es_simhash.transport.protocol import Index, status_of

Radii: TypeAlias = Sequence[int]
"""The radii of one block, the smallest first."""

MOST_STEPS = 5 * BLOCKS  # the largest radius is 4, of 2,517 terms a block; radius 5 would be 6,885


@cache
def neighbour_count(radius: int) -> int:
    """Return how many 16-bit blocks are within *radius* bits of one: 1, 17, 137, 697, 2517 for 0 to 4."""
    return sum(comb(BLOCK_BITS, flips) for flips in range(radius + 1))


@dataclass(frozen=True, slots=True)
class LookupPlan:
    """
    A necessary condition, in block terms, for being within a distance.

    Attributes:
        max_distance:
            Largest distance of a near-duplicate, in bits, that the plan never excludes.
        steps:
            The depths of the four blocks together, 20 at most; each has as many as the others, or one more. No more
            than max_distance: every fingerprinted document passes.
        script:
            Whether a script on the server checks the distance of what passes, so that only near-duplicates are hits.
    """

    max_distance: int
    steps: int = 0
    script: bool = False

    @property
    def is_scan(self) -> bool:
        """Whether no block term excludes anything."""
        return self.steps <= self.max_distance

    @property
    def minimum_should_match(self) -> int:
        """How many clauses a document matches at least, one for each block and radius."""
        return max(0, self.steps - self.max_distance)

    @property
    def depths(self) -> tuple[int, ...]:
        """How many radii are searched around each block, from 0 on; the last blocks may have one more."""
        return tuple((self.steps + block) // BLOCKS for block in range(BLOCKS))

    @property
    def radii(self) -> tuple[Radii, ...]:
        """The radii of each block: those that count, as the smallest do not where the others are enough."""
        return tuple(range(max(0, depth - self.minimum_should_match), depth) for depth in self.depths)

    @property
    def terms(self) -> int:
        """Number of block terms in the query."""
        return sum(neighbour_count(radius) for of_block in self.radii for radius in of_block)

    @property
    def clauses(self) -> int:
        """Number of ``terms`` clauses in the query."""
        return sum(map(len, self.radii))

    @property
    def blocks_needed(self) -> int:
        """The least number of blocks in which a document that passes is near."""
        reached = accumulate(reversed(self.depths), initial=0)
        return next(blocks for blocks, matched in enumerate(reached) if matched >= self.minimum_should_match)

    @property
    def name(self) -> str:
        """Short name, such as ``r0,1 msm5``, ``r0|0|1|1 msm2``, ``r2 msm1 + script`` or ``scan``."""
        by_block = [",".join(map(str, radii)) for radii in self.radii]
        radii = by_block[0] if len(set(by_block)) == 1 else "|".join(by_block)
        terms = "scan" if self.is_scan else f"r{radii} msm{self.minimum_should_match}"
        return f"{terms} + script" if self.script else terms


@cache
def pass_share(plan: LookupPlan) -> float:
    """
    Return the share, 0 to 1, of uniformly random fingerprints that match the block terms of *plan*.

    >>> round(pass_share(LookupPlan(3, steps=4)) * 2**16, 3)
    4.0
    """
    shares = {0: 1.0}  # by the sum of the distances so far, each of its block's depth at most
    for depth in plan.depths:
        following: defaultdict[int, float] = defaultdict(float)
        for spent, share in shares.items():
            for distance in range(BLOCK_BITS + 1):
                following[spent + min(distance, depth)] += share * comb(BLOCK_BITS, distance) / 2**BLOCK_BITS
        shares = following
    return min(1.0, sum(share for spent, share in shares.items() if spent <= plan.max_distance))


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


# Milliseconds by the thousand, fitted to measurements on both products by bench/plans.py (docs/speed.md). A term
# is looked up in each of eight segments; a posting list is read to its end; a check is a script run for one document;
# a hit is fetched, sent and rescored. Only their proportions decide.
MS_PER_THOUSAND = {"terms": 6.5, "postings": 0.01, "checks": 0.05, "hits": 36.0}


def estimate(plan: LookupPlan, stats: IndexStats) -> PlanEstimate:
    """Return what *plan* is expected to cost in an index like *stats*."""
    # The list of a neighbour is less skewed than that of the block itself: the density is an upper bound for all.
    postings = stats.documents * stats.density * plan.terms / 2**BLOCK_BITS
    # Each block in which a document has to be near multiplies its chance to pass by the density.
    skew: float = stats.density**plan.blocks_needed
    passing = stats.documents * min(1.0, pass_share(plan) * skew)
    hits = 0.0 if plan.script else passing
    thousands = {
        "terms": plan.terms,
        "postings": postings,
        "checks": passing if plan.script else 0.0,
        "hits": hits,
    }
    milliseconds = sum(MS_PER_THOUSAND[name] * amount / 1000 for name, amount in thousands.items())
    return PlanEstimate(plan, postings, passing, hits, milliseconds)


def explain_plan(max_distance: int, *, stats: IndexStats = ASSUMED, scripts: bool = True) -> tuple[PlanEstimate, ...]:
    """
    Return the estimates of the plans for *max_distance*, cheapest first: the first is the one that is used.

    >>> explain_plan(64, scripts=False)[0].plan.name
    'scan'
    """
    by_steps = (0, *range(max(BLOCKS, max_distance + 1), MOST_STEPS + 1))
    ways = (False, True) if scripts else (False,)
    estimates = [estimate(LookupPlan(max_distance, steps, script), stats) for steps in by_steps for script in ways]
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
    known = None if again else server.context.stats.recall(index)
    if known is None:
        try:
            known = await sample_stats(server, index)
        except Exception as error:
            if status_of(error) is None:
                raise
            known = ASSUMED
        server.context.stats.learn(index, known)
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
    mean = sum(lengths) / max(1, len(lengths))
    return IndexStats(max(1, documents), max(1.0, mean / chance))


def mean_length(terms: Sequence[str], together: int, alone: Mapping[str, int]) -> float:
    """
    Return the mean length of the posting lists of *terms*, one term for each sampled document.
    *together*: number of documents with any of the terms. *alone*: number of documents with each term that is repeated
    among *terms*; the other terms share the rest. The sample cannot show *alone*: a term of two documents out of 40 may
    be that of a twentieth of the index, or of these two only.
    """
    rest = len(set(terms)) - len(alone)
    ordinary = max(1.0, (together - sum(alone.values())) / max(1, rest))
    return sum(alone.get(term, ordinary) for term in terms) / len(terms)
