"""
How a command that failed says so: one line on stderr, or with ``--json`` one JSON object there. No command is here.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

import click

from es_simhash.cli.output import error, to_json

__all__ = ["USAGE_ERROR", "asks_for_json", "no_such_command", "say_failure"]

USAGE_ERROR = "usage"
"""The kind of a mistake in the command line itself."""


def asks_for_json(arguments: Sequence[str]) -> bool:
    """
    Return whether *arguments* of a command line have ``--json``; known also where they cannot be parsed.
    """
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return "--json" in options


def say_failure(kind: str, message: str, *, as_json: bool) -> None:
    """
    Print what ended a command on stderr.

    Args:
        kind:
            What kind of failure it is, for programs.
        message:
            One line for people.
        as_json:
            Whether to print ``{"error": {"kind": ..., "message": ...}}``.
    """
    if as_json:
        click.echo(to_json({"error": {"kind": kind, "message": message}}), err=True)
    else:
        error(message, kind=kind)


def no_such_command(name: str, known: Iterable[str], ctx: click.Context) -> click.UsageError:
    """
    Return the error for a command that does not exist, with the commands whose names are like it.
    """
    close = difflib.get_close_matches(name, list(known), n=3)
    hint = f" Did you mean {' or '.join(close)}?" if close else ""
    return click.UsageError(f"No such command {name!r}.{hint}", ctx)
