"""
The question of one lookup: its plan, the limits of the plan, and the bodies of its searches.

Nothing is sent here. The requests live in ``search``, the answer in ``collect``; plans and queries are made in
``index``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from es_simhash.lookup.index_stats_flow import limits_after_refusal
from es_simhash.lookup.options import Options, effective_distance, usable_limits
from es_simhash.lookup.plan import LookupPlan, check_plan, fits
from es_simhash.lookup.plan_cost import SKIMMED_FROM, estimate, plan_lookup
from es_simhash.lookup.query import build_body, candidate_clauses, holder_clauses
from es_simhash.mapping.context import Context
from es_simhash.mapping.fields import Fields
from es_simhash.mapping.limits import IndexStats, Limits
from es_simhash.mapping.meta import IndexSettings
from es_simhash.transport.answers import Gap, is_window_refused
from es_simhash.transport.names import Index

# The plan for an index that was not measured suits a large and skewed one. It costs little more in a small one.
ASSUMED = IndexStats(documents=64_000_000, density=8.0)


@dataclass(frozen=True, slots=True)
class Subject:
    """
    The common part of several questions.

    Attributes:
        context:
            What the client object knows; limits that the server shows are recorded there.
        index:
            What to search.
        settings:
            The settings that the index records.
        stats:
            Size and skew of the index; ``None`` if they were not measured.
        options:
            The caller's options.
    """

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
    The question of one lookup.

    Args:
        subject:
            What it has in common with others.
        fingerprint:
            The fingerprint to look up, unsigned.
        known:
            The fingerprints within max_distance that documents of the index may have, where they are known; documents
            that have one are asked for, instead of by block terms.

    Attributes:
        max_distance:
            Largest distance of a near-duplicate, in bits, inclusive.
        limits:
            What the server is known to allow.
        plan:
            The lookup plan.
        page:
            Most hits of the first search.
        expected:
            Candidates that the cost model expects; 0 if the index was not measured.
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
    def expects_many(self) -> bool:
        """Whether skimming is faster, because many candidates are expected."""
        return self.expected > SKIMMED_FROM and self.limits.skims

    def adapt(self, refusal: BaseException | Mapping[str, Any] | Sequence[Gap]) -> bool:
        """
        Change the plan, or the page, after a refused search; return whether another search is possible.

        Args:
            refusal:
                The client's exception, the ``error`` of one search of a multi-search, or the gaps of an answer.
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
