"""``es-simhash plan``, ``review``, ``decide`` and ``history``: removals, made, looked at and decided. Nothing goes."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from es_simhash import DuplicateResult, History, Removed, removal_history
from es_simhash.cli import options
from es_simhash.cli.connect import connect
from es_simhash.cli.duplicates import SHOWN, show, warn_of_plan
from es_simhash.cli.grouping_options import COMMON, grouping as grouping_option, removal as removal_option
from es_simhash.cli.options import Target
from es_simhash.cli.output import count, note, print_folded, print_json, print_line, print_sheets
from es_simhash.cli.output_files import refuse_output, write_whole
from es_simhash.cli.parameter_types import FILE, NEW_FILE
from es_simhash.cli.stopping import say_if_stopped, this_command
from es_simhash.removal.decisions import in_words
from es_simhash.removal.guard_rails import allowing
from es_simhash.removal.review import Review
from es_simhash.removal.take_decisions import decisions_name
from es_simhash.tables.notebook import Sheet
from es_simhash.tables.words import LANGUAGES


@options.manual(
    "es-simhash plan news",
    "es-simhash plan news --out removal.db",
    "es-simhash plan news --out removal.db --preset near --protect source --show title,url",
    "es-simhash plan news --out removal2.db --after removal.db",
    common=f"--out --after {COMMON}",
)
@click.argument("index")
@click.option("--out", type=NEW_FILE, help="Make this file: a removal, with the plan. One that exists is refused.")
@removal_option
@grouping_option
@options.target
def command(
    index: str, out: str | None, grouping: dict[str, Any], target: Target, *, as_json: bool, **removal: Any
) -> None:
    """
    Plan which duplicates of INDEX to delete, and for what. INDEX is not changed.

    Without --out the first lines of the plan are printed. With --out there is a file: look at it with es-simhash
    review, then delete with es-simhash apply. --max-share and --protect refuse no plan: they judge the apply, and a
    plan says what will be refused. The canonical of each group stays.
    """
    given = {name: value for name, value in (removal | grouping).items() if value is not None and value != ()}
    with connect(target, index) as connection:
        with say_if_stopped():
            made = connection.simhash.plan_removal(index, out, **given)
        warn_of_plan(connection, index, made)
    if out is None:
        records = (DuplicateResult.of(line, "would delete") for line in made.removals)
        show(records, as_json=as_json)
    elif as_json:
        print_json({name: value for name, value in asdict(made).items() if name != "removals"})
    if as_json:
        return
    place = f"{out}: " if out else ""
    print_line(f"{place}{count(made.count, 'document')} of {made.documents:,} would be removed, nothing changed")
    for name, number in made.differing.items():
        print_line(f"in {number:,} of {made.count:,} the field {name} differs from that of what stays")
    print_line(f"rule: {made.rule}")
    if made.left_out:
        print_line(f"left out: {', '.join(made.left_out_words)}")
    for refusal in made.refusals:
        print_line(f"apply will refuse this: {refusal}")
    if out:
        print_line(f"sha256: {made.sha256}")
        print_line(f"look at it: es-simhash review {shlex.quote(out)}; with --html FILE, decide what is kept")
        _print_next(out, made.count, allowing(made.excess, made.doubts))
    elif made.count:
        print_line(f"next: {this_command('--out', 'FILE')}")


def _print_next(path: str, removals: int, allowed: list[str]) -> None:
    if removals:
        then = "then, if these are duplicates" if allowed else "then"
        print_line(f"{then}: {shlex.join(['es-simhash', 'apply', path, *allowed, '--yes'])}")
        print_line(f"with what the page decides: --decisions {shlex.quote(str(decisions_name(path)))}")


@options.manual(
    "es-simhash review removal.db",
    "es-simhash review removal.db --limit 200 | less",
    "es-simhash review removal.db --html removal.html",
    "es-simhash review removal.db --html removal.html --language zh",
)
@click.argument("removal", type=FILE)
@click.option("--html", type=NEW_FILE, help="Write a page for a browser to this file.")
@click.option("--language", type=click.Choice(LANGUAGES), default="en", help="Language of the page.")
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    default=SHOWN,
    help="Number of removals printed, least similar first. The page has all of them.",
)
def review(removal: str, html: str | None, language: str, limit: int, *, as_json: bool) -> int:
    """
    Show the plan in the file REMOVAL: how many documents would go, and what stays beside each of them.

    The least similar ones come first, with the words that differ: [-those of the document that goes-] and {+those of
    the one that stays+}. No server is asked, and nothing is removed. With --json the numbers alone are printed.
    On the page one can decide what is kept after all, and save that as a file for es-simhash apply --decisions.
    """
    with Review(removal) as found:
        number = found.summary.total.removals
        if html is not None:
            refuse_output(html, inputs=[removal])
            write_whole(Path(html), found.html(language=language))
        if as_json:
            print_json(found.to_dict())
        elif html is not None:
            said = f"{count(number, 'removal')} {'is' if number == 1 else 'are'} shown in {html}"
            print_line(f"{said}: open it in a browser; what is to be kept can be decided there")
            print_line(f"sha256: {found.sha256}")
            _print_next(removal, number, found.allowing)
        else:
            print_folded(found.text(limit=limit))
            if (rest := number - limit) > 0:
                note(f"{count(rest, 'more removal')}: raise --limit, or write a page with --html FILE")
            _print_next(removal, number, found.allowing)
    return 0


@options.manual(
    "es-simhash history 4711 removal.db",
    "es-simhash history 4711 january.db february.db --json",
)
@click.argument("names", metavar="ID REMOVAL...", nargs=-1)
def history(names: tuple[str, ...], *, as_json: bool) -> int:
    """
    Say where the documents with the _id ID have gone, and for which removed documents they stand.

    The files are read, and no server is asked: the command does not know what another program did later. The exit code
    is 1 if the files do not know the ID.
    """
    files = names[1:]
    if not files:
        named = ["ID", names[0]] if names and Path(names[0]).is_file() else [*names, "REMOVAL"]
        raise click.UsageError(f"give an ID and a removal: {shlex.join(['es-simhash', 'history', *named])}")
    for file in files:
        FILE.convert(file, None, None)
    found = removal_history(names[0], files)
    if as_json:
        print_json(found.to_dict())
    else:
        _show_history(found)
    if not found:
        note(f"{names[0]} is archived in none of these removals; es-simhash review says what people kept")
    return 0 if found else 1


# Removed documents that are printed for the one that stands for them.
MOST_STOOD_FOR = 100


def _show_history(history: History) -> None:
    removed = list(map(_cells, history.removals))
    stood_for = list(map(_cells, history.stands_for))
    title = f"{history.id} stands for these removed documents"
    # Nothing is cut: a moment and a file are of use only as a whole.
    how: Any = {"folded": ("id", "deleted for", "at", "restored", "index", "file", "approved by"), "keys": ("id",)}
    print_sheets(Sheet("", removed, **how), Sheet(title, stood_for, most=MOST_STOOD_FOR, **how))


def _moment(at: str) -> str:
    """Return a moment to the second, in two words, so that a narrow column folds it between day and time."""
    return f"{at[:10]} {at[11:19]}"


def _cells(removed: Removed) -> dict[str, Any]:
    is_elsewhere = removed.canonical_index != removed.index
    return {
        "id": removed.id,
        "deleted for": removed.canonical,
        "bits": removed.distance,
        "at": _moment(removed.deleted or removed.at),
        "then": "kept" if removed.kept else "archived" if removed.deleted is None else None,
        "restored": removed.restored and _moment(removed.restored),
        "index": removed.index,
        "its index": removed.canonical_index if is_elsewhere else None,
        "file": removed.path,
        "approved by": in_words(removed.approved) or None,
    }
