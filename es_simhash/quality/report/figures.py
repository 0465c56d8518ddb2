"""
The charts of a report as SVG, each with a heading and a table of its numbers.

Vega draws the charts of the dashboards, through vl-convert. Its output is rebuilt from known elements and
attributes, so that no script, style, address or anything else gets into a page.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from importlib import import_module
from types import ModuleType
from typing import Any
from xml.etree import ElementTree as ET

from es_simhash.dashboards.charts import DUPLICATES, OTHERS, chart, given, size_rows
from es_simhash.errors import MissingDependencyError
from es_simhash.quality.report.words import Speech
from es_simhash.quality.stats import Count, SourceCounts, Stats, TimeCounts, utc_text
from es_simhash.tables.hidden import shown
from es_simhash.tables.notebook import Child, Html, element

_LABEL = {"fill": "currentColor", "font": "system-ui, sans-serif", "fontSize": 12}
_CONFIG = {
    "style": {"guide-label": _LABEL, "guide-title": {**_LABEL, "fontWeight": "normal"}},
    "axis": {"gridColor": "currentColor", "gridOpacity": 0.15, "labelLimit": 120, "labelSeparation": 16},
}

_ELEMENTS = {"g", "path", "text", "line", "rect", "tspan"}

_ATTRIBUTES = {
    *("d", "transform", "x", "y", "x1", "x2", "y1", "y2", "width", "height", "text-anchor", "opacity", "display"),
    *("font-family", "font-size", "font-weight", "fill", "fill-opacity", "stroke", "stroke-opacity", "stroke-width"),
}

_CLASSES = {DUPLICATES.lower(): "duplicates", OTHERS.lower(): "others"}
_SVG = "{http://www.w3.org/2000/svg}"


def require_drawing() -> ModuleType:
    """Return the module that draws; raise MissingDependencyError where it is not installed."""
    try:
        return import_module("vl_convert")
    except ImportError as error:
        raise MissingDependencyError("charts need vl-convert-python: pip install 'es-simhash[report]'") from error


def draw(chart: Mapping[str, Any], *, width: int, height: int, title: str, description: str, locale: str) -> Html:
    """
    Return a Vega chart as an SVG element, as wide as there is room, with a text for those who do not see it.
    *width*: in pixels; the page scales the drawing, so this decides how large its letters look. *locale*: how dates are
    written, as vl-convert names it: ``"en-US"``.
    """
    library = require_drawing()
    spec = {**chart, "width": width, "height": height, "config": _CONFIG}
    # The data stands in the chart, and no address may be read.
    drawn = ET.fromstring(library.vega_to_svg(spec, allowed_base_urls=[], time_format_locale=locale))  # noqa: S314 -- made here
    return element(
        "svg",
        element("title", title),
        element("desc", description),
        *_children(drawn),
        viewBox=f"0 0 {width} {height}",
        role="img",
        class_="chart",
    )


def _children(node: ET.Element) -> list[Child]:
    return [_clean(child) for child in node if child.tag.removeprefix(_SVG) in _ELEMENTS]


def _clean(node: ET.Element) -> Html:
    attributes = {name: value for name, value in node.attrib.items() if name in _ATTRIBUTES and "url(" not in value}
    class_ = _CLASSES.get(attributes.get("fill", "").lower())
    if class_ is not None:
        attributes["class"] = class_
        del attributes["fill"]
    return element(node.tag.removeprefix(_SVG), node.text or "", *_children(node), **attributes)


# Widths, in pixels, of the drawings for a wide and for a narrow page: letters keep their size.
_WIDTHS = {"wide": 560, "narrow": 330}
_HEIGHT = 260
_SOURCES = 12
_LONGEST_NAME = 60

_LENGTHS = {
    "minute": timedelta(minutes=1),
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
    "week": timedelta(weeks=1),
}

_MONTHS = {"month": 1, "quarter": 3, "year": 12}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def figures(stats: Stats, say: Speech) -> Iterator[dict[str, Any]]:
    """Yield each chart with its words, and the numbers of the table below it: a heading, then values, in each row."""
    if stats.time is not None and stats.time.parts:
        yield _over_time(stats.time, say)
    if stats.sources is not None and stats.sources.parts:
        yield _by_source(stats.sources, say)
    if stats.groups.sizes:
        rows = size_rows(stats.groups.sizes)
        cells = [[f"{size:,}", f"{number:,}"] for size, number in stats.groups.sizes.items()]
        head = [say("size"), say("number_of_groups")]
        yield _figure(say, "sizes", "sizes", rows, say.charts.by_size, head, cells)
    if stats.distances:
        values = [{"distance": bits, "documents": number} for bits, number in stats.distances.items()]
        cells = [[f"{bits}", f"{number:,}"] for bits, number in stats.distances.items()]
        head = [say("distance"), say("duplicates")]
        yield _figure(say, "distances", "distances", values, say.charts.by_distance, head, cells)


def _figure(
    say: Speech,
    key: str,
    kind: str,
    values: Sequence[Mapping[str, Any]],
    description: str,
    head: list[str],
    rows: list[list[str]],
    *,
    height: int = _HEIGHT,
    note: str = "",
) -> dict[str, Any]:
    title, spec = say(key), chart(kind, given(values), say.charts)
    drawings = {
        name: draw(spec, width=width, height=height, title=title, description=description, locale=say.locale)
        for name, width in _WIDTHS.items()
    }
    found = {"title": title, "description": description, "drawings": drawings}
    return found | {"head": head, "rows": rows, "note": note}


def _over_time(time: TimeCounts, say: Speech) -> dict[str, Any]:
    values = [
        {"time": start, "until": _end(start, time.interval), **each.to_dict()} for start, each in time.parts.items()
    ]
    counts = [(utc_text(start).removesuffix("T00:00:00Z"), each) for start, each in time.parts.items()]
    outside = {"earlier": time.earlier, "later": time.later, "no_value": time.without}
    counts += [(say(name), each) for name, each in outside.items() if each.documents]
    last = utc_text(max(_end(start, time.interval) for start in time.parts) - 1)
    first = utc_text(min(time.parts))
    note = say("span", first=first[:10], last=last[:10], interval=say(time.interval))
    earlier, later, without = (each.documents for each in (time.earlier, time.later, time.without))
    if earlier or later or without:
        note += " " + say("outside", earlier=earlier, later=later, without=without)
    numbers = _counts(say, say("from"), counts)
    return _figure(say, "over_time", "time", values, say.charts.over_time, *numbers, note=note)


def _end(start: int, interval: str) -> int:
    """Return where the interval ends that begins at *start*, both in milliseconds since 1970."""
    try:
        begin = _EPOCH + timedelta(milliseconds=start)
        if interval in _LENGTHS:
            end = begin + _LENGTHS[interval]
        else:
            months = begin.year * 12 + begin.month - 1 + _MONTHS[interval]
            end = begin.replace(year=months // 12, month=months % 12 + 1)
    except (OverflowError, ValueError):
        # A year that Python's calendar does not have.
        return start + 365 * 86_400_000
    return (end - _EPOCH) // timedelta(milliseconds=1)


def _by_source(sources: SourceCounts, say: Speech) -> dict[str, Any]:
    most = list(sources.parts.items())[:_SOURCES]
    names = _names([name for name, _ in most])
    values = [{"source": name, **each.to_dict()} for name, (_, each) in zip(names, most, strict=True)]
    # A source may have any name, also "(none)".
    counts = list(sources.parts.items())
    if rest := sources.number - len(sources.parts):
        counts.append((say("other_sources", number=rest), sources.others))
    if sources.without.documents:
        counts.append((say("no_value"), sources.without))
    note = say("other_sources_note", shown=len(most), number=sources.number) if sources.number > len(most) else ""
    words, numbers = say.charts.by_source, _counts(say, say("source"), counts)
    height = 60 + 26 * len(most)
    return _figure(say, "by_source", "sources", values, words, *numbers, height=height, note=note)


def _names(names: Sequence[str]) -> list[str]:
    """Return *names* as they can stand in a chart: short, each once, and no character that is an order."""
    found: list[str] = []
    for name in names:
        short = shown(" ".join(name[: 2 * _LONGEST_NAME].split()))
        short = short if len(short) <= _LONGEST_NAME else short[: _LONGEST_NAME - 1] + "…"
        number, once = 1, short
        while once in found:
            number += 1
            once = f"{short} ({number})"
        found.append(once)
    return found


def _counts(say: Speech, name: str, counts: Sequence[tuple[str, Count]]) -> tuple[list[str], list[list[str]]]:
    rows = [[label, f"{each.documents:,}", f"{each.duplicates:,}", say.percent(each.share)] for label, each in counts]
    return [name, say("documents"), say("duplicates"), say("share")], rows
