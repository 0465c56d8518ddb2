"""
Options of the commands that group documents. No command is here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import click

from es_simhash.cli import options
from es_simhash.index.grouping.rule import RULES

__all__ = ["grouping"]

_T = TypeVar("_T")


def grouping(command: Callable[..., _T]) -> Callable[..., _T]:
    """
    Add ``--max-distance``, ``--rule`` and ``--canonical``.

    The command gets them as ``grouping``: the arguments that the methods of the client take, ``None`` for an option
    that is not given.
    """

    @options.max_distance
    @click.option(
        "--rule",
        type=click.Choice(RULES),
        help="star: each duplicate is within the distance of its canonical; connected: chains of near-duplicates "
        "make one group. Default: what the index records, else star.",
    )
    @click.option(
        "--canonical",
        metavar="ORDER",
        help="Which document stands for its group: id (the smallest), longest, a date or number FIELD (the earliest), "
        "or -FIELD (the latest). Default: what the index records, else id.",
    )
    @wraps(command)
    def with_grouping(*, max_distance: int | None, rule: str | None, canonical: str | None, **rest: Any) -> _T:
        return command(grouping={"max_distance": max_distance, "rule": rule, "canonical": canonical}, **rest)

    return with_grouping
