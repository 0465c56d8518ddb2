"""
Tables that fit the terminal: which columns stand beside each other, how wide each is, and what was cut.

Width counts columns of the terminal, so a Chinese character counts 2. Without a terminal a table is 80 columns wide,
unless the variable COLUMNS says otherwise; ``lines.py`` has the same rule. No command is here, and nothing is known of
what a table says.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from es_simhash.cli.output import console, note, visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


DEFAULT_WIDTH = 80
NARROWEST = 20
_GAP = 2
SHORTEST_TEXT = 12
"""Width of a text that was cut: enough to tell one id from another, and for most words of a header."""

# Characters without a width of their own may stand between those that have one.
_CHARACTERS_A_COLUMN = 4


@dataclass(frozen=True, slots=True)
class Column:
    """
    One column of a table.

    Attributes:
        name:
            What stands above it.
        kind:
            ``"number"`` is never cut, ``"text"`` is cut where it is too long, ``"sentence"`` goes on in the next line.
        longest:
            Width of its longest value.
        wanted:
            Width of its longest value and of its name.
        least:
            Width that it needs.
    """

    name: str
    kind: str
    longest: int
    wanted: int
    least: int

    @classmethod
    def of(cls, name: str, values: Sequence[str]) -> Column:
        """Return the column for *values*; a name that begins with ``#`` is of numbers, one with ``~`` of sentences."""
        from rich.cells import cell_len  # noqa: PLC0415 -- most commands do not need rich

        kind = {"#": "number", "~": "sentence"}.get(name[:1], "text")
        shown = visible(name if kind == "text" else name[1:])
        # The words of a header may stand below each other.
        header = max(map(cell_len, shown.split()), default=0)
        longest = max(map(cell_len, values), default=0)
        least = max(header, longest) if kind == "number" else max(header, min(longest, SHORTEST_TEXT))
        return cls(shown, kind, longest, max(cell_len(shown), longest), least)


@dataclass(frozen=True, slots=True)
class Layout:
    """
    One part of a table, as wide as fits.

    Attributes:
        places:
            Places of the columns that stand beside each other.
        widths:
            Width of each of them.
    """

    places: tuple[int, ...]
    widths: tuple[int, ...]


def lay_out(columns: Sequence[Column], *, width: int, keys: int = 1) -> list[Layout]:
    """
    Return the parts of a table, from top to bottom; each begins with the first *keys* columns.

    A table is parted only where its columns do not fit beside each other when each has the least that it needs.
    """
    parts: list[list[int]] = [list(range(min(keys, len(columns))))]
    for place in range(keys, len(columns)):
        together = [*parts[-1], place]
        if len(parts[-1]) > keys and _width([columns[each].least for each in together]) > width:
            parts.append([*range(keys), place])
        else:
            parts[-1] = together
    return [Layout(tuple(part), _widths([columns[each] for each in part], width)) for part in parts]


def _width(widths: Sequence[int]) -> int:
    return sum(widths) + _GAP * (len(widths) - 1)


def _widths(columns: Sequence[Column], width: int) -> tuple[int, ...]:
    """Return the width of each column."""
    wanted = [each.wanted for each in columns]
    least = [each.least for each in columns]
    # A key that is too wide even alone is cut below its least.
    lowest = [each.least if each.kind == "number" else 4 for each in columns]
    free = width - _GAP * (len(columns) - 1)
    return tuple(fit(fit(wanted, least, free), lowest, free))


def fit(wanted: Sequence[int], least: Sequence[int], width: int) -> list[int]:
    """
    Return widths whose sum is at most *width* where that is possible: the widest give way first, down to their least.
    """
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


def print_table(
    columns: Sequence[str], rows: Iterable[Sequence[object]], *, title: str | None = None, keys: int = 1
) -> None:
    """
    Print a table that fits the terminal, and say on stderr what was cut.

    Args:
        columns:
            Names; ``#`` before a name is for numbers, ``~`` for sentences.
        rows:
            The values.
        title:
            What stands above the table.
        keys:
            Number of columns that are repeated where the table is printed in parts.
    """
    from rich.text import Text  # noqa: PLC0415 -- most commands do not need rich

    screen = console()
    screen.width = width = screen_width(screen)
    cells = [[on_one_line(str(value), width) for value in row] for row in rows]
    made = [Column.of(name, [row[place] for row in cells]) for place, name in enumerate(columns)]
    if title:
        screen.print(Text(visible(title), style="italic"))
    cut: set[str] = set()
    for part in lay_out(made, width=width, keys=keys):
        screen.print(_draw(part, made, cells))
        shown = zip(part.places, part.widths, strict=True)
        cut |= {made[place].name for place, has in shown if made[place].kind == "text" and made[place].longest > has}
    note_cut([each.name for each in made if each.name in cut], width)


def note_cut(names: Iterable[str], width: int, *, whole: str = "--json shows all") -> None:
    """
    Say on stderr which values were cut, if any, and where the *whole* ones are found.
    """
    if named := ", ".join(names):
        note(f"cut to fit {width} columns: {named}; {whole}, and so does a wider terminal (or COLUMNS=200)")


def screen_width(screen: Console) -> int:
    """
    Return the width of what is printed on *screen*.
    """
    return table_width(is_terminal=screen.is_terminal, width=screen.width)


def table_width(*, is_terminal: bool, width: int) -> int:
    """
    Return the width of a table: that of the terminal, else what COLUMNS says, else 80.
    """
    if not is_terminal:
        given = os.environ.get("COLUMNS", "")
        width = int(given) if given.isascii() and given.isdigit() else DEFAULT_WIDTH
    return max(NARROWEST, width)


def on_one_line(text: str, width: int) -> str:
    """
    Return a value as one line; of a very long one only what could be seen, and one character more.
    """
    longest = _CHARACTERS_A_COLUMN * width * 10
    return visible(text if len(text) <= longest else text[:longest] + "…")


def _draw(part: Layout, columns: Sequence[Column], cells: Sequence[Sequence[str]]) -> Table:
    from rich import box  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415 -- most commands do not need rich

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0), pad_edge=False)
    for place, width in zip(part.places, part.widths, strict=True):
        column = columns[place]
        justify: Any = "right" if column.kind == "number" else "left"
        overflow: Any = "fold" if column.kind == "sentence" else "ellipsis"
        table.add_column(
            Text(column.name, overflow="fold", no_wrap=False),
            justify=justify,
            overflow=overflow,
            no_wrap=column.kind != "sentence",
            width=width,
        )
    for row in cells:
        table.add_row(*(Text(row[place]) for place in part.places))
    return table
