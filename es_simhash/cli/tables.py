"""
Tables and records that fit the terminal: how wide each column is, and what was cut. No command is here.

Width counts terminal columns, so a Chinese character counts 2. Without a terminal a table is 80 columns wide, unless
COLUMNS says otherwise. A record that does not fit even with its values cut goes on in the next line.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from es_simhash.cli.output import console, note, print_text, visible

if TYPE_CHECKING:
    from rich.table import Table


DEFAULT_WIDTH = 80
NARROWEST = 20
_GAP = 2
SHORTEST_TEXT = 12  # enough to tell one id from another, and for most words of a header
# Characters without a width of their own may stand between those that have one.
_CHARACTERS_A_COLUMN = 4
_INDENT = 4


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
    """One part of a table, as wide as fits: the places of the columns beside each other, and their widths."""

    places: tuple[int, ...]
    widths: tuple[int, ...]


def lay_out(columns: Sequence[Column], *, width: int, keys: int = 1) -> list[Layout]:
    """
    Return the parts of a table, from top to bottom; each begins with the first *keys* columns.
    A table is divided only where its columns do not fit beside each other with the least width that each needs.
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
    wanted = [each.wanted for each in columns]
    least = [each.least for each in columns]
    # A key that is too wide even alone is cut below its least.
    lowest = [each.least if each.kind == "number" else 4 for each in columns]
    free = width - _GAP * (len(columns) - 1)
    return tuple(fit(fit(wanted, least, free), lowest, free))


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


def print_table(
    columns: Sequence[str], rows: Iterable[Sequence[object]], *, title: str | None = None, keys: int = 1
) -> None:
    """
    Print a table that fits the terminal, and say on stderr what was cut.
    *columns*: as in :meth:`Column.of`. *keys*: number of columns that are repeated where it is printed in parts.
    """
    from rich.text import Text  # noqa: PLC0415 -- most commands do not need rich

    screen = console()
    screen.width = width = table_width(is_terminal=screen.is_terminal, width=screen.width)
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


def share_text(share: float | None, digits: int = 3) -> str:
    return "-" if share is None else f"{share:.{digits}f}"


def note_cut(names: Iterable[str], width: int, *, whole: str = "--json shows all") -> None:
    """Say on stderr which values were cut, if any, and where the *whole* ones are found."""
    if named := ", ".join(names):
        note(f"cut to fit {width} columns: {named}; {whole}, and so does a wider terminal (or COLUMNS=200)")


def table_width(*, is_terminal: bool, width: int) -> int:
    """Return the width of a table: that of the terminal, else what COLUMNS says, else 80."""
    if not is_terminal:
        given = os.environ.get("COLUMNS", "")
        width = int(given) if given.isascii() and given.isdigit() else DEFAULT_WIDTH
    return max(NARROWEST, width)


def on_one_line(text: str, width: int) -> str:
    """Return a value as one line; of a very long one only what could be seen, and one character more."""
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


@dataclass(frozen=True, slots=True)
class Value:
    """A part of a line that may be cut; *name* is what the sentence about cut values calls it."""

    name: str
    text: str


@dataclass(slots=True)
class Lines:
    """Prints records, and says at the end, on stderr, which values were cut, and where the *whole* ones are."""

    whole: str = "--json shows all"
    # Found out for the first line, because a command that prints JSON does not need rich.
    _width: int = 0
    # A dict keeps the order in which values were cut.
    _cut: dict[str, None] = field(default_factory=dict)

    def print(self, *parts: str | Value) -> None:
        """Print one record, whose parts are never cut if they are no :class:`Value`."""
        if not self._width:
            screen = console()
            self._width = table_width(is_terminal=screen.is_terminal, width=screen.width)
        for line in self._fold("".join(self._fit(parts))):
            print_text(line)

    def _fold(self, line: str) -> list[str]:
        """Return *line* in parts that fit; all but the first are farther to the right than the first one."""
        from rich.cells import cell_len  # noqa: PLC0415 -- most commands do not need rich
        from rich.text import Text  # noqa: PLC0415 -- as above

        if cell_len(line) <= self._width:
            return [line]
        indent = " " * min(len(line) - len(line.lstrip()) + _INDENT, self._width // 2)
        parts = Text(line.strip()).wrap(console(), self._width - len(indent), overflow="fold")
        begin = indent[: len(indent) - _INDENT]
        return [(indent if place else begin) + part.plain.rstrip() for place, part in enumerate(parts)]

    def _fit(self, parts: tuple[str | Value, ...]) -> list[str]:
        from rich.cells import cell_len, set_cell_size  # noqa: PLC0415 -- most commands do not need rich

        texts = [on_one_line(each.text, self._width) if isinstance(each, Value) else visible(each) for each in parts]
        wanted = [cell_len(text) for text in texts]
        least = [
            min(has, SHORTEST_TEXT) if isinstance(part, Value) else has for part, has in zip(parts, wanted, strict=True)
        ]
        if sum(least) > self._width:
            # The record goes on in the next line in any case, and so a value may have a line of its own.
            least = [min(has, self._width - _INDENT) for has in wanted]
        widths = fit([min(has, self._width) for has in wanted], least, self._width)
        for place, part in enumerate(parts):
            if isinstance(part, Value) and widths[place] < wanted[place]:
                texts[place] = set_cell_size(texts[place], widths[place] - 1).rstrip() + "…"
                self._cut[part.name] = None
        return texts

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        note_cut(self._cut, self._width, whole=self.whole)
