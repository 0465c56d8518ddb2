"""
Charts that only the panels of a pack have, as Vega 5 specifications: numbers, largest groups, hot blocks.

Each function takes a subject and returns one specification as a plain dict. No saved object is made here.
"""

from __future__ import annotations

from typing import Any

from es_simhash.dashboards import requests
from es_simhash.dashboards.rows import no_rows, response
from es_simhash.dashboards.subject import Subject
from es_simhash.dashboards.vega import (
    DUPLICATES,
    ENGLISH,
    answered,
    axis,
    band,
    colours,
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
    signals = [{"name": name, "update": answered(path)} for name, path in sources.items()]
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
    return frame(words, data=[response(requests.numbers_request(subject))], signals=signals, marks=marks)


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
    marks.append(empty_words("rows", no_rows(subject, "duplicates")))
    return frame(
        "The largest groups by number of duplicates.",
        data=[
            response(requests.largest_groups_request(subject)),
            {"name": "rows", "source": "response", "transform": rows},
        ],
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
    data = [response(requests.hot_blocks_request(subject))]
    data += [
        {
            "name": name,
            "source": "response",
            "transform": [
                flatten(f"aggregations.{name}.buckets"),
                formula("term", f"'block {number}: ' + datum.bucket.key"),
                formula("documents", "datum.bucket.doc_count"),
                formula("duplicates", "datum.bucket.duplicates.doc_count"),
            ],
        }
        for number, name in enumerate(names)
    ]
    in_order = {"type": "collect", "sort": {"field": "documents", "order": "descending"}}
    data.append({"name": "rows", "source": names, "transform": [in_order]})
    data.append({"name": "bars", "source": "rows", "transform": split("term", ENGLISH)})
    scales: list[dict[str, Any]] = [
        band("y", {"data": "rows", "field": "term"}, range_="height"),
        {
            "name": "x",
            "type": "linear",
            "domain": {"data": "bars", "field": "y1"},
            "range": [0, {"signal": "max(20, width - 110)"}],
            "zero": True,
        },
        colours(ENGLISH),
    ]
    share = "documents ? format(datum.documents / documents, '.2~%') : ''"
    words = f"format(datum.documents, ',') + '  (' + ({share}) + ')'"
    bar = rect(
        "bars",
        **thick("y", "term"),
        x={"scale": "x", **field("y0")},
        x2={"scale": "x", **field("y1")},
        fill={"scale": "colour", **field("kind")},
        tooltip=signal(
            "{'block term': datum.term, 'documents': format(datum.documents, ','), "
            "'duplicates': format(datum.duplicates, ',')}"
        ),
    )
    number = text(
        "rows",
        text=signal(words),
        x={"scale": "x", **field("documents"), "offset": 5},
        y={"scale": "y", **field("term"), "band": 0.5},
        baseline=value("middle"),
    )
    return frame(
        "Block terms that most documents have, and their share of all documents with a fingerprint.",
        data=data,
        signals=[{"name": "documents", "update": answered("documents.doc_count")}],
        scales=scales,
        axes=[axis("left", "y", labelLimit=150)],
        legends=[legend("colour")],
        marks=[bar, number, empty_words("rows", no_rows(subject, "fingerprints"))],
    )
