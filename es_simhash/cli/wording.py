"""
The words of Python in a message, and what they are on the command line.

The library says what to do in terms of its methods and arguments. Whatever the commands print for people comes through
here, so that each advice is one that can be typed into a shell. A new advice of the library that names a method gets a
line in the table; a test reads the source and fails where one is missing.
"""

from __future__ import annotations

import re

import click

# The longer of two that begin alike comes first: the first that fits is taken.
_WORDS = {
    "put_mapping, or es-simhash": "es-simhash",
    "put_mapping(passages=True), or es-simhash": "es-simhash",
    "read them with stream_passages, or narrow": "narrow",
    "reconcile(regroup=True), or es-simhash": "es-simhash",
    "reconcile(regroup=True, verify=True)": "es-simhash reconcile INDEX --regroup --verify 0.8",
    "reconcile(regroup=True)": "es-simhash reconcile INDEX --regroup",
    "dedupe(contained=...)": "es-simhash dedupe --action tag --contained 0.95",
    "verify=False, --no-verify": "--no-verify",
    "call put_mapping": "run es-simhash create INDEX --existing",
    "put_mapping": "es-simhash create INDEX --existing --text-field FIELD",
    "; create_index does so where a template has our fields": "",
    "ingest with on_duplicate, or run reconcile, first": "run es-simhash reconcile first",
    "on_duplicate=None (--on-duplicate none)": "--on-duplicate none",
    "create_index": "es-simhash create",
    "use find_near_dups": "use es-simhash find",
    "through ingest or with_fingerprints": "through es-simhash ingest",
    "in Python (with_fingerprints, or es-simhash ingest)": "with es-simhash ingest",
    "through with_fingerprints": "through es-simhash ingest",
    "as in datetime.now(UTC)": "as in 2026-01-31T00:00:00Z",
    'call fingerprint(), or use "weighted"': "give another --scheme",
    "call fingerprint_features()": "give another --scheme, because the command line takes texts",
    ', or pass on_incomplete="return"': "",
}
_PATTERN = re.compile("|".join(map(re.escape, _WORDS)))
_ARGUMENT = re.compile(r"[a-z]+(?:_[a-z]+)+(?= )")


def for_shell(message: str, ctx: click.Context | None = None) -> str:
    """
    Return *message* with options and commands in place of arguments and methods.

    Args:
        message:
            One line for people.
        ctx:
            The command that runs, or the program that runs one; an argument at the beginning of the message becomes
            the option of that command.

    Examples:
        >>> for_shell("no field simhash.bands: add it with put_mapping")
        'no field simhash.bands: add it with es-simhash create INDEX --existing --text-field FIELD'
    """
    text = _PATTERN.sub(lambda match: _WORDS[match[0]], message)
    begins = _ARGUMENT.match(text)
    option = option_of(begins[0], ctx) if begins and ctx is not None else None
    return text if option is None or begins is None else option + text[begins.end() :]


def option_of(argument: str, ctx: click.Context) -> str | None:
    """
    Return the option of the command that gives *argument* of the library its value, or ``None``.
    """
    command: click.Command | None = ctx.command
    # What ends a command is said by the program, when the context of the command is closed.
    if isinstance(command, click.Group) and ctx.invoked_subcommand is not None:
        command = command.get_command(ctx, ctx.invoked_subcommand)
    option = "--" + argument.replace("_", "-")
    known = {each for parameter in command.params for each in parameter.opts} if command is not None else set()
    return next((each for each in (option, option.removesuffix("s")) if each in known), None)
