"""
Puts archived documents back: each as it was, only where it is missing, and then in its group again. Every write is a
creation, so a second run does what is left. A backing index takes no new document, only its data stream.
"""

from __future__ import annotations

import warnings
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from es_simhash.arguments import FilePath, check_input, check_name
from es_simhash.errors import InvalidInputError, WritesRefusedError
from es_simhash.mapping.fields import now
from es_simhash.mapping.meta import IndexSettings
from es_simhash.mapping.port import Around, Port
from es_simhash.mapping.resolve import judge_mappings, no_index
from es_simhash.mapping.user_fields import walk_fields
from es_simhash.removal.delete import find_streams, put_back, read_documents
from es_simhash.removal.fits import find_misfits, is_same_source
from es_simhash.removal.may_delete import is_unreadable
from es_simhash.removal.plan_options import PlanHeader
from es_simhash.removal.records import Archived, EventKind, Restored, RestoredKind, in_parts
from es_simhash.removal.regroup import names_within, regroup
from es_simhash.removal.removal_file import RemovalFile, open_archived
from es_simhash.removal.sqlite_file import DamagedError
from es_simhash.transport.answers import check_whole
from es_simhash.transport.conversation import refresh, unless_refused
from es_simhash.transport.pages import Hits, read_each
from es_simhash.transport.protocol import Key, Progress, check_index, document_key, noting, were
from es_simhash.writes.bulk import CONFLICT
from es_simhash.writes.operations import find_hindrance
from es_simhash.writes.targets import last_generation

BATCH_DOCUMENTS, BATCH_CHARACTERS = 500, 8_000_000
"""Most documents that are put back together, and about how many characters they may have."""

Present: TypeAlias = tuple[str, str | None, str]
"""Index, routing value and source of a document that is there."""


async def restore(
    server: Port, paths: Sequence[FilePath], *, index: str | None = None, dry_run: bool = False
) -> AsyncGenerator[Sequence[Restored], None]:
    """
    Put what the removals *paths* have archived back, and emit a :class:`Restored` for each; in a dry run, only emit. Of
    a damaged file, what is whole is put back, and then DamagedError is raised. Cost, for 500 documents: a multi-get and
    a bulk request, and up to two multi-gets for conflicts and final pipelines; at the end the regrouping.
    """
    if not paths:
        raise InvalidInputError("no file was named: give the file of a removal that was applied")
    if index is not None:
        check_index(check_name("index", index))
    files = _distinct(check_input("path", path) for path in paths)
    damaged: list[Path] = []
    works: list[_Work] = []
    with ExitStack() as stack, noting(lambda: were(sum(work.back for work in works), "put back")):
        opened = [await server.compute(_open, stack, file, writes=not dry_run) for file in files]
        done = 0
        for removal in opened:
            work = _Work(server, removal.header, index, is_dry=dry_run)
            works.append(work)
            is_damaged, back = removal.is_damaged, set[str]()
            batches = in_parts(removal.archived(), _size_of, BATCH_DOCUMENTS, BATCH_CHARACTERS)
            while batch := await server.compute(next, batches, None):
                is_damaged |= None in batch
                records = await work.carry_out([line for line in batch if line is not None])
                for line, record in records:
                    if record.action in ("restored", "exists") or record.kind == "pipeline":
                        back.add(line.id)
                    yield [record]
                if removal.writes:
                    await server.compute(_note, removal, records, is_elsewhere=index is not None)
                if work.hindrance is not None:
                    raise work.hindrance
                done += len(batch)
                server.tell(Progress(done, None, "restoring documents"))
            damaged += [removal.path] if is_damaged else []
            if back and not dry_run:
                await regroup(work.server, await work.find_names(), back=back)
    if damaged:
        raise DamagedError(f"{damaged[0]} is damaged, or was cut short: what is whole was read; look for a copy")


def _distinct(paths: Iterable[FilePath]) -> list[FilePath]:
    """Return each file once, by whichever names it is given."""
    return [*{Path(path).resolve(): path for path in paths}.values()]


def _open(stack: ExitStack, path: FilePath, *, writes: bool) -> RemovalFile:
    """Return the removal, which *stack* closes, also if the caller is gone by now."""
    return stack.enter_context(open_archived(path, writes=writes))


def _note(removal: RemovalFile, records: Sequence[tuple[Archived, Restored]], *, is_elsewhere: bool) -> None:
    """Note what was put back; a full disk is no reason to put back no more."""
    back: dict[EventKind, list[int]] = {"restored": [], "copied": []}
    for line, record in records:
        if record.action == "restored":
            back["copied" if is_elsewhere and record.index != line.index else "restored"].append(line.line)
    try:
        for kind, lines in back.items():
            removal.note(kind, lines, now())
    except InvalidInputError as error:
        warnings.warn(f"what was put back is not noted in {removal.path} ({error.__cause__})", stacklevel=2)


