"""
``es-simhash pairs``: near-duplicate pairs, in an index or between two.
"""

from __future__ import annotations

import csv
import sys
from contextlib import closing

import click

from es_simhash.cli.connect import connect
from es_simhash.cli.manual import Manual
from es_simhash.cli.output import print_json
from es_simhash.cli.shared_options import Server, max_distance_option, prefix_option, server_options

COLUMNS = ("id", "index", "other_id", "other_index", "distance")

EXAMPLES = [
    "es-simhash pairs news --max-distance 8 > pairs.jsonl",
    "es-simhash pairs new-crawl --against archive --format csv > pairs.csv",
]


@click.command(cls=Manual, examples=EXAMPLES)
@click.argument("index")
@click.option("--against", metavar="INDEX", help="Pair each document with those of this index instead.")
@click.option(
    "--format",
    "format_",
    type=click.Choice(["jsonl", "csv"]),
    default="jsonl",
    show_default=True,
    help="How the pairs are written.",
)
@max_distance_option
@prefix_option
@server_options
def command(
    index: str, against: str | None, format_: str, max_distance: int | None, prefix: str, server: Server
) -> None:
    """
    Print every pair of near-duplicates in INDEX, each once, or between INDEX and another.

    All fingerprints are read first. Copies of one text make as many pairs as there are pairs of them.
    """
    with (
        connect(server, index, prefix=prefix) as connection,
        closing(connection.simhash.pairs(index, against, max_distance=max_distance)) as pairs,
    ):
        rows = csv.DictWriter(sys.stdout, COLUMNS, lineterminator="\n")
        if format_ == "csv":
            rows.writeheader()
        for pair in pairs:
            if format_ == "csv":
                rows.writerow(pair.to_dict())
            else:
                print_json(pair.to_dict())
