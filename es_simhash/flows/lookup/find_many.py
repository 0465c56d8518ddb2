"""
Many lookups at once, by multi-search: answers in order, and none sunk by another.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, TypeVar

from es_simhash.errors import IncompleteSearchError, InvalidInputError, SearchFailedError, SimHashError
from es_simhash.flows.context import Context, Index, check_index, read_index_settings
from es_simhash.flows.lookup.find import before_verification, nothing_for, stats_for, verified
from es_simhash.flows.lookup.options import Options, checked
from es_simhash.flows.lookup.search import Lookup
from es_simhash.flows.lookup.shared_search import Bundle, bundles
from es_simhash.flows.protocol import Call, Compute, Flow, status_of
from es_simhash.hashing import fingerprint as compute_fingerprint, fingerprints as compute_fingerprints, to_hex
from es_simhash.index.meta import IndexSettings
from es_simhash.index.rescore import NearDups

__all__ = ["find_many"]

# Lookups in one multi-search.
BATCH = 100


_T = TypeVar("_T")


def batches(items: Iterable[_T], size: int) -> Iterator[list[_T]]:
    """Yield *items* in lists of *size*, the last one shorter."""
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch


def find_many(
    context: Context,
    index: Index,
    texts: Iterable[str] | None,
    fingerprints: Iterable[int | None] | None,
    options: Options,
) -> Flow[list[NearDups | Exception]]:
    """
    Return for each of *texts*, or of *fingerprints*, in order, its near-duplicates, or the exception of its lookup.

    Cost: one multi-search for every 100 lookups, or one after another where each has hundreds of candidates. Memory:
    what is found, and the candidates of 100 lookups.
    """
    check_index(index)
    if (texts is None) == (fingerprints is None):
        raise TypeError("give either texts or fingerprints=, not both and not neither")
    if isinstance(texts, (str, bytes)):
        raise TypeError("texts must be an iterable of strings, not one string")
    if texts is None and options.verification is not None:
        raise InvalidInputError("verify compares texts: ask with texts, not with fingerprints")
    try:
        settings = yield from read_index_settings(context, index)
    except IncompleteSearchError as error:
        unknown = NearDups(complete=False, reasons=error.reasons)
        return [checked(unknown, options) for _ in (fingerprints if texts is None else texts) or ()]
    stats = yield from stats_for(context, index, settings, options, many=True)
    inner = before_verification(options)
    results: list[NearDups | Exception] = []
    given: Any = fingerprints if texts is None else texts
    for batch in batches(given, BATCH):
        if texts is None:
            found = [_checked_fingerprint(each) for each in batch]
        else:
            found = yield Compute(_fingerprint_each, (batch, settings))
        lookups = [
            Lookup(context, index, each, settings=settings, stats=stats, options=inner)
            for each in found
            if isinstance(each, int)
        ]
        answers = yield from _search_together(lookups, index, inner)
        if options.verification is not None:
            asked = [text for text, each in zip(batch, found, strict=True) if isinstance(each, int)]
            answers = yield from _verify_each(index, answers, asked, settings, options)
        outcomes = iter(answers)
        results += [
            next(outcomes) if isinstance(each, int) else nothing_for(settings, options) if each is None else each
            for each in found
        ]
    return results


def _verify_each(
    index: Index,
    answers: Sequence[NearDups | Exception],
    texts: Sequence[Any],
    settings: IndexSettings,
    options: Options,
) -> Flow[list[NearDups | Exception]]:
    """Verify the answers of a batch together; what failed stays as it is."""
    asked = [(answer, text) for answer, text in zip(answers, texts, strict=True) if isinstance(answer, NearDups)]
    judged = iter((yield from verified(index, [a for a, _ in asked], [t for _, t in asked], settings, options)))
    return [next(judged) if isinstance(answer, NearDups) else answer for answer in answers]


def _checked_fingerprint(value: Any) -> int | Exception | None:
    """Return a fingerprint as it is, or what is wrong with it."""
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
        next(computed) if isinstance(text, str) else TypeError(f"text must be a string, not {type(text).__name__}")
        for text in texts
    ]


# What one search of a batch may be refused for without it telling anything of the search itself.
_SAME_ALONE = (401, 403, 404)


# What a multi-search may be refused for as a whole.
_TOO_MUCH = (413, 429, 502, 503, 504)


def _refusal(answer: Mapping[str, Any]) -> SearchFailedError:
    error = answer["error"]
    cause = error if isinstance(error, str) else f"{error.get('type')}: {error.get('reason')}"
    status = answer.get("status", 0)
    return SearchFailedError(
        f"the server refused this search with status {status}: {cause}", status=status, error=error
    )


def _search_together(lookups: Sequence[Lookup], index: Index, options: Options) -> Flow[list[NearDups | Exception]]:
    """Return the answers of one multi-search, in which several lookups share a search where that is cheaper."""
    if lookups and lookups[0].expects_many:
        return (yield from _search_each(lookups))
    answers: list[Mapping[str, Any] | Exception | None] = []
    for bundle, answer in (yield from _multi_search(list(bundles(lookups)), index, options)):
        answers += bundle.share(answer)
    # What could not share a search is asked again, each lookup for itself.
    alone = [Bundle([lookup]) for lookup, answer in zip(lookups, answers, strict=True) if answer is None]
    again = iter([answer for _, answer in (yield from _multi_search(alone, index, options))])
    outcomes: list[NearDups | Exception] = []
    for lookup, shared in zip(lookups, answers, strict=True):
        answer = next(again) if shared is None else shared
        try:
            if isinstance(answer, Exception):
                outcomes.append(answer)
            elif "error" not in answer:
                outcomes.append((yield from lookup.take_answer(answer)))
            elif answer.get("status") in _SAME_ALONE:
                outcomes.append(_refusal(answer))
            else:
                # A full queue, a small window, a plan that is not allowed: it gets a try of its own.
                lookup.adapt(answer["error"])
                outcomes.append((yield from lookup.search()))
        except Exception as error:  # noqa: BLE001 -- a failed element is a value
            outcomes.append(error)
    return outcomes


def _search_each(lookups: Sequence[Lookup]) -> Flow[list[NearDups | Exception]]:
    """Return the answer of each lookup, one after another: the candidates of many at once would fill the memory."""
    outcomes: list[NearDups | Exception] = []
    for lookup in lookups:
        try:
            outcomes.append((yield from lookup.search()))
        except Exception as error:
            if status_of(error) is None and not isinstance(error, SimHashError):
                raise  # a server that is not there is no matter of one element
            outcomes.append(error)
    return outcomes


def _multi_search(asked: Sequence[Bundle], index: Index, options: Options) -> Flow[list[tuple[Bundle, Any]]]:
    """Return each bundle's answer, or why it has none; what is refused whole, for its size or for load, is halved."""
    if not asked:
        return []
    header = {"index": index} | ({} if options.routing is None else {"routing": options.routing})
    body = [line for bundle in asked for line in (header, bundle.body())]
    try:
        answers = (yield Call("msearch", {"body": body}))["responses"]
    except Exception as error:
        if status_of(error) not in _TOO_MUCH:
            raise
        if len(asked) == 1:
            return [(asked[0], error)]
        half = len(asked) // 2
        first = yield from _multi_search(asked[:half], index, options)
        return first + (yield from _multi_search(asked[half:], index, options))
    return list(zip(asked, answers, strict=True))
