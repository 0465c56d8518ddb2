"""
``es-simhash dedupe``: duplicates shown, tagged or deleted.
"""

from __future__ import annotations

import json
from contextlib import closing
from typing import IO

import click

from es_simhash.cli.connect import connect
from es_simhash.cli.grouping_options import grouping_options
from es_simhash.cli.manual import Manual
from es_simhash.cli.output import count, error, print_json, print_line
from es_simhash.cli.shared_options import Server, json_option, max_distance_option, prefix_option, server_options
from es_simhash.flows.grouping.dedupe import Action
from es_simhash.index.grouping.rule import Rule

SHOWN_FAILURES = 10

EXAMPLES = [
    "es-simhash dedupe news --action delete",
    "es-simhash dedupe news --action delete --yes --record deleted.jsonl",
    "es-simhash dedupe news --max-distance 8 --yes",
]


@click.command(cls=Manual, examples=EXAMPLES)
@click.argument("index")
@click.option(
    "--action",
    type=click.Choice(["tag", "delete"]),
    default="tag",
    show_default=True,
    help="What becomes of a duplicate.",
)
@click.option("-y", "--yes", is_flag=True, help="Do it; without, what would be done is only shown.")
@click.option(
    "--record",
    type=click.File("w", encoding="utf-8", errors="backslashreplace", lazy=False),
    metavar="FILE",
    help="Write a record of each duplicate, with its source where it was deleted, as JSON Lines.",
)
@max_distance_option
@grouping_options
@prefix_option
@server_options
@json_option
def command(
    index: str,
    action: Action,
    record: IO[str] | None,
    max_distance: int | None,
    rule: Rule | None,
    canonical: str | None,
    prefix: str,
    server: Server,
    *,
    yes: bool,
    as_json: bool,
) -> int:
    """
    Show which documents of INDEX are duplicates, and of what; with --yes tag or delete them.

    The canonical of each group stays. A document is deleted only if it, and its canonical, are still as they were
    when they were compared.
    """
    total = kept = 0
    with (
        connect(server, index, prefix=prefix) as connection,
        closing(
            connection.simhash.dedupe(
                index, action=action, dry_run=not yes, max_distance=max_distance, rule=rule, canonical=canonical
            )
        ) as records,
    ):
        for each in records:
            total += 1
            if record is not None:
                record.write(json.dumps(each.to_dict(), ensure_ascii=False) + "\n")
                record.flush()
            if as_json:
                print_json(each.to_dict())
            else:
                print_line(f"{each.action}  {each.id}  duplicate of {each.canonical}, distance {each.distance}")
            if each.action == "kept":
                kept += 1
                if kept <= SHOWN_FAILURES:
                    error(f"{each.index}/{each.id} was kept: {each.reason}")
    if not as_json:
        done = f"{count(total - kept, 'document')} " + ({"tag": "tagged", "delete": "deleted"}[action])
        hint = "" if yes or not total else "; give --yes to do it"
        print_line(done if yes else f"{count(total, 'duplicate')} found, nothing changed{hint}")
    return 1 if kept else 0
