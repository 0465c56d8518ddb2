"""``es-simhash backfill``: fingerprints for the documents of an index; and ``setup``: all that it needs."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from es_simhash import BackfillProgress, Failure
from es_simhash.cli import options
from es_simhash.cli.connect import connect
from es_simhash.cli.grouping_options import grouping as grouping_option
from es_simhash.cli.options import Target
from es_simhash.cli.output import (
    SHOWN_FAILURES,
    count,
    dry_run_ending,
    error,
    failures_as_json,
    print_failures,
    print_json,
    print_line,
    print_sheets,
    saying_it_once,
    warn,
)
from es_simhash.cli.stopping import say_if_stopped
from es_simhash.tables.notebook import Sheet, percent
from es_simhash.upkeep.backfill import BackfillOptions

if TYPE_CHECKING:
    from es_simhash import Setup


@options.manual(
    "es-simhash backfill news --text-field body --dry-run",
    "es-simhash backfill news --text-field title --text-field body --workers 2",
    "es-simhash backfill news --prefix words_hash --scheme keywords --text-field body",
)
@click.argument("index")
@options.text_field
@options.takes(BackfillOptions)
@options.dry_run
@options.filter_query
@options.scheme
@options.target
def command(index: str, target: Target, *, dry_run: bool, as_json: bool, **how: Any) -> int:
    """
    Give each document of INDEX the fingerprint of its present text.

    Adds missing fingerprints, replaces stale ones and leaves correct ones alone; es-simhash setup groups the documents
    too. Other programs may change documents at the same time: no change of theirs is lost. If it is stopped, run it
    again to continue.
    """
    with (
        connect(target, index) as connection,
        closing(connection.simhash.backfill(index, dry_run=dry_run, **how)) as reports,
        say_if_stopped(),
    ):
        last, failures = last_of(reports)
    print_failures(failures, total=last.failed, advice=_MEND)
    if as_json:
        print_json(asdict(last) | {"dry_run": dry_run, "failures": failures_as_json(failures)})
    else:
        print_line(f"{index}: {_sentence(last, dry_run=dry_run)}{dry_run_ending(is_dry=dry_run)}")
    return 1 if last.failed else 0


# Most failures are of the documents themselves, and stay.
_MEND = "mend these, and run it again"


def last_of(reports: Iterator[BackfillProgress]) -> tuple[BackfillProgress, list[Failure]]:
    """Return the last of the *reports*, and the first failures."""
    failures: list[Failure] = []
    last: BackfillProgress | None = None
    for last in reports:
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


@options.manual(
    "es-simhash setup news --text-field body",
    "es-simhash setup news --text-field body --time-field published --yes",
)
@click.argument("index")
@options.text_field
@click.option(
    "--time-field",
    metavar="FIELD",
    help="Field whose earliest value makes a document the canonical of its group. Default: what INDEX records, else "
    "the document that was grouped first.",
)
@grouping_option
@options.yes
@options.scheme
@options.target
def setup(index: str, target: Target, *, yes: bool, as_json: bool, grouping: dict[str, Any], **how: Any) -> int:
    """
    Make INDEX, which has documents, ready for everything else.

    Adds the fields, records what counts as a near-duplicate, gives each document its fingerprint, and groups the
    near-duplicates. Without an option that says what counts, your texts choose a preset, as in es-simhash tune. What
    INDEX records already stays as it is. No document is deleted, and your own fields stay. Other programs may write at
    the same time. If it is stopped, run it again to continue.
    """
    how |= {name: value for name, value in grouping.items() if value is not None}
    with connect(target, index) as connection, say_if_stopped():
        with saying_it_once():
            found = connection.simhash.setup(index, dry_run=not yes, **how)
        example = "ID"
        if not as_json and found.groups and found.groups.duplicates:
            tagged = {"size": 1, "_source": False, "query": {"exists": {"field": f"{target.prefix}.duplicate_of"}}}
            hits = connection.client.search(index=index, body=tagged)["hits"]["hits"]
            example = hits[0]["_id"] if hits else example
    if as_json:
        plain = found.to_dict()
        for part, report in (("filled", found.filled), ("groups", found.groups)):
            plain[part] = report and plain[part] | {"failures": failures_as_json(report.failures)}
        print_json(plain | {"dry_run": not yes})
    else:
        for line in _lines(found, is_dry=not yes):
            print_line(line)
        _show_measured(found)
        for line in (*_done(found, is_dry=not yes), *_next(found, example, is_dry=not yes)):
            print_line(line)
    if found.outside:
        verb = "are" if yes else "would be"
        warn(
            f"duplicates whose canonical {index} does not show (deleted, or in another index): {found.outside:,}, "
            f"which {verb} grouped anew without it; name all indices together that are to be grouped together",
            kind="outside",
            number=found.outside,
        )
    if found.rollover:
        warn(found.rollover)
    filled = (found.filled.failures, found.filled.failed) if found.filled else ((), 0)
    grouped = found.groups.failures if found.groups else ()
    failures, failed = [*filled[0], *grouped], filled[1] + len(grouped)
    print_failures(failures, total=failed, advice=_MEND)
    is_settled = not yes or found.groups is None or found.groups.is_settled or bool(grouped)
    if not is_settled:
        error("documents changed while they were grouped: run it again", kind="unsettled", indices=[index])
    return 1 if failed or not is_settled else 0


def _lines(found: Setup, *, is_dry: bool) -> Iterator[str]:
    """Yield what was recorded."""
    names = "" if found.indices == (found.index,) else f" ({', '.join(found.indices)})"
    verb = "would be recorded" if is_dry else "recorded"
    new = f"{verb} now: {', '.join(_PARTS[part] for part in found.recorded)}" if found.recorded else "recorded already"
    yield f"{found.index}{names}: {count(found.documents, 'document')}, text in {', '.join(found.text_fields)} ({new})"
    other = " (another: --preset)" if is_dry and "grouping" in found.recorded else ""
    name = f"preset {found.preset}{other}" if found.preset else "no preset"
    misses = f"; {found.misses}" if found.misses and "grouping" in found.recorded else ""
    yield f"rule: {name}, scheme {found.scheme}, {found.rule}{misses}"


def _done(found: Setup, *, is_dry: bool) -> Iterator[str]:
    """Yield what was filled, or would be."""
    filled, groups = found.filled, found.groups
    new_ones, stale = (found.missing, 0) if filled is None else (filled.changed - filled.stale, filled.stale)
    if found.is_already:
        yield "already set up: nothing is to do"
    elif is_dry:
        new = f"{'up to ' if filled is None else ''}{count(new_ones, 'document')}"
        yield f"would give {new} a first fingerprint, replace {stale:,} stale ones, and group all"
        if filled is not None and filled.failed:
            yield f"would fail for {count(filled.failed, 'document')}"
        yield "nothing changed, pass --yes to do it"
    elif filled is not None and groups is not None:
        empty = f", {filled.empty:,} have no text with letters" if filled.empty else ""
        yield (
            f"filled: {filled.seen:,} compared, {new_ones:,} got their first fingerprint, {stale:,} stale ones "
            f"replaced, {filled.failed:,} failed{empty}; grouped: {groups.changed:,} written, "
            f"{len(groups.failures):,} failed"
        )


def _next(found: Setup, example: str, *, is_dry: bool) -> Iterator[str]:
    """Yield what was found and what to do next; no removal before what speaks against one."""
    groups = found.groups
    if is_dry and not found.is_already:
        return
    if groups is None or not groups.duplicates:
        yield "found: no duplicates"
        return
    yield f"found: {count(groups.duplicates, 'duplicate')} of other documents"
    for finding in found.findings:
        yield f"but {finding.message}"
    next_ones: dict[tuple[str, ...], str] = {}
    next_ones |= {
        ("find", found.index, "--id", example): "the near-duplicates of a document",
        ("groups", found.index, "--min-size", "2"): "all groups",
        ("report", found.index, "--out", "report.html"): "how many, of whom, and which words differ",
        ("follow", found.index): "keeps all this right while other programs write",
    }
    if not found.findings:
        next_ones["plan", found.index, "--out", "removal.db"] = "which to delete: review it, then apply"
    yield "next:"
    commands = [shlex.join(["es-simhash", *words]) for words in next_ones]
    width = max(map(len, commands))
    for command, said in zip(commands, next_ones.values(), strict=True):
        yield f"{command:{width}}  # {said}"


_PARTS = {"fields": "the fields", "grouping": "the rule", "max_distance": "the distance of lookups"}


def _show_measured(found: Setup) -> None:
    """Print what each preset finds of edited copies, what the texts show beside, and which preset that speaks for."""
    figures = found.measured
    if found.unmeasured:
        print_line(f"measured: nothing: {found.unmeasured}")
    elif found.presets:
        rows = [
            {"edit": kind, **{preset.preset: percent(preset.by_edit[kind]) for preset in found.presets}}
            for kind in found.presets[0].by_edit
        ]
        print_sheets(Sheet(f"found of edited copies of {found.sampled:,} of your texts", rows))
    for note in found.notes:
        print_line(f"note: {note}")
    if figures is not None and found.preset is None and figures.max_distance > found.grouping["max_distance"]:
        again = f"es-simhash reconcile {shlex.quote(found.index)} --regroup --preset {figures.preset} --yes"
        print_line(f"to change the rule: {again}")
