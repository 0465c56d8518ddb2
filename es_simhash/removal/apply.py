"""
Applies a plan of removal: archive, delete, and check that every canonical is still there.

``docs/proofs.md`` has the steps of a batch, and what the next run does after a kill. A document is in the file, as it
was last, whenever it is gone. Two runs with opposite plans may each delete what the other keeps; every deletion is
followed by a check that sees the canonical, or else brings the duplicate back: the run that checks last finds its
canonical, or creates its duplicate again.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import ExitStack, aclosing
from dataclasses import replace
from typing import Literal

from es_simhash.arguments import FilePath, check_input, check_inputs, check_name
from es_simhash.errors import GuardRailError, InvalidInputError, WritesRefusedError, shorten
from es_simhash.mapping.fields import full_name, now
from es_simhash.mapping.port import Around, Port
from es_simhash.mapping.resolve import judge_mappings
from es_simhash.removal.delete import Deletion, delete_documents, put_back, read_planned
from es_simhash.removal.guard_rails import check_max_share
from es_simhash.removal.make_plan import count_shown, read_setting
from es_simhash.removal.may_delete import is_written, state_of, version_of
from es_simhash.removal.plan_options import PlanHeader
from es_simhash.removal.present import Items, judge, read_decisive
from es_simhash.removal.records import (
    Archived,
    DuplicateAction,
    DuplicateKind,
    DuplicateResult,
    PlannedRemoval,
    in_parts,
)
from es_simhash.removal.regroup import names_within, regroup
from es_simhash.removal.removal_file import RemovalFile
from es_simhash.removal.take_decisions import take_in
from es_simhash.transport.conversation import refresh, unless_refused
from es_simhash.transport.protocol import Key, Progress, noting, were
from es_simhash.writes.bulk import CONFLICT
from es_simhash.writes.operations import find_hindrance, writes_refused
from es_simhash.writes.targets import refuse_masked, refuse_updates

BATCH_DOCUMENTS, BATCH_CHARACTERS = 200, 8_000_000
"""Most documents that are archived and deleted together, and about how many characters they may have."""
# How often a document is read, judged and deleted that others write between the read and the delete.
ROUNDS = 6


async def apply_removal(
    server: Port,
    path: FilePath,
    *,
    decisions: Sequence[FilePath] = (),
    sha256: str | None = None,
    max_share: float | None = None,
    large_groups: bool = False,
    dry_run: bool = False,
) -> AsyncGenerator[Sequence[DuplicateResult], None]:
    """
    Remove what the plan in the file *path* names, emit a :class:`DuplicateResult` per line; then correct the groups.
    Cost, for every 200 lines: two multi-gets, a bulk request, one request for each index, and with an alias a search;
    where documents were written since the plan, two more multi-gets, two reads of mappings, and with a filter a search.
    Guard rails are checked with present numbers: a dry run, where the plan is beyond them; *max_share* replaces the one
    of it.
    """
    share = None if max_share is None else check_max_share(max_share)
    with ExitStack() as stack:
        removal: RemovalFile = await server.compute(_open, stack, path, decisions, sha256, writes=not dry_run)
        if share is not None:
            guards = replace(removal.header.guards, max_share=share)
            removal.header = replace(removal.header, guards=guards)
        large = await server.compute(removal.find_large_group, removal.header.guards.documents)
        if large is not None and not large_groups:
            raise GuardRailError(large.refusal(), large_group=large)
        async with aclosing(_apply(server, removal, dry_run=dry_run)) as parts:
            async for part in parts:
                yield part


def _open(
    stack: ExitStack, path: FilePath, decisions: Sequence[FilePath], sha256: str | None, *, writes: bool
) -> RemovalFile:
    """Return the removal, with its decisions; raise InvalidInputError if it is not what was approved."""
    if sha256 is not None:
        check_name("sha256", sha256)
    files = check_inputs("decisions", decisions)
    removal = stack.enter_context(RemovalFile(check_input("path", path), writes=writes))
    if sha256 is not None and sha256.lower() != removal.sha256:
        raise InvalidInputError(
            f"{removal.path} is not the plan that was approved: its sha256 is {removal.sha256}, and not "
            f"{shorten(sha256)}: give the plan that was approved, or have this one approved"
        )
    take_in(removal, files)
    return removal


async def _apply(
    server: Port, removal: RemovalFile, *, dry_run: bool
) -> AsyncGenerator[Sequence[DuplicateResult], None]:
    header = removal.header
    names = sorted(header.index_uuids)
    uuids = await read_setting(server, names, "uuid")
    standing = [name for name in names if uuids.get(name) == header.index_uuids[name]]
    if standing:
        await _refuse_parts(server, header, standing, dry_run=dry_run)
    created = await read_setting(server, standing, "creation_date")
    view = await _standing_view(server, header, standing)
    if standing:
        await _check_guards(server, removal, view, standing)
    # The plan does not say how long a text is that it cuts: so long was the largest document of the last portion.
    longest = BATCH_CHARACTERS
    lines = (item for batch in removal.batches(BATCH_DOCUMENTS, "going") for item in batch.items())
    portions = in_parts(lines, lambda item: longest if item[1].document.cut else 0, BATCH_DOCUMENTS, BATCH_CHARACTERS)
    going = await server.compute(removal.count_lines, "going")
    done = 0
    gone: set[str] = set()
    back: set[str] = set()
    deleted = 0
    batch = _Batch(removal, view, created)
    with noting(lambda: _say_deleted(deleted + batch.gone, removal)):
        while portion := await server.compute(next, portions, None):
            planned = dict(portion)
            records = await (_preview(server, removal, planned, view) if dry_run else batch.carry_out(server, planned))
            last, batch = batch, _Batch(removal, view, created)
            longest = last.longest or longest
            deleted += sum(record.action == "deleted" for record in records)
            for record in records:
                # What another run of the plan deleted is gone, too; what came back names its former canonical.
                if record.action == "deleted" or record.kind == "missing":
                    gone |= {record.id, full_name(record.index, record.id, record.routing)}
                elif record.kind == "canonical_missing":
                    gone |= {record.canonical, full_name(record.canonical_index, record.canonical)}
                elif record.action == "restored":
                    back.add(record.id)
                yield [record]
            if last.hindrance is not None:
                raise last.hindrance
            done += len(planned)
            server.tell(Progress(done, going, "comparing documents" if dry_run else "removing documents"))
        if standing and not dry_run:
            await refresh(server, standing)
        if standing and not dry_run and (gone or back):
            own = Around(server, server.context.of_prefix(header.prefix))
            await regroup(own, await names_within(own, view, set(standing)), back=back, gone=gone)


def _say_deleted(gone: int, removal: RemovalFile) -> str:
    kept = f", and {removal.path} has {'it' if gone == 1 else 'each of them'}" if gone else ""
    return were(gone, "deleted") + kept


async def _refuse_parts(server: Port, header: PlanHeader, standing: Sequence[str], *, dry_run: bool) -> None:
    """Refuse indices whose documents cannot be read whole, or that record other text fields than the plan compares."""
    answer = await server.get_mapping(index=standing)
    settings_of = judge_mappings(answer, server.context.of_prefix(header.prefix)).settings_of
    for name in standing:
        fields = settings_of[name].text_fields if name in settings_of else ()
        if tuple(fields or ()) != header.text_fields.get(name, ()):
            raise InvalidInputError(f"the plan compares other fields than those of the text of {name}: plan again")
    mappings = {name: described.get("mappings") or {} for name, described in answer.items()}
    await refuse_updates(server, standing, mappings)
    if not dry_run:
        await refuse_masked(server, standing)


async def _standing_view(server: Port, header: PlanHeader, standing: Sequence[str]) -> list[str]:
    """Return under which names the documents of a plan are searched; *standing* are its indices that are there."""
    view = [name for name in header.view or header.index_uuids if name not in header.index_uuids or name in standing]
    if other := [name for name in view if name not in standing] if standing else []:
        asked = server.patient.get_mapping(index=view)
        if await unless_refused(asked, 404) is None:
            raise InvalidInputError(f"the plan is for {', '.join(other)}, which does not exist any more: plan again")
    return view


async def _check_guards(server: Port, removal: RemovalFile, view: Sequence[str], names: Sequence[str]) -> None:
    """Refuse the plan if what could go now is too large a share of the documents that are there now."""
    await refresh(server, names)  # what an earlier run has deleted is not among the documents any more
    # Counted first: what another run of the plan deletes meanwhile is then in both numbers, or in the smaller one.
    guards = replace(removal.header.guards, documents=await count_shown(server, view, names))
    if guards.find_excess(await server.compute(removal.count_lines, "leaving")) is None:
        return
    if excess := guards.find_excess(await _count_left(server, removal, view)):
        raise GuardRailError(excess.refusal(), excess=excess)


async def _count_left(server: Port, removal: RemovalFile, view: Sequence[str]) -> int:
    """Return how many documents would go now. Cost: a dry run."""
    left = 0
    batches = removal.batches(BATCH_DOCUMENTS, "leaving")
    while lines := await server.compute(next, batches, None):
        found = await judge(server, removal, lines, view)
        left += len(found.that("delete", "unsure", "unreadable"))
    return left


async def _preview(
    server: Port, removal: RemovalFile, lines: Mapping[int, PlannedRemoval], view: Sequence[str]
) -> list[DuplicateResult]:
    """Return what would become of those of *lines* that no earlier run carried out."""
    found = await judge(server, removal, lines, view)
    would = {place: DuplicateResult.of(lines[place], "would delete") for place in found.that("delete", "unsure")}
    records = {**found.records, **would}
    return [records[number] for number in lines if number in records]


class _Batch:
    """
    Carries out some lines of a plan.
    *view*: the names under which their documents are searched. *created*: the ``creation_date`` of each index.
    *hindrance*: why no write is taken now; it is raised when what was done is reported.
    """

    def __init__(self, removal: RemovalFile, view: Sequence[str], created: Mapping[str, str]) -> None:
        self._removal = removal
        self._view = view
        self._created = created
        self._lines: Mapping[int, PlannedRemoval] = {}
        self._records: dict[int, DuplicateResult] = {}
        self._before: list[int] = []
        self._deletions: dict[Key, Deletion] = {}
        self._archived: dict[int, Archived] = {}  # the documents as this run archived them, by line
        self._restored = 0
        self.hindrance: WritesRefusedError | None = None

    @property
    def gone(self) -> int:
        """How many of the documents are known to be deleted, now or by an earlier run."""
        return len(self._before) + sum(deletion.is_deleted for deletion in self._deletions.values()) - self._restored

    @property
    def longest(self) -> int:
        """The characters of the largest document that was archived; 0 if none was."""
        return max((len(archived.source) for archived in self._archived.values()), default=0)

    def _settle(
        self, number: int, action: DuplicateAction, kind: DuplicateKind | None = None, detail: str = ""
    ) -> None:
        self._records[number] = DuplicateResult.of(self._lines[number], action, kind, detail)

    async def carry_out(self, server: Port, lines: Mapping[int, PlannedRemoval]) -> list[DuplicateResult]:
        """Return the record of each line, in order."""
        self._lines = waiting = lines
        for _ in range(ROUNDS):
            if waiting:
                waiting = await self._attempt(server, waiting)
        for number in waiting:
            self._settle(number, "kept", "conflict")
        await self._check(server, lines)
        return [self._records[number] for number in lines]

    async def _attempt(self, server: Port, lines: Mapping[int, PlannedRemoval]) -> dict[int, PlannedRemoval]:
        """Read, archive and delete; return the lines whose documents were written meanwhile."""
        found = await judge(server, self._removal, lines, self._view)
        self._records |= found.records
        self._before += found.that("deleted_before")
        unsure = found.that("unsure")
        keys = {number: lines[number].document.key for number in found.that("delete")}
        whole = await self._archive(server, {number: lines[number] for number in keys}, found.items)
        for number in keys.keys() - whole:
            self._settle(number, "kept", "unarchived")
            del keys[number]
        await delete_documents(server, {key: version_of(found.items[key]) for key in keys.values()}, self._deletions)
        for number, key in keys.items():
            deletion = self._deletions[key]
            if deletion.refusal is not None:
                if (kind := deletion.refusal.hindrance) is not None:
                    self.hindrance = writes_refused(kind, key.index, str(deletion.refusal))
                self._settle(number, "kept", "refused", str(deletion.refusal))
            elif not deletion.is_deleted:
                unsure.append(number)
        gone = [number for number, key in keys.items() if self._deletions[key].is_deleted]
        await self._note(server, "deleted", gone)
        # When what is there now is missing later, another program deleted it.
        there = [
            n for n, line in lines.items() if found.items.get(line.document.key, {}).get("found") and n not in gone
        ]
        await self._note(server, "kept", [number for number in there if self._removal.may_have_deleted(number)])
        return {number: lines[number] for number in unsure}

    async def _archive(self, server: Port, lines: Mapping[int, PlannedRemoval], items: Items) -> set[int]:
        """Put the documents into the file, and note that they go now; return which of them the file gives back."""
        batch = []
        for number, line in lines.items():
            key = line.document.key
            created = self._created.get(key.index, "")
            batch.append(Archived(*key, items[key]["_source"], line.canonical.key, number, line.distance, created))
        at = await server.compute(now)
        whole: set[int] = await server.compute(self._removal.archive, batch, at) if batch else set()
        self._archived |= {archived.line: archived for archived in batch if archived.line in whole}
        return whole

    async def _note(self, server: Port, kind: Literal["deleted", "kept"], numbers: Sequence[int]) -> None:
        if numbers:
            await server.compute(self._removal.note, kind, numbers, await server.compute(now))

    async def _check(self, server: Port, lines: Mapping[int, PlannedRemoval]) -> None:
        """Bring back what was deleted for a canonical that is gone, or that was changed since it was read."""
        deleted_now = {key for key, deletion in self._deletions.items() if deletion.is_deleted}
        gone = [*self._before, *(number for number, line in lines.items() if line.document.key in deleted_now)]
        canonicals = [lines[number].canonical for number in gone]
        items = await read_planned(server, canonicals)
        written = [canonical for canonical in canonicals if is_written(canonical, items[canonical.key])]
        decided_by = await read_decisive(server, self._removal.header, written)
        lost: dict[int, DuplicateKind] = {}
        for number in gone:
            line = lines[number]
            state = state_of(line.canonical, items[line.canonical.key], decided_by)
            if state in ("missing", "no_index"):
                lost[number] = "canonical_missing"
            elif state == "unreadable":
                lost[number] = "unreadable"
            # Of what an earlier run deleted, nobody knows how long ago that was: a change since is no reason.
            elif state == "changed" and line.document.key in deleted_now:
                lost[number] = "canonical_changed"
            else:
                is_earlier = number in self._before and number not in self._archived
                self._records[number] = replace(DuplicateResult.of(line, "deleted"), earlier=is_earlier)
        missing = [number for number in lost if number not in self._archived]
        texts = {**await server.compute(self._removal.find, missing), **self._archived}
        for number in lost.keys() - texts.keys():
            self._settle(number, "deleted", "unarchived")
            del lost[number]
        outcomes = await put_back(server, [texts[number] for number in lost])
        self.hindrance = self.hindrance or find_hindrance(outcomes)
        came_back = []
        for number, outcome in zip(lost, outcomes, strict=True):
            if outcome.is_done or outcome.status == CONFLICT:
                came_back.append(number)
                self._settle(number, "restored", lost[number])
            else:
                self._settle(number, "deleted", "not_restored", str(outcome.error))
        self._restored = len(came_back)
        await self._note(server, "kept", came_back)
