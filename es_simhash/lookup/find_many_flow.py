"""
Many lookups: the answer of each in order, or the exception of the one that failed.

The multi-searches live in ``batch``, answers without one in ``from_memory``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from itertools import islice
from typing import Any, TypeVar

from es_simhash.arguments import check_items
from es_simhash.errors import IncompleteSearchError, InvalidInputError, SimHashError, WrongTypeError
from es_simhash.hashing import fingerprint as compute_fingerprint, fingerprints as compute_fingerprints, to_hex
from es_simhash.lookup.batch_flow import Outcome, ask_batch
from es_simhash.lookup.find_flow import before_verification, nothing_for, read_subject, verify_found
from es_simhash.lookup.from_memory_flow import MemoryLookups
from es_simhash.lookup.memory_options import LookupRequest
from es_simhash.lookup.near_dups import NearDups
from es_simhash.lookup.options import Options, check_complete
from es_simhash.lookup.question import Question, Subject
from es_simhash.lookup.search_flow import search
from es_simhash.mapping.confirmation_flow import with_settings
from es_simhash.mapping.context import Context
from es_simhash.mapping.meta import IndexSettings
from es_simhash.mapping.resolve_flow import read_index_settings
from es_simhash.transport.names import Index, check_index
from es_simhash.transport.protocol import Compute, Emit, Flow, status_of

_T = TypeVar("_T")
# Deals with the outcomes of some lookups, in order.
_Take = Callable[[Sequence[Outcome]], Flow[None]]


def find_many(
    context: Context,
    index: Index,
    texts: Iterable[str] | None,
    fingerprints: Iterable[int | None] | None,
    options: Options,
    request: LookupRequest | None = None,
) -> Flow[list[Outcome]]:
    """
    Return the near-duplicates of each of *texts*, or of *fingerprints*, in order, or the exception of the lookup.

    Cost: one multi-search for every 100 lookups, or one lookup after another where each has hundreds of candidates.
    With fingerprints in memory, one search for every 1,000 lookups. Memory: what is found, and the candidates of so
    many lookups.
    """
    results: list[Outcome] = []

    def keep(outcomes: Sequence[Outcome]) -> Flow[None]:
        yield from ()
        results.extend(outcomes)

    yield from _look_each_up(context, index, texts, fingerprints, options, request or LookupRequest(), keep)
    return results


def stream_many(
    context: Context,
    index: Index,
    texts: Iterable[str] | None,
    fingerprints: Iterable[int | None] | None,
    options: Options,
    request: LookupRequest | None = None,
) -> Flow[None]:
    """
    Emit what :func:`find_many` returns, as it is found. Memory: what is found in 1,000 lookups.
    """

    def emit(outcomes: Sequence[Outcome]) -> Flow[None]:
        for each in outcomes:
            yield Emit(each)

    yield from _look_each_up(context, index, texts, fingerprints, options, request or LookupRequest(), emit)


def _look_each_up(
    context: Context,
    index: Index,
    texts: Iterable[str] | None,
    fingerprints: Iterable[int | None] | None,
    options: Options,
    request: LookupRequest,
    take: _Take,
) -> Flow[None]:
    """Give the outcomes of all lookups to *take*, part by part."""
    check_index(index)
    if (texts is None) == (fingerprints is None):
        raise WrongTypeError("give either texts or fingerprints=, not both and not neither")
    if texts is not None:
        check_items("texts", texts, of="strings")
    if fingerprints is not None:
        check_items("fingerprints", fingerprints, of="ints")
    if texts is None and options.verification is not None:
        raise InvalidInputError("verify compares texts: ask with texts, not with fingerprints")
    if options.plan is not None and request.lookups == "memory":
        raise InvalidInputError("lookups='memory' uses no lookup plan: leave plan out, or pass lookups='server'")
    given: Iterable[Any] = (fingerprints if texts is None else texts) or ()
    try:
        yield from read_index_settings(context, index)
    except IncompleteSearchError as error:
        unknown = NearDups(complete=False, reasons=error.reasons)
        yield from take([check_complete(unknown, options.on_incomplete) for _ in given])
        return
    memory = MemoryLookups(request, len(given) if isinstance(given, Sized) else None)
    sizes = options.sizes
    try:
        for part in _parts(given, lambda: sizes.batch_in_memory if memory.is_loaded else sizes.batch):

            def look_up(settings: IndexSettings, part: Sequence[Any] = part) -> Flow[list[Outcome]]:
                if texts is None:
                    found = [_check_fingerprint(each) for each in part]
                else:
                    found = yield Compute(_fingerprint_each, (part, settings))
                subject = yield from read_subject(context, index, settings, before_verification(options), many=True)
                answers = yield from _look_up(subject, [each for each in found if isinstance(each, int)], memory)
                if options.verification is not None:
                    asked = [text for text, each in zip(part, found, strict=True) if isinstance(each, int)]
                    answers = yield from _verify_each(index, answers, asked, settings, options)
                return _in_place(found, answers, nothing_for(settings, options))

            yield from take((yield from with_settings(context, index, look_up)))
    finally:
        yield from memory.close()


def _in_place(found: Sequence[int | Exception | None], answers: Iterable[Outcome], nothing: NearDups) -> list[Outcome]:
    """Return an outcome for each fingerprint, or what is wrong with one, of *found*; *answers* are of fingerprints."""
    outcomes = iter(answers)
    return [next(outcomes) if isinstance(each, int) else nothing if each is None else each for each in found]


def _parts(items: Iterable[_T], size: Callable[[], int]) -> Iterator[list[_T]]:
    iterator = iter(items)
    while part := list(islice(iterator, size())):
        yield part


def _look_up(subject: Subject, fingerprints: Sequence[int], memory: MemoryLookups) -> Flow[list[Outcome]]:
    """Return the outcome of each lookup: from memory where that has it, else from the server."""
    yield from memory.prepare(subject)
    known = yield from memory.ask(subject, fingerprints)
    asked = yield from _ask_server([Question(subject, each) for each in fingerprints if each not in known])
    rest = iter(asked)
    return [known[each] if each in known else next(rest) for each in fingerprints]


def _ask_server(questions: Sequence[Question]) -> Flow[list[Outcome]]:
    if not questions or not questions[0].expects_many:
        return (yield from ask_batch(questions))
    # One after another: the candidates of many lookups at once would fill the memory.
    outcomes: list[Outcome] = []
    for question in questions:
        try:
            outcomes.append((yield from search(question)))
        except Exception as error:
            if status_of(error) is None and not isinstance(error, SimHashError):
                raise  # a server that cannot be reached fails every element
            outcomes.append(error)
    return outcomes


def _verify_each(
    index: Index,
    answers: Sequence[Outcome],
    texts: Sequence[Any],
    settings: IndexSettings,
    options: Options,
) -> Flow[list[Outcome]]:
    """Verify the answers of a batch together; exceptions stay as they are."""
    asked = [(answer, text) for answer, text in zip(answers, texts, strict=True) if isinstance(answer, NearDups)]
    found, known = [answer for answer, _ in asked], [text for _, text in asked]
    verified = iter((yield from verify_found(index, found, known, settings, options)))
    return [next(verified) if isinstance(answer, NearDups) else answer for answer in answers]


def _check_fingerprint(value: Any) -> int | Exception | None:
    """Return a fingerprint as it is, or the exception if it cannot be used."""
    try:
        if value is not None:
            to_hex(value)
    except (TypeError, ValueError) as error:
        return error
    else:
        return value  # type: ignore[no-any-return]


def _fingerprint_or_error(text: str, settings: IndexSettings) -> int | Exception | None:
    try:
        return compute_fingerprint(text, scheme=settings.scheme)
    except Exception as error:  # noqa: BLE001 -- the exception is the element's result
        return error


def _fingerprint_each(texts: Sequence[Any], settings: IndexSettings) -> list[int | Exception | None]:
    """Return the fingerprint of each text, or the ``TypeError`` for what is no text; the strings go in one batch."""
    strings = [text for text in texts if isinstance(text, str)]
    computed: Iterator[int | Exception | None]
    try:
        computed = iter(compute_fingerprints(strings, scheme=settings.scheme))
    except Exception:  # noqa: BLE001 -- one text must not take the others with it
        computed = (_fingerprint_or_error(text, settings) for text in strings)
    return [
        next(computed) if isinstance(text, str) else WrongTypeError(f"text must be a string, not {type(text).__name__}")
        for text in texts
    ]
