"""
Options of the commands that plan a removal. No command is here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import click

from es_simhash.cli import options
from es_simhash.passages.contained import SMALLEST_CONTAINED
from es_simhash.removal.guards import DEFAULT_MAX_SHARE

_T = TypeVar("_T")


def removal(command: Callable[..., _T]) -> Callable[..., _T]:
    """
    Add the options that say what a plan of removal is to contain.

    The command gets them as ``removal``: the arguments that ``plan_removal`` takes, ``None`` or empty for an option
    that is not given.
    """

    @click.option(
        "--contained",
        type=click.FloatRange(SMALLEST_CONTAINED, 1),
        metavar="SHARE",
        help="Go by containment: a duplicate is a document of which this share, such as 0.95, stands in another one "
        "that is at least as long, and stays. INDEX needs passages.",
    )
    @options.filter_option("Remove only documents that match this query.")
    @click.option(
        "--min-similarity",
        type=click.FloatRange(0, 1),
        metavar="SHARE",
        help="Remove only documents whose text shares this part of its shingles with that of the canonical.",
    )
    @click.option(
        "--limit", type=click.IntRange(min=0), metavar="N", help="Remove at most N documents: the most similar ones."
    )
    @click.option(
        "--max-share",
        type=click.FloatRange(0, 1),
        metavar="SHARE",
        help=f"Refuse to remove a larger share of the documents. Default: {DEFAULT_MAX_SHARE}.",
    )
    @click.option(
        "--protect",
        metavar="FIELD",
        help="Refuse to remove a larger share of the documents with any one value of this keyword field.",
    )
    @click.option("--show", metavar="FIELD", multiple=True, help="Show this field in the plan. Repeatable.")
    @wraps(command)
    def with_removal(
        *,
        contained: float | None,
        filter_query: Any,
        min_similarity: float | None,
        limit: int | None,
        max_share: float | None,
        protect: str | None,
        show: tuple[str, ...],
        **rest: Any,
    ) -> _T:
        given = {
            "contained": contained,
            "filter": filter_query,
            "min_similarity": min_similarity,
            "limit": limit,
            "max_share": max_share,
            "protect": protect,
            "show": show,
        }
        return command(removal=given, **rest)

    return with_removal
