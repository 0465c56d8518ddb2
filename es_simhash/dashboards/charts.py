"""The charts of panels and reports as Vega 5 specifications, drawn from given rows. No saved object is made here."""

from __future__ import annotations

from typing import Any

from es_simhash.dashboards.chart_parts import (
    DUPLICATES,
    ENGLISH,
    OTHERS,
    ChartWords,
    Rows,
    answered,
    axis,
    band,
    colours,
    empty_words,
    field,
    flatten,
    formula,
    frame,
    hot_blocks_request,
    largest_groups_request,
    legend,
    linear,
    literal,
    no_rows,
    numbers_request,
    rect,
    response,
    signal,
    split,
    text,
    thick,
    value,
)
from es_simhash.dashboards.subject import Subject


def over_time_chart(rows: Rows, words: ChartWords = ENGLISH) -> dict[str, Any]:
    """Return documents over time; *rows*: ``time``, ``until`` (ms since 1970), ``documents``, ``duplicates``."""
    edges = [
        {"type": "extent", "field": "time", "signal": "starts"},
        {"type": "extent", "field": "until", "signal": "ends"},
    ]
    data: list[dict[str, Any]] = [
        *rows.data,
        {"name": "spans", "source": "rows", "transform": edges},
        {"name": "bars", "source": "rows", "transform": split("time", words)},
        {"name": "counted", "source": "bars", "transform": [{"type": "filter", "expr": "datum.counted > 0"}]},
    ]
    scales: list[dict[str, Any]] = [
        {
            "name": "x",
            "type": "utc",
            "domain": signal("length(data('spans')) ? [starts[0], ends[1]] : [now() - 86400000, now()]"),
            "range": "width",
        },
        linear("y", {"data": "bars", "field": "y1"}, "height", nice=True, zero=True),
        colours(words),
    ]
    tooltip = (
        "{'from (UTC)': utcFormat(datum.time, '%Y-%m-%d %H:%M'), 'documents': format(datum.documents, ','), "
        "'duplicates': format(datum.duplicates, ',')}"
    )
    bar = rect(
        "bars",
        x={"scale": "x", **field("time")},
        x2={"scale": "x", **field("until"), "offset": -1},
        y={"scale": "y", **field("y0")},
        y2={"scale": "y", **field("y1")},
        fill={"scale": "colour", **field("kind")},
        tooltip=signal(tooltip),
    )
    return frame(
        words.over_time,
        data=data,
        signals=rows.signals,
        scales=scales,
        axes=[
            axis("bottom", "x", labelOverlap=True, tickCount=signal("ceil(width / 90)")),
            axis("left", "y", grid=True, tickCount=5, tickMinStep=1, format=",d"),
        ],
        legends=[legend("colour")],
        marks=[bar, empty_words("counted", rows.empty)],
    )


def sources_chart(rows: Rows, words: ChartWords = ENGLISH) -> dict[str, Any]:
    """Return the share of duplicates by source; *rows*: ``source``, ``documents``, ``duplicates``."""
    share = formula("share", "datum.documents ? datum.duplicates / datum.documents : 0")
    scales: list[dict[str, Any]] = [
        band("y", {"data": "shares", "field": "source"}, range_="height"),
        # The label of a bar stands behind it.
        linear("x", [0, 1], [0, signal("max(20, width - 150)")]),
    ]
    counts = f"format(datum.duplicates, ',') + {literal(words.of)} + format(datum.documents, ',')"
    label = f"format(datum.share, '.1%') + '  (' + {counts} + ')'"
    middle: dict[str, Any] = {"y": {"scale": "y", **field("source"), "band": 0.5}, "baseline": value("middle")}
    bar = thick("y", "source") | {"x": {"scale": "x", "value": 0}}
    tooltip = signal(f"{{'source': datum.source, 'duplicates': {label}}}")
    marks = [
        rect("shares", x2={"scale": "x", "value": 1}, fill=value(OTHERS), fillOpacity=value(0.25), **bar),
        rect("shares", x2={"scale": "x", **field("share")}, fill=value(DUPLICATES), tooltip=tooltip, **bar),
        text("shares", text=signal(label), x={"scale": "x", "value": 1, "offset": 6}, **middle),
        empty_words("shares", rows.empty),
    ]
    return frame(
        words.by_source,
        data=[*rows.data, {"name": "shares", "source": "rows", "transform": [share]}],
        signals=rows.signals,
        scales=scales,
        axes=[axis("left", "y", labelLimit=120)],
        marks=marks,
    )


def sizes_chart(rows: Rows, words: ChartWords = ENGLISH) -> dict[str, Any]:
    """Return how many groups have which size; *rows*: ``label`` and ``groups``, in the order of the sizes."""
    tooltip = "{'documents in the group': datum.label, 'groups': format(datum.groups, ',')}"
    return _columns(
        words.by_size,
        rows,
        ("label", "groups"),
        (words.documents_in_group, words.groups),
        domain={"data": "rows", "field": "label"},
        colour=OTHERS,
        tooltip=tooltip,
    )


