"""
What commands print of results: the sheets of a result, as wide as the terminal. No command is here.

Without a terminal a table is 80 columns wide, unless COLUMNS says otherwise.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from es_simhash.cli.output import console, for_shell, note, print_text, visible
from es_simhash.tables.notebook import Marked, Part, Sheet
from es_simhash.tables.tabular import Tabular, sheets_of
from es_simhash.tables.terminal import draw_marked, draw_sheet

DEFAULT_WIDTH = 80
NARROWEST = 20
_INDENT = 4


def print_result(result: Tabular, **how: Any) -> None:
    """Print the title of a *result* and its sheets, as :func:`print_sheets` does."""
    title, parts = sheets_of(result)
    print_sheets(*parts, title=title, **how)


def print_sheets(
    *parts: Part, title: str = "", known: Mapping[str, Any] | None = None, first: Sequence[str] = ()
) -> None:
    """
    Print tables and marked passages that fit the terminal, and say on stderr what was cut.
    *known*: values that need no column, such as the name of the index. *first*: fields of documents that come first.
    """
    from rich.text import Text  # noqa: PLC0415 -- most commands do not need rich

    screen = console()
    screen.width = width = table_width(is_terminal=screen.is_terminal, width=screen.width)
    if title:
        screen.print(Text(visible(title), style="italic"))
    # A dict keeps the order in which values were cut.
    cut: dict[str, None] = {}
    for number, part in enumerate(parts):
        if isinstance(part, Sheet) and part.title and part.rows and (title or number):
            screen.print()
        if isinstance(part, Marked):
            screen.print(draw_marked(part))
        elif isinstance(part, Sheet) and part.rows:
            drawn, names = draw_sheet(part, width=width, known=known, first=first, say=for_shell)
            cut |= dict.fromkeys(names)
            screen.print(*drawn, sep="\n")
    if named := ", ".join(cut):
        note(f"cut to fit {width} columns: {named}; --json shows all, and so does a wider terminal (or COLUMNS=200)")


def table_width(*, is_terminal: bool, width: int) -> int:
    """Return the width of a table: that of the terminal, else what COLUMNS says, else 80."""
    if not is_terminal:
        given = os.environ.get("COLUMNS", "")
        width = int(given) if given.isascii() and given.isdigit() else DEFAULT_WIDTH
    return max(NARROWEST, width)


def print_folded(lines: Iterable[str]) -> None:
    """Print *lines*; what does not fit goes on in the next one, farther to the right."""
    from rich.cells import cell_len  # noqa: PLC0415 -- most commands do not need rich
    from rich.text import Text  # noqa: PLC0415 -- as above

    screen = console()
    width = table_width(is_terminal=screen.is_terminal, width=screen.width)
    for line in map(visible, lines):
        if cell_len(line) <= width:
            print_text(line)
            continue
        indent = " " * min(len(line) - len(line.lstrip()) + _INDENT, width // 2)
        parts = Text(line.strip()).wrap(screen, width - len(indent), overflow="fold")
        for place, part in enumerate(parts):
            print_text((indent if place else indent[:-_INDENT]) + part.plain.rstrip())
