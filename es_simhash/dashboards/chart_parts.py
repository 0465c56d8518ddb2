"""
What the Vega 5 charts are made of: words, frame, marks and colours, and their rows: given values, or the answer to a
search of a panel, which is made here. No chart is here.

Words are separate, so that a chart can be drawn in another language. Expressions keep to what the checker of
Dashboards allows (``tests/dashboards/test_vega.py``): no ``window``, no ``document``, no computed property.
Text takes the styles ``guide-label`` and ``guide-title``, which both products colour for light and dark themes.

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


@dataclass(frozen=True, slots=True)
class ChartWords:
    """
    The words of the charts over time, by source, by size and by distance.

    *over_time*, *by_source*, *by_size* and *by_distance* are for readers who do not see the chart. *of* stands
    between a part and its whole, with its blanks.
    """

    duplicates: str = "duplicates"
    others: str = "all other documents"
    of: str = " of "
    over_time: str = "Documents over time; duplicates have a colour of their own."
    by_source: str = "Share of duplicates in each source; the source with the most duplicates is first."
    by_size: str = "Groups by size: how many groups have how many documents, the canonical included."
    by_distance: str = "Duplicates by their distance to the canonical, in bits of 64."
    documents_in_group: str = "documents in the group"
    groups: str = "groups"
    bits: str = "bits that differ from the canonical"


ENGLISH = ChartWords()

DUPLICATES, OTHERS = "#D6603D", "#5B9BD5"
"""Colours that are told apart in light and dark themes, and by people who do not see red and green alike."""


def literal(words: str) -> str:
    """Return *words* as a string of an expression, or as a part of a path to a column."""
    return "'" + words.replace("\\", "\\\\").replace("'", "\\'") + "'"


def answered(path: str) -> str:
    """Return the expression for a number of the answer to the search of a chart; 0 where there is no answer."""
    return f"length(data('response')) ? data('response')[0].aggregations.{path} : 0"


def colours(words: ChartWords) -> dict[str, Any]:
    """Return the scale of the colours of :func:`split`."""
    domain = [words.duplicates, words.others]
    return {"name": "colour", "type": "ordinal", "domain": domain, "range": [DUPLICATES, OTHERS]}


def frame(
    description: str,
    *,
    data: Sequence[dict[str, Any]],
    marks: list[dict[str, Any]],
    signals: Sequence[dict[str, Any]] = (),
    scales: list[dict[str, Any]] | None = None,
    axes: list[dict[str, Any]] | None = None,
    legends: list[dict[str, Any]] | None = None,
) -> dict[str, Any]:
    """Return a specification. It fills its panel."""
    return {
        "$schema": "https://vega.github.io/schema/vega/v5.json",
        "description": description,
        "autosize": {"type": "fit", "contains": "padding"},
        "padding": 8,
        # Both products read this key. They would show "Infinite extent" above every chart without data.
        "config": {"kibana": {"hideWarnings": True}},
        "data": list(data),
        "signals": list(signals),
        "scales": scales or [],
        "axes": axes or [],
        "legends": legends or [],
        "marks": marks,
    }


def value(of: Any) -> dict[str, Any]:
    return {"value": of}


def signal(expression: str) -> dict[str, Any]:
    return {"signal": expression}


def field(name: str, **more: Any) -> dict[str, Any]:
    """Return a value of an encoding that is taken from the data."""
    return {"field": name, **more}


def formula(name: str, expression: str) -> dict[str, Any]:
    """Return a transform that computes a column."""
    return {"type": "formula", "as": name, "expr": expression}


def flatten(path: str) -> dict[str, Any]:
    """Return a transform that makes a row of each bucket below *path*; the bucket is the column ``bucket``."""
    return {"type": "flatten", "fields": [path], "as": ["bucket"]}


def split(group_by: str, words: ChartWords) -> list[dict[str, Any]]:
    """Return the transforms that make two stacked rows of one: its duplicates and its other documents."""
    return [
        formula("others", "datum.documents - datum.duplicates"),
        {"type": "fold", "fields": ["duplicates", "others"], "as": ["column", "counted"]},
        formula("kind", f"datum.column === 'duplicates' ? {literal(words.duplicates)} : {literal(words.others)}"),
        {"type": "stack", "groupby": [group_by], "field": "counted", "sort": {"field": "column"}},
    ]


def band(name: str, domain: Any, *, range_: str, padding: float = 0.2) -> dict[str, Any]:
    """Return a scale that gives each value of *domain* a place of its own."""
    return {"name": name, "type": "band", "domain": domain, "range": range_, "padding": padding}


def linear(name: str, domain: Any, range_: Any, **more: bool) -> dict[str, Any]:
    return {"name": name, "type": "linear", "domain": domain, "range": range_, **more}


def axis(orient: str, scale: str, **more: Any) -> dict[str, Any]:
    """Return an axis without a line of its own."""
    return {"orient": orient, "scale": scale, "domain": False, "ticks": False, "labelPadding": 6, **more}


def legend(scale: str, **more: Any) -> dict[str, Any]:
    """Return a legend above the chart, in one row."""
    return {"fill": scale, "orient": "top", "direction": "horizontal", "symbolType": "square", **more}


def thick(direction: str, name: str, *, largest: int = 56) -> dict[str, Any]:
    """Return the place of a bar in its band, and its thickness: one bar alone does not fill the chart."""
    place = {"scale": direction, **field(name), "band": 0.5}
    size = "height" if direction == "y" else "width"
    return {f"{direction}c": place, size: signal(f"min(bandwidth('{direction}'), {largest})")}


def rect(data: str, **encoding: Any) -> dict[str, Any]:
    return {"type": "rect", "from": {"data": data}, "encode": {"update": encoding}}


def text(data: str | None, *, style: str = "guide-label", **encoding: Any) -> dict[str, Any]:
    mark: dict[str, Any] = {"type": "text", "style": style, "interactive": False, "encode": {"update": encoding}}
    return mark | ({"from": {"data": data}} if data else {})


def empty_words(rows: str, words: str) -> dict[str, Any]:
    """Return *words* in the middle of the chart that are seen while the data set *rows* is empty."""
    return text(
        None,
        style="guide-title",
        text=value(words),
        x=signal("width / 2"),
        y=signal("height / 2"),
        align=value("center"),
        baseline=value("middle"),
        limit=signal("width"),
        fontSize=value(13),
        opacity=signal(f"length(data('{rows}')) ? 0 : 1"),
    )


# Sizes from which a column begins, and its label.
_STARTS = (2, 3, 4, 5, 10, 20, 50, 100, 1_000)
_LABELS = ("2", "3", "4", "5–9", "10–19", "20–49", "50–99", "100–999", "1,000+")
_SIZES = tuple(zip(_STARTS, _LABELS, strict=True))


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
    counted: Counter[int] = Counter()
    for size, groups in sizes.items():
        counted[bisect_right(_STARTS, size) - 1] += groups
    if not counted:
        return []
    # A size between others that no group has is a column too, without height.
    columns = range(min(counted), max(counted) + 1)
    return [{"order": _STARTS[n], "label": _LABELS[n], "groups": counted[n]} for n in columns]


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
    rows = [
        flatten("aggregations.sources.buckets"),
        formula("source", "toString(datum.bucket.key)"),
        formula("duplicates", "datum.bucket.duplicates.doc_count"),
        formula("documents", "datum.bucket.doc_count"),
    ]
    return _rows(sources_request(subject), rows, no_rows(subject, "documents"))


def distances_of(subject: Subject) -> Rows:
    rows = [
        flatten("aggregations.distances.buckets"),
        formula("distance", "toNumber(datum.bucket.key)"),
        formula("documents", "datum.bucket.doc_count"),
    ]
    return _rows(distances_request(subject), rows, no_rows(subject, "duplicates"))


def _rows(request: dict[str, Any], transform: list[dict[str, Any]], empty: str) -> Rows:
    return Rows([response(request), {"name": "rows", "source": "response", "transform": transform}], empty=empty)


def sizes_of(subject: Subject) -> Rows:
    """Return rows of sizes of groups: the largest are read one by one; the others, no larger, are one column."""
    label, order = f"'{_LABELS[-1]}'", str(_STARTS[-1])
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
    by = ["label", "order"]
    grouped = {"type": "aggregate", "groupby": by, "fields": ["groups"], "ops": ["sum"], "as": ["groups"]}
    in_order = {"type": "collect", "sort": {"field": "order"}}
    data: list[dict[str, Any]] = [
        response(sizes_request(subject)),
        {"name": "listed", "source": "response", "transform": listed},
        {"name": "rest", "source": "response", "transform": rest},
        {"name": "none", "values": sizes, "transform": [{"type": "filter", "expr": between}]},
        {"name": "rows", "source": ["listed", "rest", "none"], "transform": [grouped, in_order]},
    ]
    return Rows(data, empty=no_rows(subject, "duplicates"))


SHOWN_GROUPS, SHOWN_SOURCES = 10, 12
# Block terms that are shown of each of the four blocks.
SHOWN_BLOCKS = 4

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
    return _request(subject, {"over_time": {"date_histogram": histogram, "aggs": {"duplicates": _duplicates(subject)}}})


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
    return _request(subject, {"distances": {"terms": {"field": subject.fields.distance, "size": 65}}})


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
            f"block{n}": {"terms": {"field": field, "size": SHOWN_BLOCKS}, "aggs": {"duplicates": _duplicates(subject)}}
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
