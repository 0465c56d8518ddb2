"""
Where a chart takes its rows from: the answer to a search of a panel, or values that are given.

A chart draws the data set ``rows`` and does not know where it comes from. No chart is drawn here.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from es_simhash.dashboards import requests
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
    """
    The data sets of a chart.

    Attributes:
        data:
            Data sets of Vega; the last one is named ``rows``.
        signals:
            Signals that they need.
        empty:
            What the chart says while there is no row.
    """

    data: Sequence[dict[str, Any]]
    signals: Sequence[dict[str, Any]] = ()
    empty: str = ""


def given(values: Iterable[Mapping[str, Any]], *, empty: str = "") -> Rows:
    """
    Return rows with these *values*; each function of ``charts`` says which columns it needs.
    """
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
        response(requests.over_time_request(subject)),
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
    return _rows(requests.sources_request(subject), rows, no_rows(subject, "documents"))


def distances_of(subject: Subject) -> Rows:
    """Return rows from the answer about distances."""
    rows = [
        flatten("aggregations.distances.buckets"),
        formula("distance", "toNumber(datum.bucket.key)"),
        formula("documents", "datum.bucket.doc_count"),
    ]
    return _rows(requests.distances_request(subject), rows, no_rows(subject, "duplicates"))


def _rows(request: dict[str, Any], transform: list[dict[str, Any]], empty: str) -> Rows:
    return Rows([response(request), {"name": "rows", "source": "response", "transform": transform}], empty=empty)


def sizes_of(subject: Subject) -> Rows:
    """
    Return rows from the answer about sizes of groups.

    The largest groups are read one by one. The others are no larger than the smallest of those, and are one column.
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
        response(requests.sizes_request(subject)),
        {"name": "listed", "source": "response", "transform": listed},
        {"name": "rest", "source": "response", "transform": rest},
        {"name": "none", "values": sizes, "transform": [{"type": "filter", "expr": between}]},
        {"name": "rows", "source": ["listed", "rest", "none"], "transform": [grouped, in_order]},
    ]
    return Rows(data, empty=no_rows(subject, "duplicates"))
