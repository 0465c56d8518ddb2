"""
``es-simhash groups``: what belongs together.
"""

from __future__ import annotations

from contextlib import closing

import click

from es_simhash.cli.connect import connect
from es_simhash.cli.manual import Manual
from es_simhash.cli.output import count, print_json, print_line
from es_simhash.cli.shared_options import Server, json_option, prefix_option, server_options

EXAMPLES = [
    "es-simhash groups news",
    "es-simhash groups news --json > groups.jsonl",
]


@click.command(cls=Manual, examples=EXAMPLES)
@click.argument("index")
@prefix_option
@server_options
@json_option
def command(index: str, prefix: str, server: Server, *, as_json: bool) -> None:
    """
    Print each group of two or more near-duplicates in INDEX, as its documents say.

    The first of a group is its canonical; the number before each of the others is its distance from it. With --json
    one group stands on each line.
    """
    with connect(server, index, prefix=prefix) as connection, closing(connection.simhash.groups(index)) as groups:
        for group in groups:
            if as_json:
                print_json(group.to_dict())
                continue
            print_line(f"{group.id}  {count(len(group.members), 'document')}")
            for each in group.members:
                if each.id != group.id:
                    print_line(f"  {each.distance:>2}  {each.id}")
