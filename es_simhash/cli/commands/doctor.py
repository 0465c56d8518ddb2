"""
``es-simhash doctor``: what is wrong with the fingerprints of an index, and what to do.
"""

from __future__ import annotations

import click

from es_simhash.cli.connect import connect
from es_simhash.cli.manual import Manual
from es_simhash.cli.output import count, print_json, print_line, print_table, warn
from es_simhash.cli.shared_options import (
    Server,
    json_option,
    prefix_option,
    scheme_options,
    server_options,
    text_field_option,
)
from es_simhash.hashing import Scheme

EXAMPLES = [
    "es-simhash doctor news",
    "es-simhash doctor 'news-*' --sample 5000 --json | jq .findings",
]

NOT_HEALTHY = 1


@click.command(cls=Manual, examples=EXAMPLES)
@click.argument("index")
@click.option(
    "--sample",
    type=click.IntRange(1, 10_000),
    default=1_000,
    show_default=True,
    metavar="N",
    help="Documents drawn at random and examined.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Chooses the sample.")
@text_field_option
@scheme_options
@prefix_option
@server_options
@json_option
def command(
    index: str,
    sample: int,
    seed: int,
    text_fields: tuple[str, ...],
    scheme: Scheme | str | None,
    prefix: str,
    server: Server,
    *,
    as_json: bool,
) -> int:
    """
    Examine the fingerprints of INDEX, and say what to do.

    Mapping faults, documents without fingerprint, stale and broken fingerprints, short texts, hot blocks, numbers that
    JavaScript rounds, and the candidates to expect by max_distance. Reads only. Exits with 1 if something is wrong.
    """
    with connect(server, index, prefix=prefix, scheme=scheme) as connection:
        found = connection.simhash.doctor(index, sample=sample, text_field=text_fields, seed=seed)
    if as_json:
        print_json(found.to_dict(), indent=2)
    else:
        print_line(
            f"{found.index}: {count(found.documents, 'document')}, {found.fingerprinted:,} with a fingerprint, "
            f"{found.sampled:,} examined"
        )
        if found.findings:
            print_table(
                ["", "topic", "found", "what to do"],
                [(each.severity, each.topic, each.message, each.advice) for each in found.findings],
            )
        else:
            print_line("nothing to mend")
        if found.forecast:
            print_table(
                ["#max distance", "plan", "#candidates", "#milliseconds"],
                [(row["max_distance"], row["plan"], row["candidates"], row["milliseconds"]) for row in found.forecast],
                title="forecast of a lookup, beyond an empty search",
            )
        for reason in found.reasons:
            warn(reason)
    return 0 if found.is_healthy else NOT_HEALTHY
