"""
The charts of documents over time, by source, by size of group and by distance, as Vega 5 specifications.

Each function takes rows and returns one specification as a plain dict. The panels of a pack draw rows from answers of
searches, and a report draws rows that are given, so that each chart is written once. No saved object is made here.
"""

from __future__ import annotations

from typing import Any

from es_simhash.dashboards.rows import Rows
from es_simhash.dashboards.vega import (
    DUPLICATES,
    ENGLISH,
    OTHERS,
    ChartWords,
    axis,
    band,
    colours,
    empty_words,
    field,
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


def over_time_chart(rows: Rows, words: ChartWords = ENGLISH) -> dict[str, Any]:
    """
    Return documents over time, duplicates in a colour of their own.

    Args:
        rows:
            Columns ``time`` and ``until`` (the interval, in milliseconds since 1970), ``documents``, ``duplicates``.
        words:
            The words of the chart.
    """
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
        {
            "name": "y",
            "type": "linear",
            "domain": {"data": "bars", "field": "y1"},
            "range": "height",
            "nice": True,
            "zero": True,
        },
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
    """
    Return the share of duplicates in each source.

    Args:
        rows:
            Columns ``source``, ``documents``, ``duplicates``.
        words:
            The words of the chart.
    """
    share = formula("share", "datum.documents ? datum.duplicates / datum.documents : 0")
    scales: list[dict[str, Any]] = [
        band("y", {"data": "shares", "field": "source"}, range_="height"),
        # The label of a bar stands behind it.
        {"name": "x", "type": "linear", "domain": [0, 1], "range": [0, {"signal": "max(20, width - 150)"}]},
    ]
    counts = f"format(datum.duplicates, ',') + '{words.of}' + format(datum.documents, ',')"
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
    """
    Return how many groups have which size.

    Args:
        rows:
            Columns ``label`` (a size, or a range of sizes) and ``groups``, in the order of the sizes.
        words:
            The words of the chart.
    """
    tooltip = "{'documents in the group': datum.label, 'groups': format(datum.groups, ',')}"
    return _columns(
        words.by_size,
        rows,
        key="label",
        domain={"data": "rows", "field": "label"},
        height="groups",
        colour=OTHERS,
        x_title=words.documents_in_group,
        y_title=words.groups,
        tooltip=tooltip,
    )


def distances_chart(rows: Rows, words: ChartWords = ENGLISH) -> dict[str, Any]:
    """
    Return how many duplicates have which distance to their canonical.

    Args:
        rows:
            Columns ``distance``, in bits, and ``documents``.
        words:
            The words of the chart.
    """
    extent = {"type": "extent", "field": "distance", "signal": "distances"}
    span = {"name": "spans", "source": "rows", "transform": [extent]}
    tooltip = "{'distance in bits': datum.distance, 'duplicates': format(datum.documents, ',')}"
    return _columns(
        words.by_distance,
        Rows([*rows.data, span], rows.signals, rows.empty),
        key="distance",
        domain=signal("length(data('spans')) ? sequence(0, distances[1] + 1) : []"),
        height="documents",
        colour=DUPLICATES,
        x_title=words.bits,
        y_title=words.duplicates,
        tooltip=tooltip,
    )


def _columns(
    description: str,
    rows: Rows,
    *,
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
        data=rows.data,
        signals=rows.signals,
        scales=scales,
        axes=[
            axis("bottom", "x", title=x_title, labelOverlap=True, titlePadding=8),
            axis("left", "y", title=y_title, grid=True, tickCount=5, tickMinStep=1, format=",d", titlePadding=8),
        ],
        marks=[column, number, empty_words("rows", rows.empty)],
    )