def _size_of(document: Archived | None) -> int:
    return 0 if document is None else len(document.source)


@dataclass(slots=True)
class _Item:
    """A line on its way back, and what became of it."""

    line: Archived
    target: Destination
    record: Restored | None = None

    def settle(self, *args: Any, index: str | None = None) -> None:
        """Note what became of it; the arguments are those of :meth:`Restored.of` from the action on."""
        self.record = Restored.of(self.line, index or self.target.name, *args)


class _Work:
    """
    Puts back the documents of a removal with this *header*, into *index* where one is named. *back*: how many are there
    now. *hindrance*: why the server takes no writes now; it is raised when what was put back is reported.
    """

    def __init__(self, server: Port, header: PlanHeader, index: str | None, *, is_dry: bool) -> None:
        prefix = header.prefix or server.prefix  # a damaged header names none
        self.server = Around(server, server.context.of_prefix(prefix))
        self.back = 0
        self.hindrance: WritesRefusedError | None = None
        self._header, self._index, self._is_dry = header, index, is_dry
        self._targets: dict[str, Destination] = {}  # each name is looked up once

    async def find(self, name: str) -> Destination:
        """Return where the documents of the index *name* go."""
        wanted = self._index or name
        if wanted not in self._targets:
            self._targets[wanted] = await find_target(self.server, wanted, is_named=self._index is not None)
        return self._targets[wanted]

    async def find_names(self) -> tuple[str, ...]:
        """Return by which names the documents are grouped."""
        if self._index is not None:
            return ((await self.find(self._index)).name,)
        return await names_within(self.server, self._header.view, self._header.index_uuids.keys())

    async def carry_out(self, lines: Sequence[Archived]) -> list[tuple[Archived, Restored]]:
        """Write what is missing, and return each line with its record, in order."""
        items = []
        for line in lines:
            is_planned = self._index is not None or line.index in self._header.index_uuids
            target = await self.find(line.index) if is_planned else Destination(line.index, fault="unplanned")
            items.append(_Item(line, target))
            if target.fault is not None:
                items[-1].settle("refused", target.fault)
        await self.server.compute(self._refuse_misfits, _open_of(items))
        # What is missing now, and there after it was created, was restored, though the answer may have been lost.
        await self._compare(_open_of(items), None)
        if not self._is_dry:
            await self._create(_open_of(items))
        else:
            for item in _open_of(items):
                item.settle("would restore")
        return [(item.line, item.record) for item in items if item.record is not None]

    def _refuse_misfits(self, items: Sequence[_Item]) -> None:
        """Refuse the lines whose fingerprints are not of the scheme of their target, as far as that can be known."""
        # Those of two indices of one stream have the same name.
        for target in {id(item.target): item.target for item in items}.values():
            settings = target.settings
            if settings is None or not settings.text_fields:
                continue
            its = {n: item.line for n, item in enumerate(items) if item.target is target}
            sources = {n: line.source for n, line in its.items()}
            elsewhere = {n for n, line in its.items() if self._is_elsewhere(line, target)}
            prefix = self.server.prefix
            for n in find_misfits(sources, elsewhere, settings.scheme, settings.text_fields, prefix=prefix):
                items[n].settle("refused", "other_scheme")

    def _is_elsewhere(self, line: Archived, target: Destination) -> bool:
        """Return whether *target* may be another index than *line* was in; one from a snapshot of it is not."""
        is_other_name = self._index is not None and target.name != line.index
        return is_other_name or not target.created or target.created != line.created

    async def _create(self, items: Sequence[_Item]) -> None:
        """Create the documents; one whose id is taken is compared with what is there."""
        if not items:
            return
        names = {item.line.index: item.target.name for item in items}
        outcomes = await put_back(self.server, [item.line for item in items], indices=names)
        self.hindrance = find_hindrance(outcomes)
        self.back += sum(outcome.is_done for outcome in outcomes)
        taken, written = [], []
        for item, outcome in zip(items, outcomes, strict=True):
            if outcome.status == CONFLICT:
                taken.append(item)
            elif outcome.is_done:
                item.settle("restored", index=outcome.index)
                written.append(item)
            elif outcome.is_dropped:
                item.settle("refused", "dropped")
            elif outcome.hindrance is None:
                item.settle("refused", "refused", str(outcome.error))
        await self._compare(taken, {_key(item) for item in written})
        changeable = [item for item in written if item.target.may_change]
        found = await _read(self.server, changeable)
        for item in changeable:
            if not self._is_same(item, found.get(_key(item))):
                item.settle("differs", "pipeline")

    async def _compare(self, items: Sequence[_Item], written: set[Key] | None) -> None:
        """
        Settle the lines whose documents are there, or cannot be read. With the keys that were *written* now, all are
        there: created by a request whose answer was lost, or for an earlier line.
        """
        found = await _read(self.server, items)
        for item in items:
            key = _key(item)
            present = found.get(key)
            if present is not None:
                is_same = self._is_same(item, present)
                is_new = written is not None and key not in written
                item.settle(("restored" if is_new else "exists") if is_same else "differs", index=present[0])
                self.back += is_same and is_new
                if written is not None and is_same:
                    written.add(key)
            elif key in found or written is not None:
                item.settle("refused", "unreadable")

    def _is_same(self, item: _Item, present: Present | None) -> bool:
        if present is None or present[1] != item.line.routing:
            return False
        return is_same_source(item.line.source, present[2], prefix=self.server.prefix, vectors=item.target.vectors)


