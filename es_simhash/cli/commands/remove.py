"""
``es-simhash remove``: an index without our fields again.
"""

from __future__ import annotations

import sys
from dataclasses import asdict

import click

from es_simhash.cli.connect import connect
from es_simhash.cli.manual import Manual
from es_simhash.cli.output import count, error, print_json, print_line
from es_simhash.cli.shared_options import Server, json_option, prefix_option, server_options
from es_simhash.errors import InvalidInputError

SHOWN_FAILURES = 10


EXAMPLES = [
    "es-simhash remove news",
    "es-simhash remove news --prefix body_hash --yes",
]


@click.command(cls=Manual, examples=EXAMPLES)
@click.argument("index")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@prefix_option
@server_options
@json_option
def command(index: str, prefix: str, server: Server, *, yes: bool, as_json: bool) -> int:
    """
    Take the fields out of INDEX again: out of every document, and out of the mapping's _meta.

    Your own fields stay. The mapping keeps our fields, empty, since no server can take a field out of it.
    """
    if not yes:
        if not sys.stdin.isatty():
            raise InvalidInputError(f"nothing was removed from {index}: confirm with --yes, since nobody can be asked")
        click.confirm(f"Take {prefix!r} out of every document of {index}?", abort=True, err=True)
    with connect(server, index, prefix=prefix) as connection:
        removal = connection.simhash.remove(index)
    if as_json:
        print_json(asdict(removal))
    else:
        where = f", and out of the mapping of {', '.join(removal.indices)}" if removal.indices else ""
        print_line(f"took {prefix!r} out of {count(removal.documents, 'document')}{where}")
    for failure in removal.failures[:SHOWN_FAILURES]:
        error(failure)
    if len(removal.failures) > SHOWN_FAILURES:
        error(f"{count(len(removal.failures) - SHOWN_FAILURES, 'more document')} could not be changed: run it again")
    return 1 if removal.failures else 0
