"""Tables as HTML that is safe by construction, without scripts, for light and dark; pages from templates."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any, TypeAlias

from es_simhash.tables.hidden import HIDDEN, shown

if TYPE_CHECKING:
    from jinja2 import Environment, Template

# Most texts need no change; to see that costs less than to change them.
_UNSAFE = re.compile(f"[&<>\"']|{HIDDEN}")
_VOID = frozenset({"br", "meta", "input"})


class Html(str):
    """Markup that is already safe."""

    __slots__ = ()

    def __html__(self) -> Html:
        """Return itself: the templates of pages then escape it no further."""
        return self


Child: TypeAlias = "str | Html"


def _safe(child: Child) -> str:
    if isinstance(child, Html) or _UNSAFE.search(child) is None:
        return child
    return escape(shown(child), quote=True)


def join(*children: Child) -> Html:
    """Return *children* one after the other; what is not markup of ours is escaped."""
    return Html("".join(map(_safe, children)))


def element(name: str, /, *children: Child, **attributes: str | float | bool | None) -> Html:
    """
    Return an element; *children* that are no markup, and the values of *attributes*, are escaped.

    Names must be words of the program. An underscore at the end of an attribute's name is left out, one within it
    is a hyphen. ``True`` is an attribute without a value; ``False`` and ``None`` leave it out.

    Examples:
        >>> element("p", "a < b", class_="note")
        '<p class="note">a &lt; b</p>'
    """
    written = []
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        attribute = key.rstrip("_").replace("_", "-")
        written.append(f" {attribute}" if value is True else f' {attribute}="{_safe(str(value))}"')
    opening = f"<{name}{''.join(written)}>"
    return Html(opening if name in _VOID else f"{opening}{join(*children)}</{name}>")


def user_text(text: str, *, within: str = "bdi", **attributes: str | None) -> Html:
    """Return a text of a user in an element of its own, so that its direction changes nothing around it."""
    return element(within, text, dir=None if within == "bdi" else "auto", **attributes)  # a <bdi> is "auto" by itself


def bar(share: float) -> Html:
    """Return a bar of which *share* is full. It only repeats a number that stands beside it."""
    width = max(0.0, min(100.0, share * 100))
    rect = element("rect", width=f"{width:.2f}", height="10")
    return element("svg", rect, viewBox="0 0 100 10", preserveAspectRatio="none", aria_hidden="true")


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
    One table of a result, for a notebook, a terminal or a file; a column may be missing in some rows.

    The names of columns are what people read; those of a document's own fields begin with ``source.``, and one named
    ``share`` is in percent. *bars*: the columns that have a bar beside each number, and the number whose bar is full.
    *folded*: columns of sentences, which are never cut. *most*: rows that are shown, where that is not up to the place.
    """

    title: str
    rows: Sequence[Mapping[str, Any]]
    bars: Mapping[str, float] = field(default_factory=dict)
    folded: Sequence[str] = ()
    most: int | None = None

    def columns(self, known: Mapping[str, Any] | None = None) -> list[str]:
        """Return the names of the columns that say something: a value, and not everywhere the one that is *known*."""
        every = dict.fromkeys(name for row in self.rows for name in row)
        said = known or {}
        return [
            name
            for name in every
            if any(row.get(name) is not None and row.get(name) != said.get(name) for row in self.rows)
        ]

    def is_number(self, name: str) -> bool:
        """Return whether a column has nothing but numbers, percent among them, and empty cells."""
        values = [row.get(name) for row in self.rows]
        return all(_is_number(value) or (isinstance(value, str) and value.endswith(" %")) for value in values)

    def shown(self, usual: int) -> tuple[Sequence[Mapping[str, Any]], int]:
        """Return the rows that are shown, by default *usual* ones, and how many are left out."""
        rows = self.rows[: self.most or usual]
        return rows, len(self.rows) - len(rows)


@dataclass(frozen=True, slots=True)
class Marked:
    """A passage whose *runs* are ``"same"``, ``"removed"`` or ``"added"``, or a ``"note"`` of ours."""

    runs: Sequence[tuple[str, str]]


Part: TypeAlias = "Sheet | Marked | Html"
_MARKS = {"removed": "del", "added": "ins"}


def render(title: str, parts: Iterable[Part]) -> Html:
    """Return a result as HTML: its *title*, then its tables, passages and markup."""
    drawn = [_draw(part) for part in parts]
    heading = element("p", element("strong", user_text(title)))
    return element("div", element("style", _STYLE), heading, *drawn, class_="es-simhash")


def _draw(part: Part) -> Html:
    if isinstance(part, Sheet):
        return _table(part)
    if isinstance(part, Marked):
        return element("p", *(user_text(text, within=_MARKS.get(mark, "bdi")) for mark, text in part.runs))
    return part


