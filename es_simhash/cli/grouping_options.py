"""
Options that the commands about groups share; no command is here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from es_simhash.index.grouping.rule import RULES

__all__ = ["grouping_options"]

_T = TypeVar("_T")


def grouping_options(command: Callable[..., _T]) -> Callable[..., _T]:
    """
    Add ``--rule`` and ``--canonical``, both ``None`` where they are not given.
    """
    decorate: Any = click.option(
        "--rule",
        type=click.Choice(RULES),
        help="star: each duplicate is within the distance of its canonical; connected: chains count. "
        "Default: what the index records, else star.",
    )
    decorate_too: Any = click.option(
        "--canonical",
        metavar="ORDER",
        help="Which document stands for its group: id (the smallest), longest, a date or number FIELD (the earliest), "
        "or -FIELD (the latest). Default: what the index records, else id.",
    )
    return decorate(decorate_too(command))  # type: ignore[no-any-return]
