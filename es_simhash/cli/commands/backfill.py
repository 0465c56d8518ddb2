"""``es-simhash backfill``: fingerprints for the documents that are already in an index."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict
from typing import Any

import click

from es_simhash.cli import options
from es_simhash.cli.connect import connect
from es_simhash.cli.options import Target
from es_simhash.cli.output import (
    SHOWN_FAILURES,
    Tracker,
    count,
    dry_run_ending,
    error,
    failures_as_json,
    print_failures,
    print_json,
    print_line,
    saying_what_is_recorded,
)
from es_simhash.cli.stopping import say_if_stopped
from es_simhash.upkeep.backfill_flow import BackfillOptions
from es_simhash.upkeep.judge import BackfillProgress
from es_simhash.writes.operations import Failure


@options.manual(
    "es-simhash backfill news --text-field body --dry-run",
    "es-simhash backfill news --text-field title --text-field body --workers 2 --checkpoint news.checkpoint",
    "es-simhash backfill news --prefix words_hash --scheme words --text-field body",
)
@click.argument("index")
@options.text_field
@options.takes(BackfillOptions)
@options.dry_run
@click.option("--group", is_flag=True, help="Group the documents afterwards, as es-simhash reconcile does.")
@options.filter_query
@options.scheme
@options.target
def command(index: str, target: Target, *, dry_run: bool, group: bool, as_json: bool, **how: Any) -> int:
    """
    Give each document of INDEX the fingerprint of its present text.

    Adds missing fingerprints, replaces stale ones and leaves correct ones alone. Other programs may change documents
    at the same time: no change of theirs is lost. If it is stopped, run it again to continue; with --checkpoint it
    then reads and writes no document twice.
    """
    is_settled = True
    reconcile = shlex.join(["es-simhash", "reconcile", index])
    with connect(target, index) as connection:
        reports = connection.simhash.backfill(index, dry_run=dry_run, **how)
        with closing(reports), say_if_stopped():
            last, failures = _follow(reports, dry_run=dry_run)
        if group and not dry_run:
            with say_if_stopped(again=lambda: reconcile), saying_what_is_recorded():
                grouped = connection.simhash.reconcile(index)
            failures += grouped.failures[: SHOWN_FAILURES - len(failures)]
            is_settled = grouped.is_settled
    if not is_settled:
        error(f"not all documents are grouped: run {reconcile}", kind="unsettled", indices=[index])
    print_failures(failures, total=max(last.failed, len(failures)))
    if as_json:
        print_json(asdict(last) | {"dry_run": dry_run, "failures": failures_as_json(failures)})
    else:
        print_line(f"{index}: {_sentence(last, dry_run=dry_run)}{dry_run_ending(is_dry=dry_run)}")
    return 1 if last.failed or not is_settled else 0


def _follow(reports: Iterator[BackfillProgress], *, dry_run: bool) -> tuple[BackfillProgress, list[Failure]]:
    """Show progress until the end; return the last report and the first failures."""
    failures: list[Failure] = []
    last: BackfillProgress | None = None
    with Tracker("comparing" if dry_run else "backfilling", total=None) as tracker:
        for last in reports:
            tracker.advance(last.seen - tracker.documents, completed=last.seen, total=last.total)
            failures += last.failures[: SHOWN_FAILURES - len(failures)]
    if last is None:
        raise RuntimeError("a backfill ended without a report")
    return last, failures


def _sentence(last: BackfillProgress, *, dry_run: bool) -> str:
    verb = "would change" if dry_run else "changed"
    parts = [f"{count(last.seen, 'document')} compared, {last.changed:,} {verb}, {last.stale:,} of them stale"]
    parts += [f"{last.empty:,} without features"] if last.empty else []
    parts += [f"{last.failed:,} failed"] if last.failed else []
    parts += [f"about {last.seconds_left:,.0f} s of work for an idle server"] if last.seconds_left is not None else []
    return ", ".join(parts)
