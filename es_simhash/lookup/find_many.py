"""Many lookups: several in one search, and for each, in order, its answer or the exception that it failed with."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from itertools import islice
from operator import length_hint
from typing import Any, TypeAlias, TypeVar

from es_simhash.arguments import check_items
from es_simhash.errors import SearchFailedError, SimHashError, WrongTypeError
from es_simhash.hashing import fingerprint as compute_fingerprint, fingerprints as compute_fingerprints
from es_simhash.hashing.charikar import check_fingerprint
from es_simhash.lookup.content import Content
from es_simhash.lookup.find import nothing_for, read_judging, read_subject, searching
from es_simhash.lookup.from_memory import MemoryLookups
from es_simhash.lookup.judge import judge
from es_simhash.lookup.lookup_options import LookupOptions, LookupRequest, check_complete
from es_simhash.lookup.near_dups import NearDups, by_fingerprint, hit_fingerprints
from es_simhash.lookup.plan import estimate
from es_simhash.lookup.question import ASSUMED, Question, Subject
from es_simhash.lookup.rules import Asker, Judging
from es_simhash.lookup.search import search
from es_simhash.mapping.meta import IndexSettings
from es_simhash.mapping.port import Port
from es_simhash.mapping.resolve import Attempts, SettingsChanged, read_index_settings, send_confirmed
from es_simhash.transport.answers import find_gaps
from es_simhash.transport.conversation import attempt, halves
from es_simhash.transport.pages import Hits
from es_simhash.transport.protocol import MAX_CLAUSES, Call, Index, check_index, status_of
from es_simhash.transport.refusals import TOO_LARGE, is_passing


@dataclass(frozen=True, slots=True)
class SharedSearch:
    """One or more questions of the same subject, and therefore with the same plan, that share one search."""

    questions: Sequence[Question]

    @property
    def page(self) -> int:
        """Most hits of the search."""
        largest = self.questions[0].subject.options.sizes.largest_page
        return min(largest, sum(each.page for each in self.questions))

    def body(self) -> dict[str, Any]:
        first = self.questions[0]
        if len(self.questions) == 1:
            return first.body()
        return first.shared_body(self.questions, page=self.page)

    def share(self, answer: Any) -> list[Any]:
        """
        Return each question's part of the *answer*; ``None`` for each if they must be asked one by one.
        They must be if there is no answer, the search was refused, it did not read everything, or a hit has no readable
        fingerprint. A search of one question returns the answer unchanged, also an exception.
        """
        if len(self.questions) == 1:
            return [answer]
        one_by_one = [None] * len(self.questions)
        if not isinstance(answer, Mapping) or "error" in answer or find_gaps(answer):
            return one_by_one
        hits = answer["hits"]["hits"]
        field = self.questions[0].field
        if len(hits) >= self.page or not all(hit_fingerprints(hit, field) for hit in hits):
            return one_by_one
        try:
            return [{**answer, "hits": {"hits": part}} for part in _hits_of_each(self.questions, hits)]
        except ValueError:
            return one_by_one


def _hits_of_each(questions: Sequence[Question], hits: Hits) -> Iterator[list[Mapping[str, Any]]]:
    """Yield for each of *questions* those of *hits*, all of which have a fingerprint, that may be near it."""
    found_by = by_fingerprint(hits, questions[0].field)
    for each in questions:
        wanted, most = each.fingerprint, each.max_distance
        found = (hit for value, some in found_by.items() if (value ^ wanted).bit_count() <= most for hit in some)
        yield list({id(hit): hit for hit in found}.values())  # a document may have several fingerprints


def _shareable(question: Question) -> int:
    """Return how many questions like this one are cheaper in one search than alone."""
    sizes = question.subject.options.sizes
    if question.plan.is_scan:
        return 1
    passing = estimate(question.plan, question.subject.stats or ASSUMED).passing
    most = (
        sizes.shared,
        sizes.shared_terms // question.plan.terms,
        MAX_CLAUSES // (2 * question.plan.clauses),
        int(sizes.shared_passing / max(1.0, passing)),
    )
    return max(1, min(most))


Outcome: TypeAlias = NearDups | Exception
"""The answer of a lookup, or the exception that it failed with."""

# A search that is refused for one of these would be refused again.
_FINAL = (401, 403, 404)


@dataclass(frozen=True, slots=True)
class MultiSearch:
    """Searches of questions, in order, that go out in one multi-search."""

    searches: Sequence[SharedSearch]

    @property
    def questions(self) -> list[Question]:
        return [question for each in self.searches for question in each.questions]

    def call(self) -> Call:
        subject = self.searches[0].questions[0].subject
        header = {"index": subject.index, **subject.routing}
        return Call("msearch", {"body": [line for each in self.searches for line in (header, each.body())]})


def make_multi_search(questions: Sequence[Question]) -> MultiSearch:
    """Return *questions* of one subject as a batch, in which several share a search where that is cheaper."""
    size = _shareable(questions[0])
    return MultiSearch([SharedSearch(questions[start : start + size]) for start in range(0, len(questions), size)])


async def ask_together(server: Port, questions: Sequence[Question], *, is_patient: bool = False) -> list[Outcome]:
    """Return the outcome of each of *questions*, in order; arguments and errors as :func:`take_answer`."""
    if not questions:
        return []
    batch = make_multi_search(questions)
    return await take_answer(server, batch, await attempt(_send(server, batch)), is_patient=is_patient)


async def take_answer(server: Port, batch: MultiSearch, answer: Any, *, is_patient: bool = False) -> list[Outcome]:
    """
    Return the outcome of each question of *batch*, in order, given the *answer* or exception of its call.
    A question that could not share a search gets a search for itself. A multi-search that is too large, or too much for
    the server now, is sent in halves. If the whole request is refused for another reason, the client's exception is
    raised.
    *is_patient*: what a busy server refused, or answered incompletely, is asked again, after waits.
    """
    outcomes: dict[Question, Outcome] = {}
    asked = [batch]

    async def ask() -> Sequence[Question]:
        """Return the questions whose answers may become better."""
        part = asked.pop()
        came = answer if part is batch else await attempt(_send(server, part))
        answers = await _answers(server, part, came, is_patient=is_patient)
        outcomes.update(zip(part.questions, await _read_answers(server, part.questions, answers), strict=True))
        left = [question for question in part.questions if _may_improve(outcomes[question])]
        asked.append(make_multi_search(left)) if left else None
        return left

    await (server.until(ask, lambda left: not left) if is_patient else ask())
    return [outcomes[question] for question in batch.questions]


def _may_improve(outcome: Outcome) -> bool:
    return is_passing(outcome) if isinstance(outcome, Exception) else not outcome.complete


async def _send(server: Port, batch: MultiSearch) -> Any:
    """Return the answer to the call of *batch*."""
    subject = batch.searches[0].questions[0].subject
    return await send_confirmed(server, subject.index, batch.call(), settings=subject.settings)


async def _answers(server: Port, batch: MultiSearch, answer: Any, *, is_patient: bool) -> list[Any]:
    """Return for each question of *batch* the answer to its search, or the exception of the request."""

    async def send(searches: Sequence[SharedSearch]) -> Any:
        return await _send(server, MultiSearch(searches))

    def splits(error: BaseException) -> bool:
        return is_passing(error) or TOO_LARGE.meets(error)

    parts: list[Any] = []
    for searches, came in await halves(server, batch.searches, answer, send=send, splits=splits, waits=is_patient):
        if isinstance(came, BaseException) and not splits(came):
            raise came
        answers = [came] if isinstance(came, BaseException) else came["responses"]
        parts += [part for shared, one in zip(searches, answers, strict=True) for part in shared.share(one)]
    alone = [SharedSearch([question]) for question, part in zip(batch.questions, parts, strict=True) if part is None]
    rest = iter(await _answers_of(server, alone, is_patient=is_patient))
    return [next(rest) if part is None else part for part in parts]


async def _answers_of(server: Port, searches: Sequence[SharedSearch], *, is_patient: bool) -> list[Any]:
    if not searches:
        return []
    batch = MultiSearch(searches)
    return await _answers(server, batch, await attempt(_send(server, batch)), is_patient=is_patient)


async def _read_answers(server: Port, questions: Sequence[Question], answers: Sequence[Any]) -> list[Outcome]:
    """Return the outcomes of *questions*, from their first *answers* and the searches after them."""
    outcomes: list[Outcome] = []
    for question, answer in zip(questions, answers, strict=True):
        outcomes.append(outcome := await attempt(_read_one(server, question, answer)))
        if isinstance(outcome, SettingsChanged):
            raise outcome  # no matter of one element
    return outcomes


async def _read_one(server: Port, question: Question, answer: Any) -> Outcome:
    if isinstance(answer, Exception):
        return answer
    if "error" not in answer:
        return await search(server, question, answer)
    if answer.get("status") in _FINAL:
        return refusal(answer)
    # A full queue, a small window, a plan that is not allowed: the question gets a search of its own.
    question.adapt(answer["error"])
    return await search(server, question)


def refusal(answer: Mapping[str, Any], what: str = "this search") -> SearchFailedError:
    """Return the error that says that the server refused one search of several."""
    error, status = answer["error"], answer.get("status", 0)
    cause = error if isinstance(error, str) else f"{error.get('type')}: {error.get('reason')}"
    said = f"the server refused {what} with status {status}: {cause}"
    return SearchFailedError(said, status=status, error=error)


_T = TypeVar("_T")


async def find_many(
    server: Port,
    index: Index,
    texts: Iterable[str] | None,
    fingerprints: Iterable[int | None] | None,
    options: LookupOptions,
    request: LookupRequest | None = None,
) -> list[Outcome]:
    """
    Return the near-duplicates, or the exception, of each of *texts* or *fingerprints*, in order. Cost: one multi-search
    for every 100 lookups, or one lookup after another if each has hundreds of candidates; with fingerprints in memory,
    one search for every 1,000 lookups. Memory: what is found, and the candidates of so many lookups.
    """
    results: list[Outcome] = []
    async with aclosing(stream_many(server, index, texts, fingerprints, options, request)) as parts:
        async for part in parts:
            results += part
    return results


async def stream_many(
    server: Port,
    index: Index,
    texts: Iterable[str] | None,
    fingerprints: Iterable[int | None] | None,
    options: LookupOptions,
    request: LookupRequest | None = None,
) -> AsyncGenerator[Sequence[Outcome], None]:
    """Yield what :func:`find_many` returns as it is found. Memory: what 1,000 lookups find."""
    request = request or LookupRequest()
    check_index(index)
    if (texts is None) == (fingerprints is None):
        raise WrongTypeError("give either texts or fingerprints=, not both and not neither")
    if texts is not None:
        check_items("texts", texts, of="strings")
    if fingerprints is not None:
        check_items("fingerprints", fingerprints, of="ints")
    asker: Asker = "fingerprint" if texts is None else "text"
    given: Any = fingerprints if texts is None else texts  # its truth may not be asked: a length may raise
    await read_index_settings(server, index)  # what is wrong with all lookups is no answer to one
    memory = MemoryLookups(request, length_hint(given) or None)
    sizes = options.sizes
    try:
        for part in _parts(given, lambda: sizes.batch_in_memory if memory.is_loaded else sizes.batch):
            attempts, answered = Attempts(server, index), list[Outcome]()
            while not answered:
                with attempts:
                    settings = await attempts.settings()
                    if texts is None:
                        found = [None if each is None else _or_error(check_fingerprint, each) for each in part]
                    else:
                        found = await server.compute(_fingerprint_each, part, settings)
                    judging = await read_judging(server, index, settings, options, asker)
                    searched = searching(options, judging)
                    if not judging.rule.is_by_distance_alone:
                        searched = replace(searched, size=None)  # the nearest need not be accepted
                    subject = await read_subject(server, index, settings, searched, many=True)
                    answers = await _look_up(server, subject, [each for each in found if isinstance(each, int)], memory)
                    asked = [text for text, each in zip(part, found, strict=True) if isinstance(each, int)]
                    answers = await _judge_each(server, index, answers, asked, settings, options, judging)
                    answered = _in_place(found, answers, nothing_for(settings, judging))
            yield answered
    finally:
        await memory.close(server)


def _in_place(found: Sequence[int | Exception | None], answers: Iterable[Outcome], nothing: NearDups) -> list[Outcome]:
    outcomes = iter(answers)
    return [next(outcomes) if isinstance(each, int) else nothing if each is None else each for each in found]


def _parts(items: Iterable[_T], size: Callable[[], int]) -> Iterator[list[_T]]:
    iterator = iter(items)
    while part := list(islice(iterator, size())):
        yield part


async def _look_up(server: Port, subject: Subject, fingerprints: Sequence[int], memory: MemoryLookups) -> list[Outcome]:
    """Return the outcome of each lookup: from memory where that has it, else from the server."""
    await memory.prepare(server, subject)
    known = await memory.ask(server, subject, fingerprints)
    asked = await _ask_server(server, [Question(subject, each) for each in fingerprints if each not in known])
    rest = iter(asked)
    return [known[each] if each in known else next(rest) for each in fingerprints]


async def _ask_server(server: Port, questions: Sequence[Question]) -> list[Outcome]:
    if not questions or not questions[0].expects_many:
        return await ask_together(server, questions)
    # One after another: the candidates of many lookups at once would fill the memory.
    outcomes: list[Outcome] = []
    for question in questions:
        outcomes.append(outcome := await attempt(search(server, question)))
        if isinstance(outcome, Exception) and status_of(outcome) is None and not isinstance(outcome, SimHashError):
            raise outcome  # a server that cannot be reached fails every element
    return outcomes


async def _judge_each(
    server: Port,
    index: Index,
    answers: Sequence[Outcome],
    texts: Sequence[Any],
    settings: IndexSettings,
    options: LookupOptions,
    judging: Judging,
) -> list[Outcome]:
    """Judge the answers of a batch together; exceptions stay as they are, and an incomplete answer becomes one."""
    pairs = [(answer, text) for answer, text in zip(answers, texts, strict=True) if isinstance(answer, NearDups)]
    found = [answer for answer, _ in pairs]
    asked = [Content(text if isinstance(text, str) else None) for _, text in pairs]
    judged = iter(await judge(server, index, found, asked, judging=judging, scheme=settings.scheme, size=options.size))
    return [_or_error(check_complete, next(judged)) if isinstance(answer, NearDups) else answer for answer in answers]


def _or_error(function: Callable[..., _T], *args: Any, **how: Any) -> _T | Exception:
    try:
        return function(*args, **how)
    except Exception as error:  # noqa: BLE001 -- the exception is the element's result
        return error


def _fingerprint_each(texts: Sequence[Any], settings: IndexSettings) -> list[int | Exception | None]:
    """Return the fingerprint of each text, or the ``TypeError`` for what is no text; the strings go in one batch."""
    strings = [text for text in texts if isinstance(text, str)]
    computed: Iterator[int | Exception | None]
    try:
        computed = iter(compute_fingerprints(strings, scheme=settings.scheme))
    except Exception:  # noqa: BLE001 -- one text must not take the others with it
        computed = (_or_error(compute_fingerprint, text, scheme=settings.scheme) for text in strings)
    return [
        next(computed) if isinstance(text, str) else WrongTypeError(f"text must be a string, not {type(text).__name__}")
        for text in texts
    ]
