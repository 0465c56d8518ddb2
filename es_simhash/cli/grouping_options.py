"""
Options of the commands that group documents. No command is here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Literal, TypeVar

import click

from es_simhash.cli import options
from es_simhash.cli.quantities import BYTES
from es_simhash.groups.rule import RULES
from es_simhash.lookup.verification import Verification, Verified, measure_of
from es_simhash.texts.measures import MEASURES, UNITS, Measure, Unit
from es_simhash.texts.presets import PRESETS, get_preset
from es_simhash.texts.similarity import DEFAULT_SIMILARITY

_T = TypeVar("_T")


def measures(command: Callable[..., _T]) -> Callable[..., _T]:
    """
    Add ``--measure`` and ``--unit`` to a command with ``--preset`` and ``--verify``.

    The command gets the argument ``verify`` of the client's methods.
    """

    @click.option(
        "--measure",
        type=click.Choice(MEASURES),
        help="What similar means. jaccard: shared shingles of both texts. containment: shared shingles of the smaller "
        "text. edit: what stays of the longer text. Default: that of the preset, else jaccard.",
    )
    @click.option(
        "--unit",
        type=click.Choice(UNITS),
        help="What is compared; characters stand scattered errors. Default: that of the preset, else words.",
    )
    @wraps(command)
    def with_measures(
        *, preset: str | None, verify: float | None, measure: Measure | None, unit: Unit | None, **rest: Any
    ) -> _T:
        return command(preset=preset, verify=_verified(preset, verify, measure, unit), **rest)

    return with_measures


def _verified(preset: str | None, verify: float | None, measure: Measure | None, unit: Unit | None) -> Verified | None:
    if measure is None and unit is None:
        return verify
    known = None if preset is None else get_preset(preset)
    usual = measure_of(known)
    similarity = DEFAULT_SIMILARITY if known is None else known.similarity
    return Verification(
        similarity if verify is None else verify, measure=measure or usual.measure, unit=unit or usual.unit
    )


def verification(command: Callable[..., _T]) -> Callable[..., _T]:
    """
    Add ``--preset``, ``--verify``, ``--no-verify``, ``--measure`` and ``--unit``.

    The command gets the arguments ``preset`` and ``verify`` of the client's methods.
    """

    @click.option("--preset", type=click.Choice(list(PRESETS)), help="Use the distance and similarity of this preset.")
    @click.option(
        "--verify",
        type=click.FloatRange(0, 1),
        metavar="SHARE",
        help="Near-duplicates are only documents whose texts are so similar: by default, that share this part of their "
        "shingles.",
    )
    @click.option("--no-verify", is_flag=True, help="Go by the distance alone; do not compare texts.")
    @measures
    @wraps(command)
    def with_verification(*, verify: Verified | None, no_verify: bool, **rest: Any) -> _T:
        if no_verify and verify is not None:
            raise click.UsageError("pass --no-verify, or --verify, --measure and --unit, not both")
        return command(verify=False if no_verify else verify, **rest)

    return with_verification


def resources(command: Callable[..., _T]) -> Callable[..., _T]:
    """
    Add the options that say what the search for pairs may use; the command gets ``threads`` and ``memory_bytes``.
    """
    threads = click.option(
        "--threads",
        type=click.IntRange(1, 1024),
        metavar="N",
        help="Search for pairs in N threads. Default: all cores.",
    )
    memory = click.option(
        "--memory",
        "memory_bytes",
        type=BYTES,
        metavar="SIZE",
        help="What the search sorts at once, such as 512MiB. Default: 2GiB. Ids and fingerprints come on top.",
    )
    return threads(memory(command))


def grouping(command: Callable[..., _T]) -> Callable[..., _T]:
    """
    Add the options that say how documents are grouped.

    The command gets them as ``grouping``: the arguments that the methods of the client take, ``None`` for an option
    that is not given.
    """

    @verification
    @options.max_distance
    @click.option(
        "--rule",
        type=click.Choice(RULES),
        help="star: each duplicate is a near-duplicate of its canonical; connected: chains of near-duplicates make "
        "one group. Default: what the index records, else star.",
    )
    @click.option(
        "--canonical",
        metavar="ORDER",
        multiple=True,
        help="Which document stands for its group: id (the smallest), longest, a date or number FIELD (the earliest), "
        "-FIELD (the latest), or FIELD:VALUE>VALUE>* (preferred values of a keyword). Repeatable; the first decides, "
        "then the next. Default: what the index records, else id.",
    )
    @click.option(
        "--per",
        metavar="FIELD",
        help="Near-duplicates have the same value of this keyword field. An empty FIELD means no such condition.",
    )
    @click.option(
        "--within",
        metavar="FIELD:SPAN",
        help="The dates of near-duplicates differ by at most SPAN, as in published:7d. An empty value means no such "
        "condition.",
    )
    @wraps(command)
    def with_grouping(
        *,
        preset: str | None,
        verify: Verified | None,
        max_distance: int | None,
        rule: str | None,
        canonical: tuple[str, ...],
        per: str | None,
        within: str | None,
        **rest: Any,
    ) -> _T:
        given = {
            "preset": preset,
            "verify": verify,
            "max_distance": max_distance,
            "rule": rule,
            "canonical": list(canonical) or None,
            "per": False if per == "" else per,
            "within": _parse_within(within),
        }
        return command(grouping=given, **rest)

    return with_grouping


def _parse_within(text: str | None) -> tuple[str, str] | Literal[False] | None:
    if not text:
        return None if text is None else False
    field, colon, span = text.rpartition(":")
    if not colon:
        raise click.BadParameter(f"{text!r} is not FIELD:SPAN, as in published:7d", param_hint="--within")
    return field, span
