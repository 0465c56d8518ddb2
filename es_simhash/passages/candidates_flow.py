"""
The candidates of a lookup of passages, read with their texts: documents with a term of the text; their queries.

For a short text, also documents in which the server finds most of its pieces. One search if the first page has all,
else page by page. If they are very many, documents with only common terms come last, or are only counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from es_simhash.lookup.query import Filter, check_filter
from es_simhash.mapping.fields import Fields
from es_simhash.mapping.resolve_flow import confirming, send_confirmed
from es_simhash.passages.lookup import CommonPassages, Lookup
from es_simhash.transport.answers import Gap, find_gaps, is_source_refused, is_window_refused
from es_simhash.transport.buckets_flow import count_documents
from es_simhash.transport.pages_flow import Hits, read_pages
from es_simhash.transport.protocol import Call, Compute, Emit, Flow
from es_simhash.transport.retry_flow import search_texts, text_body

if TYPE_CHECKING:
    from es_simhash.passages.compare import Pieces


Query: TypeAlias = dict[str, Any]


def read_candidates(lookup: Lookup) -> Flow[None]:
    """
    Compare all candidates, page by page, some twice; note in *lookup* why some may be missing.
    Documents with common terms alone are left out and counted if they are too many, but not of a stream.
    """
    terms: list[str] = yield Compute(lookup.terms)
    step = lookup.options.sizes.terms
    for begin in range(0, len(terms), step):
        yield from _read_part(lookup, terms[begin : begin + step])
    pieces: Pieces | None = yield Compute(lookup.pieces)
    if pieces is not None:
        lookup.is_by_text = True
        yield from _read_by_text(lookup, pieces, terms)


def _read_part(lookup: Lookup, terms: Sequence[str]) -> Flow[None]:
    most = lookup.options.sizes.common
    query = _terms_query(lookup, terms)
    number = yield from _read_first(lookup, query)
    if number == 0:
        return
    rare, common = (yield from _split(lookup, terms)) if number > most else ([], [])
    if not common:
        yield from _read_all(lookup, query)
        return
    if rare:
        yield from _read_all(lookup, _terms_query(lookup, rare))
    query = _terms_query(lookup, common, without=rare)
    if not lookup.is_stream:
        number, gaps = yield from count_documents(lookup.index, query, routing=lookup.options.routing)
        lookup.note(gaps)
        if number > most:
            lookup.note([CommonPassages(number, len(common))])
            return
    yield from _read_all(lookup, query)


def _read_by_text(lookup: Lookup, pieces: Pieces, terms: Sequence[str]) -> Flow[None]:
    """Read the documents that have *pieces* and none of *terms*, which were read or counted."""
    prefix = lookup.context.prefix
    query = _query(lookup, pieces_query(pieces, lookup.fields, prefix=prefix), terms_query(terms, prefix=prefix))
    number = yield from _read_first(lookup, query)
    if not lookup.is_stream and number > lookup.options.sizes.common:
        lookup.note([CommonPassages(number)])
    elif number:
        yield from _read_all(lookup, query)


def _read_first(lookup: Lookup, query: Query) -> Flow[int]:
    """Return how many candidates are to be read page by page: 0 if all were compared."""
    answer = yield from _first_page(lookup, query)
    if answer is None:
        yield from _read_all(lookup, query)
        return 0
    gaps, hits = find_gaps(answer), answer["hits"]["hits"]
    number: int = answer["hits"]["total"]["value"]
    if not gaps and number > len(hits):
        return number
    lookup.note(gaps)
    yield from _take(lookup, hits)
    return 0


def _take(lookup: Lookup, hits: Hits) -> Flow[None]:
    """Compare the texts of *hits*; emit what is found, if the caller wants that at once."""
    yield Compute(lookup.compare, (hits,))
    if lookup.is_stream:
        yield Emit(*lookup.take_found())


def _first_page(lookup: Lookup, query: Query) -> Flow[Mapping[str, Any] | None]:
    """Return the answer to the first search; ``None`` if its page is larger than the index allows."""
    body = {"size": lookup.options.sizes.first_page, "query": query, "track_total_hits": True}

    def send(call: Call) -> Flow[Any]:
        return send_confirmed(lookup.context, lookup.index, call, settings=lookup.settings)

    routing = lookup.options.routing
    try:
        answer = yield from search_texts(lookup.index, body, lookup.fields, routing=routing, send=send)
    except Exception as error:
        if not is_window_refused(error):
            raise
        return None
    return None if is_window_refused(find_gaps(answer)) else answer


def _read_all(lookup: Lookup, query: Query) -> Flow[None]:
    body = text_body({"query": query}, lookup.fields)
    try:
        gaps = yield from _read_body(lookup, body)
        is_refused = is_source_refused(gaps)
    except Exception as error:
        if not is_source_refused(error):
            raise
        is_refused = True
    if is_refused:
        gaps = yield from _read_body(lookup, {**body, "_source": True})
    lookup.note(gaps)


def _read_body(lookup: Lookup, body: Mapping[str, Any]) -> Flow[list[Gap]]:
    """Read all pages of *body*; nothing is compared before the settings were confirmed since the view was opened."""
    confirm_once = confirming(lookup.context, lookup.index, lookup.settings)

    def handle(hits: Hits) -> Flow[bool]:
        yield from confirm_once()
        yield from _take(lookup, hits)
        return False

    options = lookup.options
    gaps = yield from read_pages(lookup.index, body, handle, page=options.sizes.next_page, routing=options.routing)
    yield from confirm_once()
    return gaps


def _split(lookup: Lookup, terms: Sequence[str]) -> Flow[tuple[list[str], list[str]]]:
    """Return the rare and the common ones of *terms*; where shards do not answer, what others say decides."""
    sizes, prefix = lookup.options.sizes, lookup.context.prefix
    rare: list[str] = []
    common: list[str] = []
    for begin in range(0, len(terms), sizes.counted):
        part = terms[begin : begin + sizes.counted]
        filters = [{"term": {Fields(prefix).passages: term}} for term in part]
        aggs = {"terms": {"filters": {"filters": filters}}}
        body = {"size": 0, "track_total_hits": False, "query": terms_query(part, prefix=prefix), "aggs": aggs}
        answer = yield Call("search", {"index": lookup.index, "body": body})
        lookup.note(find_gaps(answer, ignore=["terminated_early"]))
        counted = (answer.get("aggregations") or {}).get("terms") or {}  # none if no shard answered
        counts = [bucket["doc_count"] for bucket in counted.get("buckets", ())] or [0] * len(part)
        for term, count in zip(part, counts, strict=True):
            (common if count > sizes.common // 10 else rare).append(term)
    return rare, common


def _terms_query(lookup: Lookup, terms: Sequence[str], *, without: Sequence[str] = ()) -> Query:
    prefix = lookup.context.prefix
    excluded = terms_query(without, prefix=prefix) if without else None
    return _query(lookup, terms_query(terms, prefix=prefix), excluded)


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


def pieces_query(pieces: Pieces, fields: Sequence[str], *, prefix: str) -> dict[str, Any]:
    """
    Return the query of documents with a fingerprint whose *fields* have enough of *pieces* as phrases.
    A field that is no indexed text, or keeps no positions, has no pieces. A piece that is only stop words for an
    analyser counts as found in every document.
    """
    options = {"type": "phrase", "fields": list(fields), "lenient": True, "zero_terms_query": "all"}
    phrases = [{"multi_match": {"query": piece, **options}} for piece in pieces.pieces]
    written = {"exists": {"field": Fields(prefix).fingerprint}}
    return {"bool": {"filter": [written], "should": phrases, "minimum_should_match": pieces.least}}


def without_passages_query(prefix: str) -> dict[str, Any]:
    fields = Fields(prefix)
    written, filled = ({"exists": {"field": field}} for field in (fields.fingerprint, fields.passages))
    return {"bool": {"filter": [written], "must_not": [filled]}}
