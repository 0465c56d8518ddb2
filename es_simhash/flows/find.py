"""
Lookups: from a text, a fingerprint or a document to its near-duplicates, complete or said not to be.

Here are the questions: by text, by document, many at once, as a stream. How one fingerprint is searched for, and when
an answer is whole, is ``lookup``'s business.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, TypeVar

from es_simhash.errors import IncompleteSearchError, InvalidInputError, SearchFailedError, shorten
from es_simhash.flows.context import Context, Index, check_index, read_index_settings
from es_simhash.flows.lookup import Lookup, Options, checked, effective_distance, usable_limits
from es_simhash.flows.paging import Hits, incomplete_reasons
from es_simhash.flows.protocol import Call, Compute, Flow, status_of
from es_simhash.flows.survey import survey
from es_simhash.flows.verify import fetch_text, verify_near_dups
from es_simhash.hashing import (
    BLOCKS,
    fingerprint as compute_fingerprint,
    fingerprints as compute_fingerprints,
    from_hex,
    to_hex,
)
from es_simhash.index.fields import Fields
from es_simhash.index.mapping import IndexSettings
from es_simhash.index.plan import LOOKUP_BY_ID_DISTANCE, Landscape, PlanEstimate, explain_plan, make_plan
from es_simhash.index.query import build_query_of
from es_simhash.index.rescore import NearDups, rescore

__all__ = ["explain", "find", "find_many", "find_of", "read_fingerprint", "scan"]

# Lookups in one multi-search, and multi-searches under way at once.
BATCH = 100
PAGE_BY_ID = 500
PAGE_OF_SCAN = 5_000


def find(context: Context, index: Index, text: str | None, fingerprint: int | None, options: Options) -> Flow[NearDups]:
    """
    Return the near-duplicates of *text*, or of *fingerprint*, in *index*.

    Cost: one search where the candidates fit on a page; before the first lookup in an index, one request for its
    mapping, and beyond distance 7 two for its size.
    """
    check_index(index)
    check_question(text, fingerprint)
    if options.verification is not None and text is None:
        raise InvalidInputError("verify compares texts: ask with a text, not with a fingerprint")
    try:
        settings = yield from read_index_settings(context, index)
    except IncompleteSearchError as error:
        return checked(NearDups(complete=False, reasons=error.reasons), options)
    if text is not None:
        fingerprint = yield Compute(_fingerprint, (text, settings))
    if fingerprint is None:
        return _nothing(settings, options)
    landscape = yield from _survey(context, index, settings, options)
    inner = _before_verification(options)
    lookup = Lookup(context, index, fingerprint, settings=settings, landscape=landscape, options=inner)
    found = yield from lookup.search()
    return (yield from _verified(index, [found], [text], settings, options))[0]


def _before_verification(options: Options) -> Options:
    """Return how to look up what is verified afterwards: all of it, since the nearest need not be the most similar."""
    return options if options.verification is None else replace(options, size=None)


def _verified(
    index: Index,
    found: Sequence[NearDups],
    texts: Sequence[str | None],
    settings: IndexSettings,
    options: Options,
) -> Flow[list[NearDups]]:
    if options.verification is None:
        return list(found)
    known = [text for text in texts if text is not None]
    if len(known) < len(texts):
        raise InvalidInputError("verify compares texts: ask with a text, not with a fingerprint")
    answers = yield from verify_near_dups(index, found, known, settings=settings, verification=options.verification)
    return [replace(answer, items=answer.items[: options.size]) for answer in answers]


def _survey(context: Context, index: Index, settings: IndexSettings, options: Options) -> Flow[Landscape]:
    if options.plan is not None:
        return Landscape()
    return (yield from survey(context, index, effective_distance(settings, options)))


def _nothing(settings: IndexSettings, options: Options) -> NearDups:
    """Return the answer for a text without features, which is near to nothing."""
    return NearDups(scheme=settings.scheme, max_distance=effective_distance(settings, options))


def check_question(text: str | None, fingerprint: int | None) -> None:
    """
    Refuse a lookup that is not asked by exactly one of *text* and *fingerprint*.

    Raises:
        TypeError: If both or none is given, or one has the wrong type.
        InvalidInputError: If the fingerprint does not fit in 64 bits.
    """
    if (text is None) == (fingerprint is None):
        raise TypeError("give either a text or fingerprint=, not both and not neither")
    if text is not None and not isinstance(text, str):
        raise TypeError(f"text must be a string, not {type(text).__name__}")
    if fingerprint is not None:
        to_hex(fingerprint)


def _fingerprint(text: str, settings: IndexSettings) -> int | None:
    return compute_fingerprint(text, scheme=settings.scheme)


def scan(context: Context, index: Index, text: str | None, fingerprint: int | None, options: Options) -> Flow[None]:
    """
    Emit the near-duplicates of *text*, or of *fingerprint*, page by page, in no order and in constant memory.

    Raises:
        IncompleteSearchError: After the last one, if some may be missing.
        InvalidInputError: If a size is asked for: the nearest are known only at the end.
    """
    check_index(index)
    check_question(text, fingerprint)
    if options.size is not None:
        raise InvalidInputError("a stream has no size: stop reading it, or use find_near_dups")
    settings = yield from read_index_settings(context, index)
    if text is not None:
        fingerprint = yield Compute(_fingerprint, (text, settings))
    if fingerprint is None:
        return
    landscape = yield from _survey(context, index, settings, options)
    lookup = Lookup(context, index, fingerprint, settings=settings, landscape=landscape, options=options)
    yield from lookup.stream()


def explain(context: Context, index: Index, max_distance: int | None) -> Flow[tuple[PlanEstimate, ...]]:
    """
    Return the estimates of the plans for *max_distance* in *index*, cheapest first.
    """
    options = Options(max_distance)
    settings = yield from read_index_settings(context, check_index(index))
    wanted = effective_distance(settings, options)
    landscape = yield from survey(context, index, wanted)
    return explain_plan(wanted, landscape=landscape, limits=usable_limits(context, index, settings))


def find_of(context: Context, index: Index, id: str, options: Options) -> Flow[NearDups]:
    """
    Return the near-duplicates of the document *id* of *index*, without itself.

    Cost: one search up to distance 3 in one index whose candidates fit on a page; else one for the document's
    fingerprint, then as :func:`find`.

    Raises:
        InvalidInputError: If there is no such document, it has no fingerprint, or several indices have one of that id
            with different fingerprints.
    """
    check_index(index)
    if not isinstance(id, str):
        raise TypeError(f"id must be a string, not {type(id).__name__}")
    settings = yield from read_index_settings(context, index)
    inner = _before_verification(options)
    found = yield from _find_of_unverified(context, index, id, settings, inner)
    if options.verification is None or not found:
        return found
    text = yield from fetch_text(index, id, settings=settings, verification=options.verification)
    return (yield from _verified(index, [found], [text], settings, options))[0]


def _find_of_unverified(
    context: Context, index: Index, id: str, settings: IndexSettings, options: Options
) -> Flow[NearDups]:
    found = yield from _find_of_at_once(context, index, id, settings, options)
    if found is not None:
        return found
    fingerprint, itself = yield from _read_stored(context, index, id)
    # The document itself is looked up as well, and left out before anything is handed over.
    size = None if options.size is None else options.size + len(itself)
    wider = replace(options, size=size, on_incomplete="return")
    landscape = yield from _survey(context, index, settings, options)
    lookup = Lookup(context, index, fingerprint, settings=settings, landscape=landscape, options=wider)
    found = yield from lookup.search()
    others = (each for each in found if (each.index, each.id) not in itself)
    return checked(replace(found, items=tuple(islice(others, options.size))), options)


def read_fingerprint(context: Context, index: Index, id: str) -> Flow[int]:
    """
    Return the fingerprint that the document *id* of *index* holds; errors as :func:`find_of`.
    """
    if not isinstance(id, str):
        raise TypeError(f"id must be a string, not {type(id).__name__}")
    fingerprint, _ = yield from _read_stored(context, check_index(index), id)
    return fingerprint


def _read_stored(context: Context, index: Index, id: str) -> Flow[tuple[int, set[tuple[str, str]]]]:
    """Return the fingerprint of a document, and index and id of each document that has it."""
    name = Fields(context.prefix).fingerprint
    body = {"size": 100, "query": {"ids": {"values": [id]}}, "docvalue_fields": [name], "_source": False}
    answer = yield Call("search", {"index": index, "body": body})
    hits = answer["hits"]["hits"]
    if not hits and (reasons := incomplete_reasons(answer)):
        raise IncompleteSearchError(
            f"document {shorten(id)} was not found: {'; '.join(reasons)}", reasons=tuple(reasons)
        )
    return _fingerprint_of(hits, id, index, name), {(hit["_index"], hit["_id"]) for hit in hits}


def _find_of_at_once(
    context: Context,
    index: Index,
    id: str,
    settings: IndexSettings,
    options: Options,
) -> Flow[NearDups | None]:
    """Return the answer of a search that takes the block terms from the document itself; ``None`` where that fails."""
    max_distance = effective_distance(settings, options)
    is_plain = isinstance(index, str) and not set(index) & set("*?,:<")
    if max_distance > LOOKUP_BY_ID_DISTANCE or not is_plain or options.plan is not None:
        return None
    body = build_query_of(
        id,
        index=str(index),
        max_distance=max_distance,
        filter=options.filter,
        exclude_ids=options.exclude_ids,
        prefix=context.prefix,
        size=PAGE_BY_ID,
        source=options.source,
        routing=options.routing,
    )
    routing = {} if options.routing is None else {"routing": options.routing}
    try:
        answer = yield Call("search", {"index": index, "body": body, **routing})
    except Exception as error:
        # An alias of several indices or a data stream cannot be asked for a document by id.
        if status_of(error) not in (400, 404, 500):
            raise
        return None
    hits = answer["hits"]["hits"]
    name = Fields(context.prefix).fingerprint
    if incomplete_reasons(answer) or len(hits) == PAGE_BY_ID or not all(hit.get("fields") for hit in hits):
        return None
    itself = [hit for hit in hits if hit["_id"] == id]
    # The server takes the terms from the stored document: its latest version, found by routing, read from _source. A
    # search may see an older version, the routing may be missing, and _source may lack the fields. Only if the hit
    # has all four terms are they the terms of the fingerprint compared here.
    if not itself or any(len(set(hit.get("matched_queries", ()))) < BLOCKS for hit in itself):
        return None
    fingerprint = _fingerprint_of(itself, id, index, name)
    others = [hit for hit in hits if hit["_id"] != id]
    near_dups = rescore(others, fingerprint, max_distance=max_distance, prefix=context.prefix, size=options.size)
    plan = make_plan(max_distance, (0,))  # what the terms lookup amounts to
    return NearDups(
        tuple(near_dups), scheme=settings.scheme, max_distance=max_distance, plan=plan, candidates=len(others)
    )


def _fingerprint_of(hits: Hits, id: str, index: Index, name: str) -> int:
    """Return the one fingerprint that the documents *hits* of this id have."""
    if not hits:
        raise InvalidInputError(f"no document {shorten(id)} in {shorten(index)}: check the id; new ones need a refresh")
    held = {value for hit in hits for value in hit.get("fields", {}).get(name, ())}
    if not held:
        raise InvalidInputError(
            f"document {shorten(id)} has no fingerprint: its text has no features, or it was never backfilled"
        )
    if len(held) > 1:
        where = ", ".join(sorted(hit["_index"] for hit in hits))
        raise InvalidInputError(f"document {shorten(id)} differs between {where}: name one index")
    return from_hex(held.pop())


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

    Cost: one multi-search for every 100 lookups. Memory: what is found, and the candidates of 100 lookups.
    """
    check_index(index)
    if (texts is None) == (fingerprints is None):
        raise TypeError("give either texts or fingerprints=, not both and not neither")
    if isinstance(texts, (str, bytes)):
        raise TypeError("texts must be an iterable of strings, not one string")
    if texts is None and options.verification is not None:
        raise InvalidInputError("verify compares texts: ask with texts, not with fingerprints")
    settings = yield from read_index_settings(context, index)
    landscape = yield from _survey(context, index, settings, options)
    inner = _before_verification(options)
    results: list[NearDups | Exception] = []
    given: Any = fingerprints if texts is None else texts
    for batch in batches(given, BATCH):
        if texts is None:
            found = [_checked_fingerprint(each) for each in batch]
        else:
            found = yield Compute(_fingerprint_each, (batch, settings))
        lookups = [
            Lookup(context, index, each, settings=settings, landscape=landscape, options=inner)
            for each in found
            if isinstance(each, int)
        ]
        answers = yield from _search_together(lookups, index, inner)
        if options.verification is not None:
            asked = [text for text, each in zip(batch, found, strict=True) if isinstance(each, int)]
            answers = yield from _verify_each(index, answers, asked, settings, options)
        outcomes = iter(answers)
        results += [
            next(outcomes) if isinstance(each, int) else _nothing(settings, options) if each is None else each
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
    verified = iter((yield from _verified(index, [a for a, _ in asked], [t for _, t in asked], settings, options)))
    return [next(verified) if isinstance(answer, NearDups) else answer for answer in answers]


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
        return _fingerprint(text, settings)
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


def _refusal(answer: Mapping[str, Any]) -> SearchFailedError:
    error = answer["error"]
    cause = error if isinstance(error, str) else f"{error.get('type')}: {error.get('reason')}"
    status = answer.get("status", 0)
    return SearchFailedError(
        f"the server refused this search with status {status}: {cause}", status=status, error=error
    )


def _search_together(lookups: Sequence[Lookup], index: Index, options: Options) -> Flow[list[NearDups | Exception]]:
    if not lookups:
        return []
    header = {"index": index} | ({} if options.routing is None else {"routing": options.routing})
    body = [line for lookup in lookups for line in (header, lookup.body())]
    answers = (yield Call("msearch", {"body": body}))["responses"]
    outcomes: list[NearDups | Exception] = []
    for lookup, answer in zip(lookups, answers, strict=True):
        try:
            if "error" not in answer:
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