def distances_chart(rows: Rows, words: ChartWords = ENGLISH) -> dict[str, Any]:
    """Return how many duplicates have which distance; *rows*: ``distance`` (bits) and ``documents``."""
    extent = {"type": "extent", "field": "distance", "signal": "distances"}
    span = {"name": "spans", "source": "rows", "transform": [extent]}
    tooltip = "{'distance in bits': datum.distance, 'duplicates': format(datum.documents, ',')}"
    return _columns(
        words.by_distance,
        Rows([*rows.data, span], rows.signals, rows.empty),
        ("distance", "documents"),
        (words.bits, words.duplicates),
        domain=signal("length(data('spans')) ? sequence(0, distances[1] + 1) : []"),
        colour=DUPLICATES,
        tooltip=tooltip,
    )


def _columns(
    description: str,
    rows: Rows,
    columns: tuple[str, str],
    titles: tuple[str, str],
    *,
    domain: dict[str, Any],
    colour: str,
    tooltip: str,
) -> dict[str, Any]:
    """
    Return a chart with one column, and its number above it, for each row of the data set ``rows``.

    *columns* and *titles*: of the x and the y axis.
    """
    key, height = columns
    scales: list[dict[str, Any]] = [
        band("x", domain, range_="width"),
        linear("y", {"data": "rows", "field": height}, [signal("height"), 16], zero=True),
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
        data=rows.data,
        signals=rows.signals,
        scales=scales,
        axes=[
            axis("bottom", "x", title=titles[0], labelOverlap=True, titlePadding=8),
            axis("left", "y", title=titles[1], grid=True, tickCount=5, tickMinStep=1, format=",d", titlePadding=8),
        ],
        marks=[column, number, empty_words("rows", rows.empty)],
    )


def numbers_chart(subject: Subject) -> dict[str, Any]:
    """Return the numbers of documents, duplicates and groups, large enough to read from afar."""
    share = "documents ? format(duplicates / documents, '.1%') + ' of all documents' : ''"
    each = "groups ? format(duplicates / groups, ',.1f') + ' duplicates in each' : ''"
    # Name, path in the answer, label, and what stands below.
    tiles = [
        ("documents", "documents.doc_count", "documents", "''"),
        ("duplicates", "duplicates.doc_count", "duplicates", share),
        ("groups", "duplicates.groups.value", "groups with duplicates", each),
        (
            "without",
            "without_fingerprint.doc_count",
            "without fingerprint",
            "without ? 'run es-simhash backfill' : 'nothing to do'",
        ),
        (
            "ungrouped",
            "not_grouped.doc_count",
            "not grouped yet",
            "ungrouped ? 'run es-simhash reconcile' : 'nothing to do'",
        ),
    ]
    signals = [{"name": name, "update": answered(path)} for name, path, _, _ in tiles]
    signals.append({"name": "big", "update": "clamp(width / 26, 14, 34)"})
    marks = []
    for number, (name, _, label, below) in enumerate(tiles):
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
    return frame(words, data=[response(numbers_request(subject))], signals=signals, marks=marks)


def largest_groups_chart(subject: Subject) -> dict[str, Any]:
    """Return the largest groups, with the text of a canonical where the subject has a text field."""
    rows = [
        flatten("aggregations.duplicates.largest.buckets"),
        formula("group", "datum.bucket.key"),
        formula("duplicates", "datum.bucket.doc_count"),
    ]
    if subject.text_field:
        # As a path and not as an expression, because a field may have any name.
        path = f"bucket.sample.hits.hits[0].fields[{literal(subject.text_field)}]"
        columns = ["group", "duplicates"]
        rows.append({"type": "project", "fields": [*columns, path], "as": [*columns, "found"]})
        rows.append(formula("words", "isArray(datum.found) ? toString(datum.found[0]) : ''"))
        rows.append(formula("sample", "replace(truncate(datum.words, 400), regexp('\\\\s+', 'g'), ' ')"))
    start = "width * 0.34" if subject.text_field else "width - 60"
    scales: list[dict[str, Any]] = [
        band("y", {"data": "rows", "field": "group"}, range_="height"),
        linear("x", {"data": "rows", "field": "duplicates"}, [0, signal(f"max(10, {start} - 56)")], zero=True),
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
            response(largest_groups_request(subject)),
            {"name": "rows", "source": "response", "transform": rows},
        ],
        scales=scales,
        axes=[axis("left", "y", labelLimit=150)],
        marks=marks,
    )


def hot_blocks_chart(subject: Subject) -> dict[str, Any]:
    """Return the block terms that most documents have."""
    names = [f"block{n}" for n in range(4)]
    data = [response(hot_blocks_request(subject))]
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
        linear("x", {"data": "bars", "field": "y1"}, [0, signal("max(20, width - 110)")], zero=True),
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
