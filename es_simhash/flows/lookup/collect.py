"""
The answer of one lookup: near-duplicates among the candidates read so far, in order, and why some may be missing.

Pure: hits come as plain dicts. Reading them lives in ``search``.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from es_simhash.flows.lookup.options import check_complete
from es_simhash.flows.lookup.question import Question
from es_simhash.flows.transfer.answers import Gap
from es_simhash.flows.transfer.pages import Hits
from es_simhash.index.plan import minimum_should_match
from es_simhash.index.rescore import NearDup, NearDups, held_fingerprints, rescore

__all__ = ["Collector", "NoFingerprint"]


@dataclass(frozen=True, slots=True)
class NoFingerprint:
    """A candidate that cannot be compared: it has block terms and no fingerprint."""

    index: str
    id: str
    field: str

    def __str__(self) -> str:
        """Return the sentence for people."""
        return f"document {self.id!r} of {self.index!r} has block terms but no {self.field}"


class Collector:
    """
    The near-duplicates of one question.

    Args:
        question:
            The question.

    Attributes:
        found:
            The near-duplicates collected; only the nearest ones if the caller wants no more than some.
        candidates:
            How many candidates were rescored.
        gaps:
            Why near-duplicates may be missing.
    """

    __slots__ = ("candidates", "found", "gaps", "question")

    def __init__(self, question: Question) -> None:
        self.question = question
        self.found: list[NearDup] = []
        self.candidates = 0
        self.gaps: dict[Gap | NoFingerprint, None] = {}

    def add(self, hits: Hits) -> None:
        """Rescore a page of candidates and keep the near-duplicates among them."""
        field = self.question.field
        broken = [hit for hit in hits if not held_fingerprints(hit, field)]
        self.gaps |= {NoFingerprint(hit["_index"], hit["_id"], field): None for hit in broken}
        self.candidates += len(hits)
        self.found += self.rescore([hit for hit in hits if held_fingerprints(hit, field)] if broken else hits)
        size = self.question.subject.options.size
        if size is not None and len(self.found) > size:
            self.found = heapq.nsmallest(size, self.found, key=lambda each: each.order)

    def rescore(self, hits: Iterable[Mapping[str, Any]]) -> list[NearDup]:
        """Return the near-duplicates among *hits*, all of which have a fingerprint."""
        question = self.question
        return rescore(
            hits,
            question.fingerprint,
            max_distance=question.max_distance,
            prefix=question.subject.context.prefix,
        )

    def is_settled(self, hits: Hits) -> bool:
        """
        Return whether no candidate after the page *hits* is nearer than what was found.

        The candidates come in order of clauses matched, where the server can keep that order.
        """
        size = self.question.subject.options.size or 0
        if not hits or len(self.found) < size or hits[-1].get("_score") is None:  # a scroll has no such order
            return False
        matched = round(hits[-1]["_score"])
        worst = max(each.distance for each in self.found)
        # What follows matches no more clauses than the last hit, and a fingerprint at distance d matches at least
        # minimum_should_match(d). Its distance is therefore at least the least d for which that is few enough.
        return all(minimum_should_match(nearer, self.question.plan.radii) > matched for nearer in range(worst))

    def result(self, gaps: Iterable[Gap]) -> NearDups:
        """
        Return the answer, given the *gaps* of what was read.

        Raises:
            IncompleteSearchError: If near-duplicates may be missing and the caller did not ask for such answers.
        """
        self.gaps |= dict.fromkeys(gaps)
        question, subject = self.question, self.question.subject
        if not self.gaps:
            # Only now: a search refused because of the caller's filter must not teach limits to other lookups.
            subject.context.learn_limits(subject.index, question.limits)
        found = {each.key: each for each in self.found}
        answer = NearDups(
            tuple(sorted(found.values(), key=lambda each: each.order)[: subject.options.size]),
            complete=not self.gaps,
            scheme=subject.settings.scheme,
            max_distance=question.max_distance,
            plan=question.plan,
            candidates=self.candidates,
            reasons=tuple(map(str, self.gaps)),
        )
        return check_complete(answer, subject.options.on_incomplete)
