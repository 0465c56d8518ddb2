"""``es-simhash apply``: what a plan of removal names, archived and deleted."""

from __future__ import annotations

import shlex
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import click

from es_simhash import DuplicateResult, GuardRailError, InvalidInputError
from es_simhash.cli import options
from es_simhash.cli.connect import Connection, connect
from es_simhash.cli.duplicates import Regrouped, given, show, warn_of_plan
from es_simhash.cli.grouping_options import grouping as grouping_option, removal as removal_option
from es_simhash.cli.options import Target
from es_simhash.cli.output import count, note, print_json, print_line
from es_simhash.cli.parameter_types import FILE_OR_NONE, NONE
from es_simhash.cli.stopping import say_if_stopped
from es_simhash.errors import shorten
from es_simhash.removal.guard_rails import refuse_doubts, refuse_excess
from es_simhash.removal.plan_header import PlanHeader
from es_simhash.removal.plan_options import PlanOptions
from es_simhash.removal.removal_file import RemovalFile
from es_simhash.removal.sqlite_file import discard_unfinished
from es_simhash.transport.protocol import index_key


@options.manual(
    "es-simhash apply removal.db",
    "es-simhash apply removal.db --yes",
    "es-simhash apply removal.db --decisions removal.decisions.json --yes",
    "es-simhash apply news --preset near --out removal.db --yes --quiet",
    common="--out --decisions --sha256 --yes --contained --filter --limit --max-share --other-titles "
    "--preset --url --json",
)
@click.argument("removal", metavar="REMOVAL|INDEX")
@options.written_file("--out", help="For an INDEX: make this file, a removal, which keeps each document.")
@click.option(
    "--decisions",
    type=FILE_OR_NONE,
    help="Take this file in first, as es-simhash decide does. none: one that lies beside REMOVAL does not count.",
)
@click.option("--sha256", metavar="HEX", help="Insist on the plan that was approved: its sha256, as review prints it.")
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
@removal_option
@grouping_option
@options.target
def command(
    removal: str,
    out: str | None,
    grouping: dict[str, Any],
    target: Target,
    *,
    decisions: str | None,
    sha256: str | None,
    other_titles: bool,
    large_groups: bool,
    yes: bool,
    quiet: bool,
    as_json: bool,
    **limits: Any,
) -> int:
    """
    Delete what the file REMOVAL plans, as es-simhash plan made it; or plan for INDEX, and delete that.

    The argument is a REMOVAL if there is a file of that name, or if it has a slash or ends in .db; else it is an INDEX.
    The options that say what to delete are for INDEX; --max-share is for both.

    A document is deleted only after it was archived in the file, and only if what decided about it and about its
    canonical, which stays, is as it was when it was planned: their texts, and the fields of --per, --within,
    --canonical, --protect and --filter. es-simhash restore undoes it. A command that was killed goes on when it is
    given again.
    """
    asked = given(limits, grouping)
    max_share = asked.pop("max_share", None)
    is_file = Path(removal).is_file() or removal.endswith(".db") or ("/" in removal and not removal.startswith("<"))
    if is_file and (asked or out):
        name = "out" if out else min(asked).replace("_", "-")
        raise click.UsageError(f"{removal} says what to delete: leave out --{name}")
    if not is_file and (sha256 or decisions):
        raise click.UsageError(f"--sha256 and --decisions are for a REMOVAL, and {shorten(removal)} is an INDEX: plan")
    if not is_file and yes and out is None:
        raise click.UsageError("an INDEX needs --out FILE: the file keeps each document before it is deleted")
    path = removal if is_file else out if out is not None and (yes or Path(out).exists()) else None
    allowed = {"other_titles": other_titles, "large_groups": large_groups}
    approval: dict[str, Any] = {"sha256": sha256, "max_share": max_share, **allowed}
    approval["decisions"] = False if decisions == NONE else decisions
    with ExitStack() as stack:
        index = min(_header(removal).index_uuids) if is_file else removal
        connection = stack.enter_context(connect(target, index))
        stack.enter_context(say_if_stopped())
        if path is None:
            asked |= {} if max_share is None else {"max_share": max_share}
            return _look(connection, index, asked, allowed, is_listed=not quiet, as_json=as_json)
        if not is_file:
            _plan(connection, index, path, asked)
        header = _header(path)
        shown: dict[str, Any] = {"by_containment": header.is_by_containment, "decided": header.decided}
        if not yes:
            is_listed = not is_file and not quiet
            return _try_out(connection, path, header, approval, shown, is_listed=is_listed, as_json=as_json)
        connection.to_refresh.update(header.index_uuids)
        regrouped = Regrouped()
        applied = connection.simhash.apply_removal(path, on_regrouped=regrouped.add, **approval)
        try:
            with closing(applied) as records:
                counts = show(records, **shown, as_json=as_json, is_listed=not quiet)
        except GuardRailError:
            if not is_file and not _is_begun(path):
                Path(path).unlink()  # the next command may have other options
            raise
    if not as_json:
        earlier = f", {counts.earlier:,} by earlier runs" if counts.earlier else ""
        kept = f", kept in {path}" if counts.done or counts.earlier else ""
        print_line(f"{count(counts.done, 'document')} deleted{earlier}{kept}{counts.decided_words}")
        regrouped.print()
    elif (found := regrouped.to_dicts()) or quiet:
        summary = {"deleted": counts.done, "deleted_earlier": counts.earlier, "kept": counts.kept}
        print_json((summary if quiet else {}) | {"regrouped": found})
    return 1 if regrouped.complain() or counts.kinds else 0


