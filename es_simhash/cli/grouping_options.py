"""Options of the commands that look up many documents, group them, or plan a removal. No command is here."""

from __future__ import annotations

from functools import wraps
from typing import Any, Literal

import click

from es_simhash import PRESETS, Verification
from es_simhash.cli import options
from es_simhash.cli.options import Function
from es_simhash.cli.output import saying_what_is_recorded
from es_simhash.cli.parameter_types import FILE
from es_simhash.lookup.lookup_options import LookupRequest, Verify
from es_simhash.removal.plan_options import PlanOptions
from es_simhash.texts.measures import WORD_SHINGLES, Numbers

lookup_options = options.takes(LookupRequest)


def numbers_option(command: Function) -> Function:
    """Add ``--numbers`` to a command with ``--verify``, which gets it within that."""

    @options.takes(Verification)
    @wraps(command)
    def with_numbers(*, verify: float | None, numbers: Numbers | None, **rest: Any) -> Any:
        return command(verify=verify if numbers is None else Verification(verify, numbers=numbers), **rest)

    return with_numbers


_NUMBERS = [
    f"{preset.name}: {preset.max_distance} bits, {preset.similarity:g}"
    + ("" if preset.text_measure() == WORD_SHINGLES else f" ({preset.text_measure()})")
    for preset in PRESETS.values()
]
preset_option = click.option(
    "--preset",
    type=click.Choice(list(PRESETS)),
    help=f"Use the distance and similarity of this preset. {'; '.join(_NUMBERS)}.",
)


def verification(command: Function) -> Function:
    """Add the options that compare texts; the command gets *preset* and *verify*, as the client's methods take them."""

    @preset_option
    @options.share(
        "--verify",
        help="Near-duplicates are only documents whose texts are so similar: by default, that share this part of their "
        "7-letter shingles.",
    )
    @click.option("--no-verify", is_flag=True, help="Go by the distance alone; do not compare texts.")
    @numbers_option
    @wraps(command)
    def with_verification(*, verify: Verify | None, no_verify: bool, **rest: Any) -> Any:
        if no_verify and verify is not None:
            raise click.UsageError("pass --no-verify, or --verify and --numbers, not both")
        return command(verify=False if no_verify else verify, **rest)

    return with_verification


def grouping(command: Function) -> Function:
    """
    Add the options that say how documents are grouped; the command gets them as one dict *grouping*.
    Its items are arguments of the client's methods; ``None``: not given; ``False``: given as empty.
    """

    @verification
    @options.max_distance
    @click.option(
        "--canonical",
        metavar="ORDER",
        multiple=True,
        help="Which document stands for its group: id (the smallest), longest, a date or number FIELD (the earliest), "
        "-FIELD (the latest), or FIELD:VALUE>VALUE>* (preferred values of a keyword). Repeatable; the first decides, "
        "then the next. Default: what the index records, else simhash.at, the document that was grouped first, as "
        "ingest decides; ingest only records another one.",
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
    def with_grouping(*, canonical: tuple[str, ...], per: str | None, within: str | None, **values: Any) -> Any:
        given = {name: values.pop(name) for name in ("preset", "verify", "max_distance")}
        given |= {
            "canonical": list(canonical) or None,
            "per": False if per == "" else per,
            "within": _parse_within(within),
        }
        with saying_what_is_recorded():
            return command(grouping=given, **values)

    return with_grouping


def _parse_within(text: str | None) -> tuple[str, str] | Literal[False] | None:
    if not text:
        return None if text is None else False
    field, colon, span = text.rpartition(":")
    if not colon:
        raise click.BadParameter(f"{text!r} is not FIELD:SPAN, as in published:7d", param_hint="--within")
    return field, span


COMMON = "--filter --limit --max-share --protect --preset --max-distance --canonical --url --json"
"""Those of the commands that plan which their ``--help`` shows."""


def removal(command: Function) -> Function:
    after = click.option(
        "--after",
        type=FILE,
        multiple=True,
        help="Leave out what people kept in this earlier removal. Repeatable.",
    )
    limits = options.takes(PlanOptions, has_defaults=False)
    return options.filter_option("Remove only documents that match this query.")(after(limits(command)))