def headings(names: Sequence[str]) -> list[str]:
    """Return the names of columns for people: ``source.`` is left out where that makes no two of them alike."""
    plain = [name.removeprefix(SOURCE) for name in names]
    return [short if plain.count(short) == 1 else name for short, name in zip(plain, names, strict=True)]


SOURCE = "source."


def flat_source(source: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the fields of a document as cells, an object in the field's place as one cell for each of its fields."""
    found: dict[str, Any] = {}

    def take(name: str, value: Any) -> None:
        if isinstance(value, Mapping) and value:
            for key, inner in value.items():
                take(f"{name}.{key}", inner)
        else:
            found[name] = value

    for key, value in (source or {}).items():
        take(f"{SOURCE}{key}", value)
    return found


def _table(sheet: Sheet) -> Html:
    if not sheet.rows:
        return element("p", f"{sheet.title}: none") if sheet.title else Html()
    names = sheet.columns()
    numeric = {name for name in names if sheet.is_number(name)}
    head = [
        _cell("th", user_text(heading), is_numeric=name in numeric, scope="col")
        for name, heading in zip(names, headings(names), strict=True)
    ]
    body = []
    rows, rest = sheet.shown(SHOWN_ROWS)
    for row in rows:
        cells = [
            _cell("td", _value(name, row.get(name), sheet.bars.get(name)), is_numeric=name in numeric) for name in names
        ]
        body.append(element("tr", *cells))
    table = element(
        "table",
        *([element("caption", user_text(sheet.title))] if sheet.title else []),
        element("thead", element("tr", *head)),
        element("tbody", *body),
    )
    return element("div", table, element("p", f"and {rest:,} more rows: to_dicts() has all") if rest > 0 else "")


def _cell(name: str, content: Html, *, is_numeric: bool, **attributes: str) -> Html:
    return element(name, content, class_="number" if is_numeric else None, **attributes)


def _is_number(value: Any) -> bool:
    # An empty cell belongs to a column of numbers too.
    return value is None or (isinstance(value, (int, float)) and not isinstance(value, bool))


def percent(share: float | None) -> str:
    """Return a share in percent, never rounded to 0 or to 100 where it is neither."""
    if share is None:
        return ""
    if 0 < share < 0.001:
        return "< 0.1 %"
    return "> 99.9 %" if 0.999 < share < 1 else f"{share:.1%}".replace("%", " %")


def cut(similarity: float) -> float:
    """Return a similarity, from 0 to 1, cut and not rounded to three digits: only texts with the same words have 1."""
    return int(similarity * 1000 + 1e-6) / 1000


def cell_text(name: str, value: Any) -> str:
    """Return the value of a cell of column *name* as people read it."""
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
        case float():
            return _fraction(name, value)
        case dict() | list() | tuple():
            return json.dumps(value, ensure_ascii=False, default=str)
    return str(value)


def _fraction(name: str, value: float) -> str:
    if name == "share":
        return percent(value)
    if 0 <= value <= 1:
        return f"{cut(value):.3f}" if value else "0"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:,.2f}"


def _value(name: str, value: Any, full: float | None) -> Html:
    if isinstance(value, Html):
        return value
    text = cell_text(name, value)
    if full and _is_number(value) and value is not None:
        return element("span", text, bar(value / full))
    shown = text if len(text) <= SHOWN_CHARACTERS else f"{text[: SHOWN_CHARACTERS - 1]}…"
    return user_text(shown, class_="long" if len(shown) > _LONG else None)


def template(name: str) -> Template:
    return _environment().get_template(name)


def asset(name: str) -> Html:
    """Return a style or a script of the package as it is."""
    return Html(files("es_simhash").joinpath(name).read_text(encoding="utf-8"))


@cache
def _environment() -> Environment:
    import jinja2  # noqa: PLC0415 -- only for pages

    environment = jinja2.Environment(
        # A line break becomes a comment: it is not in the page, and errors still name the right line.
        loader=jinja2.FunctionLoader(lambda name: "{#\n#}".join(map(str.strip, asset(name).splitlines()))),
        autoescape=True,
        finalize=_visible,
        undefined=jinja2.StrictUndefined,
    )
    environment.globals |= {"asset": asset, "bar": bar}
    environment.filters |= {"digest": digest, "number": "{:,}".format}
    return environment


def _visible(value: Any) -> Any:
    # Markup is already safe; jinja2 escapes what this returns otherwise.
    return value if hasattr(value, "__html__") else shown(str(value))


def digest(content: str) -> str:
    """Return what a policy says of a style or a script, so that no other one may be used."""
    return f"'sha256-{b64encode(sha256(content.encode()).digest()).decode()}'"
