"""
Where a chart takes its rows from: given values, or the answer to a search of a panel, which is made here.

``%dashboard_context-..._clause%`` stands for the filters and the query bar of the dashboard, ``%timefilter%`` for
the chosen range of time, ``%autointerval%`` for an interval that fits it. Both products know all of them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from es_simhash.dashboards.subject import Subject
from es_simhash.dashboards.vega import flatten, formula

# Sizes from which a column begins, and its label.
_SIZES = (
    (2, "2"),
    (3, "3"),
    (4, "4"),
    (5, "5–9"),
    (10, "10–19"),
    (20, "20–49"),
    (50, "50–99"),
    (100, "100–999"),
    (1_000, "1,000+"),
)


@dataclass(frozen=True, slots=True)
class Rows:
    """The data sets of a chart; the last is named ``rows``, and *empty* is shown while it has no row."""

    data: Sequence[dict[str, Any]]
    signals: Sequence[dict[str, Any]] = ()
    empty: str = ""


def given(values: Iterable[Mapping[str, Any]], *, empty: str = "") -> Rows:
    """Return rows with these *values*; each function of ``charts`` says which columns it needs."""
    return Rows([{"name": "rows", "values": [dict(each) for each in values]}], empty=empty)


def size_rows(sizes: Mapping[int, int]) -> list[dict[str, Any]]:
    """
    Return the rows of a chart of *sizes*: for each number of documents, how many groups have it.

    Examples:
        >>> [(row["label"], row["groups"]) for row in size_rows({2: 9, 6: 1, 8: 1})]
        [('2', 9), ('3', 0), ('4', 0), ('5–9', 2)]
    """
    starts = [start for start, _ in _SIZES]
    counted: Counter[int] = Counter()
    for size, groups in sizes.items():
        counted[bisect_right(starts, size) - 1] += groups
    if not counted:
        return []
    # A size between others that no group has is a column too, without height.
    return [
        {"order": _SIZES[n][0], "label": _SIZES[n][1], "groups": counted[n]}
        for n in range(min(counted), max(counted) + 1)
    ]


def response(request: dict[str, Any]) -> dict[str, Any]:
    """Return the data set ``response``: the answer to *request*, or no row for a pattern that matches no index."""
    return {
        "name": "response",
        "url": request,
        "transform": [{"type": "filter", "expr": "isObject(datum.aggregations)"}],
    }


def no_rows(subject: Subject, what: str) -> str:
    """Return what a panel of *subject* says while it has no *what* to show."""
    return f"No {what} for these filters{' and this range of time' if subject.time_field else ''}"


def over_time_of(subject: Subject) -> Rows:
    """Return rows from the answer about documents over time."""
    day = 86_400_000
    found = [
        flatten("aggregations.over_time.buckets"),
        formula("time", "datum.bucket.key"),
        {"type": "extent", "field": "time", "signal": "range_of_time"},
    ]
    rows = [
        formula("until", "datum.time + step"),
        formula("documents", "datum.bucket.doc_count"),
        formula("duplicates", "datum.bucket.duplicates.doc_count"),
    ]
    signals = [
        {"name": "buckets", "update": "length(data('found'))"},
        {"name": "step", "update": f"buckets > 1 ? (range_of_time[1] - range_of_time[0]) / (buckets - 1) : {day}"},
    ]
    data = [
        response(over_time_request(subject)),
        {"name": "found", "source": "response", "transform": found},
        {"name": "rows", "source": "found", "transform": rows},
    ]
    return Rows(data, signals, no_rows(subject, "documents"))


def sources_of(subject: Subject) -> Rows:
    """Return rows from the answer about sources."""
    rows = [
        flatten("aggregations.sources.buckets"),
        formula("source", "toString(datum.bucket.key)"),
        formula("duplicates", "datum.bucket.duplicates.doc_count"),
        formula("documents", "datum.bucket.doc_count"),
    ]
    return _rows(sources_request(subject), rows, no_rows(subject, "documents"))


def distances_of(subject: Subject) -> Rows:
    """Return rows from the answer about distances."""
    rows = [
        flatten("aggregations.distances.buckets"),
        formula("distance", "toNumber(datum.bucket.key)"),
        formula("documents", "datum.bucket.doc_count"),
    ]
    return _rows(distances_request(subject), rows, no_rows(subject, "duplicates"))


def _rows(request: dict[str, Any], transform: list[dict[str, Any]], empty: str) -> Rows:
    return Rows([response(request), {"name": "rows", "source": "response", "transform": transform}], empty=empty)


def sizes_of(subject: Subject) -> Rows:
    """
    Return rows from the answer about sizes of groups.

    The largest groups are read one by one. The others are no larger than the smallest of those, and are one
    column.
    """
    label, order = f"'{_SIZES[-1][1]}'", str(_SIZES[-1][0])
    for (start, words), (following, _) in reversed(list(pairwise(_SIZES))):
        label = f"datum.size < {following} ? '{words}' : {label}"
        order = f"datum.size < {following} ? {start} : {order}"
    listed = [
        flatten("aggregations.duplicates.listed.buckets"),
        # A canonical is not among its duplicates.
        formula("size", "datum.bucket.doc_count + 1"),
        {"type": "extent", "field": "size", "signal": "listed_sizes"},
        formula("label", label),
        formula("order", order),
        formula("groups", "1"),
    ]
    rest = [
        formula("groups", "datum.aggregations.duplicates.groups.value - length(data('listed'))"),
        {"type": "filter", "expr": "datum.aggregations.duplicates.listed.sum_other_doc_count > 0 && datum.groups > 0"},
        formula("label", "listed_sizes[0] > 2 ? '2–' + format(listed_sizes[0], ',') : '2'"),
        formula("order", "listed_sizes[0] > 2 ? 1 : 2"),
    ]
    # A size between others that no group has is a column too, without height.
    sizes = [{"order": order, "label": label, "groups": 0} for order, label in _SIZES]
    between = "length(data('listed')) && datum.order > listed_sizes[0] && datum.order < listed_sizes[1]"
    grouped = {
        "type": "aggregate",
        "groupby": ["label", "order"],
        "fields": ["groups"],
        "ops": ["sum"],
        "as": ["groups"],
    }
    in_order = {"type": "collect", "sort": {"field": "order"}}
    data: list[dict[str, Any]] = [
        response(sizes_request(subject)),
        {"name": "listed", "source": "response", "transform": listed},
        {"name": "rest", "source": "response", "transform": rest},
        {"name": "none", "values": sizes, "transform": [{"type": "filter", "expr": between}]},
        {"name": "rows", "source": ["listed", "rest", "none"], "transform": [grouped, in_order]},
    ]
    return Rows(data, empty=no_rows(subject, "duplicates"))


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

    The query is written out: ``%context%`` would be shorter, but Dashboards refuses it beside a query.
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
