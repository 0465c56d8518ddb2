"""
The searches behind the charts, with the placeholders that Kibana and Dashboards replace.

``%dashboard_context-..._clause%`` stands for the filters and the query bar of the dashboard, ``%timefilter%`` for the
chosen range of time, ``%autointerval%`` for an interval that fits it. Both products know all of them. No chart is here.
"""

from __future__ import annotations

from typing import Any

from es_simhash.dashboards.subject import Subject

SHOWN_GROUPS = 10
SHOWN_SOURCES = 12
SHOWN_BLOCKS = 4
"""Block terms that are shown of each of the four blocks."""

LISTED_GROUPS = 1_000
"""Groups whose sizes are read one by one; those below are counted together, whatever the number of groups."""

# The largest value that servers accept: up to that many groups the count is close to exact.
_PRECISION = 40_000


def exists(field: str) -> dict[str, Any]:
    """Return the query for documents with a value in *field*."""
    return {"exists": {"field": field}}


def missing(field: str) -> dict[str, Any]:
    """Return the query for documents without a value in *field*."""
    return {"bool": {"must_not": [exists(field)]}}


def numbers_request(subject: Subject) -> dict[str, Any]:
    """Return the search for how many documents, duplicates and groups there are."""
    fields = subject.fields
    not_grouped = {"bool": {"filter": [exists(fields.fingerprint)], "must_not": [exists(fields.group)]}}
    return _request(
        subject,
        {
            "documents": {"filter": {"match_all": {}}},
            "duplicates": _duplicates(subject, groups=_count_groups(subject)),
            "without_fingerprint": {"filter": missing(fields.fingerprint)},
            "not_grouped": {"filter": not_grouped},
        },
    )


def over_time_request(subject: Subject) -> dict[str, Any]:
    """Return the search for documents and duplicates in each interval of time."""
    histogram = {
        "field": subject.time_field,
        "interval": {"%autointerval%": True},
        "min_doc_count": 0,
        "extended_bounds": {"min": {"%timefilter%": "min"}, "max": {"%timefilter%": "max"}},
    }
    aggs = {"duplicates": _duplicates(subject)}
    return _request(subject, {"over_time": {"date_histogram": histogram, "aggs": aggs}})


def sources_request(subject: Subject) -> dict[str, Any]:
    """Return the search for the sources with the most duplicates."""
    terms = {"field": subject.source_field, "size": SHOWN_SOURCES, "order": {"duplicates": "desc"}}
    return _request(subject, {"sources": {"terms": terms, "aggs": {"duplicates": _duplicates(subject)}}})


def sizes_request(subject: Subject) -> dict[str, Any]:
    """Return the search for the number of duplicates of the largest groups, and for how many groups there are."""
    terms = {"terms": {"field": subject.fields.group, "size": LISTED_GROUPS}}
    return _request(subject, {"duplicates": _duplicates(subject, groups=_count_groups(subject), listed=terms)})


def distances_request(subject: Subject) -> dict[str, Any]:
    """Return the search for how many duplicates have each distance to their canonical."""
    terms = {"terms": {"field": subject.fields.distance, "size": 65}}
    return _request(subject, {"distances": terms})


def largest_groups_request(subject: Subject) -> dict[str, Any]:
    """Return the search for the largest groups, each with its canonical where it has the text."""
    group = subject.fields.group
    largest: dict[str, Any] = {"terms": {"field": group, "size": SHOWN_GROUPS, "min_doc_count": 1}}
    if subject.text_field:
        canonical_first = {"order": "asc", "missing": "_first", "unmapped_type": "byte"}
        hits = {
            "size": 1,
            "_source": False,
            # The group is asked for too: an answer without any field would have no place to look for the text in.
            "fields": [group, subject.text_field],
            "sort": [{subject.fields.distance: canonical_first}],
        }
        largest["aggs"] = {"sample": {"top_hits": hits}}
    return _request(subject, {"duplicates": _duplicates(subject, largest=largest)})


def hot_blocks_request(subject: Subject) -> dict[str, Any]:
    """Return the search for the block terms that most documents have."""
    return _request(
        subject,
        {"documents": {"filter": exists(subject.fields.fingerprint)}}
        | {
            f"block{n}": {
                "terms": {"field": field, "size": SHOWN_BLOCKS},
                "aggs": {"duplicates": _duplicates(subject)},
            }
            for n, field in enumerate(subject.fields.blocks)
        },
    )


def _request(subject: Subject, aggs: dict[str, Any]) -> dict[str, Any]:
    """
    Return a search in the form that the products take below ``data.url``.

    The query is spelled out. ``%context%`` would be shorter, but Dashboards refuses it beside a query.
    """
    filters: list[Any] = ["%dashboard_context-filter_clause%"]
    if subject.time_field:
        filters.append({"range": {subject.time_field: {"%timefilter%": True}}})
    query = {
        "must": ["%dashboard_context-must_clause%"],
        "filter": filters,
        "must_not": ["%dashboard_context-must_not_clause%"],
    }
    # No hits and no hits.total: the products turn that total into a number, or leave it an object.
    return {"index": subject.index, "body": {"size": 0, "query": {"bool": query}, "aggs": aggs}}


def _duplicates(subject: Subject, **aggs: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"filter": exists(subject.fields.duplicate_of)}
    return found | {"aggs": aggs} if aggs else found


def _count_groups(subject: Subject) -> dict[str, Any]:
    return {"cardinality": {"field": subject.fields.group, "precision_threshold": _PRECISION}}
