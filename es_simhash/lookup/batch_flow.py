"""
Puts several lookups into one search, so that they share the fixed cost of a search.

The client finds out which hit belongs to which lookup. The lookups have the same subject, and so the same
plan. ``question`` has the question of one lookup, and ``batch`` the requests.

Sends many lookups in one multi-search, and repeats the lookups that got no answer.

``find_many`` and ingest both use this. What one lookup asks lives in ``question``, its own searches in ``search``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, TypeAlias

from es_simhash.errors import SearchFailedError
from es_simhash.lookup.near_dups import NearDups, held_fingerprints
from es_simhash.lookup.plan_cost import estimate
from es_simhash.lookup.question import ASSUMED, Question
from es_simhash.lookup.search_flow import read_answer, search
from es_simhash.mapping.confirmation_flow import SettingsChanged, send_confirmed
from es_simhash.transport.answers import find_gaps
from es_simhash.transport.protocol import Call, Flow, status_of
from es_simhash.transport.retry_flow import Patience, is_passing
from es_simhash.transport.view import Hits


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


Outcome: TypeAlias = NearDups | Exception
"""The answer of a lookup, or the exception that it failed with."""


# A search that is refused for one of these would be refused again.
_FINAL = (401, 403, 404)


_TOO_LARGE = 413


@dataclass(frozen=True, slots=True)
class Batch:
    """
    Questions that go out in one request.

    Attributes:
        bundles:
            The questions, in order; those of a bundle share a search.
    """

    bundles: Sequence[Bundle]

    @property
    def questions(self) -> list[Question]:
        """The questions, in order."""
        return [question for bundle in self.bundles for question in bundle.questions]

    def call(self) -> Call:
        """Return the request."""
        subject = self.bundles[0].questions[0].subject
        header = {"index": subject.index, **subject.routing}
        return Call("msearch", {"body": [line for bundle in self.bundles for line in (header, bundle.body())]})


def make_batch(questions: Sequence[Question]) -> Batch:
    """
    Return *questions* of one subject as a batch, in which several share a search where that is cheaper.
    """
    return Batch(list(bundles(questions)))


def ask_batch(questions: Sequence[Question], *, patience: Patience | None = None) -> Flow[list[Outcome]]:
    """
    Return the outcome of each of *questions*, in order; arguments and errors as :func:`take_answer`.
    """
    if not questions:
        return []
    batch = make_batch(questions)
    return (yield from take_answer(batch, (yield from _send(batch)), patience=patience))


def take_answer(batch: Batch, answer: Any, *, patience: Patience | None = None) -> Flow[list[Outcome]]:
    """
    Return the outcome of each question of *batch*, in order.

    A question that could not share a search is asked in one of its own; a multi-search that is too large, or too
    much for the server now, is sent in halves.

    Args:
        batch:
            The batch.
        answer:
            The answer to its call, or the exception that the call failed with.
        patience:
            How long to repeat what a busy server refused or answered incompletely; by default not at all. It is
            renewed when all answers are complete, so that a shard that stays away is not waited for in every batch.

    Raises:
        Exception: The client's own exception, where the whole request was refused for another reason.
    """
    patience = patience or Patience(attempts=1)
    questions = batch.questions
    outcomes = yield from _read_answers(questions, (yield from _answers(batch, answer, patience)))
    while again := [number for number, outcome in enumerate(outcomes) if _may_improve(outcome)]:
        if patience.is_spent:
            return outcomes
        yield patience.wait()
        repeated = make_batch([questions[number] for number in again])
        answers = yield from _answers(repeated, (yield from _send(repeated)), patience)
        improved = yield from _read_answers(repeated.questions, answers)
        for number, outcome in zip(again, improved, strict=True):
            outcomes[number] = outcome
    patience.renew()
    return outcomes


def _may_improve(outcome: Outcome) -> bool:
    return is_passing(outcome) if isinstance(outcome, Exception) else not outcome.complete


def _send(batch: Batch) -> Flow[Any]:
    """Return the answer to the call of *batch*, or the exception that it failed with."""
    subject = batch.bundles[0].questions[0].subject
    try:
        settings = subject.settings
        return (yield from send_confirmed(subject.context, subject.index, batch.call(), settings=settings))
    except Exception as error:  # noqa: BLE001 -- judged by _answers
        return error


def _answers(batch: Batch, answer: Any, patience: Patience) -> Flow[list[Any]]:
    """Return for each question of *batch* the answer to its search, or the exception of the request."""
    if isinstance(answer, Exception):
        if not is_passing(answer) and status_of(answer) != _TOO_LARGE:
            raise answer
        if is_passing(answer) and len(batch.questions) > 1 and not patience.is_spent:
            yield patience.wait()
        if len(batch.bundles) > 1:
            half = len(batch.bundles) // 2
            return [
                *(yield from _answers_of(batch.bundles[:half], patience)),
                *(yield from _answers_of(batch.bundles[half:], patience)),
            ]
    answers = [answer] if isinstance(answer, Exception) else answer["responses"]
    parts = [part for bundle, each in zip(batch.bundles, answers, strict=True) for part in bundle.share(each)]
    alone = [Bundle([question]) for question, part in zip(batch.questions, parts, strict=True) if part is None]
    rest = iter((yield from _answers_of(alone, patience)))
    return [next(rest) if part is None else part for part in parts]


def _answers_of(bundles: Sequence[Bundle], patience: Patience) -> Flow[list[Any]]:
    if not bundles:
        return []
    batch = Batch(bundles)
    return (yield from _answers(batch, (yield from _send(batch)), patience))


def _read_answers(questions: Sequence[Question], answers: Sequence[Any]) -> Flow[list[Outcome]]:
    """Return the outcomes of *questions*, from their first *answers* and the searches after them."""
    outcomes: list[Outcome] = []
    for question, answer in zip(questions, answers, strict=True):
        try:
            outcomes.append((yield from _read_one(question, answer)))
        except SettingsChanged:
            raise  # no matter of one element
        except Exception as error:  # noqa: BLE001 -- a failed element is a value
            outcomes.append(error)
    return outcomes


def _read_one(question: Question, answer: Any) -> Flow[Outcome]:
    if isinstance(answer, Exception):
        return answer
    if "error" not in answer:
        return (yield from read_answer(question, answer))
    if answer.get("status") in _FINAL:
        return _refusal(answer)
    # A full queue, a small window, a plan that is not allowed: the question gets a search of its own.
    question.adapt(answer["error"])
    return (yield from search(question))


def _refusal(answer: Mapping[str, Any]) -> SearchFailedError:
    error = answer["error"]
    cause = error if isinstance(error, str) else f"{error.get('type')}: {error.get('reason')}"
    status = answer.get("status", 0)
    return SearchFailedError(
        f"the server refused this search with status {status}: {cause}", status=status, error=error
    )
