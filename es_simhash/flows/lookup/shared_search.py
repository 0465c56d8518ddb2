"""
Puts several lookups into one search, so that they share the fixed cost of a search.

The client finds out which hit belongs to which lookup. The lookups have the same subject, and so the same
plan. ``question`` has the question of one lookup, and ``batch`` the requests.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from es_simhash.flows.lookup.question import ASSUMED, Question
from es_simhash.flows.transfer.answers import find_gaps
from es_simhash.flows.transfer.pages import Hits
from es_simhash.index.plan_cost import estimate
from es_simhash.index.rescore import held_fingerprints

__all__ = ["Bundle", "bundles"]


@dataclass(frozen=True, slots=True)
class Bundle:
    """
    Questions that are asked in one search.

    Attributes:
        questions:
            One or more, of the same subject.
    """

    questions: Sequence[Question]

    @property
    def page(self) -> int:
        """Most hits of the search."""
        largest = self.questions[0].subject.options.sizes.largest_page
        return min(largest, sum(each.page for each in self.questions))

    def body(self) -> dict[str, Any]:
        """Return the search body."""
        first = self.questions[0]
        if len(self.questions) == 1:
            return first.body()
        return first.shared_body(self.questions, page=self.page)

    def share(self, answer: Any) -> list[Any]:
        """
        Return each question's part of the *answer*; ``None`` for each where they have to be asked one by one.

        They have to if there is no answer, the search was refused or did not read everything, or a hit has no
        readable fingerprint to tell whose it is. The one question of a bundle gets the answer as it is.
        """
        if len(self.questions) == 1:
            return [answer]
        one_by_one = [None] * len(self.questions)
        if not isinstance(answer, Mapping) or "error" in answer or find_gaps(answer):
            return one_by_one
        hits = answer["hits"]["hits"]
        field = self.questions[0].field
        if len(hits) >= self.page or not all(held_fingerprints(hit, field) for hit in hits):
            return one_by_one
        try:
            return [{**answer, "hits": {"hits": part}} for part in _parts(self.questions, hits)]
        except ValueError:
            return one_by_one


def _parts(questions: Sequence[Question], hits: Hits) -> Iterator[list[Mapping[str, Any]]]:
    """Yield for each of *questions* those of *hits*, all of which have a fingerprint, that may be near it."""
    holders: dict[int, list[Mapping[str, Any]]] = {}
    for hit in hits:
        for digits in hit["fields"][questions[0].field]:
            holders.setdefault(int(digits, 16), []).append(hit)
    for each in questions:
        wanted, most = each.fingerprint, each.max_distance
        near = (value for value in holders if (value ^ wanted).bit_count() <= most)
        known = near if each.known is None else each.known
        found = (hit for value in known for hit in holders.get(value, ()))
        yield list({id(hit): hit for hit in found}.values())  # a document may have several fingerprints


def bundles(questions: Sequence[Question]) -> Iterator[Bundle]:
    """
    Yield *questions*, in order, in bundles that a server accepts; one by one if bundles are not cheaper.
    """
    for _, group in groupby(questions, key=lambda each: each.known is None):
        alike = list(group)
        size = _shareable(alike[0])
        for start in range(0, len(alike), size):
            yield Bundle(alike[start : start + size])


def _shareable(question: Question) -> int:
    """Return how many questions like this one are cheaper in one search than alone."""
    sizes = question.subject.options.sizes
    if question.known is not None:
        return sizes.shared
    if question.plan.is_scan:
        return 1
    passing = estimate(question.plan, question.subject.stats or ASSUMED).passing
    most = (
        sizes.shared,
        sizes.shared_terms // question.plan.terms,
        question.limits.max_clauses // (2 * question.plan.clauses),
        int(sizes.shared_passing / max(1.0, passing)),
    )
    return max(1, min(most))
