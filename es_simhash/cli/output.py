"""
What the commands print: data on stdout, messages on stderr.

Rich is imported where it is used: printing a fingerprint needs none of it. Nothing is decided here.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

__all__ = ["console", "count", "error", "note", "print_json", "print_line", "print_table", "show", "warn"]


# Where nobody looks at a screen, a table may be wide: folded cells are hard to search.
_PIPE_WIDTH = 400


def print_json(value: Any, *, indent: int | None = None) -> None:
    """
    Print *value* as JSON: on one line, so that several are JSON Lines, or indented.
    """
    # A stdout in another encoding than UTF-8 cannot hold every character; JSON has escapes for that.
    is_utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    print_line(json.dumps(value, ensure_ascii=not is_utf8, indent=indent))


def print_line(text: str) -> None:
    """
    Print one line on stdout.
    """
    # Not click.echo: that flushes each line, which is most of the time where there are a million of them.
    sys.stdout.write(f"{text}\n")


def note(message: str) -> None:
    """
    Print a message on stderr.
    """
    click.echo(message, err=True)


def warn(message: str) -> None:
    """
    Print a warning on stderr.
    """
    note(f"warning: {message}")


def error(message: str) -> None:
    """
    Print an error on stderr.
    """
    note(f"error: {message}")


def count(number: int, noun: str) -> str:
    """
    Return a number with its noun: ``1 document``, ``12,345 documents``.
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def console(*, stderr: bool = False) -> Console:
    """
    Return a rich console on stdout or stderr that leaves the texts of users as they are.
    """
    from rich.console import Console  # noqa: PLC0415 -- see above

    return Console(stderr=stderr, highlight=False, markup=False, emoji=False)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, title: str | None = None) -> None:
    """
    Print a table; columns whose name begins with ``#`` are numbers. Long values are folded, never cut.
    """
    from rich import box  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", pad_edge=False)
    for name in columns:
        table.add_column(name.removeprefix("#"), justify="right" if name.startswith("#") else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(str(value).encode("utf-8", "replace").decode()) for value in row))
    screen = console()
    if not screen.is_terminal:
        screen.width = _PIPE_WIDTH
    screen.print(table)


def show(*renderables: RenderableType) -> None:
    """
    Print rich renderables on stdout.
    """
    screen = console()
    for renderable in renderables:
        screen.print(renderable)
