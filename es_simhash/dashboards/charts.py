"""
Charts that count documents, as Vega 5 specifications: numbers, over time, by source.

Each function takes a subject and returns one specification as a plain dict. No saved object is made here.
"""

from __future__ import annotations

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

__all__ = ["numbers_chart", "over_time_chart", "sources_chart"]


def numbers_chart(subject: Subject) -> dict[str, Any]:
    """Return the numbers of documents, duplicates and groups, large enough to read from afar."""
    share = "documents ? format(duplicates / documents, '.1%') + ' of all documents' : ''"
    tiles = [
        ("documents", "documents", "''"),
        ("duplicates", "duplicates", share),
        (
            "groups",
            "groups with duplicates",
            "groups ? format(duplicates / groups, ',.1f') + ' duplicates in each' : ''",
        ),
        ("without", "without fingerprint", "without ? 'run es-simhash backfill' : 'nothing to do'"),
        ("ungrouped", "not grouped yet", "ungrouped ? 'run es-simhash reconcile' : 'nothing to do'"),
    ]
    sources = {
        "documents": "documents.doc_count",
        "duplicates": "duplicates.doc_count",
        "groups": "duplicates.groups.value",
        "without": "without_fingerprint.doc_count",
        "ungrouped": "not_grouped.doc_count",
    }
    signals = [{"name": name, "update": f"{ANSWER}.{path}"} for name, path in sources.items()]
    signals.append({"name": "big", "update": "clamp(width / 26, 14, 34)"})
    marks = []
    for number, (name, label, below) in enumerate(tiles):
        place: dict[str, Any] = {"x": signal(f"width * {(number + 0.5) / len(tiles)}"), "align": value("center")}
        limit = signal(f"width / {len(tiles)} - 6")
        marks += [
            text(
                None,
                style="guide-title",
                text=signal(f"format({name}, ',')"),
                y=signal("height / 2 - 4"),
                baseline=value("alphabetic"),
                fontSize=signal("big"),
                limit=limit,
                **place,
            ),
            text(None, text=value(label), y=signal("height / 2 + 18"), fontSize=value(13), limit=limit, **place),
            text(None, text=signal(below), y=signal("height / 2 + 37"), fontSize=value(11), limit=limit, **place),
        ]
    words = "How many documents, duplicates and groups there are."
    return frame(words, requests.numbers_request(subject), data=[], signals=signals, marks=marks)


def over_time_chart(subject: Subject) -> dict[str, Any]:
    """Return documents over time, duplicates in a colour of their own. The subject needs a time field."""
    rows = [flatten("aggregations.over_time.buckets"), formula("time", "datum.bucket.key")]
    rows.append({"type": "extent", "field": "time", "signal": "range_of_time"})
    bars = {"name": "bars", "source": "rows", "transform": split("time")}
    found = {"name": "found", "source": "bars", "transform": [{"type": "filter", "expr": "datum.documents > 0"}]}
    day = 86_400_000
    signals = [
        {"name": "buckets", "update": "length(data('rows'))"},
        {
            "name": "step",
            "update": f"buckets > 1 ? (range_of_time[1] - range_of_time[0]) / (buckets - 1) : {day}",
        },
    ]
    scales: list[dict[str, Any]] = [
        {
            "name": "x",
            "type": "utc",
            "domain": signal("buckets ? [range_of_time[0], range_of_time[1] + step] : [now() - step, now()]"),
            "range": "width",
        },
        {
            "name": "y",
            "type": "linear",
            "domain": {"data": "bars", "field": "y1"},
            "range": "height",
            "nice": True,
            "zero": True,
        },
        COLOURS,
    ]
    tooltip = (
        "{'from (UTC)': utcFormat(datum.time, '%Y-%m-%d %H:%M'), 'documents': format(datum.bucket.doc_count, ','), "
        "'duplicates': format(datum.bucket.duplicates.doc_count, ',')}"
    )
    bar = rect(
        "bars",
        x={"scale": "x", **field("time")},
        x2={"scale": "x", **signal("datum.time + step"), "offset": -1},
        y={"scale": "y", **field("y0")},
        y2={"scale": "y", **field("y1")},
        fill={"scale": "colour", **field("kind")},
        tooltip=signal(tooltip),
    )
    return frame(
        "Documents over time; duplicates have a colour of their own.",
        requests.over_time_request(subject),
        data=[{"name": "rows", "source": "response", "transform": rows}, bars, found],
        signals=signals,
        scales=scales,
        axes=[
            axis("bottom", "x", labelOverlap=True, tickCount=signal("ceil(width / 90)")),
            axis("left", "y", grid=True, tickCount=5, tickMinStep=1, format=",d"),
        ],
        legends=[legend("colour")],
        marks=[bar, empty_words("found", "documents", has_time=True)],
    )


def sources_chart(subject: Subject) -> dict[str, Any]:
    """Return the share of duplicates in each source. The subject needs a source field."""
    rows = [
        flatten("aggregations.sources.buckets"),
        formula("source", "toString(datum.bucket.key)"),
        formula("duplicates", "datum.bucket.duplicates.doc_count"),
        formula("documents", "datum.bucket.doc_count"),
        formula("share", "datum.documents ? datum.duplicates / datum.documents : 0"),
    ]
    scales: list[dict[str, Any]] = [
        band("y", {"data": "rows", "field": "source"}, range_="height"),
        # The label of a bar stands behind it.
        {"name": "x", "type": "linear", "domain": [0, 1], "range": [0, {"signal": "max(20, width - 150)"}]},
    ]
    counts = "format(datum.duplicates, ',') + ' of ' + format(datum.documents, ',')"
    words = f"format(datum.share, '.1%') + '  (' + {counts} + ')'"
    middle: dict[str, Any] = {"y": {"scale": "y", **field("source"), "band": 0.5}, "baseline": value("middle")}
    bar = thick("y", "source") | {"x": {"scale": "x", "value": 0}}
    tooltip = signal(f"{{'source': datum.source, 'duplicates': {words}}}")
    marks = [
        rect("rows", x2={"scale": "x", "value": 1}, fill=value(OTHERS), fillOpacity=value(0.25), **bar),
        rect("rows", x2={"scale": "x", **field("share")}, fill=value(DUPLICATES), tooltip=tooltip, **bar),
        text("rows", text=signal(words), x={"scale": "x", "value": 1, "offset": 6}, **middle),
        empty_words("rows", "documents", has_time=bool(subject.time_field)),
    ]
    return frame(
        "Share of duplicates in each source; the source with the most duplicates is first.",
        requests.sources_request(subject),
        data=[{"name": "rows", "source": "response", "transform": rows}],
        scales=scales,
        axes=[axis("left", "y", labelLimit=120)],
        marks=marks,
    )
