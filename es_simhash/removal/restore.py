"""
Puts archived documents back: each as it was, only where it is missing, and then in its group again. Every write is a
creation, so a second run does what is left. A backing index takes no new document, only its data stream.
"""

from __future__ import annotations

import warnings
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from es_simhash.arguments import FilePath, check_input, check_name
from es_simhash.errors import InvalidInputError, WritesRefusedError, count
from es_simhash.groups.read import lost_canonicals
from es_simhash.mapping.fields import now
from es_simhash.mapping.meta import IndexSettings
from es_simhash.mapping.port import Around, Port
from es_simhash.mapping.resolve import judge_mappings, no_index
from es_simhash.mapping.user_fields import walk_fields
from es_simhash.removal.delete import find_streams, put_back, read_documents
from es_simhash.removal.fits import Incoming, find_misfits, is_same_source
from es_simhash.removal.make_plan import SIZES, RemovalSizes
from es_simhash.removal.may_delete import is_unreadable
from es_simhash.removal.plan_options import PlanHeader
from es_simhash.removal.records import Archived, EventKind, Restored, RestoredKind
from es_simhash.removal.regroup import names_within, regroup
from es_simhash.removal.removal_file import RemovalFile, open_archived
from es_simhash.removal.sqlite_file import DamagedError
from es_simhash.transport.answers import check_whole
from es_simhash.transport.conversation import refresh, unless_refused
from es_simhash.transport.pages import Hits, read_each
from es_simhash.transport.protocol import Key, Progress, check_index, document_key, noting, were
from es_simhash.writes.bulk import CONFLICT
from es_simhash.writes.operations import find_hindrance
from es_simhash.writes.targets import last_generation, write_index

# Index, routing value and source of a document that is there.
Present: TypeAlias = tuple[str, str | None, str]


