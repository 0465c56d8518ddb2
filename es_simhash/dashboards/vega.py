"""
The parts that the Vega 5 specifications share: words, frame, marks, colours. No chart is here.

Words are separate, so that a chart can be drawn in another language. Expressions keep to what the checker of
Dashboards allows (``tests/dashboards/test_vega.py``): no ``window``, no ``document``, no computed property.
Text takes the styles ``guide-label`` and ``guide-title``, which both products colour for light and dark
themes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


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


DUPLICATES = "#D6603D"


OTHERS = "#5B9BD5"
"""Colours that are told apart in light and dark themes, and by people who do not see red and green alike."""


def literal(words: str) -> str:
    """Return *words* as a string of an expression, or as a part of a path to a column."""
    escaped = words.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


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
