"""``es-simhash groups``: which documents belong together; and ``reconcile``: record that."""

from __future__ import annotations

import csv
import shlex
import sys
from collections.abc import Mapping
from contextlib import closing
from dataclasses import asdict
from typing import Any

import click

from es_simhash.cli import options
from es_simhash.cli.connect import connect
from es_simhash.cli.duplicates import warn_of_lacking
from es_simhash.cli.grouping_options import grouping as grouping_option, verification
from es_simhash.cli.options import Target
from es_simhash.cli.output import (
    count,
    dry_run_ending,
    error,
    failures_as_json,
    note,
    print_failures,
    print_json,
    print_line,
    print_sheets,
    visible,
    warn,
)
from es_simhash.cli.stopping import say_if_stopped
from es_simhash.lookup.lookup_options import LookupOptions
from es_simhash.tables.notebook import Sheet
from es_simhash.tables.tabular import for_spreadsheets, sheets_of


@options.manual(
    "es-simhash groups news --sort size --min-size 10 --source title",
    'es-simhash groups news --filter \'{"term": {"source": "xinhua"}}\'',
    "es-simhash groups news --json > groups.jsonl",
    "es-simhash groups news --pairs --max-distance 8 > pairs.jsonl",
    "es-simhash groups new-crawl --pairs --against archive --format csv > pairs.csv",
    common="--sort --min-size --filter --source --pairs --preset --verify --max-distance --url --json",
)
@click.argument("index")
@click.option(
    "--sort",
    type=click.Choice(["id", "size"]),
    default="id",
    help="id: by name; size: the groups with the most duplicates first.",
)
@options.number("--min-size", least=2, default=2, show_default=False, help="Only groups of N documents or more.")
@options.filter_option('Only groups with a document that matches this query, as in \'{"term": {"lang": "en"}}\'.')
@options.source
@click.option("--pairs", is_flag=True, help="Print every pair of near-duplicates in INDEX once, recorded or not.")
@click.option("--against", metavar="INDEX", help="With --pairs: pair each document with those of this other index.")
@click.option(
    "--format",
    "format_",
    type=click.Choice(["jsonl", "csv"]),
    help="With --pairs: format of the output. Default: jsonl, which --json also means.",
)
@verification
@options.max_distance
@options.target
def command(
    index: str,
    target: Target,
    *,
    min_size: int,
    pairs: bool,
    against: str | None,
    format_: str | None,
    as_json: bool,
    **how: Any,
) -> None:
    """
    Print each group of two or more near-duplicates in INDEX, as the documents record it.

    The first document of a group is its canonical, with the number of documents of the group; the others have their
    distance from it, in bits. Of each group 100 are printed, and how many more there are. With --json
    each group is one line, with all of them.

    With --pairs the rule that INDEX records decides, or --preset and --verify; with --max-distance alone, or
    --no-verify, only bits do. All fingerprints are read first. N copies of one text make N * (N - 1) / 2 pairs.
    """
    of_groups, of_pairs = ({name: how.pop(name) for name in names} for names in (_OF_GROUPS, _OF_PAIRS))
    if pairs:
        options.refuse_given("is for groups: leave it out, or --pairs", "min_size", *_OF_GROUPS)
        _print_pairs(index, against, format_, target, as_json=as_json, **how, **of_pairs)
        return
    options.refuse_given("needs --pairs", "against", "format_", *_OF_PAIRS, "no_verify", "numbers")
    how |= of_groups
    found = merged = 0
    rows: list[Mapping[str, Any]] = []
    first = how["source"] if isinstance(how["source"], list) else []
    with (
        connect(target, index) as connection,
        closing(connection.simhash.groups(index, min_size=min_size, **how)) as groups,
    ):
        for group in groups:
            found += 1
            merged += group.canonicals > 1
            if as_json:
                print_json(group.to_dict())
                continue
            _, [sheet] = sheets_of(group)
            rows += sheet.rows if isinstance(sheet, Sheet) else ()
            if len(rows) >= _TOGETHER:
                print_sheets(Sheet("", rows), known={"index": index}, first=first)
                rows.clear()
        print_sheets(Sheet("", rows), known={"index": index}, first=first)
        warn_of_lacking(connection, index)
    if merged:
        said = f"{count(merged, 'name')} of several groups, because indices that were not grouped together repeat an id"
        advice = "run es-simhash reconcile over all of them, or look at each by itself"
        warn(f"{said}: {advice}", kind="shared_ids", number=merged)
    if not found:
        note(f"no group of {min_size} or more documents")


