"""
Counts documents over time, in intervals that fit the dates an index has. No document is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

from es_simhash.flows.context import Index
from es_simhash.flows.protocol import Flow
from es_simhash.flows.transfer.buckets import aggregate
from es_simhash.quality.stats import Count, TimeCounts

__all__ = ["count_over_time"]

_MINUTE = 60_000
_DAY = 24 * 60 * _MINUTE
# In milliseconds; of a month and longer the shortest, so that no more intervals come than are meant.
_INTERVALS = (
    ("minute", _MINUTE),
    ("hour", 60 * _MINUTE),
    ("day", _DAY),
    ("week", 7 * _DAY),
    ("month", 28 * _DAY),
    ("quarter", 90 * _DAY),
    ("year", 365 * _DAY),
)
_MOST_INTERVALS = 100
# A few wrong dates, such as 1970-01-01, must not make every interval a year long.
_MOST_OUTSIDE = 0.02

Years = Mapping[int, Count]


def count_over_time(
    index: Index, field: str, clauses: Sequence[Mapping[str, Any]], duplicates: Mapping[str, Any]
) -> Flow[TimeCounts]:
    """
    Return the documents that match *clauses* by the date in *field*, in at most about 100 intervals.

    Cost: three searches.

    Args:
        index:
            What to search.
        field:
            A date field.
        clauses:
            Queries that the counted documents match.
        duplicates:
            The query that duplicates match.
    """
    counted = {"duplicates": {"filter": duplicates}}
    without = {"filter": {"bool": {"must_not": [{"exists": {"field": field}}]}}, "aggs": counted}
    years = {"date_histogram": _histogram(field, "year"), "aggs": counted}
    found = yield from aggregate(index, clauses, {"years": years, "without": without})
    missing = _count(found["without"])
    by_year: Years = {bucket["key"]: _count(bucket) for bucket in found["years"]["buckets"]}
    if not by_year:
        return TimeCounts(field, "year", {}, without=missing)
    first, last = _core(by_year)
    end = next((start for start in by_year if start > last), None)
    bounds = {"gte": first, "format": "epoch_millis"} | ({} if end is None else {"lt": end})
    inside = [*clauses, {"range": {field: bounds}}]
    edges = yield from aggregate(index, inside, {"first": {"min": {"field": field}}, "last": {"max": {"field": field}}})
    interval = _interval((edges["last"]["value"] or 0) - (edges["first"]["value"] or 0))
    parts = {"date_histogram": _histogram(field, interval), "aggs": counted}
    found = yield from aggregate(index, inside, {"parts": parts})
    return TimeCounts(
        field,
        interval,
        {bucket["key"]: _count(bucket) for bucket in found["parts"]["buckets"]},
        sum((count for start, count in by_year.items() if start < first), Count()),
        sum((count for start, count in by_year.items() if start > last), Count()),
        missing,
    )


def _histogram(field: str, interval: str) -> dict[str, Any]:
    return {"field": field, "calendar_interval": interval, "min_doc_count": 1}


def _count(bucket: Mapping[str, Any]) -> Count:
    return Count(bucket["doc_count"], bucket["duplicates"]["doc_count"])


def _core(years: Years) -> tuple[int, int]:
    """Return the start of the first and of the last of the fewest years in a row that have nearly all documents."""
    starts = sorted(years)
    total = [0, *accumulate(years[start].documents for start in starts)]
    needed = total[-1] * (1 - _MOST_OUTSIDE)
    best = (starts[0], starts[-1])
    low = 0
    for high, last in enumerate(starts):
        while total[high + 1] - total[low + 1] >= needed:
            low += 1
        if total[high + 1] - total[low] >= needed and last - starts[low] < best[1] - best[0]:
            best = (starts[low], last)
    return best


def _interval(span: float) -> str:
    """Return the shortest interval of which not too many are in *span* milliseconds."""
    return next((name for name, length in _INTERVALS if span / length <= _MOST_INTERVALS), "year")
