"""
What the commands print: data on stdout, messages on stderr.

Texts of users may hold anything: control characters that move the cursor, or direction marks that turn a line round.
Whatever is printed for people goes through :func:`visible`, and JSON writes such characters as escapes. Rich is
imported where it is used, because most commands do not need it. No command is here.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import click

from es_simhash.cli.wording import for_shell

if TYPE_CHECKING:
    from rich.console import Console, RenderableType


SHOWN_FAILURES = 10

_AS_JSON = "es_simhash.as_json"

# C0 and C1 controls, line and paragraph separators, marks that change the direction of text, lone surrogates.
_HIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str) -> str:
    r"""
    Return *text* with each character that could control a terminal as an escape, such as ``\x1b`` or ``\u202e``.
    """
    return _HIDDEN.sub(lambda match: match[0].encode("unicode_escape").decode("ascii"), text)


def to_json(value: Any, *, indent: int | None = None) -> str:
    """
    Return *value* as JSON that is safe to show on a terminal: it means the same, with more escapes.
    """
    # A stdout that is not UTF-8 cannot print every character; JSON has escapes for those too.
    is_utf8 = (getattr(sys.stdout, "encoding", None) or "").lower().replace("-", "") == "utf8"
    text = json.dumps(value, ensure_ascii=not is_utf8, indent=indent)
    # Outside strings JSON has none of these characters except the line breaks of an indent.
    return _HIDDEN.sub(lambda match: match[0] if match[0] == "\n" else f"\\u{ord(match[0]):04x}", text)


def print_json(value: Any, *, indent: int | None = None) -> None:
    """
    Print *value* as JSON: on one line, so that several values make JSON Lines, or indented.
    """
    print_text(to_json(value, indent=indent))


def print_text(text: str) -> None:
    """
    Print *text* on stdout as it is; for text that comes from the program itself.
    """
    # click.echo would flush each line, which costs most of the time when there are a million lines.
    sys.stdout.write(f"{text}\n")


def print_line(text: str) -> None:
    """
    Print one line on stdout.
    """
    print_text(visible(text))


def note(message: str) -> None:
    """
    Print a message on stderr, on one line; with ``--json`` as ``{"note": {"message": ...}}``.
    """
    _say("note", message, "")


def warn(message: str, **data: Any) -> None:
    """
    Print a warning on stderr, on one line; with ``--json`` as ``{"warning": {"message": ...}}``, with *data* in it.
    """
    _say("warning", message, "warning: ", **data)


def error(message: str, *, kind: str, **data: Any) -> None:
    """
    Print an error on stderr, on one line; with ``--json`` as ``{"error": {"kind": ..., "message": ...}}``.

    Args:
        message:
            What is wrong, and what to do.
        kind:
            What kind of failure it is, for programs.
        data:
            What else a program may want to know, such as an id.
    """
    _say("error", message, "error: ", kind=kind, **data)


def messages_as_json(ctx: click.Context, *, wanted: bool) -> None:
    """
    Decide whether the messages of a command line are lines for people, or JSON objects, one a line.
    """
    ctx.meta[_AS_JSON] = wanted


def _say(name: str, message: str, prefix: str, **data: Any) -> None:
    context = click.get_current_context(silent=True)
    message = for_shell(message, context)
    if context is not None and context.meta.get(_AS_JSON):
        click.echo(to_json({name: {**data, "message": message}}), err=True)
    else:
        click.echo(visible(f"{prefix}{message}"), err=True)


class Failed(Protocol):
    """A failure of one part of the work: its fields, among them its kind and reason, and a sentence for people."""

    def to_dict(self) -> dict[str, Any]:
        """Return its fields as plain JSON values."""


def failures_as_json(failures: Iterable[Failed]) -> list[dict[str, Any]]:
    """
    Return the fields of *failures*, with reasons in words of the command line.
    """
    fields = [each.to_dict() for each in failures]
    return [each | {"reason": for_shell(each["reason"])} for each in fields]


def print_failures(failures: Sequence[Failed], *, total: int | None = None, advice: str = "run it again") -> None:
    """
    Print the first failures as errors, and how many more there are.

    Args:
        failures:
            The failures, or the first of them.
        total:
            Number of all failures; by default *failures* are all.
        advice:
            What to do about those that are not shown.
    """
    shown = failures[:SHOWN_FAILURES]
    for each, fields in zip(shown, failures_as_json(shown), strict=True):
        error(str(each), **fields)
    rest = (len(failures) if total is None else total) - len(shown)
    if rest > 0:
        error(f"and {rest:,} more: {advice}", kind="more", number=rest)


def count(number: int, noun: str) -> str:
    """
    Return a number with its noun: ``1 document``, ``12,345 documents``.
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def console(*, stderr: bool = False) -> Console:
    """
    Return a rich console on stdout or stderr that does not read markup in the texts of users.
    """
    from rich.console import Console  # noqa: PLC0415 -- see above

    return Console(stderr=stderr, highlight=False, markup=False, emoji=False)


def show(*renderables: RenderableType) -> None:
    """
    Print rich renderables on stdout.
    """
    screen = console()
    for renderable in renderables:
        screen.print(renderable)