_OF_GROUPS = ("sort", "filter", "source")
_OF_PAIRS = ("preset", "verify", "max_distance")

# Rows that are one table, so that the first groups are shown before the last ones are read.
_TOGETHER = 500

COLUMNS = ("id", "index", "other_id", "other_index", "distance")


def _print_pairs(
    index: str, against: str | None, format_: str | None, target: Target, *, as_json: bool, **how: Any
) -> None:
    if as_json and format_ == "csv":
        raise click.UsageError("--json means --format jsonl: leave one of the two out")
    is_bits_alone = LookupOptions(**{name: how[name] for name in ("preset", "verify", "max_distance")}).is_bits_alone
    columns = COLUMNS if is_bits_alone else (*COLUMNS, "similarity")
    with connect(target, index) as connection, closing(connection.simhash.pairs(index, against, **how)) as found:
        rows = csv.DictWriter(sys.stdout, columns, extrasaction="ignore", lineterminator="\n")
        if format_ == "csv":
            rows.writeheader()
        said = set[str]()
        for pair in found:
            if pair.rule not in said:
                said.add(pair.rule)
                note(f"rule: {pair.rule}")
            if format_ == "csv":
                rows.writerow(_cells(for_spreadsheets(pair.to_dict())))
            else:
                print_json(pair.to_dict())


def _cells(pair: dict[str, Any]) -> dict[str, Any]:
    """Return the cells of a row: as they are for a program, and safe to look at on a terminal."""
    return {name: visible(str(value)) for name, value in pair.items()} if sys.stdout.isatty() else pair


@options.manual(
    "es-simhash reconcile news",
    "es-simhash reconcile news --since 2026-11-20T06:00",
    "es-simhash reconcile news --canonical published --preset near --dry-run",
    "es-simhash reconcile news --regroup --preset near --canonical 'source:xinhua>reuters>*' --yes",
)
@click.argument("index")
@click.option("--since", metavar="MOMENT", help="Look only at documents grouped since then, and at their groups.")
@options.dry_run
@click.option(
    "--regroup",
    is_flag=True,
    help="Change the recorded grouping to the one that the other options ask for; needs --yes. Run it again if it was "
    "stopped.",
)
@options.yes_for("--regroup")
@grouping_option
@options.target
def reconcile(
    index: str,
    grouping: dict[str, Any],
    target: Target,
    *,
    regroup: bool,
    yes: bool,
    as_json: bool,
    dry_run: bool,
    since: str | None,
    **how: Any,
) -> int:
    """
    Rewrite the group fields of INDEX that disagree with its rule.

    The result depends on the documents alone, not on the programs that wrote them or on the order. Run it after
    several programs wrote at once, after deletions, and for an index that was never grouped. A second run rewrites
    nothing.
    """
    if yes and (dry_run or not regroup):
        raise click.UsageError("--yes goes with --regroup; leave it out, or --dry-run")
    dry_run = dry_run or (regroup and not yes)
    with connect(target, index) as connection, say_if_stopped():
        report = connection.simhash.reconcile(index, dry_run=dry_run, regroup=regroup, since=since, **how, **grouping)
    if as_json:
        print_json(asdict(report) | {"dry_run": dry_run, "failures": failures_as_json(report.failures)})
    else:
        verb = "would be rewritten" if dry_run else "rewritten"
        print_line(f"rule: {report.rule}")
        print_line(
            f"{index}: {count(report.documents, 'document')}, {count(report.groups, 'group')}, "
            f"{count(report.duplicates, 'duplicate')}; {report.changed:,} {verb}"
            f"{', pass --yes to do it' if regroup and not yes else ''}{dry_run_ending(is_dry=dry_run)}"
        )
    if report.unread:
        said = f"the text of {count(report.unread, 'document')} could not be read: they have no near-duplicates"
        warn(said, kind="unread", number=report.unread)
    if report.first_unreadable is not None:
        said = f"{count(report.unreadable, 'document')} left out: no readable fingerprint, as {report.first_unreadable}"
        warn(f"{said}: run es-simhash setup {shlex.quote(index)}", kind="unreadable", number=report.unreadable)
    print_failures(report.failures)
    if not report.failures and not report.is_settled and not dry_run:
        error("documents changed while they were grouped: run it again", kind="unsettled", indices=[index])
    return 0 if dry_run or report.is_settled else 1
