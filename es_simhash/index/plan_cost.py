"""
The cost of a lookup plan in an index: the cost model, and the statistics of an index that it needs.

Arithmetic only. A wrong estimate makes a lookup slower, never less exact. Choosing among plans lives in
``explain_plan``, reading the statistics from a server in ``flows.lookup.index_stats``.
"""

from __future__ import annotations

from dataclasses import dataclass

from es_simhash.hashing import BLOCK_BITS
from es_simhash.index.plan import LookupPlan
from es_simhash.index.plan_radii import blocks_needed

__all__ = ["PER_THOUSAND", "SKIMMED_FROM", "IndexStats", "PlanEstimate", "estimate"]


@dataclass(frozen=True, slots=True)
class IndexStats:
    """
    Statistics of the fingerprints of an index.

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
    """
    Return what *plan* is expected to cost in an index like *stats*.
    """
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
