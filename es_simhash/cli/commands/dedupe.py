"""
``es-simhash dedupe``: duplicates shown, tagged or deleted.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from contextlib import closing
from typing import IO, Any

import click

from es_simhash.cli import options
from es_simhash.cli.connect import connect
from es_simhash.cli.grouping_options import grouping as grouping_option
from es_simhash.cli.manual import Manual
from es_simhash.cli.options import Target
from es_simhash.cli.output import SHOWN_FAILURES, count, error, print_json, print_line
from es_simhash.cli.stopping import say_if_stopped
from es_simhash.flows.grouping.dedupe import Action, Deduped

_DONE = {"tag": "tagged", "delete": "deleted"}

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
    help="What to do with a duplicate.",
)
@click.option("-y", "--yes", is_flag=True, help="Do it. Without --yes the command only shows what it would do.")
@options.report_file(
    "--record", help="Write a record of each duplicate as JSON Lines; that of a deleted one has its source."
)
@grouping_option
@options.target
@options.as_json
def command(
    index: str,
    action: Action,
    record: IO[str] | None,
    grouping: dict[str, Any],
    target: Target,
    *,
    yes: bool,
    as_json: bool,
) -> int:
    """
    Show which documents of INDEX are duplicates, and of what; with --yes tag or delete them.

    The canonical document of each group stays. A document is deleted only if it and its canonical have not changed
    since they were compared.
    """
    with connect(target, index) as connection:
        records = connection.simhash.dedupe(index, action=action, dry_run=not yes, **grouping)
        counts: Counter[str] = Counter()
        with closing(records), say_if_stopped(lambda: _done(counts, action, yes=yes)):
            _show(records, record, counts, as_json=as_json)
    if not as_json:
        hint = "" if yes or not counts else "; pass --yes to do it"
        print_line(_done(counts, action, yes=yes) + hint)
    return 1 if counts["kept"] else 0


def _done(counts: Counter[str], action: Action, *, yes: bool) -> str:
    total = counts.total()
    if yes:
        return f"{count(total - counts['kept'], 'document')} {_DONE[action]}"
    return f"{count(total, 'duplicate')} found, nothing changed"


def _show(records: Iterable[Deduped], file: IO[str] | None, counts: Counter[str], *, as_json: bool) -> None:
    """Print each record, write it to *file*, and count its action."""
    for each in records:
        counts[each.action] += 1
        if file is not None:
            file.write(json.dumps(each.to_dict(), ensure_ascii=False) + "\n")
            file.flush()
        if as_json:
            print_json(each.to_dict())
        else:
            print_line(f"{each.action}  {each.id}  duplicate of {each.canonical}, distance {each.distance}")
        if each.action == "kept" and counts["kept"] <= SHOWN_FAILURES:
            error(f"{each.index}/{each.id} was kept: {each.reason}")
