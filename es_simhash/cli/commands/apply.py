"""``es-simhash apply``: what a plan of removal names, archived and deleted."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import click

from es_simhash.cli import options
from es_simhash.cli.connect import Connection, connect
from es_simhash.cli.duplicates import show
from es_simhash.cli.options import Target
from es_simhash.cli.output import count, print_json, print_line
from es_simhash.cli.parameter_types import FILE
from es_simhash.cli.stopping import say_if_stopped
from es_simhash.removal.plan_options import PlanHeader
from es_simhash.removal.removal_file import RemovalFile


@options.manual(
    "es-simhash apply removal.db",
    "es-simhash apply removal.db --yes",
    "es-simhash apply removal.db --decisions removal.decisions.json --yes",
)
@click.argument("removal", type=FILE)
@click.option(
    "--decisions",
    type=FILE,
    multiple=True,
    help="Keep what this file of the review page names, now and in later runs. Repeatable.",
)
@click.option("--sha256", metavar="HEX", help="Insist on the plan that was approved: its sha256, as review prints it.")
@options.share("--max-share", help="Most that may be deleted, as a share of the documents. Default: that of the plan.")
@click.option(
    "--other-titles",
    is_flag=True,
    help="Allow that most documents that go have another title than what stays.",
)
@click.option(
    "--large-groups",
    is_flag=True,
    help="Allow that more than 1,000 documents, and 1 % of the index, go for one that stays.",
)
@options.yes
@options.quiet
@options.target
def command(removal: str, target: Target, *, yes: bool, quiet: bool, as_json: bool, **approval: Any) -> int:
    """
    Delete what the file REMOVAL plans, as es-simhash plan made it.

    A document is deleted only after it was archived in the file, and only if what decided about it and about its
    canonical, which stays, is as it was when it was planned: their texts, and the fields of --per, --within,
    --canonical, --protect and --filter. es-simhash restore undoes it. A command that was killed goes on when it is
    given again.
    """
    with RemovalFile(removal, is_checked=False) as file:
        header = file.header
    with connect(target, min(header.index_uuids)) as connection, say_if_stopped():
        if not yes:
            return _try_out(connection, removal, header, approval, as_json=as_json)
        connection.to_refresh.update(header.index_uuids)
        with closing(connection.simhash.apply_removal(removal, **approval)) as records:
            counts = show(records, as_json=as_json, is_listed=not quiet, decided=header.decided)
    if not as_json:
        earlier = f", {counts.earlier:,} by earlier runs" if counts.earlier else ""
        kept = f", kept in {removal}" if counts.done or counts.earlier else ""
        print_line(f"{count(counts.done, 'document')} deleted{earlier}{kept}{counts.decided_words}")
    elif quiet:
        print_json({"deleted": counts.done, "deleted_earlier": counts.earlier, "kept": counts.kept})
    return 1 if counts.kinds else 0


def _try_out(
    connection: Connection,
    path: str,
    header: PlanHeader,
    approval: dict[str, Any],
    *,
    as_json: bool,
) -> int:
    """Say what applying the removal *path* would delete now, and what does not fit any more."""
    with closing(connection.simhash.apply_removal(path, dry_run=True, **approval)) as records:
        counts = show(records, as_json=as_json, is_dry=True, is_listed=False, decided=header.decided)
    names = sorted(header.index_uuids)
    if not as_json:
        what = f"{count(counts.done, 'document')} of {', '.join(names)} would be deleted"
        kept, hint = (f", and kept in {path}", ", pass --yes to do it") if counts.done else ("", "")
        print_line(f"{what}{kept}{counts.decided_words}; nothing changed{hint}")
    else:
        plan = {"plan": path, "count": header.count, "indices": names}
        print_json({**plan, "would_delete": counts.done, "kept": counts.kept})
    return 1 if counts.kinds else 0