def _open_of(items: Sequence[_Item]) -> list[_Item]:
    return [item for item in items if item.record is None]


def _key(item: _Item) -> Key:
    # Of a stream, any of its indices may hold the document, with any routing value.
    return Key(item.target.name, item.line.id, None if item.target.is_stream else item.line.routing)


async def _read(server: Port, items: Sequence[_Item]) -> dict[Key, Present | None]:
    """Return index, routing and source of those of *items* that are there; ``None`` for one that cannot be read."""
    wanted: dict[Key, Key] = {}  # by the place where a document is
    streams: dict[str, list[str]] = {}
    for item in items:
        if item.target.is_stream:
            streams.setdefault(item.target.name, []).append(item.line.id)
        else:
            wanted[_key(item)] = _key(item)
    for name, ids in streams.items():
        await _find_in_stream(server, name, ids, wanted)
    items_there = await read_documents(server, list(wanted), with_source=True)
    return {
        wanted[key]: None
        if is_unreadable(there)
        else (there["_index"], there.get("_routing"), there.get("_source") or "{}")
        for key, there in items_there.items()
        if there.get("found") or is_unreadable(there)
    }


async def _find_in_stream(server: Port, name: str, ids: Sequence[str], wanted: dict[Key, Key]) -> None:
    """Note for each of *ids* that is in the stream, in which of its indices."""

    def add(hits: Hits) -> None:
        wanted.update({document_key(hit): Key(name, hit["_id"]) for hit in hits})

    await refresh(server, name)
    body = {"query": {"ids": {"values": list(ids)}}, "_source": False}
    check_whole(await read_each(server, name, body, add, page=len(ids)))


VECTORS = ("dense_vector", "rank_vectors", "sparse_vector", "knn_vector")


@dataclass(frozen=True, slots=True)
class Destination:
    """
    Where documents are written to; *name* is a concrete index or a data stream.
    *settings*: ``None`` if the index has no fields of this package. *created*: empty if not known. *vectors*: fields
    that the server keeps as vectors. *may_change*: a final pipeline may change what is written. *fault*: why nothing
    can be written there.
    """

    name: str
    settings: IndexSettings | None = None
    is_stream: bool = False
    created: str = ""
    vectors: frozenset[str] = frozenset()
    may_change: bool = True
    fault: RestoredKind | None = None


async def find_target(server: Port, name: str, *, is_named: bool) -> Destination:
    """
    Return where documents for *name* are written to; costs up to three requests.
    *is_named*: the caller names it, not the file: then it may be a data stream, and what is no index is an error.
    """
    asked = server.patient.get_mapping(index=name)
    answer = await (asked if is_named else unless_refused(asked, 404))
    if is_named and not answer:
        raise no_index(name)
    mappings = {index: described.get("mappings") or {} for index, described in (answer or {}).items()}
    if not is_named and name not in mappings:  # what is an alias now shows documents of another index
        return Destination(name, fault="index_missing")
    is_of_stream = all("_data_stream_timestamp" in mapping for mapping in mappings.values())
    streams = await find_streams(server) if is_of_stream else {}
    of_it = [backing for backing in mappings if streams.get(backing) == name]
    index = last_generation(of_it) if of_it else name
    if index not in mappings:
        raise InvalidInputError(f"{name!r} is no index and no data stream: give one, such as {min(mappings)}")
    name = streams.get(index, index)
    settings = judge_mappings({index: {"mappings": mappings[index]}}, server.context).settings_of.get(index)
    created, may_change = await _read_settings(server, name, index)
    vectors = frozenset(path for path, node in walk_fields(mappings[index]) if node.get("type") in VECTORS)
    fault: RestoredKind | None = None if settings is not None else "unmapped"
    return Destination(name, settings, index in streams, created, vectors, may_change, fault)


async def _read_settings(server: Port, name: str, index: str) -> tuple[str, bool]:
    """Return when *index* was created, and whether *name* has a final pipeline, as far as they may be read."""
    wanted = "index.creation_date,index.final_pipeline"
    answer = await unless_refused(server.patient.get_settings(index=name, name=wanted), 401, 403)
    if answer is None:
        return "", True
    found = {backing: (held.get("settings") or {}).get("index") or {} for backing, held in answer.items()}
    may_change = any(held.get("final_pipeline", "_none") != "_none" for held in found.values())
    return str((found.get(index) or {}).get("creation_date") or ""), may_change
