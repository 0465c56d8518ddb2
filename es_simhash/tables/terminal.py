"""
Sheets and marked passages for a terminal, by rich: how wide each column is, and what was cut. Nothing is printed here.

Width counts terminal columns, so a Chinese character counts 2. Rich is imported where it is used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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


def draw_sheet(
    sheet: Sheet, *, width: int, known: Mapping[str, Any] | None = None
) -> tuple[list[Table | Text], list[str]]:
    """
    Return the table of a sheet, and the names of the columns in which a value was cut.
    A number is never cut, a sentence goes on in the next line, of other texts the widest are cut first. Where the
    columns do not fit beside each other, each row is a table of names and values.
    *known*: values that need no column.
    """
    from rich import box  # noqa: PLC0415 -- most commands do not need rich
    from rich.cells import cell_len  # noqa: PLC0415 -- as above
    from rich.table import Table  # noqa: PLC0415 -- as above
    from rich.text import Text  # noqa: PLC0415 -- as above

    shown, rest = sheet.shown(len(sheet.rows))
    names = sheet.columns(known)
    heads = list(map(visible, headings(names)))
    rows = [[_cell(name, row.get(name), width) for name in names] for row in shown]
    numbers = set(filter(sheet.is_number, names))
    longest = [max(map(cell_len, values)) for values in zip(*rows, strict=True)]
    # A number is never cut; the words of a header may stand below another.
    least = [
        max(length if name in numbers else min(length, SHORTEST_TEXT), *map(cell_len, head.split() or [""]))
        for name, head, length in zip(names, heads, longest, strict=True)
    ]
    widths = _fit(least, [max(pair) for pair in zip(map(cell_len, heads), longest, strict=True)], width)
    drawn: list[Table | Text] = [Text(visible(sheet.title), style="italic")] if sheet.title else []
    cut: list[str] = []
    if widths is None:
        for row in rows:
            pairs = Table.grid(padding=(0, _GAP, 0, 0), pad_edge=False)
            pairs.add_column(overflow="ellipsis", no_wrap=True)
            pairs.add_column(overflow="fold")
            for head, value in zip(heads, row, strict=True):
                if value:
                    pairs.add_row(Text(head), Text(value))
            drawn += [pairs, Text("")]
        drawn.pop()
    else:
        table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, _GAP - 1, 0, 0), pad_edge=False)
        for name, head, length, has in zip(names, heads, longest, widths, strict=True):
            is_sentence = name in sheet.folded
            table.add_column(
                Text(head, overflow="fold", no_wrap=False),
                justify="right" if name in numbers else "left",
                overflow="fold" if is_sentence else "ellipsis",
                no_wrap=not is_sentence,
                width=has,
            )
            cut += [head] if length > has and not is_sentence else []
        for row in rows:
            table.add_row(*map(Text, row))
        drawn.append(table)
    drawn += [Text(f"and {rest:,} more")] if rest else []
    return drawn, cut


def _fit(least: Sequence[int], wanted: Sequence[int], width: int) -> list[int] | None:
    """Return the widths of columns beside each other, the widest cut first; ``None`` if they do not fit."""
    for longest in range(width, 0, -1):
        widths = [max(few, min(all_of_it, longest)) for few, all_of_it in zip(least, wanted, strict=True)]
        if sum(widths) + _GAP * (len(widths) - 1) <= width:
            return widths
    return None


def _cell(name: str, value: Any, width: int) -> str:
    """Return a value as one line; of a very long one only what could be seen, and one character more."""
    text = cell_text(name, value)
    text = " ".join(text.split()) if name.startswith(SOURCE) else text
    longest = _CHARACTERS_A_COLUMN * width * 10
    return visible(text if len(text) <= longest else text[:longest] + "…")


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
