"""``es-simhash restore``: removed documents put back."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import ExitStack, closing
from typing import IO

import click

from es_simhash import Restored
from es_simhash.cli import options
from es_simhash.cli.connect import connect
from es_simhash.cli.options import Target
from es_simhash.cli.output import SHOWN_FAILURES, count, dry_run_ending, error, failures_as_json, print_json, print_line
from es_simhash.cli.output_files import end_report, open_report
from es_simhash.cli.parameter_types import FILE, REPORT_FILE
from es_simhash.cli.stopping import say_if_stopped
from es_simhash.removal.removal_file import open_archived
from es_simhash.removal.sqlite_file import DamagedError

_WORDS = {
    "restored": "restored",
    "would restore": "would be restored",
    "exists": "there already",
    "differs": "there in another version, not changed",
    "refused": "refused",
}


@options.manual(
    "es-simhash restore removal.db --dry-run",
    "es-simhash restore removal.db",
    "es-simhash restore january.db february.db --index news-restored",
)
@click.argument("removals", metavar="REMOVAL...", nargs=-1, required=True, type=FILE)
@click.option("--index", metavar="NAME", help="Put all documents into this index, not where they were removed from.")
@options.dry_run
@click.option(
    "--report", type=REPORT_FILE, metavar="FILE", help="Write the outcome of each document here, as JSON Lines."
)
@options.target
def command(
    removals: tuple[str, ...],
    index: str | None,
    report: str | None,
    target: Target,
    *,
    dry_run: bool,
    as_json: bool,
) -> int:
    """
    Put the documents that REMOVAL... archived back, each as it was, into the index that it was removed from.

    A document is only created where it is missing, so the command may be run again after an interruption. One that is
    there in another version is reported and not changed. Afterwards the group fields are made right. The exit code is 1
    if a document is not there as the file has it, and if a file is damaged: then what is whole is restored.
    """
    with ExitStack() as stack, connect(target, index or _first_index(removals[0])) as connection, say_if_stopped():
        counts = _Counts(open_report(stack, report, removals, dry_run=dry_run))
        damage: DamagedError | None = None
        with closing(connection.simhash.restore(removals, index=index, dry_run=dry_run)) as records:
            try:
                for record in records:
                    counts.add(record)
                    connection.to_refresh.add(record.index)
            except DamagedError as found:
                damage = found
        end_report(counts.report)
    if as_json:
        print_json({"dry_run": dry_run, "documents": dict(counts.actions)})
    else:
        others = "; then their groups are put right, which may change the group fields of other documents, too"
        groups = others if counts.actions["would restore"] else ""
        print_line(counts.sentence() + groups + dry_run_ending(is_dry=dry_run))
    if damage is not None:
        raise damage
    return 1 if counts.wrong else 0


def _first_index(path: str) -> str:
    """Return an index of the removal, by which the product of the server is found."""
    with open_archived(path, writes=False) as removal:
        return min(removal.header.index_uuids, default="-")


class _Counts:
    """Counts outcomes, writes them to the report, and shows the first that went wrong."""

    def __init__(self, report: IO[str] | None) -> None:
        self.actions: Counter[str] = Counter()
        self.wrong = 0
        self.report = report

    def add(self, record: Restored) -> None:
        self.actions[record.action] += 1
        if self.report is not None:
            self.report.write(json.dumps(record.to_dict(), ensure_ascii=False) + "\n")
        if not record.is_done:
            self.wrong += 1
            if self.wrong <= SHOWN_FAILURES:
                [fields] = failures_as_json([record])
                error(
                    f"{record.index}/{record.id}: {record.action}: {record.reason}",
                    **fields | {"kind": record.kind or record.action},
                )

    def sentence(self) -> str:
        found = [f"{number:,} {_WORDS[action]}" for action, number in sorted(self.actions.items())]
        return f"{count(self.actions.total(), 'document')}: {', '.join(found) or 'nothing to do'}"
