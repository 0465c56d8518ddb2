"""Tables for people: as HTML for a notebook, without scripts, for light and dark; pages from templates."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any, TypeAlias

from es_simhash.tables.hidden import shown

if TYPE_CHECKING:
    from jinja2 import Environment, Template


class Html(str):
    """Markup that is already safe."""

    __slots__ = ()

    def __html__(self) -> Html:
        """Return itself: the templates of pages then escape it no further."""
        return self


def escaped(text: str) -> Html:
    """Return *text* as markup that shows it."""
    return Html(escape(shown(text), quote=True))


def user_text(text: str) -> Html:
    """
    Return a text of a user in an element of its own, so that its direction changes nothing around it.

    >>> user_text("a < b")
    '<bdi>a &lt; b</bdi>'
    """
    return Html(f"<bdi>{escaped(text)}</bdi>")


def bar(share: float) -> Html:
    """Return a bar of which *share* is full. It only repeats a number that stands beside it."""
    rect = f'<rect width="{100 * max(0.0, min(1.0, share)):.2f}" height="10"></rect>'
    return Html(f'<svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">{rect}</svg>')


SHOWN_ROWS = 100
"""Most rows of a table that a notebook shows; the others are counted below it."""
SHOWN_VALUES = 10
"""Most values of a list that a cell shows; a longer one says how many there are."""
SHOWN_CHARACTERS = 300
"""Most characters of a value that a cell shows; a longer one ends with "…"."""


@dataclass(frozen=True, slots=True)
class Sheet:
    """
    One table of a result, for a notebook, a terminal or a file; a column may be missing in some rows.

    The names of columns are what people read; those of a document's own fields begin with ``source.``, and one whose
    name begins with ``share`` is in percent. *bars*: the columns that have a bar beside each number, and the number
    whose bar is full. *folded*: columns of sentences, which are never cut. *most*: rows that are
    shown, where that is not up to the place.
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


Part: TypeAlias = "Sheet | Marked"


def render(title: str, parts: Iterable[Part]) -> str:
    """Return a result as HTML: its *title*, then its tables and passages."""
    grids = [_grid(part) if isinstance(part, Sheet) else part for part in parts]
    return template("tables/notebook.html.jinja").render(title=title, parts=grids)


def _grid(sheet: Sheet) -> dict[str, Any]:
    """Return the names of the columns and the texts of the cells, each with its class and the share of its bar."""
    names = sheet.columns()
    classes = {name: "number" if sheet.is_number(name) else "" for name in names}
    rows, rest = sheet.shown(SHOWN_ROWS)
    cells = []
    for row in rows:
        texts = {name: cell_text(name, row.get(name)) for name in names}
        shares = {name: row[name] / full for name, full in sheet.bars.items() if full and row.get(name) is not None}
        cells.append([(_shortened(text), classes[name], shares.get(name)) for name, text in texts.items()])
    return {
        "title": sheet.title,
        "head": zip(headings(names), classes.values(), strict=True),
        "rows": cells,
        "rest": rest,
    }


def _shortened(text: str) -> str:
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[: SHOWN_CHARACTERS - 1]}…"


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
        case list() | tuple() if len(value) > SHOWN_VALUES:
            first = json.dumps(value[:SHOWN_VALUES], ensure_ascii=False, default=str)
            return f"{first.removesuffix(']')}, … {len(value):,} values]"
        case dict() | list() | tuple():
            return json.dumps(value, ensure_ascii=False, default=str)
    return str(value)


def _fraction(name: str, value: float) -> str:
    if name.startswith("share"):
        return percent(value)
    if 0 <= value <= 1:
        return f"{cut(value):.3f}" if value else "0"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:,.2f}"


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
