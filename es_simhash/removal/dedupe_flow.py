"""
Duplicates of an index shown, tagged, or deleted: deleting is planning and applying in one.

Which documents are duplicates is decided in ``index.grouping``, tags are written by ``grouping.reconcile``.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from es_simhash.arguments import FilePath, check_choice, check_function, check_output
from es_simhash.errors import InvalidInputError, shorten
from es_simhash.groups.reconcile_flow import read_groups, reconcile
from es_simhash.groups.rule import GroupingRequest
from es_simhash.groups.settings_flow import settle_grouping
from es_simhash.mapping.context import Context
from es_simhash.mapping.primaries_flow import reads_primaries
from es_simhash.mapping.resolve_flow import resolve_index
from es_simhash.removal.apply_flow import apply_removal
from es_simhash.removal.plan_file import Plan, read_plan
from es_simhash.removal.plan_flow import PlanOptions, plan_removal
from es_simhash.removal.regroup_flow import OnRegrouped
from es_simhash.removal.results import Deduped
from es_simhash.transport.names import Index
from es_simhash.transport.protocol import Compute, Emit, Flow
from es_simhash.writes.targets_flow import refuse_updates

if TYPE_CHECKING:
    from es_simhash.groups.assign import Groups
    from es_simhash.writes.operations import Failure


Action = Literal["tag", "delete"]
BATCH = 500


def check_action(action: Any, archive: FilePath | None, *, dry_run: bool, on_regrouped: Any = None) -> None:
    """
    Check what dedupe is to do, before anything is done.

    Raises:
        InvalidInputError: If the action is not known, or documents would be deleted without an archive.
    """
    check_choice("action", action, get_args(Action))
    if on_regrouped is not None:
        check_function("on_regrouped", on_regrouped)
    if action == "delete" and not dry_run and archive is None:
        raise InvalidInputError("documents are deleted only into an archive: give archive, the name of a file")
    if archive is not None and (action == "tag" or dry_run):
        raise InvalidInputError("nothing is deleted, so nothing is archived: leave archive out")


def plan_path(archive: FilePath) -> Path:
    """
    Return the name of the plan that is kept beside *archive* until all of it is done.
    """
    path = Path(archive)
    return path.with_name(f"{path.name}.plan")


@reads_primaries
def tag_duplicates(context: Context, index: Index, request: GroupingRequest, *, dry_run: bool) -> Flow[None]:
    """
    Emit a :class:`Deduped` for each duplicate in *index*, after all were tagged; in a dry run, instead.
    """
    resolved = yield from resolve_index(context, index)
    if not dry_run:
        yield from refuse_updates(index, resolved.mappings)
    grouping = yield from settle_grouping(context, resolved, request, record=not dry_run, may_differ=dry_run)
    failures: Sequence[Failure] = ()
    if not dry_run:
        failures = (yield from reconcile(context, index, request)).failures
    failed = {(each.index, each.id): each for each in failures}
    _, groups = yield from read_groups(context, index, resolved, grouping)
    duplicates: list[int] = groups.duplicates.tolist()
    for place in duplicates:
        record = _record(groups, place, is_dry=dry_run)
        failure = failed.get((record.index, record.id))
        yield Emit(record if failure is None else _kept(record, failure))


def _record(groups: Groups, place: int, *, is_dry: bool) -> Deduped:
    row = groups.table.row(place)
    canonical = groups.table.row(int(groups.canonical[place]))
    action: Literal["would tag", "tagged"] = "would tag" if is_dry else "tagged"
    distance = int(groups.distance[place])
    return Deduped(row.id, row.index, canonical.id, canonical.index, distance, action, routing=row.routing)


def _kept(record: Deduped, failure: Failure) -> Deduped:
    kind = "refused" if failure.kind == "unusable" else failure.kind
    return replace(record, action="kept", kind=kind, detail=failure.reason)


def show_duplicates(context: Context, index: Index, options: PlanOptions) -> Flow[None]:
    """
    Emit a :class:`Deduped` for each duplicate that :func:`delete_duplicates` would delete, the least similar first.

    The guard rails are left out: nothing is deleted.
    """
    with tempfile.TemporaryDirectory(prefix="es-simhash-") as folder:
        path = Path(folder) / "plan"
        yield from plan_removal(context, index, path, replace(options, max_share=1.0))
        plan: Plan = yield Compute(read_plan, (path,))
        for removal in plan.removals():
            yield Emit(Deduped.of(removal, "would delete"))


def delete_duplicates(
    context: Context,
    index: Index,
    options: PlanOptions,
    archive: FilePath,
    *,
    on_regrouped: OnRegrouped | None = None,
) -> Flow[None]:
    """
    Plan the removal of the duplicates of *index*, apply the plan, and emit a :class:`Deduped` for each line.

    The plan is a file beside the archive. It is deleted when nothing is left that it could do. Where there is one, an
    earlier run was ended or killed, or something was refused: that plan is applied, whatever the arguments are now.
    Where there is only the archive, an earlier run has done all of its plan; with no duplicates left, this one is done.

    Raises:
        InvalidInputError: If the archive is that of something else, or of an earlier removal, and there are duplicates.
        GuardRailError: If a larger share would be removed than is allowed.
    """
    path = plan_path(check_output("archive", archive))
    is_there, is_planned = yield Compute(_look, (Path(archive), path))
    if is_planned:
        plan: Plan = yield Compute(read_plan, (path,))
        resolved = yield from resolve_index(context, index)
        if not plan.header.index_uuids.keys() <= resolved.mappings.keys():
            raise InvalidInputError(f"{path} is the plan of an earlier run for another index: give another archive")
    elif is_there:
        if (yield from _count_duplicates(context, index, options)):
            raise InvalidInputError(
                f"{archive} exists, and {shorten(index)} has duplicates: give each removal an archive of its own"
            )
        return
    else:
        yield from plan_removal(context, index, path, options)
    if (yield from apply_removal(path, archive, context=context, on_regrouped=on_regrouped)):
        yield Compute(path.unlink)


def _count_duplicates(context: Context, index: Index, options: PlanOptions) -> Flow[int]:
    """Return how many documents a plan made now would remove."""
    with tempfile.TemporaryDirectory(prefix="es-simhash-") as folder:
        plan = yield from plan_removal(context, index, Path(folder) / "plan", replace(options, max_share=1.0))
        return plan.count


def _look(archive: Path, plan: Path) -> tuple[bool, bool]:
    return archive.exists() and archive.stat().st_size > 0, plan.exists()
