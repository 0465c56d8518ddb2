"""``es-simhash plan``, ``review`` and ``history``: plans and archives of removals, made and read. Nothing goes."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

from es_simhash.cli import options
from es_simhash.cli.connect import connect
from es_simhash.cli.duplicates import SHOWN, given, refuse_forgotten, show_plan, warn_of_plan
from es_simhash.cli.grouping_options import COMMON, grouping as grouping_option, removal as removal_option
from es_simhash.cli.options import Target
from es_simhash.cli.output import count, note, print_json, print_line, tracking, warn
from es_simhash.cli.parameter_types import FILE, FILE_OR_NONE, NEW_FILE, NONE, check_decisions
from es_simhash.cli.stopping import say_if_stopped, this_command
from es_simhash.cli.tables import Lines, Value
from es_simhash.errors import InvalidInputError
from es_simhash.removal.decisions import apply_command
from es_simhash.removal.files import refuse_output, write_whole
from es_simhash.removal.history import History, Removed, find_history
from es_simhash.removal.may_delete import MAX_SHARE, refusal
from es_simhash.removal.plan_file import read_plan
from es_simhash.removal.records import LEFT_OUT
from es_simhash.removal.review import Review


@options.manual(
    "es-simhash plan news",
    "es-simhash plan news --out removal.jsonl",
    "es-simhash plan news --out removal.jsonl --preset near --protect source --show title",
    "es-simhash plan news --out removal2.jsonl --decisions removal.decisions.json",
    "es-simhash plan mails --out removal.jsonl --contained 0.95",
    common=f"--out --decisions {COMMON}",
)
@click.argument("index")
@options.written_file("--out", help="Write the plan to this file.")
@click.option(
    "--decisions",
    type=FILE_OR_NONE,
    multiple=True,
    callback=check_decisions,
    help="Leave out what this file about an earlier plan decided to keep. Repeatable. none: go by none, though one "
    "lies beside the plan that is replaced.",
)
@click.option("--overwrite", is_flag=True, help="Replace the plan that the file of --out is already.")
@removal_option
@grouping_option
@options.target
def command(
    index: str,
    out: str | None,
    grouping: dict[str, Any],
    target: Target,
    *,
    overwrite: bool,
    decisions: tuple[str, ...],
    as_json: bool,
    **removal: Any,
) -> None:
    """
    Plan which duplicates of INDEX to delete, and for what. INDEX is not changed.

    Without --out the lines of the plan are printed. With --out the plan is a file: look at it with es-simhash review,
    then delete with es-simhash apply. --max-share and --protect refuse no plan: they judge the apply, and a plan says
    what will be refused. The canonical of each group stays. With --contained the documents that add nothing take the
    place of near-duplicates: most of their text stands in a longer document, which stays.
    """
    if overwrite and out is None:
        raise click.UsageError("--overwrite goes with --out; leave it out, or name the plan")
    if out is not None:
        _refuse_plan(out, decisions, overwrite=overwrite)
    removal["decisions"] = () if NONE in decisions else decisions
    with ExitStack() as stack:
        path = out or Path(stack.enter_context(TemporaryDirectory(prefix="es-simhash-")), "plan")
        connection = stack.enter_context(connect(target, index))
        with say_if_stopped(), tracking() as progress:
            made = connection.simhash.plan_removal(index, path, progress=progress, **given(removal, grouping))
        warn_of_plan(connection, index, made)
        if out is None:
            show_plan(path, as_json=as_json)
        elif as_json:
            print_json(asdict(made))
    if as_json:
        return
    place = f"{out}: " if out else ""
    print_line(f"{place}{count(made.count, 'document')} of {made.documents:,} would be removed, nothing changed")
    print_line(f"rule: {made.rule}")
    if made.left_out:
        print_line(f"left out: {', '.join(f'{number:,} {LEFT_OUT[kind]}' for kind, number in made.left_out.items())}")
    if made.excess:
        print_line(f"apply will refuse this: {refusal(made.excess, MAX_SHARE)}")
    if out:
        print_line(f"sha256: {made.sha256}")
        print_line(f"look at it: es-simhash review {shlex.quote(out)}; with --html FILE, decide what is kept")
        _print_next(out, made.count)
    elif made.count:
        print_line(f"next: {this_command('--out', 'FILE')}")


def _print_next(plan: str, removals: int) -> None:
    if removals:
        words = apply_command(plan)
        print_line(f"then: {shlex.join([*words[:-3], '--yes'])}")
        print_line(f"or, with what the page decides: {shlex.join(words)}")


def _refuse_plan(out: str, decisions: Sequence[str], *, overwrite: bool) -> None:
    """
    Raise InvalidInputError if a plan that can be used has the name *out*: it may be reviewed, or half applied.
    To *overwrite* it, only if what was decided about it would be lost.
    """
    try:
        plan = read_plan(out)
    except (FileNotFoundError, InvalidInputError):  # what else must not be replaced is refused when it is written
        return None
    if overwrite:
        return refuse_forgotten(plan, decisions)
    said = f"{out} is a plan already, made {plan.header.at} with {count(plan.header.count, 'removal')}"
    raise InvalidInputError(f"{said}: give another name, or replace it with --overwrite")


@options.manual(
    "es-simhash review removal.jsonl",
    "es-simhash review removal.jsonl --limit 200 | less",
    "es-simhash review removal.jsonl --html removal.html",
)
@click.argument("plan", type=FILE)
@click.option("--html", type=NEW_FILE, help="Write a page for a browser to this file.")
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    default=SHOWN,
    help="Number of removals printed, least similar first. The page has all of them.",
)
def review(plan: str, html: str | None, limit: int, *, as_json: bool) -> int:
    """
    Show the plan of removal in the file PLAN: how many documents would go, and what stays beside each of them.

    The least similar ones come first, with the words that differ: [-those of the document that goes-] and {+those of
    the one that stays+}. No server is asked, and nothing is removed. With --json the numbers alone are printed.
    On the page one can decide what is kept after all, and save that as a file for es-simhash apply --decisions.
    """
    found = Review(plan)
    if html is not None:
        refuse_output(html, inputs=[plan], kind="page")
        write_whole(Path(html), found.html())
        if not as_json:
            number = found.summary.total.removals
            said = f"{count(number, 'removal')} {'is' if number == 1 else 'are'} shown in {html}"
            print_line(f"{said}: open it in a browser; what is to be kept can be decided there")
            print_line(f"sha256: {found.to_dict()['plan']}")
            _print_next(plan, number)
    if as_json:
        print_json(found.to_dict())
    elif html is None:
        with Lines() as lines:
            for line in found.text(limit=limit):
                lines.print(line)
        if (rest := found.summary.total.removals - limit) > 0:
            note(f"{count(rest, 'more removal')}: raise --limit, or write a page with --html FILE")
        _print_next(plan, found.summary.total.removals)
    return 0


@options.manual(
    "es-simhash history 4711 removed.jsonl.gz",
    "es-simhash history 4711 --archive january.jsonl.gz --archive february.jsonl.gz --json",
)
@click.argument("id_", metavar="ID")
@click.option(
    "--archive",
    "archives",
    metavar="FILE",
    multiple=True,
    type=FILE,
    help="Archive of a removal, the same as an ARCHIVE. Repeatable.",
)
@click.argument("more", metavar="ARCHIVE...", nargs=-1, type=FILE)
@options.prefix
def history(id_: str, archives: tuple[str, ...], more: tuple[str, ...], prefix: str, *, as_json: bool) -> int:
    """
    Say where the documents with the _id ID have gone, and for which removed documents they stand.

    The archives are read, and no server is asked. So the command knows what was archived to be removed, and what the
    same run kept after all, or put back, but not what a killed run deleted, or what came back later. Where the document
    that stayed was archived later, the command goes on with that one. The exit code is 1 if the archives do not know
    the ID, or if the end of one was cut off, so that documents may be missing.
    """
    if not archives and not more:
        named = ["ID", id_] if Path(id_).is_file() else [id_, "ARCHIVE"]
        raise click.UsageError(f"give an ID and an archive: {shlex.join(['es-simhash', 'history', *named])}")
    history = find_history(id_, [*archives, *more], prefix=prefix)
    if as_json:
        print_json(history.to_dict())
    else:
        _show_history(history)
    for path, sentence in history.cut.items():
        warn(f"the end of {path} was cut off: {sentence}")
    if not history:
        note(
            f"{id_} is in none of these archives, as far as they can be read; what was decided to stay is in the files "
            "of decisions"
        )
    return 0 if history and not history.is_incomplete else 1


# Removed documents that are printed for the one that stands for them.
MOST_STOOD_FOR = 100


def _show_history(history: History) -> None:
    with Lines() as lines:
        for chain in history.removals:
            for depth, each in enumerate(chain):
                lines.print("  " * depth, *_removed(each))
        if history.stands_for:
            lines.print(Value("id", history.id), " stands for these removed documents:")
            for each in history.stands_for[:MOST_STOOD_FOR]:
                lines.print("  ", *_removed(each))
            if (rest := len(history.stands_for) - MOST_STOOD_FOR) > 0:
                lines.print(f"  and {count(rest, 'more document')}: --json has all")


def _removed(removed: Removed) -> list[str | Value]:
    same = removed.canonical_index == removed.index
    approved: list[str | Value] = []
    if removed.by is not None:
        approved = ["; approved by ", Value("by", removed.by)]
        approved += [": ", Value("reason", removed.reason)] if removed.reason else []
    back = ", and was there afterwards" if removed.kept else ""
    canonical = removed.canonical if same else f"{removed.canonical_index}/{removed.canonical}"
    bits = "" if removed.distance is None else f", {count(removed.distance, 'bit')} apart"
    return [
        f"{removed.at}  ",
        Value("document", f"{removed.index}/{removed.id}"),
        f" was {'to be removed again' if removed.again else 'archived to be removed'} for ",
        Value("canonical", canonical),
        f"{bits}{back}; it is in {removed.archive}",
        *approved,
    ]