def _header(path: str) -> PlanHeader:
    with RemovalFile(path, is_checked=False) as removal:
        return removal.header


def _is_begun(path: str) -> bool:
    with RemovalFile(path, is_checked=False) as removal:
        return removal.has_archived or bool(removal.log)


def _plan(connection: Connection, index: str, path: str, asked: dict[str, Any]) -> None:
    """Make the plan for *index*, or go on with that of the same command before."""
    discard_unfinished(Path(path))
    if not Path(path).exists():
        warn_of_plan(connection, index, connection.simhash.plan_removal(index, path, **asked))
        return
    header = _header(path)
    if header.asked != {"index": index_key(index), **PlanOptions.of(**asked).asked()}:
        finish = shlex.join(["es-simhash", "apply", path, "--yes"])
        raise InvalidInputError(
            f"{path} is the removal of an earlier run with other names or options: finish it with {finish}, or give "
            "another file"
        )
    note(f"going on with {path}, which was planned at {header.at}")


def _look(
    connection: Connection,
    index: str,
    asked: dict[str, Any],
    allowed: dict[str, bool],
    *,
    is_listed: bool,
    as_json: bool,
) -> int:
    """Say what a plan for *index*, which is in no file, would delete."""
    made = connection.simhash.plan_removal(index, **asked)
    warn_of_plan(connection, index, made)
    records = (DuplicateResult.of(each, "would delete") for each in made.removals)
    decided = made.left_out.get("decided")
    by_containment = "contained" in asked
    counts = show(
        records, by_containment=by_containment, as_json=as_json, is_dry=True, is_listed=is_listed, decided=decided
    )
    if not as_json:
        hint = ", pass --out FILE and --yes to do it" if counts.done else ""
        said = f"{count(counts.done, 'document')} of {index} would be deleted{counts.decided_words}"
        print_line(f"{said}; nothing changed{hint}")
    elif not is_listed:
        print_json({"count": made.count, "would_delete": counts.done, "kept": counts.kept})
    refuse_excess(made.excess)
    refuse_doubts(made.doubts, allowed)
    return 0


def _try_out(
    connection: Connection,
    path: str,
    header: PlanHeader,
    approval: dict[str, Any],
    shown: dict[str, Any],
    *,
    is_listed: bool,
    as_json: bool,
) -> int:
    """Say what applying the removal *path* would delete now, and what does not fit any more."""
    with closing(connection.simhash.apply_removal(path, dry_run=True, **approval)) as records:
        counts = show(records, **shown, as_json=as_json, is_dry=True, is_listed=is_listed)
    names = sorted(header.index_uuids)
    if not as_json:
        what = f"{count(counts.done, 'document')} of {', '.join(names)} would be deleted"
        kept, hint = (f", and kept in {path}", ", pass --yes to do it") if counts.done else ("", "")
        print_line(f"{what}{kept}{counts.decided_words}; nothing changed{hint}")
    elif not is_listed:
        plan = {"plan": path, "count": header.count, "indices": names}
        print_json({**plan, "would_delete": counts.done, "kept": counts.kept})
    return 1 if counts.kinds else 0
