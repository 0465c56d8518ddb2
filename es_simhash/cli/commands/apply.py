"""``es-simhash apply``: what a plan of removal names, archived and deleted."""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Sequence
from contextlib import ExitStack, closing
from glob import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

from es_simhash.cli import options
from es_simhash.cli.connect import Connection, connect
from es_simhash.cli.duplicates import Regrouped, given, refuse_forgotten, show, warn_of_plan
from es_simhash.cli.grouping_options import grouping as grouping_option, removal as removal_option
from es_simhash.cli.options import Target
from es_simhash.cli.output import count, note, print_json, print_line
from es_simhash.cli.parameter_types import FILE_OR_NONE, NONE, check_decisions
from es_simhash.cli.stopping import say_if_stopped
from es_simhash.errors import GuardRailError, InvalidInputError, shorten
from es_simhash.removal.archive import read_archive
from es_simhash.removal.decisions import read_kept, shown
from es_simhash.removal.plan_file import read_plan
from es_simhash.removal.records import AGAIN
from es_simhash.transport.protocol import local_names


@options.manual(
    "es-simhash apply removal.jsonl --archive removed.jsonl.gz",
    "es-simhash apply removal.jsonl --archive removed.jsonl.gz --yes",
    "es-simhash apply removal.jsonl --archive removed.jsonl.gz --decisions removal.decisions.json --yes",
    "es-simhash apply news --preset near --archive removed.jsonl.gz --yes --quiet",
    common="--archive --decisions --sha256 --yes --contained --filter --limit --max-share --protect --preset --url "
    "--json",
)
@click.argument("plan", metavar="PLAN|INDEX")
@options.written_file(
    "--archive", required=True, help="Keep each document in this file before it is deleted: gzip, JSON Lines."
)
@click.option(
    "--decisions",
    type=FILE_OR_NONE,
    multiple=True,
    callback=check_decisions,
    help="Keep what this file names; the page of es-simhash review PLAN --html makes it. For an INDEX it is about an "
    "earlier plan, and repeatable. none: go by none, though one lies beside PLAN.",
)
@click.option("--sha256", metavar="HEX", help="Insist on the PLAN that was approved: its sha256, as review prints it.")
@options.yes
@options.quiet
@removal_option
@grouping_option
@options.target
def command(
    plan: str,
    archive: str,
    grouping: dict[str, Any],
    target: Target,
    *,
    decisions: tuple[str, ...],
    sha256: str | None,
    yes: bool,
    quiet: bool,
    as_json: bool,
    **removal: Any,
) -> int:
    """
    Delete what the file PLAN names, as es-simhash plan wrote it; or plan for INDEX, and delete that.

    The argument is a PLAN if there is a file of that name, or if it has a slash or ends in .jsonl or .gz; else it is an
    INDEX. The options that say what to delete are for INDEX; --max-share and --decisions are for both.

    A document is deleted only after it was archived, and only if what decided about it and about its canonical, which
    stays, is as it was when it was planned: their texts, and the fields of --per, --within, --canonical, --protect and
    --filter. es-simhash restore undoes it. A command that was killed goes on when it is given again; the plan for INDEX
    is in a file beside the archive until all of it is done.
    """
    asked = given(removal, grouping)
    max_share = asked.pop("max_share", None)
    is_file = Path(plan).is_file() or plan.endswith((".jsonl", ".gz")) or ("/" in plan and not plan.startswith("<"))
    if is_file and asked:
        raise click.UsageError(f"the plan {plan} says what to delete: leave out --{min(asked).replace('_', '-')}")
    if not is_file and sha256 is not None:
        raise click.UsageError(f"--sha256 is for a PLAN in a file, and {shorten(plan)} is an INDEX: plan it first")
    files = () if NONE in decisions else decisions
    asked |= {"decisions": files} if files and not is_file else {}  # about earlier plans
    index = _index_of(plan, decisions) if is_file else plan
    decisions_path = files[0] if files and is_file else None
    approval: dict[str, Any] = {"decisions": decisions_path, "sha256": sha256, "max_share": max_share}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="es-simhash-")))
        connection = stack.enter_context(connect(target, index))
        stack.enter_context(say_if_stopped())
        was_there = Path(archive).exists()
        path = Path(plan) if is_file else _plan_index(connection, index, archive, asked, folder, decisions, yes=yes)
        if path is None:
            return 0
        if not yes:
            return _try_out(connection, path, archive, approval, is_listed=not is_file and not quiet, as_json=as_json)
        connection.to_refresh.update(read_plan(path).header.index_uuids)
        regrouped = Regrouped()
        applied = connection.simhash.apply_removal(path, archive=archive, on_regrouped=regrouped.add, **approval)
        try:
            with closing(applied) as records:
                counts = show(records, **_planned(path), as_json=as_json, is_listed=not quiet)
        except GuardRailError:
            if not is_file and not any(True for _ in read_archive(archive, allow_cut=True)):
                path.unlink()  # nothing was begun: the next command may have other options
                Path(archive).write_bytes(b"") if was_there else Path(archive).unlink()
            raise
    if not as_json:
        earlier = f", {counts.earlier:,} by earlier runs" if counts.earlier else ""
        kept = f", kept in {archive}" if counts.done or counts.earlier else ""
        print_line(f"{count(counts.done, 'document')} deleted{earlier}{kept}{counts.decided_words}")
        regrouped.print()
    elif (found := regrouped.to_dicts()) or quiet:
        summary = {"deleted": counts.done, "deleted_earlier": counts.earlier, "kept": counts.kept}
        print_json((summary if quiet else {}) | {"regrouped": found})
    unsettled = regrouped.complain()
    # Where an index is another one, or missing, this may be the wrong server: the plan stays.
    if not is_file and not unsettled and not {*AGAIN, "index_replaced"} & counts.kinds.keys():
        path.unlink()
    return 1 if counts.kinds or unsettled else 0