async def restore(
    server: Port,
    paths: Sequence[FilePath],
    *,
    index: str | None = None,
    dry_run: bool = False,
    sizes: RemovalSizes = SIZES,
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
    files = [check_input("path", path) for path in paths]
    done = 0
    damaged: list[Path] = []
    so_far = _SoFar(is_dry=dry_run)
    with ExitStack() as stack, noting(so_far.words):
        opened = [await server.compute(_open, stack, file, writes=not dry_run) for file in files]
        so_far.archived = sum([await server.compute(removal.count_archived) for removal in opened])
        worlds = {removal.header.prefix: _world(server, removal.header.prefix, index) for removal in opened}
        to_regroup: list[tuple[PlanHeader, set[str]]] = []
        for removal in opened:
            header, lost = removal.header, 0
            own, targets = worlds[header.prefix]
            back: set[str] = set()
            documents = removal.archived()
            while batch := await server.compute(_take, documents, sizes):
                work = _Batch(own.prefix, so_far)
                lost += batch.count(None)
                for line in filter(None, batch):
                    is_planned = index is not None or line.index in header.index_uuids
                    unplanned = Destination(line.index, fault="unplanned")
                    work.add(line, await targets.find(own, line.index) if is_planned else unplanned)
                records = await work.carry_out(own)
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
            damaged += [removal.path] if lost or removal.is_damaged else []
            if back and not dry_run:
                to_regroup.append((header, back))
        so_far.is_grouping = True
        grouped: dict[tuple[str, tuple[str, ...]], set[str]] = {}
        for header, back in to_regroup:
            own, targets = worlds[header.prefix]
            names = await targets.find_names(own, header)
            grouped.setdefault((header.prefix, names), set()).update(back)
        for (prefix, names), back in grouped.items():
            own, targets = worlds[prefix]
            await regroup(own, names, back=back, few=sizes.few)
            if index is not None:
                await _warn_of_lost(own, await targets.find(own, index))
    if damaged:
        raise DamagedError(f"{damaged[0]} is damaged, or was cut short: what is whole was read; look for a copy")


async def _warn_of_lost(server: Port, target: Destination) -> None:
    """Say how many documents of *target* name a canonical that is not there, if no grouping mends them."""
    if target.settings is None or target.settings.is_grouped:
        return
    lost = await lost_canonicals(server.patient, target.view, ())
    if lost:
        warnings.warn(
            f"{count(lost.total(), 'document')} of {target.view} name a document that is not there as the one they are "
            "a duplicate of: the index records no grouping, so they are as they were archived; run reconcile there",
            stacklevel=2,
        )


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


@dataclass(slots=True)
class _SoFar:
    """How many of the *archived* documents are *back*, created now or before."""

    is_dry: bool
    archived: int = 0
    back: int = 0
    is_grouping: bool = False

    def words(self) -> str:
        """Return what is done and what is left, for a run that ends early."""
        if self.is_dry or not self.back:
            return were(0, "put back")
        which = "all" if self.back == self.archived else f"{self.back:,} of"
        groups = "; groups remain" if self.is_grouping else ""
        return f"{which} {self.archived:,} documents are back{groups}: run it again"


class _World(NamedTuple):
    """What is used for all removals of one prefix."""

    server: Port
    targets: _Targets


def _world(server: Port, prefix: str, index: str | None) -> _World:
    own = Around(server, server.context.of_prefix(prefix or server.prefix))  # a damaged header names none
    return _World(own, _Targets(index))


def _take(documents: Iterator[Archived | None], sizes: RemovalSizes) -> list[Archived | None]:
    """Return the next documents: some hundred, or fewer long ones."""
    batch: list[Archived | None] = []
    size = 0
    for document in documents:
        batch.append(document)
        size += 0 if document is None else len(document.source)
        if len(batch) == sizes.restored or size >= sizes.characters:
            break
    return batch


class _Targets:
    """Where lines go; each name is looked up once."""

    def __init__(self, index: str | None) -> None:
        self._index = index
        self._known: dict[str, Destination] = {}

    async def find(self, server: Port, name: str) -> Destination:
        wanted = self._index or name
        if wanted not in self._known:
            is_named = self._index is not None
            found = await find_target(server, wanted, is_named=is_named)
            self._known[wanted] = replace(found, is_named=is_named)
        return self._known[wanted]

    async def find_names(self, server: Port, header: PlanHeader) -> tuple[str, ...]:
        """Return by which names the documents of a removal are grouped."""
        if self._index is None:
            return await names_within(server, header.view, header.index_uuids.keys())
        return ((await self.find(server, self._index)).view,)


@dataclass(slots=True)
class _Item:
    """A line on its way back, and what became of it."""

    line: Archived
    target: Destination
    record: Restored | None = None

    def settle(self, *args: Any, index: str | None = None) -> None:
        """Note what became of it; the arguments are those of :meth:`Restored.of` from the action on."""
        self.record = Restored.of(self.line, index or self.target.name, *args)


class _Batch:
    """Some lines that are written in one request."""

    def __init__(self, prefix: str, so_far: _SoFar) -> None:
        self._prefix = prefix
        self._so_far = so_far
        self._items: list[_Item] = []
        self.hindrance: WritesRefusedError | None = None  # raised when what was put back is reported

    def add(self, line: Archived, target: Destination) -> None:
        item = _Item(line, target)
        if target.fault is not None:
            item.settle("refused", target.fault, target.detail)
        self._items.append(item)

    async def carry_out(self, server: Port) -> list[tuple[Archived, Restored]]:
        """Write what is missing, and return each line with its record, in order."""
        await server.compute(self._refuse_misfits)
        # What is missing now, and there after it was created, was restored, though the answer may have been lost.
        await self._compare(server, self._open())
        if self._so_far.is_dry:
            for item in self._open():
                item.settle("would restore")
        else:
            await self._create(server)
        return [(item.line, item.record) for item in self._items if item.record is not None]

    def _open(self) -> list[_Item]:
        return [item for item in self._items if item.record is None]

    def _refuse_misfits(self) -> None:
        """Refuse the lines whose fingerprints are not of the scheme of their target, as far as that can be known."""
        asked = {n: found for n, item in enumerate(self._items) if (found := _incoming(item)) is not None}
        places = list(asked)
        for n in find_misfits(list(asked.values()), prefix=self._prefix):
            self._items[places[n]].settle("refused", "other_scheme")

    async def _create(self, server: Port) -> None:
        """Create the documents; one whose id is taken is compared with what is there."""
        items = self._open()
        if not items:
            return
        names = {item.line.index: item.target.name for item in items}
        outcomes = await put_back(server, [item.line for item in items], indices=names)
        self.hindrance = find_hindrance(outcomes)
        self._so_far.back += sum(outcome.is_done for outcome in outcomes)
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
        await self._judge_taken(server, taken, {_key(item) for item in written})
        await self._check(server, [item for item in written if item.target.may_change])

    async def _check(self, server: Port, items: Sequence[_Item]) -> None:
        """Say which of the documents that were written now are not as they were archived."""
        found = await _read(server, items)
        for item in items:
            present = found.get(_key(item))
            if present is None or not self._is_same(item, present):
                item.settle("differs", "pipeline")

    def _is_same(self, item: _Item, present: Present) -> bool:
        _, routing, source = present
        same = is_same_source(item.line.source, source, prefix=self._prefix, vectors=item.target.vectors)
        return routing == item.line.routing and same

    async def _compare(self, server: Port, items: Sequence[_Item]) -> None:
        """Settle the lines whose documents are there, or cannot be read."""
        found = await _read(server, items)
        for item in items:
            if _key(item) not in found:
                continue
            if (present := found[_key(item)]) is None:
                item.settle("refused", "unreadable")
            else:
                is_same = self._is_same(item, present)
                item.settle("exists" if is_same else "differs", index=present[0])
                self._so_far.back += is_same

    async def _judge_taken(self, server: Port, items: Sequence[_Item], written: set[Key]) -> None:
        """Settle lines whose documents exist now: created by a request with a lost answer, or for an earlier line."""
        found = await _read(server, items)
        for item in items:
            if (present := found.get(_key(item))) is None:
                item.settle("refused", "unreadable")
            elif not self._is_same(item, present):
                item.settle("differs", index=present[0])
            else:
                is_again = _key(item) in written
                item.settle("exists" if is_again else "restored", index=present[0])
                self._so_far.back += 1
                written.add(_key(item))


def _incoming(item: _Item) -> Incoming | None:
    """Return what is to be known of the fingerprint of an open line; ``None`` where nothing can be known."""
    line, target, settings = item.line, item.target, item.target.settings
    if item.record is not None or settings is None or not settings.text_fields:
        return None
    is_elsewhere = (target.is_named and target.name != line.index) or target.is_another(line.created)
    return Incoming(line.source, settings.scheme, settings.text_fields, is_elsewhere)


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
    items_there = await read_documents(server, list(wanted), source=list(wanted))
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
    can be written there. *is_named*: the caller named it. *view*: the name by which its documents are grouped: the
    alias that the caller named, else the name of the index.
    """

    name: str
    settings: IndexSettings | None = None
    is_stream: bool = False
    created: str = ""
    vectors: frozenset[str] = frozenset()
    may_change: bool = True
    fault: RestoredKind | None = None
    detail: str = ""
    is_named: bool = False
    view: str = ""

    def is_another(self, created: str) -> bool:
        """Return whether this may be another index than that *created* then; one from a snapshot of it is not."""
        return not self.created or self.created != created


async def find_target(server: Port, name: str, *, is_named: bool) -> Destination:
    """
    Return where documents for *name* are written to; costs up to three requests.
    *is_named*: the caller names it, not the file: then it may be an alias or a data stream, and a missing index, or
    an alias without a write index, is an error and not a fault of the target.
    """
    asked = server.patient.get_mapping(index=name)
    answer = await (asked if is_named else unless_refused(asked, 404))
    if answer is None:
        return Destination(name, fault="index_missing")
    if not answer:
        raise no_index(name)
    if name not in answer:
        if not is_named:
            return Destination(name, fault="index_missing", detail=f"{name} is an alias or a data stream now")
        return await _behind_name(server, name, answer)
    mapping = answer[name].get("mappings") or {}
    if "_data_stream_timestamp" in mapping:
        stream = (await find_streams(server)).get(name)
        return await _judge(server, stream or name, name, mapping, is_stream=stream is not None)
    return await _judge(server, name, name, mapping)


async def _judge(
    server: Port, name: str, index: str, mapping: Mapping[str, Any], *, is_stream: bool = False
) -> Destination:
    """Return the target *name*, whose documents go to the concrete *index*."""
    settings = judge_mappings({index: {"mappings": mapping}}, server.context).settings_of.get(index)
    fault: RestoredKind | None = None if settings is not None else "unmapped"
    created, may_change = await _read_settings(server, name, index)
    vectors = frozenset(path for path, node in walk_fields(mapping) if node.get("type") in VECTORS)
    return Destination(name, settings, is_stream, created, vectors, may_change, fault, view=name)


async def _behind_name(server: Port, name: str, answer: Mapping[str, Any]) -> Destination:
    """Return the target of an alias or data stream that the caller names."""
    mappings = {index: described.get("mappings") or {} for index, described in answer.items()}
    if all("_data_stream_timestamp" in mapping for mapping in mappings.values()):
        last = last_generation(mappings)
        return await _judge(server, name, last, mappings[last], is_stream=True)
    index = next(iter(mappings)) if len(mappings) == 1 else write_index(await server.patient.get_alias(name=name), name)
    if index not in mappings:
        found = ", ".join(sorted(mappings))
        raise InvalidInputError(
            f"{name!r} stands for several indices, none of which is its write index: name one of {found}"
        )
    return replace(await _judge(server, index, index, mappings[index]), view=name)


async def _read_settings(server: Port, name: str, index: str) -> tuple[str, bool]:
    """Return when *index* was created, and whether *name* has a final pipeline, as far as they may be read."""
    wanted = "index.creation_date,index.final_pipeline"
    answer = await unless_refused(server.patient.get_settings(index=name, name=wanted), 401, 403)
    if answer is None:
        return "", True
    found = {backing: (held.get("settings") or {}).get("index") or {} for backing, held in answer.items()}
    may_change = any(held.get("final_pipeline", "_none") != "_none" for held in found.values())
    return str((found.get(index) or {}).get("creation_date") or ""), may_change
