"""
``es-simhash remove``: the fields taken out of an index again.
"""

from __future__ import annotations

import sys
from dataclasses import asdict

import click

from es_simhash.cli import options
from es_simhash.cli.connect import connect
from es_simhash.cli.manual import Manual
from es_simhash.cli.options import Target
from es_simhash.cli.output import count, failures_as_json, print_failures, print_json, print_line
from es_simhash.cli.stopping import say_if_stopped
from es_simhash.errors import InvalidInputError

EXAMPLES = [
    "es-simhash remove news",
    "es-simhash remove news --groups-only",
    "es-simhash remove news --prefix body_hash --yes",
]


@click.command(cls=Manual, examples=EXAMPLES)
@click.argument("index")
@click.option("--groups-only", is_flag=True, help="Remove only the group fields and the recorded grouping.")
@options.yes
@options.target
@options.as_json
def command(index: str, target: Target, *, groups_only: bool, yes: bool, as_json: bool) -> int:
    """
    Remove the fields from each document of INDEX, and from the _meta of its mapping.

    Your own fields stay. The mapping keeps our fields, without values, because no server can remove a field from a
    mapping. With --groups-only the fingerprints stay: that undoes what reconcile and dedupe have tagged.
    """
    what = "the groups" if groups_only else repr(target.prefix)
    if not yes:
        _confirm(index, what)
    with connect(target, index) as connection, say_if_stopped():
        removal = connection.simhash.remove(index, groups_only=groups_only)
    if as_json:
        print_json(asdict(removal) | {"failures": failures_as_json(removal.failures)})
    else:
        where = f", and from the mapping of {', '.join(removal.indices)}" if removal.indices else ""
        print_line(f"removed {what} from {count(removal.documents, 'document')}{where}")
    print_failures(removal.failures)
    return 1 if removal.failures else 0


def _confirm(index: str, what: str) -> None:
    if not sys.stdin.isatty():
        raise InvalidInputError(f"nothing was removed from {index}: stdin is not a terminal, so pass --yes")
    click.confirm(f"Remove {what} from each document of {index}?", abort=True, err=True)
