"""
The question of one lookup: the size and limits of the index, the plan, and the bodies of its searches.

The context remembers them. No answer depends on an estimate: a wrong one makes a lookup slower, not less exact.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from es_simhash.hashing import BLOCK_BITS
from es_simhash.lookup.options import Options, effective_distance, usable_limits
from es_simhash.lookup.plan import SKIMMED_FROM, LookupPlan, check_plan, estimate, fits, plan_lookup
from es_simhash.lookup.query import build_body, candidate_clauses, holder_clauses
from es_simhash.mapping.context import Context, IndexStats, Limits
from es_simhash.mapping.fields import Fields
from es_simhash.mapping.meta import IndexSettings
from es_simhash.transport.answers import Gap, is_window_refused, refusal_text
from es_simhash.transport.names import Index
from es_simhash.transport.protocol import Call, Flow, status_of

SAMPLE = 40
# Up to this distance the plan for a large and skewed index costs little more in a small one.
STATS_FROM_DISTANCE = 2

_EXPENSIVE = "allow_expensive_queries"
_ALLOWED = re.compile(r"(?:maximum of|is set to|limit of) \[?(\d+)")


def index_stats(
    context: Context, index: Index, max_distance: int | None = None, *, again: bool = False
) -> Flow[IndexStats | None]:
    """
    Return the size and skew of *index*, or ``None`` if a lookup does not need them.

    Cost: two requests, once in ten minutes; with *again* in any case. None within a small *max_distance*, where
    the size of the index decides little; *max_distance* is ``None`` for many lookups. If the server refuses, a
    million random fingerprints are assumed.
    """
    if max_distance is not None and max_distance <= STATS_FROM_DISTANCE:
        return None
    known = None if again else context.recall_stats(index)
    if known is None:
        try:
            known = yield from _sample(context, index)
        except Exception as error:
            if status_of(error) is None:
                raise
            known = IndexStats()
        context.learn_stats(index, known)
    return known


def _sample(context: Context, index: Index) -> Flow[IndexStats]:
    fields = Fields(context.prefix)
    body = {
        "size": SAMPLE,
        "query": {"exists": {"field": fields.fingerprint}},
        "docvalue_fields": list(fields.blocks),
        "_source": False,
        "track_total_hits": True,
    }
    answer = yield Call("search", {"index": index, "body": body})
    hits = answer["hits"]["hits"]
    documents = answer["hits"]["total"]["value"]
    sampled = {
        field: [hit["fields"][field][0] for hit in hits if field in hit.get("fields", ())] for field in fields.blocks
    }
    asked = {field: [sorted(set(terms)), *([each] for each in _repeated(terms))] for field, terms in sampled.items()}
    lines: list[Any] = []
    for field, parts in asked.items():
        for part in parts:
            lines += [{"index": index}, {"size": 0, "query": {"terms": {field: part}}, "track_total_hits": True}]
    answers = iter((yield Call("msearch", {"body": lines}))["responses"])
    lengths = []
    for field, terms in sampled.items():
        own = [next(answers) for _ in asked[field]]
        if terms and not any("error" in each for each in own):
            together, *alone = (each["hits"]["total"]["value"] for each in own)
            lengths.append(mean_length(terms, together, dict(zip(_repeated(terms), alone, strict=True))))
    # A posting list has the document's own entry, or as many entries as chance would put there.
    chance = max(documents / 2**BLOCK_BITS, 1.0)
    mean = sum(lengths) / len(lengths) if lengths else 0.0
    return IndexStats(max(1, documents), max(1.0, mean / chance))


def _repeated(terms: Sequence[str]) -> list[str]:
    """Return the terms that several of the sampled documents have, each once."""
    return [term for term, count in Counter(terms).items() if count > 1]


def mean_length(terms: Sequence[str], together: int, alone: Mapping[str, int]) -> float:
    """
    Return the mean length of the posting lists of *terms*, one term for each sampled document.

    *together*: number of documents with any of the terms. *alone*: number of documents with each term that is
    repeated among *terms*; the other terms share the rest. The sample cannot show *alone*: a term of two documents
    out of 40 may be that of a twentieth of the index, or of these two only.
    """
    rest = len(set(terms)) - len(alone)
    ordinary = max(1.0, (together - sum(alone.values())) / rest) if rest else 0.0
    return sum(alone.get(term, ordinary) for term in terms) / len(terms)


def limits_after_refusal(
    limits: Limits, refusal: BaseException | Mapping[str, Any] | Iterable[Gap], *, scripted: bool
) -> Limits | None:
    """
    Return smaller limits, learnt from a refused search; ``None`` if it was refused for another reason.

    *refusal*: the client's exception, the ``error`` of one search of a batch, or the gaps of an answer.
    """
    text = refusal_text(refusal)
    if scripted and limits.scripts and ("script" in text or _EXPENSIVE in text or "painless" in text):
        return replace(limits, scripts=False)
    if limits.skims and "Cannot search on field" in text:  # of our fields, only the fingerprint may be mapped so
        return replace(limits, skims=False)
    if "max_terms_count" in text:
        return replace(limits, max_terms=_smaller(text, limits.max_terms)) if limits.max_terms > 1 else None
    if re.search("too_many_(nested_)?clauses|max_?clause_?count", text, re.IGNORECASE):
        return replace(limits, max_clauses=_smaller(text, limits.max_clauses)) if limits.max_clauses > 0 else None
    return None


def _smaller(text: str, current: int) -> int:
    """Return the maximum that the message names, if it is below *current*, else half of *current*."""
    named = [int(number) for number in _ALLOWED.findall(text) if int(number) < current]
    return min(named, default=current // 2)


# The plan for an index that was not measured suits a large and skewed one. It costs little more in a small one.
ASSUMED = IndexStats(documents=64_000_000, density=8.0)


@dataclass(frozen=True, slots=True)
class Subject:
    """The common part of several questions; *stats* are ``None`` if they were not measured."""

    context: Context
    index: Index
    settings: IndexSettings
    stats: IndexStats | None
    options: Options

    @property
    def field(self) -> str:
        """The field that holds fingerprints."""
        return Fields(self.context.prefix).fingerprint

    @property
    def routing(self) -> dict[str, str]:
        """The routing argument of a search."""
        return {} if self.options.routing is None else {"routing": self.options.routing}

    @property
    def milliseconds(self) -> float:
        """How long one lookup by block terms is expected to take the server."""
        return estimate(Question(self, 0).plan, self.stats or ASSUMED).milliseconds

    def holders_body(self, fingerprints: Iterable[int], *, page: int) -> dict[str, Any]:
        """Return the body of a search for the documents that have one of *fingerprints*."""
        return self.body(holder_clauses(fingerprints, prefix=self.context.prefix), page=page)

    def body(self, clauses: Sequence[Mapping[str, Any]], *, page: int) -> dict[str, Any]:
        """Return the body of a search for the documents that match all *clauses*, with at most *page* hits."""
        options = self.options
        return build_body(
            clauses,
            filter=options.filter,
            exclude_ids=options.exclude_ids,
            prefix=self.context.prefix,
            size=page,
            source=options.source,
        )


class Question:
    """
    The question of one lookup, with the plan that the server's known limits allow.

    *known*: all fingerprints within max_distance that documents of the index may have. If given, the documents
    that have one are asked for, not block terms; too many for the server make it ``None``.
    *page*: most hits of the first search. *expected*: candidates by the cost model; 0 if not measured.
    """

    __slots__ = ("expected", "field", "fingerprint", "known", "limits", "max_distance", "page", "plan", "subject")

    def __init__(self, subject: Subject, fingerprint: int, *, known: Sequence[int] | None = None) -> None:
        self.subject = subject
        self.fingerprint = fingerprint
        self.known = known
        self.field = subject.field
        self.max_distance = effective_distance(subject.settings, subject.options)
        self.limits = usable_limits(subject.context, subject.index, subject.settings)
        self._choose_plan()

    def _choose_plan(self) -> None:
        """Choose the plan, within the limits, and with it the size of the first page."""
        options, stats = self.subject.options, self.subject.stats
        plan = options.plan
        if self.known is not None and not (self.limits.skims and len(self.known) <= self.limits.max_terms):
            self.known = None
        if plan is None:
            plan = plan_lookup(self.max_distance, stats=stats or ASSUMED, limits=self.limits)
        self.plan: LookupPlan = check_plan(plan, self.max_distance)
        hits = 0.0 if self.known is not None else estimate(self.plan, stats or ASSUMED).hits
        sizes = options.sizes
        self.page = int(min(max(2 * hits, sizes.first_page), sizes.largest_page))
        self.expected = 0.0 if stats is None else hits

    @property
    def reads_all_at_once(self) -> bool:
        """
        Whether all pages are read at once, without a first page to try: many candidates are expected, and
        are skimmed.
        """
        return self.expected > SKIMMED_FROM and self.limits.skims

    def adapt(self, refusal: BaseException | Mapping[str, Any] | Sequence[Gap]) -> bool:
        """
        Change the plan, or the page, after a refused search; return whether another search is possible.

        *refusal*: the client's exception, the ``error`` of one search of a multi-search, or the gaps of an answer.
        """
        if is_window_refused(refusal) and self.page > 1:
            self.page = max(1, self.page // 2)
            return True
        # Another lookup may have learnt meanwhile what this one was refused for.
        smaller: Limits | None = self.limits.within(self.subject.context.limits(self.subject.index))
        if smaller == self.limits:
            smaller = limits_after_refusal(self.limits, refusal, scripted=self.plan.script)
        forced = self.subject.options.plan
        if smaller is None or (forced is not None and not fits(forced, smaller)):
            return False
        self.limits = smaller
        self._choose_plan()
        return True

    def body(self, *, ranked: bool = False) -> dict[str, Any]:
        """Return the search body; the score of a *ranked* one is the number of clauses that a hit matches."""
        body = self.shared_body([self], page=self.page)
        if ranked:
            clauses = body["query"]["bool"]
            clauses["must"] = clauses["filter"].pop(0)
        return body

    def shared_body(self, questions: Sequence[Question], *, page: int) -> dict[str, Any]:
        """Return the body of one search for several *questions* like this one, with its plan."""
        if self.known is not None:
            return self.subject.holders_body({known for each in questions for known in each.known or ()}, page=page)
        fingerprints = [each.fingerprint for each in questions]
        return self.subject.body(
            candidate_clauses(fingerprints, self.plan, prefix=self.subject.context.prefix), page=page
        )
