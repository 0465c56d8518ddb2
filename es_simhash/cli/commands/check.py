"""
``es-simhash check``: whether lookups in an index work, and what is wrong.
"""

from __future__ import annotations

from dataclasses import asdict

import click

from es_simhash.cli.connect import connect
from es_simhash.cli.manual import Manual
from es_simhash.cli.output import print_json, print_table, warn
from es_simhash.cli.shared_options import Server, json_option, prefix_option, scheme_options, server_options
from es_simhash.hashing import Scheme

NOT_READY = 1


EXAMPLES = [
    "es-simhash check news",
    "es-simhash check 'news-*' --json | jq -r '.[] | select(.ready | not) | .index'",
]


@click.command(cls=Manual, examples=EXAMPLES)
@click.argument("index")
@scheme_options
@prefix_option
@server_options
@json_option
def command(index: str, scheme: Scheme | str | None, prefix: str, server: Server, *, as_json: bool) -> int:
    """
    Say whether lookups in INDEX work, and what is wrong.

    INDEX may be a name, an alias, a pattern or several with commas. Reads only. Exits with 1 if an index is not
    ready; with --scheme also if it has another scheme.
    """
    with connect(server, index, prefix=prefix, scheme=scheme) as connection:
        checks = connection.simhash.check(index)
    if as_json:
        print_json([asdict(each) for each in checks])
    else:
        print_table(
            ["index", "ready", "scheme", "text fields", "#max distance", "#documents", "#fingerprinted"],
            [
                (
                    each.index,
                    "yes" if each.ready else "no",
                    each.scheme or "-",
                    ", ".join(each.text_fields) or "-",
                    "-" if each.max_distance is None else each.max_distance,
                    f"{each.documents:,}",
                    f"{each.fingerprinted:,}",
                )
                for each in checks
            ],
        )
        for each in checks:
            for problem in each.problems:
                warn(f"{each.index}: {problem}")
    return 0 if all(each.ready for each in checks) else NOT_READY
