"""
Sheets and marked passages for a terminal, by rich: how wide each column is, and what was cut. Nothing is printed here.

Width counts terminal columns, so a Chinese character counts 2. Rich is imported where it is used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from es_simhash.tables.hidden import visible
from es_simhash.tables.notebook import SOURCE, Marked, Sheet, cell_text, headings

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

_GAP = 2
SHORTEST_TEXT = 12  # enough to tell one id from another, and for most words of a header
# Characters without a width of their own may stand between those that have one.
_CHARACTERS_A_COLUMN = 4


@dataclass(frozen=True, slots=True)
class Column:
    """
    One column of a table: a ``"number"`` is never cut, a ``"text"`` is, a ``"sentence"`` goes on in the next line.
    *longest*: width of its longest value. *wanted*: the same, or that of its name if wider. *least*: what it needs.
    """

    name: str
    kind: str
    longest: int
    wanted: int
    least: int

    @classmethod
    def of(cls, name: str, kind: str, values: Sequence[str]) -> Column:
        from rich.cells import cell_len  # noqa: PLC0415 -- most commands do not need rich

        # The words of a header may stand below each other.
        header = max(map(cell_len, name.split()), default=0)
        longest = max(map(cell_len, values), default=0)
        least = max(header, longest) if kind == "number" else max(header, min(longest, SHORTEST_TEXT))
        return cls(name, kind, longest, max(cell_len(name), longest), least)


@dataclass(frozen=True, slots=True)
class Layout:
    """One part of a table, as wide as fits: the places of the columns beside each other, and their widths."""

    places: tuple[int, ...]
    widths: tuple[int, ...]


def lay_out(columns: Sequence[Column], *, width: int, keys: Sequence[int] = (0,)) -> list[Layout]:
    """
    Return the parts of a table, from top to bottom; each but the first begins with the columns at the places *keys*.
    A table is divided only where its columns do not fit beside each other with the least width that each needs.
    """
    parts: list[list[int]] = [[]]
    for place in range(len(columns)):
        together = [*parts[-1], place]
        if set(parts[-1]) - {*keys} and _width([columns[number].least for number in together]) > width:
            parts.append([*(key for key in keys if key != place), place])
        else:
            parts[-1] = together
    return [Layout(tuple(part), _widths([columns[number] for number in part], width)) for part in parts]


def _width(widths: Sequence[int]) -> int:
    return sum(widths) + _GAP * (len(widths) - 1)


def _widths(columns: Sequence[Column], width: int) -> tuple[int, ...]:
    wanted = [column.wanted for column in columns]
    least = [column.least for column in columns]
    # A key that is too wide even alone is cut below its least.
    lowest = [column.least if column.kind == "number" else 4 for column in columns]
    free = width - _GAP * (len(columns) - 1)
    # A whole text gives way to its title.
    long = [column.least if column.kind == "text" and column.longest > width else column.wanted for column in columns]
    return tuple(fit(fit(fit(wanted, long, free), least, free), lowest, free))


def fit(wanted: Sequence[int], least: Sequence[int], width: int) -> list[int]:
    """Return widths whose sum is at most *width* where possible: the widest give way first, down to their least."""
    widths = [*wanted]
    while (over := sum(widths) - width) > 0:
        spare = [has - needs for has, needs in zip(widths, least, strict=True)]
        if max(spare) <= 0:
            break
        able = [place for place, room in enumerate(spare) if room > 0]
        widest = max(able, key=lambda place: widths[place])
        others = [widths[place] for place in able if widths[place] < widths[widest]]
        step = widths[widest] - max(others) if others else 1
        widths[widest] -= max(1, min(over, spare[widest], step))
    return widths


def draw_sheet(
    sheet: Sheet,
    *,
    width: int,
    known: Mapping[str, Any] | None = None,
    first: Sequence[str] = (),
) -> tuple[list[Table | Text], list[str]]:
    """
    Return the tables of a sheet, one below the other, and the names of the columns in which a value was cut.
    *known*: values that need no column. *first*: the fields of documents that come first.
    """
    from rich.text import Text  # noqa: PLC0415 -- most commands do not need rich

    rows, rest = sheet.shown(len(sheet.rows))
    order = {f"{SOURCE}{name}": place for place, name in enumerate(first)}
    names = sheet.columns(known)
    sources = iter(
        sorted(
            (column_name for column_name in names if column_name.startswith(SOURCE)),
            key=lambda name: order.get(name, len(order)),
        )
    )
    names = [next(sources) if column_name.startswith(SOURCE) else column_name for column_name in names]
    columns, cells = [], []
    for name, heading in zip(names, headings(names), strict=True):
        kind = "number" if sheet.is_number(name) else "sentence" if name in sheet.folded else "text"
        values = [_cell(name, row.get(name), width) for row in rows]
        columns.append(Column.of(visible(heading), kind, values))
        cells.append(values)
    drawn: list[Table | Text] = [Text(visible(sheet.title), style="italic")] if sheet.title else []
    cut: set[int] = set()
    for part in lay_out(
        columns, width=width, keys=[names.index(key) for key in sheet.keys or names[:1] if key in names]
    ):
        drawn.append(_draw(part, columns, cells, len(rows)))
        shown = zip(part.places, part.widths, strict=True)
        cut |= {place for place, has in shown if columns[place].kind == "text" and columns[place].longest > has}
    drawn += [Text(f"and {rest:,} more")] if rest else []
    return drawn, [columns[place].name for place in sorted(cut)]


def _cell(name: str, value: Any, width: int) -> str:
    text = value if isinstance(value, str) else cell_text(name, value)
    return on_one_line(" ".join(text.split()) if name.startswith(SOURCE) else text, width)


def on_one_line(text: str, width: int) -> str:
    """Return a value as one line; of a very long one only what could be seen, and one character more."""
    longest = _CHARACTERS_A_COLUMN * width * 10
    return visible(text if len(text) <= longest else text[:longest] + "…")


def _draw(part: Layout, columns: Sequence[Column], cells: Sequence[Sequence[str]], rows: int) -> Table:
    from rich import box  # noqa: PLC0415 -- most commands do not need rich
    from rich.table import Table  # noqa: PLC0415 -- as above
    from rich.text import Text  # noqa: PLC0415 -- as above

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0), pad_edge=False)
    for place, width in zip(part.places, part.widths, strict=True):
        column = columns[place]
        is_sentence = column.kind == "sentence"
        table.add_column(
            Text(column.name, overflow="fold", no_wrap=False),
            justify="right" if column.kind == "number" else "left",
            overflow="fold" if is_sentence else "ellipsis",
            no_wrap=not is_sentence,
            width=width,
        )
    for row in range(rows):
        table.add_row(*(Text(cells[place][row]) for place in part.places))
    return table


# The marks have the meaning of the colours, for pipes, files and people who do not see these.
_MARKS = {"removed": ("[-", "-]", "red"), "added": ("{+", "+}", "green"), "note": ("", "", "")}


def draw_marked(passage: Marked) -> Text:
    """Return a passage as text, in which removed words are ``[-so-]`` and added ones ``{+so+}``."""
    from rich.text import Text  # noqa: PLC0415 -- most commands do not need rich

    text = Text()
    for mark, part in passage.runs:
        opening, closing, style = _MARKS.get(mark, ("", "", ""))
        text.append(f"{opening}{visible(part.replace(chr(10), '⏎').replace(chr(9), ' '))}{closing}", style=style)
    return text
