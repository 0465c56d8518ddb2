"""
The parts that the Vega 5 specifications share: frame, marks, colours, and the words for an empty chart.

Expressions keep to what the checker of Dashboards allows (``tests/unit/test_dashboards_vega.py``): no ``window``, no
``document``, no property that is computed. Text takes the styles ``guide-label`` and ``guide-title``, which both
products colour for their light and dark themes.
"""

from __future__ import annotations

from typing import Any

__all__ = [
    "ANSWER",
    "COLOURS",
    "DUPLICATES",
    "OTHERS",
    "axis",
    "band",
    "empty_words",
    "field",
    "flatten",
    "formula",
    "frame",
    "legend",
    "rect",
    "signal",
    "split",
    "text",
    "thick",
    "value",
]

DUPLICATES = "#D6603D"
OTHERS = "#5B9BD5"
"""Colours that are told apart in light and dark themes, and by people who do not see red and green alike."""

ANSWER = "data('response')[0].aggregations"
"""The answer to the search of a chart, in an expression."""

# Two columns become rows, one under the other, so that a colour can stand for each.
_KINDS = ["duplicates", "all other documents"]
COLOURS = {"name": "colour", "type": "ordinal", "domain": _KINDS, "range": [DUPLICATES, OTHERS]}
"""The scale of the colours of :func:`split`."""


def frame(
    description: str,
    request: dict[str, Any],
    *,
    data: list[dict[str, Any]],
    marks: list[dict[str, Any]],
    signals: list[dict[str, Any]] | None = None,
    scales: list[dict[str, Any]] | None = None,
    axes: list[dict[str, Any]] | None = None,
    legends: list[dict[str, Any]] | None = None,
) -> dict[str, Any]:
    """
    Return a specification whose data set ``response`` is the answer to *request*. It fills its panel.
    """
    return {
        "$schema": "https://vega.github.io/schema/vega/v5.json",
        "description": description,
        "autosize": {"type": "fit", "contains": "padding"},
        "padding": 8,
        # Both products read this key. They would show "Infinite extent" above every chart without data.
        "config": {"kibana": {"hideWarnings": True}},
        "data": [{"name": "response", "url": request}, *data],
        "signals": signals or [],
        "scales": scales or [],
        "axes": axes or [],
        "legends": legends or [],
        "marks": marks,
    }


def value(of: Any) -> dict[str, Any]:
    """Return a constant of an encoding."""
    return {"value": of}


def signal(expression: str) -> dict[str, Any]:
    """Return an expression of an encoding."""
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


def split(group_by: str) -> list[dict[str, Any]]:
    """Return the transforms that stack duplicates and all other documents of each bucket; the column is ``kind``."""
    return [
        formula("duplicates", "datum.bucket.duplicates.doc_count"),
        formula("others", "datum.bucket.doc_count - datum.bucket.duplicates.doc_count"),
        {"type": "fold", "fields": ["duplicates", "others"], "as": ["column", "documents"]},
        formula("kind", f"datum.column === 'duplicates' ? '{_KINDS[0]}' : '{_KINDS[1]}'"),
        {"type": "stack", "groupby": [group_by], "field": "documents", "sort": {"field": "column"}},
    ]


def band(name: str, domain: Any, *, range_: str, padding: float = 0.2) -> dict[str, Any]:
    """Return a scale that gives each value of *domain* a place of its own."""
    return {"name": name, "type": "band", "domain": domain, "range": range_, "padding": padding}


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
    """Return a bar for each row of *data*."""
    return {"type": "rect", "from": {"data": data}, "encode": {"update": encoding}}


def text(data: str | None, *, style: str = "guide-label", **encoding: Any) -> dict[str, Any]:
    """Return a text for each row of *data*, or one text."""
    mark: dict[str, Any] = {"type": "text", "style": style, "interactive": False, "encode": {"update": encoding}}
    return mark | ({"from": {"data": data}} if data else {})


def empty_words(rows: str, what: str, *, has_time: bool) -> dict[str, Any]:
    """Return a text in the middle of the chart that is seen while the data set *rows*, which shows *what*, is empty."""
    words = f"No {what} for these filters{' and this range of time' if has_time else ''}"
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
