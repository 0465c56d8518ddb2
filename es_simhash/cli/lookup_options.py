"""
Options of commands that make many lookups: whether the server is asked about each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import click

_T = TypeVar("_T")


def lookup_options(command: Callable[..., _T]) -> Callable[..., _T]:
    """
    Add ``--lookups`` and ``--memory``; the command gets ``lookups``, and ``memory`` in MiB.
    """
    lookups = click.option(
        "--lookups",
        type=click.Choice(["auto", "server", "memory"]),
        default="auto",
        show_default=True,
        help="server: ask the server about each text; memory: read all fingerprints of INDEX first, and ask only about "
        "texts that have one near them; auto: change to memory once that is faster.",
    )
    memory = click.option(
        "--memory",
        type=click.IntRange(1),
        metavar="MIB",
        default=1024,
        show_default=True,
        help="Most memory for these fingerprints, in MiB: 20 million take about 1000.",
    )
    return lookups(memory(command))
