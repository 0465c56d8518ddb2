"""
The candidates of a lookup of passages, read with their texts: documents with a term of the text; their queries.

One search if the first page has all,
else page by page. If they are very many, documents with only common terms come last, or are only counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import aclosing
from typing import Any, TypeAlias

from es_simhash.lookup.query import Filter, check_filter
from es_simhash.mapping.fields import Fields
from es_simhash.mapping.port import Port
from es_simhash.mapping.resolve import confirming, send_confirmed
from es_simhash.passages.lookup import Lookup, common_passages
from es_simhash.transport.answers import find_gaps, is_source_refused
from es_simhash.transport.buckets import count_documents
from es_simhash.transport.limits import is_beyond
from es_simhash.transport.pages import Hits, Pages, Reading
from es_simhash.transport.protocol import Call
from es_simhash.transport.retry import search_texts, text_body
from es_simhash.transport.server import Answer

Query: TypeAlias = dict[str, Any]


async def read_candidates(server: Port, lookup: Lookup) -> Pages:
    """
    Yield all candidates, page by page, some twice; note in *lookup* why some may be missing.
    Documents with common terms alone are left out and counted if they are too many, but not of a stream.
    """
    terms: list[str] = await server.compute(lookup.terms)
    step = lookup.options.sizes.terms
    for begin in range(0, len(terms), step):
        hits, queries = await _begin_part(server, lookup, terms[begin : begin + step])
        async with aclosing(_read_all(server, lookup, hits, queries)) as pages:
            async for hits in pages:
                yield hits


async def _begin_part(server: Port, lookup: Lookup, terms: Sequence[str]) -> tuple[Hits, list[Query]]:
    """Return candidates with one of *terms*, and the queries of those that are to be read page by page."""
    most = lookup.options.sizes.common
    query = _terms_query(server, lookup, terms)
    number, hits = await _read_first(server, lookup, query)
    if number is None or 0 < number <= most:
        return hits, [query]
    if number == 0:
        return hits, []
    rare, common = await _split(server, lookup, terms)
    if not common:
        return hits, [query]
    queries = [_terms_query(server, lookup, rare)] if rare else []
    query = _terms_query(server, lookup, common, without=rare)
    if not lookup.is_stream:
        number, gaps = await count_documents(server, lookup.index, query, routing=lookup.options.routing)
        lookup.note(gaps)
        if number > most:
            lookup.note([common_passages(number, len(common))])
            return hits, queries
    return hits, [*queries, query]


async def _read_first(server: Port, lookup: Lookup, query: Query) -> tuple[int | None, Hits]:
    """Return how many candidates are to be read page by page, if that is known: 0 if the hits beside it are all."""
    body = {"size": lookup.options.sizes.first_page, "query": query, "track_total_hits": True}

    async def send(call: Call) -> Answer:
        return await send_confirmed(server, lookup.index, call, settings=lookup.settings)

    routing = lookup.options.routing
    try:
        answer = await search_texts(server, lookup.index, body, lookup.fields, routing=routing, send=send)
        gaps = find_gaps(answer)
    except Exception as error:
        if not is_beyond(error, "hits"):
            raise
        return None, []
    if is_beyond(gaps, "hits"):  # by one of several indices
        return None, []
    number: int = answer["hits"]["total"]["value"]
    if not gaps and number > len(answer["hits"]["hits"]):
        return number, []
    lookup.note(gaps)
    return 0, answer["hits"]["hits"]


async def _read_all(server: Port, lookup: Lookup, first: Hits, queries: Sequence[Query]) -> Pages:
    """Yield *first*, and all pages of *queries*; none is given on before the settings were confirmed in its view."""
    yield first
    sizes, routing = lookup.options.sizes, lookup.options.routing
    for query in queries:
        body = text_body({"query": query}, lookup.fields)
        for wanted in (body, {**body, "_source": True}):
            confirm_once = confirming(server, lookup.index, lookup.settings)
            reading = Reading(server, lookup.index, wanted, page=sizes.next_page, routing=routing)
            try:
                async with aclosing(reading.pages()) as pages:
                    async for hits in pages:
                        await confirm_once()
                        yield hits
                await confirm_once()
                is_refused = is_source_refused(reading.gaps)
            except Exception as error:
                if wanted is not body or not is_source_refused(error):
                    raise
                is_refused = True
            if not is_refused:
                break
        lookup.note(reading.gaps)


async def _split(server: Port, lookup: Lookup, terms: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the rare and the common ones of *terms*; where shards do not answer, what others say decides."""
    sizes, prefix = lookup.options.sizes, server.prefix
    rare: list[str] = []
    common: list[str] = []
    for begin in range(0, len(terms), sizes.counted):
        part = terms[begin : begin + sizes.counted]
        filters = [{"term": {Fields(prefix).passages: term}} for term in part]
        aggs = {"terms": {"filters": {"filters": filters}}}
        body = {"size": 0, "track_total_hits": False, "query": terms_query(part, prefix=prefix), "aggs": aggs}
        answer = await server.search(index=lookup.index, body=body)
        lookup.note(find_gaps(answer, ignore=["terminated_early"]))
        counted = (answer.get("aggregations") or {}).get("terms") or {}  # none if no shard answered
        counts = [bucket["doc_count"] for bucket in counted.get("buckets", ())] or [0] * len(part)
        for term, count in zip(part, counts, strict=True):
            (common if count > sizes.common // 10 else rare).append(term)
    return rare, common


def _terms_query(server: Port, lookup: Lookup, terms: Sequence[str], *, without: Sequence[str] = ()) -> Query:
    excluded = terms_query(without, prefix=server.prefix) if without else None
    return _query(lookup, terms_query(terms, prefix=server.prefix), excluded)


def _query(lookup: Lookup, wanted: Query, without: Query | None) -> Query:
    options = lookup.options
    return candidates_query(wanted, without=without, filter=options.filter, exclude_ids=options.exclude_ids)


def terms_query(terms: Sequence[str], *, prefix: str) -> dict[str, Any]:
    return {"terms": {Fields(prefix).passages: list(terms)}}


def candidates_query(
    wanted: Mapping[str, Any],
    *,
    without: Mapping[str, Any] | None = None,
    filter: Filter = None,
    exclude_ids: Iterable[str] = (),
) -> dict[str, Any]:
    query: dict[str, Any] = {"filter": [wanted, *check_filter(filter)]}
    excluded: list[Mapping[str, Any]] = [] if without is None else [without]
    if ids := list(exclude_ids):
        excluded.append({"ids": {"values": ids}})
    return {"bool": query | ({"must_not": excluded} if excluded else {})}


def without_passages_query(prefix: str) -> dict[str, Any]:
    fields = Fields(prefix)
    written, filled = ({"exists": {"field": field}} for field in (fields.fingerprint, fields.passages))
    return {"bool": {"filter": [written], "must_not": [filled]}}