def _index_of(path: str, decisions: Sequence[str]) -> str:
    """Return the first index of a plan; raise InvalidInputError if its decisions lie beside it, and are not given."""
    if len(decisions) > 1:
        raise click.UsageError(f"one file decides about the plan {path}: give --decisions once, or plan with all files")
    plan = read_plan(path)
    refuse_forgotten(plan, decisions)
    return min(plan.header.index_uuids)


def _planned(path: Path) -> dict[str, Any]:
    """Return what :func:`show` is to know of a plan."""
    header = read_plan(path).header
    return {"by_containment": header.is_by_containment, "decided": header.decided}


def _plan_index(
    connection: Connection,
    index: str,
    archive: str,
    asked: dict[str, Any],
    folder: Path,
    decisions: Sequence[str],
    *,
    yes: bool,
) -> Path | None:
    """Return the plan for *index*, of an earlier run or made now; ``None`` if nothing is left to do."""
    # The name of the plan tells commands apart: another one must not go on with what this one would not delete.
    given_now = json.dumps([local_names(index), asked], sort_keys=True, default=str)
    beside = Path(f"{archive}.{hashlib.sha256(given_now.encode()).hexdigest()[:8]}.plan")
    for other in sorted(beside.parent.glob(f"{escape(Path(archive).name)}.*.plan")):
        if other != beside:
            finish = shlex.join(["es-simhash", "apply", str(other), "--archive", archive, "--yes"])
            advice = f"finish it with {finish}, or give another archive"
            raise InvalidInputError(f"{other} is the plan of an earlier run with other names or options: {advice}")
    if beside.exists():
        plan, kept = read_plan(beside), read_kept(asked.get("decisions", ()))
        refuse_forgotten(plan, decisions)
        if found := next((key for each in plan.removals() if (key := each.document.key) in kept), None):
            said = f"{beside}, the plan of an earlier run, removes {shown(found)}, which --decisions keeps"
            raise InvalidInputError(f"{said}: give another archive, so that a new plan leaves it out")
        note(f"going on with {beside}, the plan of an earlier run")
        return beside
    is_used = Path(archive).exists() and Path(archive).stat().st_size > 0
    if is_used:
        for _ in read_archive(archive, allow_cut=True):
            break  # one line tells: an older file of the user is no sign that all is done
    path = beside if yes and not is_used else folder / "plan"
    made = connection.simhash.plan_removal(index, path, **asked)
    warn_of_plan(connection, index, made)
    if is_used and made.count:
        raise InvalidInputError(
            f"{archive} exists, and {shorten(index)} has duplicates: give each removal an archive of its own"
        )
    if is_used:
        but = f" but {decided:,} kept by decision" if (decided := made.left_out.get("decided")) else ""
        note(f"all of an earlier plan is in {archive}, and {index} has no duplicates now{but}")
    return None if is_used else path


def _try_out(
    connection: Connection, path: Path, archive: str, approval: dict[str, Any], *, is_listed: bool, as_json: bool
) -> int:
    """Say what applying the plan in the file *path* would delete now, and what does not fit any more."""
    header = read_plan(path).header
    with closing(connection.simhash.apply_removal(path, archive=archive, dry_run=True, **approval)) as records:
        counts = show(records, **_planned(path), as_json=as_json, is_dry=True, is_listed=is_listed)
    names = sorted(header.index_uuids)
    if not as_json:
        what = f"{count(counts.done, 'document')} of {', '.join(names)} would be deleted"
        kept, hint = (f", and kept in {archive}", ", pass --yes to do it") if counts.done else ("", "")
        print_line(f"{what}{kept}{counts.decided_words}; nothing changed{hint}")
    elif not is_listed:
        plan = {"plan": str(path), "count": header.count, "indices": names, "archive": archive}
        print_json({**plan, "would_delete": counts.done, "kept": counts.kept})
    return 1 if counts.kinds else 0
