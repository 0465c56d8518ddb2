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
    values: Sequence[str]
    longest: int
    wanted: int
    least: int

    @classmethod
    def of(cls, name: str, kind: str, values: Sequence[str]) -> Column:
        from rich.cells import cell_len  # noqa: PLC0415 -- most commands do not need rich

        # The words of a header may stand below each other.
        header = max(map(cell_len, name.split()), default=0)
        longest = max(map(cell_len, values), default=0)
        least = max(header, longest if kind == "number" else min(longest, SHORTEST_TEXT))
        return cls(name, kind, values, longest, max(cell_len(name), longest), least)


def fit(columns: Sequence[Column], width: int) -> list[int] | None:
    """Return the widths of *columns* beside each other, the widest cut first; ``None`` if they do not fit."""
    free = width - _GAP * (len(columns) - 1)
    for longest in range(width, 0, -1):
        widths = [max(column.least, min(column.wanted, longest)) for column in columns]
        if sum(widths) <= free:
            return widths
    return None


def draw_sheet(
    sheet: Sheet, *, width: int, known: Mapping[str, Any] | None = None, first: Sequence[str] = ()
) -> tuple[list[Table | Text], list[str]]:
    """
    Return the table of a sheet, and the names of the columns in which a value was cut.
    Where its columns do not fit beside each other, each row is a table of names and values.
    *known*: values that need no column. *first*: the fields of documents that come first.
    """
    from rich.text import Text  # noqa: PLC0415 -- most commands do not need rich

    rows, rest = sheet.shown(len(sheet.rows))
    names = _ordered(sheet.columns(known), first)
    columns = []
    for name, heading in zip(names, headings(names), strict=True):
        kind = "number" if sheet.is_number(name) else "sentence" if name in sheet.folded else "text"
        columns.append(Column.of(visible(heading), kind, [_cell(name, row.get(name), width) for row in rows]))
    drawn: list[Table | Text] = [Text(visible(sheet.title), style="italic")] if sheet.title else []
    cut: list[str] = []
    if widths := fit(columns, width):
        drawn.append(_draw(columns, widths, has_header=True))
        cut = [
            column.name
            for column, has in zip(columns, widths, strict=True)
            if column.kind == "text" and column.longest > has
        ]
    else:
        for place in range(len(rows)):
            filled = [(column.name, column.values[place]) for column in columns if column.values[place]]
            pair = (
                Column.of("", "text", [name for name, _ in filled]),
                Column.of("", "sentence", [value for _, value in filled]),
            )
            drawn += [Text("")] if place else []
            drawn.append(_draw(pair, fit(pair, width) or [width // 3, width // 3], has_header=False))
    drawn += [Text(f"and {rest:,} more")] if rest else []
    return drawn, cut


def _ordered(names: Sequence[str], first: Sequence[str]) -> list[str]:
    """Return *names*, in which the fields of documents take their places in the order of *first*."""
    order = {f"{SOURCE}{name}": place for place, name in enumerate(first)}
    fields = [name for name in names if name.startswith(SOURCE)]
    sources = iter(sorted(fields, key=lambda name: order.get(name, len(order))))
    return [next(sources) if name.startswith(SOURCE) else name for name in names]


def _cell(name: str, value: Any, width: int) -> str:
    """Return a value as one line; of a very long one only what could be seen, and one character more."""
    text = cell_text(name, value)
    text = " ".join(text.split()) if name.startswith(SOURCE) else text
    longest = _CHARACTERS_A_COLUMN * width * 10
    return visible(text if len(text) <= longest else text[:longest] + "…")


def _draw(columns: Sequence[Column], widths: Sequence[int], *, has_header: bool) -> Table:
    from rich import box  # noqa: PLC0415 -- most commands do not need rich
    from rich.table import Table  # noqa: PLC0415 -- as above
    from rich.text import Text  # noqa: PLC0415 -- as above

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0), pad_edge=False, show_header=has_header)
    for column, width in zip(columns, widths, strict=True):
        is_sentence = column.kind == "sentence"
        table.add_column(
            Text(column.name, overflow="fold", no_wrap=False),
            justify="right" if column.kind == "number" else "left",
            overflow="fold" if is_sentence else "ellipsis",
            no_wrap=not is_sentence,
            width=width,
        )
    for values in zip(*(column.values for column in columns), strict=True):
        table.add_row(*map(Text, values))
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
