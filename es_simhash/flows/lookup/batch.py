"""
Many lookups in one multi-search: sent together, told apart, and asked again where one did not get an answer.

``find_many`` and ingest both use this. What one lookup asks lives in ``question``, its own searches in ``search``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from es_simhash.errors import SearchFailedError
from es_simhash.flows.confirmation import SettingsChanged, send_confirmed
from es_simhash.flows.lookup.question import Question
from es_simhash.flows.lookup.search import read_answer, search
from es_simhash.flows.lookup.shared_search import Bundle, bundles
from es_simhash.flows.protocol import Call, Flow, status_of
from es_simhash.flows.transfer.retry import Patience, is_passing
from es_simhash.index.rescore import NearDups

__all__ = ["Batch", "Outcome", "ask_batch", "make_batch", "take_answer"]

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
    """Return for each question of *batch* the answer to its search, or the exception that the request failed with."""
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
    """Return what the first *answers* to *questions*, and the searches after them, give."""
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
