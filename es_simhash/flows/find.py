"""
Lookups: from a text, a fingerprint or a document to its near-duplicates, complete or said not to be.

What candidates are is decided by ``index.plan``, how far they are by ``index.rescore``; here is the order of
requests, and what to do when an answer is not whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Literal, TypeVar

from es_simhash.errors import IncompleteSearchError, InvalidInputError, SearchFailedError, shorten
from es_simhash.flows.context import Context, Index, check_index, read_index_settings
from es_simhash.flows.paging import Hits, incomplete_reasons, is_window_error, read_pages
from es_simhash.flows.protocol import Call, Compute, Flow
from es_simhash.hashing import (
    fingerprint as compute_fingerprint,
    fingerprints as compute_fingerprints,
    from_hex,
    to_hex,
)
from es_simhash.index.fields import Fields
from es_simhash.index.mapping import IndexSettings
from es_simhash.index.plan import DEFAULT_MAX_DISTANCE, LookupPlan, check_max_distance, plan_lookup
from es_simhash.index.query import build_query, check_filter
from es_simhash.index.rescore import NearDup, NearDups, has_fingerprint, rescore

__all__ = ["OnIncomplete", "Options", "find", "find_many", "find_of"]

OnIncomplete = Literal["raise", "return"]

FIRST_PAGE = 1_000
NEXT_PAGE = 5_000
BATCH = 100


@dataclass(frozen=True, slots=True)
class Options:
    """
    How to look up, apart from what: the keyword arguments of the client's find methods.

    Raises:
        TypeError: If one has the wrong type.
        InvalidInputError: If one has a value that cannot be used.
    """

    max_distance: int | None = None
    size: int | None = None
    filter: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None
    exclude_ids: Iterable[str] = ()
    source: bool | Sequence[str] = False
    routing: str | None = None
    plan: LookupPlan | None = None
    on_incomplete: OnIncomplete = "raise"

    def __post_init__(self) -> None:
        if self.max_distance is not None:
            check_max_distance(self.max_distance)
        if self.size is not None and (isinstance(self.size, bool) or not isinstance(self.size, int)):
            raise TypeError(f"size must be an int or None, not {type(self.size).__name__}")
        if self.size is not None and self.size < 1:
            raise InvalidInputError(f"size {self.size} is too small: give 1 or more, or None for all")
        check_filter(self.filter)
        if isinstance(self.exclude_ids, (str, bytes)):
            raise TypeError(f"exclude_ids must be a list of ids, not one string {shorten(self.exclude_ids)}")
        object.__setattr__(self, "exclude_ids", tuple(self.exclude_ids))
        if self.on_incomplete not in ("raise", "return"):
            raise InvalidInputError(
                f"on_incomplete {shorten(self.on_incomplete)} is not known: give 'raise' or 'return'"
            )


class _Lookup:
    """One fingerprint being looked up: the body to send, and what came of it so far."""

    def __init__(self, fingerprint: int, settings: IndexSettings, options: Options, prefix: str) -> None:
        self.max_distance = effective_distance(settings, options)
        self.plan = options.plan or plan_lookup(self.max_distance)
        self._fingerprint = fingerprint
        self._settings = settings
        self._options = options
        self._prefix = prefix
        self._found: list[NearDup] = []
        self._reasons: dict[str, None] = {}
        self._candidates = 0

    def body(self, size: int) -> dict[str, Any]:
        return build_query(
            self._fingerprint,
            max_distance=self.max_distance,
            filter=self._options.filter,
            exclude_ids=self._options.exclude_ids,
            prefix=self._prefix,
            plan=self.plan,
            size=size,
            source=self._options.source,
        )

    def note(self, reasons: Iterable[str]) -> None:
        self._reasons |= dict.fromkeys(reasons)

    def take(self, hits: Hits) -> Flow[None]:
        """Rescore a page of candidates and keep the near-duplicates among them."""
        yield from ()
        whole = [hit for hit in hits if has_fingerprint(hit, prefix=self._prefix)]
        self.note(
            f"document {hit['_id']!r} of {hit['_index']!r} has block terms but no {Fields(self._prefix).fingerprint}"
            for hit in hits
            if not has_fingerprint(hit, prefix=self._prefix)
        )
        self._candidates += len(hits)
        self._found += rescore(whole, self._fingerprint, max_distance=self.max_distance, prefix=self._prefix)

    def result(self) -> NearDups:
        """
        Return what was found.

        Raises:
            IncompleteSearchError: If it may not be all, and the caller did not ask for it all the same.
        """
        found = {(each.index, each.id): each for each in self._found}
        ordered = sorted(found.values(), key=lambda each: (each.distance, each.index, each.id))
        answer = NearDups(
            tuple(ordered[: self._options.size]),
            complete=not self._reasons,
            scheme=self._settings.scheme,
            max_distance=self.max_distance,
            plan=self.plan,
            candidates=self._candidates,
            reasons=tuple(self._reasons),
        )
        return _checked(answer, self._options)


def effective_distance(settings: IndexSettings, options: Options) -> int:
    """
    Return the max_distance that applies: the caller's, else the index's, else 3 bits.
    """
    for distance in (options.max_distance, settings.max_distance):
        if distance is not None:
            return distance
    return DEFAULT_MAX_DISTANCE


def _checked(answer: NearDups, options: Options) -> NearDups:
    if answer.complete or options.on_incomplete == "return":
        return answer
    raise IncompleteSearchError(
        f"near-duplicates may be missing: {'; '.join(answer.reasons)}; the {len(answer)} found are in .results, "
        'or pass on_incomplete="return"',
        results=answer,
        reasons=answer.reasons,
    )


def find(context: Context, index: Index, text: str | None, fingerprint: int | None, options: Options) -> Flow[NearDups]:
    """
    Return the near-duplicates of *text*, or of *fingerprint*, in *index*.

    Cost: one search where the candidates fit on a page; before the first lookup in an index, one request for its
    mapping.
    """
    check_index(index)
    check_question(text, fingerprint)
    try:
        settings = yield from read_index_settings(context, index)
    except IncompleteSearchError as error:
        return _checked(NearDups(complete=False, reasons=error.reasons), options)
    if text is not None:
        fingerprint = yield Compute(_fingerprint, (text, settings))
    if fingerprint is None:
        return NearDups(scheme=settings.scheme, max_distance=effective_distance(settings, options))
    lookup = _Lookup(fingerprint, settings, options, context.prefix)
    yield from _search(lookup, index, options)
    return lookup.result()


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


def _search(lookup: _Lookup, index: Index, options: Options) -> Flow[None]:
    routing = {} if options.routing is None else {"routing": options.routing}
    page = FIRST_PAGE
    while True:
        try:
            answer = yield Call("search", {"index": index, "body": lookup.body(page), **routing})
        except Exception as error:
            if not is_window_error(error) or page == 1:
                raise
            page = max(1, page // 2)
        else:
            break
    yield from _take_answer(lookup, answer, page, index, options)


def _take_answer(lookup: _Lookup, answer: Mapping[str, Any], page: int, index: Index, options: Options) -> Flow[None]:
    hits = answer["hits"]["hits"]
    if len(hits) < page:
        lookup.note(incomplete_reasons(answer))
        yield from lookup.take(hits)
    else:
        # There may be more than the page holds: read them all, in one view of the index.
        reasons = yield from read_pages(index, lookup.body(page), lookup.take, page=NEXT_PAGE, routing=options.routing)
        lookup.note(reasons)


def find_of(context: Context, index: Index, id: str, options: Options) -> Flow[NearDups]:  # noqa: A002
    """
    Return the near-duplicates of the document *id* of *index*, without itself.

    Cost: one search for its fingerprint, then as :func:`find`.

    Raises:
        InvalidInputError: If there is no such document, it has no fingerprint, or several indices have one of that id
            with different fingerprints.
    """
    check_index(index)
    if not isinstance(id, str):
        raise TypeError(f"id must be a string, not {type(id).__name__}")
    settings = yield from read_index_settings(context, index)
    name = Fields(context.prefix).fingerprint
    body = {"size": 100, "query": {"ids": {"values": [id]}}, "docvalue_fields": [name], "_source": False}
    answer = yield Call("search", {"index": index, "body": body})
    hits = answer["hits"]["hits"]
    if not hits:
        if reasons := incomplete_reasons(answer):
            raise IncompleteSearchError(f"document {shorten(id)} was not found: {'; '.join(reasons)}")
        raise InvalidInputError(f"no document {shorten(id)} in {shorten(index)}: check the id; new ones need a refresh")
    held = {value for hit in hits for value in hit.get("fields", {}).get(name, ())}
    if not held:
        raise InvalidInputError(
            f"document {shorten(id)} has no fingerprint: its text has no features, or it was never backfilled"
        )
    if len(held) > 1:
        where = ", ".join(sorted(hit["_index"] for hit in hits))
        raise InvalidInputError(f"document {shorten(id)} differs between {where}: name one index")
    itself = {(hit["_index"], hit["_id"]) for hit in hits}
    wider = replace(options, size=None if options.size is None else options.size + len(itself))
    lookup = _Lookup(from_hex(held.pop()), settings, wider, context.prefix)
    yield from _search(lookup, index, wider)
    found = lookup.result()
    others = (each for each in found if (each.index, each.id) not in itself)
    return replace(found, items=tuple(islice(others, options.size)))


_T = TypeVar("_T")


def batches(items: Iterable[_T], size: int) -> Iterator[list[_T]]:
    """Yield *items* in lists of *size*, the last one shorter."""
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch


def find_many(
    context: Context, index: Index, texts: Iterable[str], options: Options
) -> Flow[list[NearDups | Exception]]:
    """
    Return for each of *texts*, in order, its near-duplicates, or the exception that its lookup failed with.

    Cost: one multi-search for every 100 texts.
    """
    check_index(index)
    if isinstance(texts, (str, bytes)):
        raise TypeError("texts must be an iterable of strings, not one string")
    settings = yield from read_index_settings(context, index)
    results: list[NearDups | Exception] = []
    for batch in batches(texts, BATCH):
        found = yield Compute(_fingerprint_each, (batch, settings))
        results += yield from _find_batch(context, index, found, settings, options)
    return results


def _fingerprint_each(texts: Sequence[Any], settings: IndexSettings) -> list[int | Exception | None]:
    """Return the fingerprint of each text, or the ``TypeError`` for what is no text; the strings go in one batch."""
    strings = [text for text in texts if isinstance(text, str)]
    computed = iter(compute_fingerprints(strings, scheme=settings.scheme))
    return [
        next(computed) if isinstance(text, str) else TypeError(f"text must be a string, not {type(text).__name__}")
        for text in texts
    ]


def _find_batch(
    context: Context,
    index: Index,
    fingerprints: Sequence[int | Exception | None],
    settings: IndexSettings,
    options: Options,
) -> Flow[list[NearDups | Exception]]:
    nothing = NearDups(scheme=settings.scheme, max_distance=effective_distance(settings, options))
    lookups = [_Lookup(each, settings, options, context.prefix) for each in fingerprints if isinstance(each, int)]
    outcomes = iter((yield from _search_together(lookups, index, options)))
    return [next(outcomes) if isinstance(each, int) else nothing if each is None else each for each in fingerprints]


# Refused for what went on beside it, or (400) for a page larger than the index's max_result_window.
_WORTH_A_TRY_ALONE = (400, 429, 502, 503, 504)


def _refusal(answer: Mapping[str, Any]) -> SearchFailedError:
    error = answer["error"]
    cause = error if isinstance(error, str) else f"{error.get('type')}: {error.get('reason')}"
    status = answer.get("status", 0)
    return SearchFailedError(
        f"the server refused this search with status {status}: {cause}", status=status, error=error
    )


def _search_together(lookups: Sequence[_Lookup], index: Index, options: Options) -> Flow[list[NearDups | Exception]]:
    if not lookups:
        return []
    header = {"index": index} | ({} if options.routing is None else {"routing": options.routing})
    body = [line for lookup in lookups for line in (header, lookup.body(FIRST_PAGE))]
    answers = (yield Call("msearch", {"body": body}))["responses"]
    outcomes: list[NearDups | Exception] = []
    for lookup, answer in zip(lookups, answers, strict=True):
        try:
            if "error" in answer and answer.get("status") in _WORTH_A_TRY_ALONE:
                yield from _search(lookup, index, options)
            elif "error" in answer:
                raise _refusal(answer)
            else:
                yield from _take_answer(lookup, answer, FIRST_PAGE, index, options)
            outcomes.append(lookup.result())
        except Exception as error:  # noqa: BLE001 -- a failed element is a value
            outcomes.append(error)
    return outcomes
