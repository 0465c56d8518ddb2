"""
Search bodies of lookups of passages: plain query DSL that both products understand.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from es_simhash.index.fields import Fields
from es_simhash.index.query import check_filter

__all__ = ["candidates_query", "frequency_body", "without_passages_query"]


def candidates_query(
    terms: Sequence[str],
    *,
    prefix: str,
    without: Sequence[str] = (),
    filter: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
    exclude_ids: Iterable[str] = (),
) -> dict[str, Any]:
    """
    Return the query of documents that have one of *terms*, and none of those *without*.
    """
    field = Fields(prefix).passages
    query: dict[str, Any] = {"filter": [{"terms": {field: list(terms)}}, *check_filter(filter)]}
    excluded = [{"terms": {field: list(without)}}] if without else []
    if ids := list(exclude_ids):
        excluded.append({"ids": {"values": ids}})
    return {"bool": query | ({"must_not": excluded} if excluded else {})}


def frequency_body(terms: Sequence[str], *, prefix: str) -> dict[str, Any]:
    """
    Return the body of a search that counts the documents of each of *terms*, in order, in the aggregation ``terms``.
    """
    field = Fields(prefix).passages
    filters = [{"term": {field: term}} for term in terms]
    return {
        "size": 0,
        "track_total_hits": False,
        "query": {"terms": {field: list(terms)}},
        "aggs": {"terms": {"filters": {"filters": filters}}},
    }


def without_passages_query(prefix: str) -> dict[str, Any]:
    """
    Return the query of documents that have a fingerprint, and no passages.
    """
    fields = Fields(prefix)
    return {
        "bool": {
            "filter": [{"exists": {"field": fields.fingerprint}}],
            "must_not": [{"exists": {"field": fields.passages}}],
        }
    }
