"""
Reads the candidates of a lookup of passages: every document that has a term of the text, with its text.

One search, where the first page holds them all; else page by page. Where they are very many, documents with a rare term
come first. Those that have only common terms come last, and are counted instead where they are too many.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from es_simhash.flows.confirmation import confirm, send_confirmed
from es_simhash.flows.passages.lookup import CommonPassages, Lookup
from es_simhash.flows.protocol import Call, Compute, Flow
from es_simhash.flows.transfer.answers import Gap, find_gaps, is_source_refused, is_window_refused
from es_simhash.flows.transfer.pages import Hits, read_pages
from es_simhash.flows.transfer.texts import search_texts, text_body
from es_simhash.index.passages.query import candidates_query, frequency_body

__all__ = ["read_candidates"]

Take = Callable[[Hits], Flow[None]]


def read_candidates(lookup: Lookup, take: Take, *, may_refuse: bool) -> Flow[None]:
    """
    Give all candidates to *take*, page by page, some of them twice; note in *lookup* why some may be missing.

    With *may_refuse*, documents with common terms alone are left out and counted where they are too many.
    """
    terms: list[str] = yield Compute(lookup.terms)
    step = lookup.options.sizes.terms
    for begin in range(0, len(terms), step):
        yield from _read_part(lookup, terms[begin : begin + step], take, may_refuse=may_refuse)


def _read_part(lookup: Lookup, terms: Sequence[str], take: Take, *, may_refuse: bool) -> Flow[None]:
    sizes = lookup.options.sizes
    answer = yield from _first_page(lookup, terms)
    if answer is None:
        yield from _read_all(lookup, terms, take)
        return
    gaps, hits = find_gaps(answer), answer["hits"]["hits"]
    number = answer["hits"]["total"]["value"]
    if gaps or number <= len(hits):
        lookup.note(gaps)
        yield from take(hits)
        return
    rare: list[str] = []
    common: list[str] = []
    if number > sizes.common:
        rare, common = yield from _split(lookup, terms)
    if not common:
        yield from _read_all(lookup, terms, take)
        return
    if rare:
        yield from _read_all(lookup, rare, take)
    if may_refuse:
        number = yield from _count(lookup, common, rare)
        if number > sizes.common:
            lookup.note([CommonPassages(number, len(common))])
            return
    yield from _read_all(lookup, common, take, without=rare)


def _first_page(lookup: Lookup, terms: Sequence[str]) -> Flow[Mapping[str, Any] | None]:
    """Return the answer to the first search; ``None`` if its page is larger than the index allows."""
    body = {"size": lookup.options.sizes.first_page, "query": _query(lookup, terms), "track_total_hits": True}
    try:
        answer = yield from search_texts(
            lookup.index,
            body,
            lookup.fields,
            routing=lookup.options.routing,
            send=lambda call: send_confirmed(lookup.context, lookup.index, call, settings=lookup.settings),
        )
    except Exception as error:
        if not is_window_refused(error):
            raise
        return None
    return None if is_window_refused(find_gaps(answer)) else answer


def _read_all(lookup: Lookup, terms: Sequence[str], take: Take, *, without: Sequence[str] = ()) -> Flow[None]:
    body = text_body({"query": _query(lookup, terms, without)}, lookup.fields)
    try:
        gaps = yield from _read_body(lookup, body, take)
        is_refused = is_source_refused(gaps)
    except Exception as error:
        if not is_source_refused(error):
            raise
        is_refused = True
    if is_refused:
        gaps = yield from _read_body(lookup, {**body, "_source": True}, take)
    lookup.note(gaps)


def _read_body(lookup: Lookup, body: Mapping[str, Any], take: Take) -> Flow[list[Gap]]:
    """Read all pages of *body*; nothing is taken before the settings were confirmed since the view was opened."""
    context, started = lookup.context, lookup.context.clock()
    is_confirmed = False

    def confirm_once() -> Flow[None]:
        nonlocal is_confirmed
        if not is_confirmed:
            since = context.clock() - started
            yield from confirm(context, lookup.index, settings=lookup.settings, after_seconds=since)
            is_confirmed = True

    def handle(hits: Hits) -> Flow[bool]:
        yield from confirm_once()
        yield from take(hits)
        return False

    options = lookup.options
    gaps = yield from read_pages(lookup.index, body, handle, page=options.sizes.next_page, routing=options.routing)
    yield from confirm_once()
    return gaps


def _split(lookup: Lookup, terms: Sequence[str]) -> Flow[tuple[list[str], list[str]]]:
    """Return the rare and the common ones of *terms*; where shards do not answer, what others say decides."""
    sizes = lookup.options.sizes
    rare: list[str] = []
    common: list[str] = []
    for begin in range(0, len(terms), sizes.counted):
        part = terms[begin : begin + sizes.counted]
        body = frequency_body(part, prefix=lookup.context.prefix)
        answer = yield Call("search", {"index": lookup.index, "body": body})
        lookup.note(find_gaps(answer, ignore=["terminated_early"]))
        counted = (answer.get("aggregations") or {}).get("terms") or {}  # none if no shard answered
        counts = [bucket["doc_count"] for bucket in counted.get("buckets", ())] or [0] * len(part)
        for term, count in zip(part, counts, strict=True):
            (common if count > sizes.common // 10 else rare).append(term)
    return rare, common


def _count(lookup: Lookup, terms: Sequence[str], without: Sequence[str]) -> Flow[int]:
    body = {"size": 0, "track_total_hits": True, "query": _query(lookup, terms, without)}
    routing = {} if lookup.options.routing is None else {"routing": lookup.options.routing}
    answer = yield Call("search", {"index": lookup.index, "body": body, **routing})
    lookup.note(find_gaps(answer, ignore=["terminated_early"]))
    number: int = answer["hits"]["total"]["value"]
    return number


def _query(lookup: Lookup, terms: Sequence[str], without: Sequence[str] = ()) -> dict[str, Any]:
    options = lookup.options
    return candidates_query(
        terms,
        without=without,
        prefix=lookup.context.prefix,
        filter=options.filter,
        exclude_ids=options.exclude_ids,
    )
