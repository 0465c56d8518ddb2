"""
``es-simhash backfill``: fingerprints for the documents that are in an index already.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict
from typing import Any

import click

from es_simhash.cli.connect import connect
from es_simhash.cli.manual import Manual
from es_simhash.cli.output import count, error, print_json, print_line
from es_simhash.cli.progress import Tracker
from es_simhash.cli.shared_options import (
    Server,
    filter_option,
    json_option,
    prefix_option,
    scheme_options,
    server_options,
    text_field_option,
)
from es_simhash.flows.upkeep.backfill import BackfillProgress
from es_simhash.hashing import Scheme

SHOWN_FAILURES = 10

EXAMPLES = [
    "es-simhash backfill news --text-field body --dry-run",
    "es-simhash backfill news --text-field title --text-field body --workers 2 --checkpoint news.checkpoint",
    "es-simhash backfill news --prefix words_hash --scheme words --text-field body",
]


@click.command(cls=Manual, examples=EXAMPLES)
@click.argument("index")
@text_field_option
@click.option("--workers", type=click.IntRange(min=1), default=1, show_default=True, help="Processes for fingerprints.")
@click.option("--slices", type=click.IntRange(min=1), default=2, show_default=True, help="Slices read at once.")
@click.option("--rate", type=click.FloatRange(min=0, min_open=True), help="Go no faster than so many documents/s.")
@click.option(
    "--checkpoint",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Record what is done, 8 bytes a document; with the same file a later run goes on.",
)
@click.option("--dry-run", is_flag=True, help="Count what would change, forecast the time, and change nothing.")
@click.option("--group", is_flag=True, help="Group the documents afterwards, as reconcile does.")
@filter_option
@scheme_options
@prefix_option
@server_options
@json_option
def command(
    index: str,
    text_fields: tuple[str, ...],
    workers: int,
    slices: int,
    rate: float | None,
    checkpoint: str | None,
    filter_query: Any,
    scheme: Scheme | str | None,
    prefix: str,
    server: Server,
    *,
    dry_run: bool,
    group: bool,
    as_json: bool,
) -> int:
    """
    Give each document of INDEX the fingerprint of its present text.

    What is missing is added, what is stale is mended, what is right is left alone. Documents may be changed by others
    meanwhile: nobody's change is lost. Stopped, it goes on when it is run again, with --checkpoint without writing
    or comparing anything twice.
    """
    failures: list[str] = []
    last: BackfillProgress | None = None
    with connect(server, index, prefix=prefix, scheme=scheme) as connection:
        with closing(
            connection.simhash.backfill(
                index,
                text_field=text_fields or None,
                filter=filter_query,
                workers=workers,
                slices=slices,
                documents_per_second=rate,
                checkpoint=checkpoint,
                dry_run=dry_run,
            )
        ) as reports:
            tracker: Tracker | None = None
            try:
                for last in reports:
                    if tracker is None:
                        tracker = Tracker("comparing" if dry_run else "backfilling", total=last.total)
                        tracker.__enter__()
                    tracker.advance(last.seen - tracker.documents, completed=last.seen)
                    failures += last.failures[: SHOWN_FAILURES - len(failures)]
            finally:
                if tracker is not None:
                    tracker.__exit__(None, None, None)
        is_settled = True
        if group and not dry_run:
            grouped = connection.simhash.reconcile(index)
            failures += map(str, grouped.failures[: SHOWN_FAILURES - len(failures)])
            is_settled = grouped.is_settled
    if last is None:
        return 1
    if not is_settled:
        error(f"the documents are not all grouped: run es-simhash reconcile {index}")
    for failure in failures:
        error(failure)
    if last.failed > len(failures):
        error(f"and {last.failed - len(failures):,} more")
    if as_json:
        print_json(asdict(last) | {"failures": failures})
    else:
        print_line(f"{index}: {_sentence(last, dry_run=dry_run)}")
    return 1 if last.failed or not is_settled else 0


def _sentence(last: BackfillProgress, *, dry_run: bool) -> str:
    verb = "would change" if dry_run else "changed"
    parts = [f"{count(last.seen, 'document')} compared, {last.changed:,} {verb}, {last.stale:,} of them stale"]
    parts += [f"{last.empty:,} without features"] if last.empty else []
    parts += [f"{last.failed:,} failed"] if last.failed else []
    parts += [f"about {last.seconds_left:,.0f} s of work"] if last.seconds_left is not None else []
    return ", ".join(parts)
