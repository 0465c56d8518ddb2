"""``es-simhash pairs``: pairs of near-duplicates, in an index or between two indices."""

from __future__ import annotations

import csv
import sys
from contextlib import closing
from typing import Any

import click

from es_simhash.cli import options
from es_simhash.cli.connect import connect
from es_simhash.cli.grouping_options import resources, verification
from es_simhash.cli.manual import Manual
from es_simhash.cli.options import Target
from es_simhash.cli.output import print_json, visible

COLUMNS = ("id", "index", "other_id", "other_index", "distance")

EXAMPLES = [
    "es-simhash pairs news --max-distance 8 > pairs.jsonl",
    "es-simhash pairs news --preset near > pairs.jsonl",
    "es-simhash pairs new-crawl --against archive --format csv > pairs.csv",
]


@click.command(cls=Manual, examples=EXAMPLES)
@click.argument("index")
@click.option("--against", metavar="INDEX", help="Pair each document with those of this other index.")
@click.option(
    "--format",
    "format_",
    type=click.Choice(["jsonl", "csv"]),
    help="Format of the output. Default: jsonl, which --json also means.",
)
@verification
@options.max_distance
@resources
@options.target
@options.as_json
def command(index: str, against: str | None, format_: str | None, target: Target, *, as_json: bool, **how: Any) -> None:
    """
    Print every pair of near-duplicates in INDEX once, or every pair between INDEX and another.

    The command first reads all fingerprints. N copies of one text make N * (N - 1) / 2 pairs. Texts are only compared
    with --preset or --verify; then each pair has its similarity.
    """
    if as_json and format_ == "csv":
        raise click.UsageError("--json means --format jsonl: leave one of the two out")
    with (
        connect(target, index) as connection,
        closing(connection.simhash.pairs(index, against, **how)) as pairs,
    ):
        columns = COLUMNS if how["preset"] is None and not how["verify"] else (*COLUMNS, "similarity")
        rows = csv.DictWriter(sys.stdout, columns, extrasaction="ignore", lineterminator="\n")
        if format_ == "csv":
            rows.writeheader()
        for pair in pairs:
            if format_ == "csv":
                rows.writerow(_cells(pair.to_dict()))
            else:
                print_json(pair.to_dict())


def _cells(pair: dict[str, Any]) -> dict[str, Any]:
    """Return the cells of a row: as they are for a program, and safe to look at on a terminal."""
    return {name: visible(str(value)) for name, value in pair.items()} if sys.stdout.isatty() else pair
