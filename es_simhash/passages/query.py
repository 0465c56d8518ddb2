"""Search bodies of lookups of passages: plain query DSL that both products understand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from es_simhash.lookup.query import check_filter
from es_simhash.mapping.fields import Fields

if TYPE_CHECKING:
    from es_simhash.passages.pieces import Pieces


# Texts that are compared for one document: those that share most of its terms, the rarest first.
MOST_CANDIDATES = 20


def terms_query(terms: Sequence[str], *, prefix: str) -> dict[str, Any]:
    """Return the query of documents that have one of *terms*."""
    return {"terms": {Fields(prefix).passages: list(terms)}}


def candidates_query(
    wanted: Mapping[str, Any],
    *,
    without: Mapping[str, Any] | None = None,
    filter: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
    exclude_ids: Iterable[str] = (),
) -> dict[str, Any]:
    """Return the query of documents that match *wanted* and the *filter*, and not *without*."""
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


def frequency_body(terms: Sequence[str], *, prefix: str) -> dict[str, Any]:
    """
    Return the body of a search that counts the documents of each of *terms*, in order, in the aggregation
    ``terms``.
    """
    field = Fields(prefix).passages
    filters = [{"term": {field: term}} for term in terms]
    return {
        "size": 0,
        "track_total_hits": False,
        "query": terms_query(terms, prefix=prefix),
        "aggs": {"terms": {"filters": {"filters": filters}}},
    }


def without_passages_query(prefix: str) -> dict[str, Any]:
    """Return the query of documents that have a fingerprint, and no passages."""
    fields = Fields(prefix)
    return {
        "bool": {
            "filter": [{"exists": {"field": fields.fingerprint}}],
            "must_not": [{"exists": {"field": fields.passages}}],
        }
    }
