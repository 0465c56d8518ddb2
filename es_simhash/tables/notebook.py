"""
Tables as HTML for a notebook: no script, nothing loaded, readable on a light and on a dark background.

Colours are those of the notebook; bars and lines only repeat the numbers beside them. What a result has to show is
decided where the result is defined.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from es_simhash.tables.curve import CURVE_STYLE
from es_simhash.tables.frames import column_names, is_number, to_text
from es_simhash.tables.markup import Html, bar, element, user_text

SHOWN_ROWS = 100
"""Most rows of a table that a notebook shows; the others are counted below it."""

SHOWN_CHARACTERS = 300
"""Most characters of a value that a cell shows; a longer one ends with "…"."""

# A column as narrow as its longest word: longer texts are broken, ids and fingerprints are not.
_LONG = 40

_STYLE = Html(
    ".es-simhash{line-height:1.4}"
    ".es-simhash table{border-collapse:collapse;margin:.4em 0 1em}"
    ".es-simhash caption{text-align:left;font-weight:600;padding:.3em 0;caption-side:top;color:inherit}"
    ".es-simhash th,.es-simhash td{text-align:left;vertical-align:top;padding:.25em .7em;color:inherit;"
    "border-bottom:1px solid rgb(128 128 128/.4);white-space:pre-wrap}"
    ".es-simhash .long{display:inline-block;min-width:16em;max-width:42em;overflow-wrap:anywhere}"
    ".es-simhash .number{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}"
    ".es-simhash svg{width:6em;height:.7em;margin-left:.5em}"
    ".es-simhash rect{fill:#d6603d}"
    ".es-simhash ins{text-decoration:underline;background:rgb(64 160 64/.25)}"
    ".es-simhash del{background:rgb(220 64 64/.25)}"
)


@dataclass(frozen=True, slots=True)
class Sheet:
    """
    One table of a result.

    Attributes:
        title:
            What stands above it.
        rows:
            The rows; a column may be missing in some of them.
        bars:
            Columns that have a bar beside each number, and the number whose bar is full.
    """

    title: str
    rows: Sequence[Mapping[str, Any]]
    bars: Mapping[str, float] = field(default_factory=dict)


def render(title: str, parts: Iterable[Sheet | Html]) -> Html:
    """
    Return a result as HTML: its *title*, then its tables and markup.
    """
    shown = [_table(part) if isinstance(part, Sheet) else part for part in parts]
    heading = element("p", element("strong", user_text(title)))
    return element("div", element("style", _STYLE, CURVE_STYLE), heading, *shown, class_="es-simhash")


def _table(sheet: Sheet) -> Html:
    if not sheet.rows:
        return element("p", f"{sheet.title}: none") if sheet.title else Html()
    # A column without any value says nothing.
    names = [name for name in column_names(sheet.rows) if any(row.get(name) is not None for row in sheet.rows)]
    numeric = {name for name in names if all(is_number(row.get(name)) for row in sheet.rows)}
    head = [_cell("th", user_text(name), is_numeric=name in numeric, scope="col") for name in names]
    body = []
    for row in sheet.rows[:SHOWN_ROWS]:
        cells = [_cell("td", _value(row.get(name), sheet.bars.get(name)), is_numeric=name in numeric) for name in names]
        body.append(element("tr", *cells))
    table = element(
        "table",
        *([element("caption", user_text(sheet.title))] if sheet.title else []),
        element("thead", element("tr", *head)),
        element("tbody", *body),
    )
    rest = len(sheet.rows) - SHOWN_ROWS
    return element("div", table, element("p", f"and {rest:,} more rows: to_dicts() has all") if rest > 0 else "")


def _cell(name: str, content: Html, *, is_numeric: bool, **attributes: str) -> Html:
    return element(name, content, class_="number" if is_numeric else None, **attributes)


def _value(value: Any, full: float | None) -> Html:
    if isinstance(value, Html):
        return value
    if full and is_number(value) and value is not None:
        return element("span", to_text(value), bar(value / full))
    text = to_text(value)
    shown = text if len(text) <= SHOWN_CHARACTERS else f"{text[: SHOWN_CHARACTERS - 1]}…"
    return user_text(shown, class_="long" if len(shown) > _LONG else None)
