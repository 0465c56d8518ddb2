"""
Draws charts as SVG that stands in a page: no script, no style, no address, and colours of the page.

Vega draws, through vl-convert. What it returns is taken apart and put together again from elements and attributes that
are known, so that nothing else gets into a page.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from types import ModuleType
from typing import Any
from xml.etree import ElementTree as ET

from es_simhash.dashboards.vega import DUPLICATES, OTHERS
from es_simhash.errors import MissingDependencyError
from es_simhash.tables.markup import Child, Html, element

__all__ = ["draw", "require_drawing"]

_FONT = "system-ui, sans-serif"
_LABEL = {"fill": "currentColor", "font": _FONT, "fontSize": 12}
_CONFIG = {
    "style": {"guide-label": _LABEL, "guide-title": {**_LABEL, "fontWeight": "normal"}},
    "axis": {"gridColor": "currentColor", "gridOpacity": 0.15, "labelLimit": 120},
}
_ELEMENTS = {"g", "path", "text", "line", "rect", "tspan"}
_ATTRIBUTES = {
    *("d", "transform", "x", "y", "x1", "x2", "y1", "y2", "width", "height", "text-anchor", "opacity", "display"),
    *("font-family", "font-size", "font-weight", "fill", "fill-opacity", "stroke", "stroke-opacity", "stroke-width"),
}
_CLASSES = {DUPLICATES.lower(): "duplicates", OTHERS.lower(): "others"}
_SVG = "{http://www.w3.org/2000/svg}"


def require_drawing() -> ModuleType:
    """
    Return the library that draws.

    Raises:
        MissingDependencyError: If it is not installed.
    """
    try:
        return import_module("vl_convert")
    except ImportError as error:
        raise MissingDependencyError("charts need vl-convert-python: pip install 'es-simhash[report]'") from error


def draw(chart: Mapping[str, Any], *, width: int, height: int, title: str, description: str, locale: str) -> Html:
    """
    Return a chart as an SVG element, as wide as there is room, with a text for those who do not see it.

    Args:
        chart:
            The Vega specification.
        width:
            Its width in pixels, by which the size of its letters is chosen.
        height:
            Its height.
        title:
            What it is.
        description:
            What it says.
        locale:
            How dates are written, as vl-convert names it: ``"en-US"``.

    Raises:
        MissingDependencyError: If vl-convert is not installed.
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
