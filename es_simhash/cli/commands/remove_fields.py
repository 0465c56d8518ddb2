"""``es-simhash remove-fields``: the fields taken out of an index again."""

from __future__ import annotations

from dataclasses import asdict

import click

from es_simhash.cli import options
from es_simhash.cli.connect import connect
from es_simhash.cli.manual import Manual
from es_simhash.cli.options import Target
from es_simhash.cli.output import count, failures_as_json, print_failures, print_json, print_line
from es_simhash.cli.stopping import say_if_stopped

EXAMPLES = [
    "es-simhash remove-fields news",
    "es-simhash remove-fields news --groups-only --yes",
    "es-simhash remove-fields news --prefix body_hash --yes",
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
    mapping. With --groups-only the fingerprints stay: that undoes what reconcile and tag have written.
    """
    with connect(target, index) as connection, say_if_stopped():
        removed = connection.simhash.remove_fields(index, groups_only=groups_only, dry_run=not yes)
    if as_json:
        print_json(asdict(removed) | {"failures": failures_as_json(removed.failures)})
    else:
        what = "the groups" if groups_only else repr(target.prefix)
        where = f", and from the mapping of {', '.join(removed.indices)}" if removed.indices else ""
        done, hint = ("removed", "") if yes else ("would remove", "; nothing changed, pass --yes to do it")
        print_line(f"{done} {what} from {count(removed.documents, 'document')}{where}{hint}")
    print_failures(removed.failures)
    return 1 if removed.failures else 0
