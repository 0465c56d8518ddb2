"""
Charts about groups and fingerprints, as Vega 5 specifications: sizes, distances, largest groups, hot blocks.

Each function takes a subject and returns one specification as a plain dict. No saved object is made here.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from es_simhash.dashboards import requests
from es_simhash.dashboards.subject import Subject
from es_simhash.dashboards.vega import (
    ANSWER,
    COLOURS,
    DUPLICATES,
    OTHERS,
    axis,
    band,
    empty_words,
    field,
    flatten,
    formula,
    frame,
    legend,
    rect,
    signal,
    split,
    text,
    thick,
    value,
)

__all__ = ["distances_chart", "hot_blocks_chart", "largest_groups_chart", "sizes_chart"]


# Sizes from which a bar begins, and its label.
_SIZES = ((2, "2"), (3, "3"), (4, "4"), (5, "5–9"), (10, "10–19"), (20, "20–49"), (50, "50–99"), (100, "100–999"))
_LARGEST = (1_000, "1,000+")


def sizes_chart(subject: Subject) -> dict[str, Any]:
    """
    Return how many groups have which size.

    The largest groups are read one by one. The others are no larger than the smallest of those, and are one bar.
    """
    bins = [*_SIZES, _LARGEST]
    label, order = f"'{_LARGEST[1]}'", str(_LARGEST[0])
    for (start, words), (following, _) in reversed(list(pairwise(bins))):
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
    sizes = [{"order": order, "label": label, "groups": 0} for order, label in bins]
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
        {"name": "listed", "source": "response", "transform": listed},
        {"name": "rest", "source": "response", "transform": rest},
        {"name": "none", "values": sizes, "transform": [{"type": "filter", "expr": between}]},
        {"name": "rows", "source": ["listed", "rest", "none"], "transform": [grouped, in_order]},
    ]
    tooltip = "{'documents in the group': datum.label, 'groups': format(datum.groups, ',')}"
    return _columns(
        "Groups by size: how many groups have how many documents, the canonical included.",
        requests.sizes_request(subject),
        has_time=bool(subject.time_field),
        data=data,
        key="label",
        domain={"data": "rows", "field": "label"},
        height="groups",
        colour=OTHERS,
        x_title="documents in the group",
        y_title="groups",
        tooltip=tooltip,
    )


def distances_chart(subject: Subject) -> dict[str, Any]:
    """Return how many duplicates have which distance to their canonical."""
    rows = [
        flatten("aggregations.distances.buckets"),
        formula("distance", "toNumber(datum.bucket.key)"),
        formula("documents", "datum.bucket.doc_count"),
        {"type": "extent", "field": "distance", "signal": "distances"},
    ]
    tooltip = "{'distance in bits': datum.distance, 'duplicates': format(datum.documents, ',')}"
    return _columns(
        "Duplicates by their distance to the canonical, in bits of 64.",
        requests.distances_request(subject),
        has_time=bool(subject.time_field),
        data=[{"name": "rows", "source": "response", "transform": rows}],
        key="distance",
        domain=signal("length(data('rows')) ? sequence(0, distances[1] + 1) : []"),
        height="documents",
        colour=DUPLICATES,
        x_title="bits that differ from the canonical",
        y_title="duplicates",
        tooltip=tooltip,
    )


def _columns(
    description: str,
    request: dict[str, Any],
    *,
    has_time: bool,
    data: list[dict[str, Any]],
    key: str,
    domain: dict[str, Any],
    height: str,
    colour: str,
    x_title: str,
    y_title: str,
    tooltip: str,
) -> dict[str, Any]:
    """Return a chart with one column, and its number above it, for each row of the data set ``rows``."""
    scales: list[dict[str, Any]] = [
        band("x", domain, range_="width"),
        {
            "name": "y",
            "type": "linear",
            "domain": {"data": "rows", "field": height},
            "range": [{"signal": "height"}, 16],
            "zero": True,
        },
    ]
    column = rect(
        "rows",
        **thick("x", key),
        y={"scale": "y", **field(height)},
        y2={"scale": "y", "value": 0},
        fill=value(colour),
        tooltip=signal(tooltip),
    )
    number = text(
        "rows",
        text=signal(f"datum.{height} < 10000 ? format(datum.{height}, ',') : format(datum.{height}, '.3~s')"),
        x={"scale": "x", **field(key), "band": 0.5},
        y={"scale": "y", **field(height), "offset": -4},
        align=value("center"),
        baseline=value("bottom"),
    )
    return frame(
        description,
        request,
        data=data,
        scales=scales,
        axes=[
            axis("bottom", "x", title=x_title, labelOverlap=True, titlePadding=8),
            axis("left", "y", title=y_title, grid=True, tickCount=5, tickMinStep=1, format=",d", titlePadding=8),
        ],
        marks=[column, number, empty_words("rows", "duplicates", has_time=has_time)],
    )


def largest_groups_chart(subject: Subject) -> dict[str, Any]:
    """Return the largest groups, with the text of a canonical where the subject has a text field."""
    rows = [
        flatten("aggregations.duplicates.largest.buckets"),
        formula("group", "datum.bucket.key"),
        formula("duplicates", "datum.bucket.doc_count"),
    ]
    if subject.text_field:
        # As a path and not as an expression, because a field may have any name.
        path = f"bucket.sample.hits.hits[0].fields[{_quote(subject.text_field)}]"
        columns = ["group", "duplicates"]
        rows.append({"type": "project", "fields": [*columns, path], "as": [*columns, "found"]})
        rows.append(formula("words", "isArray(datum.found) ? toString(datum.found[0]) : ''"))
        rows.append(formula("sample", "replace(truncate(datum.words, 400), regexp('\\\\s+', 'g'), ' ')"))
    start = "width * 0.34" if subject.text_field else "width - 60"
    scales: list[dict[str, Any]] = [
        band("y", {"data": "rows", "field": "group"}, range_="height"),
        {
            "name": "x",
            "type": "linear",
            "domain": {"data": "rows", "field": "duplicates"},
            "range": [0, {"signal": f"max(10, {start} - 56)"}],
            "zero": True,
        },
    ]
    middle: dict[str, Any] = {"y": {"scale": "y", **field("group"), "band": 0.5}, "baseline": value("middle")}
    tooltip = "{'group': datum.group, 'duplicates': format(datum.duplicates, ',')"
    tooltip += ", 'text': truncate(datum.words, 1000)}" if subject.text_field else "}"
    marks = [
        rect(
            "rows",
            **thick("y", "group"),
            x={"scale": "x", "value": 0},
            x2={"scale": "x", **field("duplicates")},
            fill=value(DUPLICATES),
            tooltip=signal(tooltip),
        ),
        text(
            "rows",
            text=signal("format(datum.duplicates, ',')"),
            x={"scale": "x", **field("duplicates"), "offset": 5},
            **middle,
        ),
    ]
    if subject.text_field:
        sample = text("rows", text=field("sample"), x=signal(start), limit=signal(f"width - {start}"), **middle)
        sample["interactive"] = True
        sample["encode"]["update"]["tooltip"] = signal(tooltip)
        marks.append(sample)
    marks.append(empty_words("rows", "duplicates", has_time=bool(subject.time_field)))
    return frame(
        "The largest groups by number of duplicates.",
        requests.largest_groups_request(subject),
        data=[{"name": "rows", "source": "response", "transform": rows}],
        scales=scales,
        axes=[axis("left", "y", labelLimit=150)],
        marks=marks,
    )


def _quote(name: str) -> str:
    """Return *name* as a part of a path to a column."""
    escaped = name.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def hot_blocks_chart(subject: Subject) -> dict[str, Any]:
    """Return the block terms that most documents have."""
    names = [f"block{n}" for n in range(4)]
    data = [
        {
            "name": name,
            "source": "response",
            "transform": [
                flatten(f"aggregations.{name}.buckets"),
                formula("term", f"'block {number}: ' + datum.bucket.key"),
            ],
        }
        for number, name in enumerate(names)
    ]
    in_order = {"type": "collect", "sort": {"field": "bucket.doc_count", "order": "descending"}}
    data.append({"name": "rows", "source": names, "transform": [in_order]})
    data.append({"name": "bars", "source": "rows", "transform": split("term")})
    scales: list[dict[str, Any]] = [
        band("y", {"data": "rows", "field": "term"}, range_="height"),
        {
            "name": "x",
            "type": "linear",
            "domain": {"data": "bars", "field": "y1"},
            "range": [0, {"signal": "max(20, width - 110)"}],
            "zero": True,
        },
        COLOURS,
    ]
    share = "documents ? format(datum.bucket.doc_count / documents, '.2~%') : ''"
    words = f"format(datum.bucket.doc_count, ',') + '  (' + ({share}) + ')'"
    bar = rect(
        "bars",
        **thick("y", "term"),
        x={"scale": "x", **field("y0")},
        x2={"scale": "x", **field("y1")},
        fill={"scale": "colour", **field("kind")},
        tooltip=signal(
            "{'block term': datum.term, 'documents': format(datum.bucket.doc_count, ','), "
            "'duplicates': format(datum.bucket.duplicates.doc_count, ',')}"
        ),
    )
    number = text(
        "rows",
        text=signal(words),
        x={"scale": "x", **field("bucket.doc_count"), "offset": 5},
        y={"scale": "y", **field("term"), "band": 0.5},
        baseline=value("middle"),
    )
    return frame(
        "Block terms that most documents have, and their share of all documents with a fingerprint.",
        requests.hot_blocks_request(subject),
        data=data,
        signals=[{"name": "documents", "update": f"{ANSWER}.documents.doc_count"}],
        scales=scales,
        axes=[axis("left", "y", labelLimit=150)],
        legends=[legend("colour")],
        marks=[bar, number, empty_words("rows", "fingerprints", has_time=bool(subject.time_field))],
    )
