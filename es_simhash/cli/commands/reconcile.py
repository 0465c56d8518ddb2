"""
``es-simhash reconcile``: groups made what the rule says.
"""

from __future__ import annotations

from dataclasses import asdict

import click

from es_simhash.cli.connect import connect
from es_simhash.cli.grouping_options import grouping_options
from es_simhash.cli.manual import Manual
from es_simhash.cli.output import count, error, print_json, print_line
from es_simhash.cli.shared_options import Server, json_option, max_distance_option, prefix_option, server_options
from es_simhash.index.grouping.rule import Rule

SHOWN_FAILURES = 10

EXAMPLES = [
    "es-simhash reconcile news",
    "es-simhash reconcile news --since 2026-11-20T06:00",
    "es-simhash reconcile news --canonical published --max-distance 8 --dry-run",
]


@click.command(cls=Manual, examples=EXAMPLES)
@click.argument("index")
@click.option("--since", metavar="MOMENT", help="Look only at what was grouped since then, and what that touches.")
@click.option("--dry-run", is_flag=True, help="Count what would change, and change nothing.")
@max_distance_option
@grouping_options
@prefix_option
@server_options
@json_option
def command(
    index: str,
    since: str | None,
    max_distance: int | None,
    rule: Rule | None,
    canonical: str | None,
    prefix: str,
    server: Server,
    *,
    dry_run: bool,
    as_json: bool,
) -> int:
    """
    Make the groups of INDEX what its rule says, whoever wrote the documents, in whatever order.

    Run it after several programs wrote at once, after deletions, and for an index that was never grouped. Only
    documents that say something else are rewritten; run again, it rewrites nothing.
    """
    with connect(server, index, prefix=prefix) as connection:
        report = connection.simhash.reconcile(
            index, since=since, max_distance=max_distance, rule=rule, canonical=canonical, dry_run=dry_run
        )
    if as_json:
        print_json(asdict(report))
    else:
        verb = "would be rewritten" if dry_run else "rewritten"
        print_line(
            f"{index}: {count(report.documents, 'document')}, {count(report.groups, 'group')}, "
            f"{count(report.duplicates, 'duplicate')}; {report.changed:,} {verb}"
        )
    for failure in report.failures[:SHOWN_FAILURES]:
        error(str(failure))
    if len(report.failures) > SHOWN_FAILURES:
        error(f"{count(len(report.failures) - SHOWN_FAILURES, 'more document')} could not be changed: run it again")
    if not report.failures and not report.is_settled and not dry_run:
        error("documents kept changing while they were grouped: run it again")
    return 0 if dry_run or report.is_settled else 1
