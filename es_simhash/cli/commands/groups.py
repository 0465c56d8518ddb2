"""
``es-simhash groups``: which documents belong together.
"""

from __future__ import annotations

from contextlib import closing

import click

from es_simhash.cli import options
from es_simhash.cli.connect import connect
from es_simhash.cli.manual import Manual
from es_simhash.cli.options import Target
from es_simhash.cli.output import count, print_json, print_line

EXAMPLES = [
    "es-simhash groups news",
    "es-simhash groups news --json > groups.jsonl",
]


@click.command(cls=Manual, examples=EXAMPLES)
@click.argument("index")
@options.target
@options.as_json
def command(index: str, target: Target, *, as_json: bool) -> None:
    """
    Print each group of two or more near-duplicates in INDEX, as the documents record it.

    The first document of a group is its canonical. The number before each other document is its distance from the
    canonical. With --json each group is one line.
    """
    with connect(target, index) as connection, closing(connection.simhash.groups(index)) as groups:
        for group in groups:
            if as_json:
                print_json(group.to_dict())
                continue
            print_line(f"{group.id}  {count(len(group.members), 'document')}")
            for each in group.members:
                if each.id != group.id:
                    print_line(f"  {each.distance:>2}  {each.id}")
