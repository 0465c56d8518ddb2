"""
How a command that failed says so: one line on stderr, or with ``--json`` one JSON object there. No command is here.
"""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Iterable, Sequence

import click

from es_simhash.cli.output import error, to_json

USAGE_ERROR = "usage"
"""The kind of a mistake in the command line itself."""

# What other programs call a command of ours.
_OTHER_WORDS = {
    "search": "find",
    "lookup": "find",
    "index": "ingest",
    "import": "ingest",
    "duplicates": "dedupe",
    "delete": "dedupe",
    "undo": "restore",
    "clusters": "groups",
    "health": "doctor",
    "help": "--help",
}
# A hyphen, and what editors and input methods make of one or two of them.
_DASHES = "-\u2010\u2011\u2012\u2013\u2014\u2015\u2212"


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
    # Full-width letters, as a Chinese input method types them, and capitals are letters of the same name.
    typed = unicodedata.normalize("NFKC", name).casefold()
    means = {each: each for each in known} | _OTHER_WORDS
    like = [typed] if typed in means else difflib.get_close_matches(typed, list(means), n=3)
    close = dict.fromkeys(means[each] for each in like)
    hint = f" Did you mean {' or '.join(close)}?" if close else " es-simhash --help lists the commands."
    return click.UsageError(f"No such command {name!r}.{hint}", ctx)


def dash_hint(arguments: Iterable[str]) -> str:
    """
    Return what to do about the first of *arguments* that begins with a dash that only looks like ``-``; else nothing.
    """
    for each in arguments:
        typed = unicodedata.normalize("NFKC", each)
        letters = typed.lstrip(_DASHES)
        if typed[:1] in _DASHES and letters[:1].isalpha() and not each.startswith("-"):
            option = letters.split()[0].partition("=")[0]
            return f"{each!r} does not begin with the sign -: type --{option}"
    return ""
