"""
Applies a plan of removal: archive, delete, and check that every canonical is still there.

For each batch of lines, in this order:

1. *Read.* The duplicates, with the text of ``_source``, and their canonicals are read. What decided about each (its
   digest) must be as planned, in the planned index (by its UUID). An alias, or other names of the plan, must show both,
   and the filter must still match a duplicate that was written since. A line that does not fit is kept, and its record
   says why.
2. *Archive.* The duplicates are appended to the archive, which is on the disk before the next step. One that is there
   already is appended again if its source, or who approved the plan, is another now; a document's last line counts.
3. *Delete.* Each is deleted only in the version that was read in step 1. A lost answer is judged by reading again.
   A document that was written since it was read begins again with step 1, up to five times.
4. *Check.* The canonicals are read again. A document that was deleted for a canonical that is now gone or
   changed is created again from the archived text.

At the end, what names a removed document is corrected: its tags are removed, its group is decided again.

A process may be killed at any point; the next one continues with the same files. For each line it finds ("fits": both
documents are as planned in all that decided, in whatever version):

=================== ================== ========================================================================
in the archive      in the index       what is done
=================== ================== ========================================================================
no                  fits               steps 2 to 4
no, or noted kept   gone, or changed   nothing: another program did that
yes                 fits, same source  noted, steps 3 and 4: it was archived, and not deleted; or it came back
yes                 fits, other source steps 2 to 4: it was written since it was archived
yes                 gone               step 4: it was deleted by an earlier run
yes                 changed            nothing: another program wrote it
yes                 its canonical      nothing: it came back in step 4, or was not deleted yet
                    does not fit
=================== ================== ========================================================================

A run notes in the archive which archived documents it kept, or created again; a delete of what an earlier run archived
is noted before it, so that the history has each time.
So "yes, gone" has two meanings. An earlier run deleted the document. Or that run was killed, or lost its server, in
step 2 or 3; then another program may have written and deleted it. It comes back only where its canonical is gone, too:
as it was archived.

So a document is in the archive, as it was last, whenever it is gone. What came back in step 4 stays as long as its
canonical is gone or changed. Two runs with opposite plans may each delete what the other keeps. Every deletion is
followed by a check that sees the canonical, or else brings the duplicate back; so the run that checks last finds its
canonical, or creates its duplicate again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any, Literal

from es_simhash.arguments import FilePath, check_function, check_output
from es_simhash.errors import InvalidInputError, WritesRefusedError
from es_simhash.groups.recorded import is_taggable
from es_simhash.mapping.port import Port
from es_simhash.removal.archive_writer import ArchivedKeys, ArchiveWriter
from es_simhash.removal.decisions import read_approved
from es_simhash.removal.delete import Deletion, delete_documents, put_back, read_planned
from es_simhash.removal.files import refuse_archive_name
from es_simhash.removal.make_plan import SIZES, RemovalSizes, count_shares, read_uuids
from es_simhash.removal.may_delete import (
    Share,
    check_max_share,
    refuse_excess,
    state_of,
    version_of,
)
from es_simhash.removal.plan_file import Plan, PlanHeader
from es_simhash.removal.present import Items, Present, judge_present, match_present, read_decisive, read_present
from es_simhash.removal.records import AGAIN, Archived, DuplicateKind, DuplicateResult, PlannedRemoval
from es_simhash.removal.regroup import OnRegrouped, regroup
from es_simhash.removal.tags import untag_removed
from es_simhash.transport.protocol import (
    Key,
    Progress,
    noting,
    status_of,
    were,
)
from es_simhash.transport.retry import now, refresh, retry
from es_simhash.writes.operations import find_hindrance, writes_refused
from es_simhash.writes.targets import refuse_masked, refuse_updates

# How often a document is read, judged and deleted that others write between the read and the delete.
ROUNDS = 6


async def apply_removal(
    server: Port,
    path: FilePath,
    archive: FilePath,
    *,
    max_share: float | None = None,
    on_regrouped: OnRegrouped | None = None,
    sizes: RemovalSizes = SIZES,
    dry_run: bool = False,
    decisions: FilePath | None = None,
    sha256: str | None = None,
) -> AsyncGenerator[Sequence[DuplicateResult], None]:
    """
    Remove what the plan *path* names, emit a :class:`DuplicateResult` per line.
    Tags that name a removed document (``contained_in``) are removed at the end, and the groups are corrected: an ingest
    that tags by arrival may have made a document canonical that does not stay. Cost, for every 200 lines: two multi-
    gets, a bulk request, one request for each index, and with an alias a search; where documents were written since the
    plan, two more multi-gets, two reads of mappings, and with a filter a search. At the end two searches for every
    1,000 canonicals that have duplicates, and the cost of reconciling the groups without a canonical. On an error, the
    archive has what was deleted before. Guard rails are checked with present numbers, which costs a dry run where the
    plan is beyond them; *max_share* replaces the one of the plan. A dry run judges each line by the present index, and
    writes nothing, no archive either. *decisions*: a file that says what is kept. *sha256*: that of the plan that was
    approved.
    """
    check_output("archive", archive)
    if on_regrouped is not None:
        check_function("on_regrouped", on_regrouped)
    plan: Plan = await server.compute(_read_plan, path, decisions, sha256, max_share)
    await server.compute(refuse_archive_name, archive, path)
    names = sorted(plan.header.index_uuids)
    uuids = await read_uuids(server, names)
    standing = [name for name in names if uuids.get(name) == plan.header.index_uuids[name]]
    mappings = await _read_mappings(server, standing, dry_run=dry_run) if standing else {}
    created = await _read_created(server, standing)
    view = await _standing_view(server, plan.header, standing)
    if dry_run:
        async with aclosing(_judge_all(server, plan, archive, view, standing, sizes)) as parts:
            async for part in parts:
                yield part
        return
    with await server.compute(ArchiveWriter, archive, plan.sha256) as writer:
        writer.refuse_unapproved(plan.approved)
        if standing:
            await _check_guards(server, plan, writer, view, standing, sizes)
        batches = plan.batches(sizes.removed)
        done = 0
        gone: set[str] = set()
        restored: set[str] = set()
        deleted = 0
        batch = _Batch(plan, writer, view, created)
        with noting(lambda: _note(deleted + batch.gone, archive)):
            while lines := await server.compute(next, batches, ()):
                records = await batch.carry_out(server, lines)
                last, batch = batch, _Batch(plan, writer, view, created)
                deleted += sum(record.action == "deleted" for record in records)
                for record in records:
                    # What another run of the plan deleted is gone, too; what came back names its former canonical.
                    gone |= {record.id} if record.action == "deleted" or record.kind == "missing" else set()
                    gone |= {record.canonical} if record.kind == "canonical_missing" else set()
                    restored |= {record.id} if record.action == "restored" else set()
                    yield [record]
                last.refuse_hindered()
                done += len(lines)
                server.tell(Progress(done, plan.header.count, "removing documents"))
            if standing:
                await refresh(server, standing)
            if standing and (gone or restored):
                prefix = plan.header.prefix
                own = Port(server, replace(server.context, prefix=prefix))
                if taggable := [name for name, mapping in mappings.items() if is_taggable(mapping, prefix=prefix)]:
                    for record in await untag_removed(own, view, taggable, sorted(gone)):
                        yield [record]
                await regroup(own, view, restored, gone=gone, few=sizes.few, report=on_regrouped)


def _note(gone: int, archive: FilePath) -> str:
    kept = f", and {archive} has {'it' if gone == 1 else 'each of them'}" if gone else ""
    return were(gone, "deleted") + kept


async def _read_mappings(server: Port, standing: Sequence[str], *, dry_run: bool) -> dict[str, Mapping[str, Any]]:
    """Return the mappings of the indices that are there; refuse those whose documents cannot be read whole."""
    answer = await server.get_mapping(index=standing)
    mappings = {name: each.get("mappings") or {} for name, each in answer.items()}
    await refuse_updates(server, standing, mappings)
    if not dry_run:
        await refuse_masked(server, standing)
    return mappings


def _read_plan(path: FilePath, decisions: FilePath | None, sha256: str | None, max_share: float | None) -> Plan:
    share = None if max_share is None else check_max_share(max_share)
    plan = read_approved(path, decisions=decisions, sha256=sha256)
    if share is None:
        return plan
    return replace(plan, header=replace(plan.header, guards=replace(plan.header.guards, max_share=share)))


async def _judge_all(
    server: Port, plan: Plan, archive: FilePath, view: Sequence[str], standing: Sequence[str], sizes: RemovalSizes
) -> AsyncGenerator[Sequence[DuplicateResult], None]:
    """Yield what would become of each line that no earlier run carried out."""
    held: ArchivedKeys = await server.compute(ArchivedKeys, archive, plan.sha256)
    held.refuse_unapproved(plan.approved)
    if standing:
        await _check_guards(server, plan, held, view, standing, sizes)
    done, batches = 0, plan.batches(sizes.removed)
    while lines := await server.compute(next, batches, ()):
        for _, record in sorted((await _judge(server, plan, lines, held, view)).items()):
            yield [record]
        done += len(lines)
        server.tell(Progress(done, plan.header.count, "comparing documents"))


async def _read_created(server: Port, names: Sequence[str]) -> dict[str, str]:
    """Return the ``creation_date`` of each index."""
    if not names:
        return {}
    found = await retry(server, lambda: server.get_settings(index=names, name="index.creation_date"))
    return {name: str(each["settings"]["index"]["creation_date"]) for name, each in found.items()}


async def _standing_view(server: Port, header: PlanHeader, standing: Sequence[str]) -> list[str]:
    """Return under which names the documents of a plan are searched; *standing* are its indices that are there."""
    view = [name for name in header.view or header.index_uuids if name not in header.index_uuids or name in standing]
    if other := [name for name in view if name not in standing] if standing else []:
        try:
            await retry(server, lambda: server.get_mapping(index=",".join(view)))
        except Exception as error:
            if status_of(error) != 404:
                raise
            raise InvalidInputError(
                f"the plan is for {', '.join(other)}, which does not exist any more: plan again"
            ) from error
    return view


async def _check_guards(
    server: Port, plan: Plan, held: ArchivedKeys, view: Sequence[str], names: Sequence[str], sizes: RemovalSizes
) -> None:
    """Refuse the plan if what could go now is too large a share of the documents that are there now."""
    guards = plan.header.guards
    await refresh(server, names)  # what an earlier run has deleted is not among the documents any more
    planned = {value: share.removals for value, share in guards.values.items()}
    # Counted first: what another run of the plan deletes meanwhile is then in both numbers, or in the smaller one.
    present = await count_shares(server, view, names, guards, planned)
    if present.find_excess(len(plan)):
        left, by_value = await _count_left(server, plan, held, view, sizes)
        shares = {value: Share(by_value[value], share.documents) for value, share in present.values.items()}
        refuse_excess(replace(present, values=shares).find_excess(left))


async def _count_left(
    server: Port, plan: Plan, held: ArchivedKeys, view: Sequence[str], sizes: RemovalSizes
) -> tuple[int, Counter[str]]:
    """
    Return of how many lines the documents would go now, and how many of these have each protected value.
    A document that cannot be read now may be one. Cost: that of a dry run.
    """
    left, by_value = 0, Counter[str]()
    batches = plan.batches(sizes.removed)
    while lines := await server.compute(next, batches, ()):
        for number, record in (await _judge(server, plan, lines, held, view)).items():
            if record.action == "would delete" or record.kind in AGAIN:
                left += 1
                by_value.update(lines[number].protected or ())
    return left, by_value


async def _judge(
    server: Port, plan: Plan, lines: Sequence[PlannedRemoval], held: ArchivedKeys, view: Sequence[str]
) -> dict[int, DuplicateResult]:
    """Return what would become of each of *lines* that no earlier run carried out, by number."""
    records: dict[int, DuplicateResult] = {}
    found = await read_present(server, plan, dict(enumerate(lines)), records, with_source=False)
    _, to_delete = judge_present(plan, found, held, records)
    to_delete, unsure = await match_present(server, plan, view, found, to_delete, records)
    return records | {each: DuplicateResult.of(lines[each], "would delete") for each in (*to_delete, *unsure)}


class _Batch:
    """
    Carries out some lines of a plan.
    *view*: the names under which their documents are searched. *created*: the ``creation_date`` of each index.
    """

    def __init__(self, plan: Plan, writer: ArchiveWriter, view: Sequence[str], created: Mapping[str, str]) -> None:
        self._plan = plan
        self._writer = writer
        self._view = view
        self._created = created
        self._records: dict[int, DuplicateResult] = {}
        self._before: list[int] = []
        self._deletions: dict[Key, Deletion] = {}
        self._archived: dict[Key, Archived] = {}  # the documents as this run archived them
        self._restored = 0
        self._hindrance: WritesRefusedError | None = None

    @property
    def gone(self) -> int:
        """How many of the documents are known to be deleted, now or by an earlier run."""
        return len(self._before) + sum(each.is_deleted for each in self._deletions.values()) - self._restored

    def refuse_hindered(self) -> None:
        """Raise if no write is taken now; call it when what was done is reported."""
        if self._hindrance is not None:
            raise self._hindrance

    async def carry_out(self, server: Port, lines: Sequence[PlannedRemoval]) -> list[DuplicateResult]:
        """Return the record of each line, in order."""
        waiting = dict(enumerate(lines))
        for _ in range(ROUNDS):
            if waiting:
                waiting = await self._attempt(server, waiting)
        for number, each in waiting.items():
            self._records[number] = DuplicateResult.of(each, "kept", "conflict")
        await self._check(server, lines)
        return [self._records[number] for number in range(len(lines))]

    async def _attempt(self, server: Port, lines: Mapping[int, PlannedRemoval]) -> dict[int, PlannedRemoval]:
        """Read, archive and delete; return the lines whose documents were written meanwhile."""
        found = await read_present(server, self._plan, lines, self._records, with_source=True)
        before, to_delete = judge_present(self._plan, found, self._writer, self._records)
        self._before += before
        to_delete, unsure = await match_present(server, self._plan, self._view, found, to_delete, self._records)
        keys = {number: lines[number].document.key for number in to_delete}
        await self._archive(server, [lines[number] for number in to_delete], found.items)
        await delete_documents(server, {key: version_of(found.items[key]) for key in keys.values()}, self._deletions)
        for number, key in keys.items():
            deletion = self._deletions[key]
            if deletion.refusal is not None:
                if (kind := deletion.refusal.hindrance) is not None:
                    self._hindrance = writes_refused(kind, key.index, str(deletion.refusal))
                self._records[number] = DuplicateResult.of(lines[number], "kept", "refused", str(deletion.refusal))
            elif not deletion.is_deleted:
                unsure.append(number)
        await self._note_kept(server, found)
        return {number: lines[number] for number in unsure}

    async def _archive(self, server: Port, lines: Sequence[PlannedRemoval], items: Items) -> None:
        """Put the documents into the archive, except those that are there as they are now."""
        at, plan = await server.compute(now), self._plan
        archived = {
            key: Archived(
                *key,
                source,
                each.canonical.key,
                plan.sha256,
                at,
                approved=plan.approved,
                created=self._created.get(key.index, ""),
            )
            for each in lines
            for key, source in [(each.document.key, items[each.document.key]["_source"])]
        }
        first_now = archived.keys() - self._archived.keys()
        self._archived |= archived
        held = [key for key, each in archived.items() if self._writer.holds(key, each)]
        fresh = [
            replace(each, again=self._writer.holds(key))
            for key, each in archived.items()
            if not self._writer.holds(key, each)
        ]
        names = tuple(sorted(plan.header.index_uuids))
        if fresh and len(names) > 1:
            fresh[0] = replace(fresh[0], together=names)
        if fresh and plan.header.has_view:
            fresh[0] = replace(fresh[0], view=plan.header.view)
        await server.compute(self._writer.append, fresh)
        # As an earlier run archived it, and now it is deleted, perhaps once more: the history says when.
        again = [key for key in held if key in first_now or not self._writer.may_have_deleted(key)]
        await self._note(server, "archived", again)

    async def _note_kept(self, server: Port, found: Present) -> None:
        """Note which archived documents are there: when one is missing later, another program deleted it."""
        keys = [each.document.key for each in found.lines.values()]
        there = [key for key in keys if found.items[key].get("found") and self._writer.may_have_deleted(key)]
        gone = {key for key, each in self._deletions.items() if each.is_deleted}
        await self._note(server, "kept", [key for key in there if key not in gone])

    async def _note(self, server: Port, state: Literal["kept", "archived"], keys: Sequence[Key]) -> None:
        if keys:
            await server.compute(self._writer.note, state, keys, await server.compute(now))

    async def _check(self, server: Port, lines: Sequence[PlannedRemoval]) -> None:
        """Bring back what was deleted for a canonical that is gone, or that was changed since it was read."""
        is_now = {key for key, each in self._deletions.items() if each.is_deleted}
        gone = [*self._before, *(n for n, each in enumerate(lines) if each.document.key in is_now)]
        canonicals = [lines[number].canonical for number in gone]
        items = await read_planned(server, canonicals)
        decided_by = await read_decisive(server, self._plan.header, canonicals, items)
        lost: dict[int, DuplicateKind] = {}
        for number in gone:
            each = lines[number]
            state = state_of(each.canonical, items[each.canonical.key], decided_by)
            if state in ("missing", "no_index"):
                lost[number] = "canonical_missing"
            elif state == "unreadable":
                lost[number] = "unreadable"
            # Of what an earlier run deleted, nobody knows how long ago that was: a change since is no reason.
            elif state == "changed" and each.document.key in is_now:
                lost[number] = "canonical_changed"
            else:
                is_earlier = number in self._before and each.document.key not in self._archived
                self._records[number] = replace(DuplicateResult.of(each, "deleted"), earlier=is_earlier)
        keys = {number: lines[number].document.key for number in lost}
        missing = list(set(keys.values()) - self._archived.keys())
        texts = {**await server.compute(self._writer.find, missing), **self._archived}
        outcomes = await put_back(server, [texts[key] for key in keys.values()])
        self._hindrance = self._hindrance or find_hindrance(outcomes)
        came_back = []
        for number, outcome in zip(lost, outcomes, strict=True):
            if outcome.is_done or outcome.status == 409:
                came_back.append(keys[number])
                self._records[number] = DuplicateResult.of(lines[number], "restored", lost[number])
            else:
                self._records[number] = DuplicateResult.of(lines[number], "deleted", "not_restored", str(outcome.error))
        self._restored = len(came_back)
        await self._note(server, "kept", came_back)
