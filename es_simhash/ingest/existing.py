"""
Reads the documents of an index that are near those of a batch, from the server or by a table in memory.

The table (``lookup.memory_operations``) has every fingerprint that a search can show. Where it has one near
a document, documents with that fingerprint are read, so all facts about documents come from the server.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set as AbstractSet
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from es_simhash.groups.read import ATTEMPTS, GroupLookups, canonicals_body, fetch_contents, name_of
from es_simhash.hashing import from_hex
from es_simhash.ingest.in_flight import Document
from es_simhash.ingest.item import Item
from es_simhash.ingest.reading import EARLY, GroupedIngest
from es_simhash.lookup.content import Content
from es_simhash.lookup.find_many import MultiSearch
from es_simhash.lookup.lookup_options import ResidentError, pays
from es_simhash.lookup.memory_operations import Resident
from es_simhash.lookup.near_dups import NearDups
from es_simhash.mapping.dates import milliseconds_of
from es_simhash.mapping.fields import Fields
from es_simhash.mapping.port import Port
from es_simhash.transport.answers import find_gaps
from es_simhash.transport.pages import Hits, read_each
from es_simhash.transport.protocol import Call, Key
from es_simhash.transport.retry import Patience, attempt, refresh, retry
from es_simhash.writes.targets import find_write_index

logger = logging.getLogger("es_simhash")
PAGE = 1_000


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked about one batch; *by_table*: only about fingerprints that the table in memory has near it."""

    fingerprints: Sequence[int]
    batch: MultiSearch | None
    by_table: bool = False

    @property
    def calls(self) -> list[Call]:
        return [self.batch.call()] if self.batch else []


@dataclass(frozen=True, slots=True)
class Existing:
    """
    The documents near those of one batch, as searches show them.
    *near*: for each fingerprint, the documents within max_distance, the one grouped first comes first. *canonicals*,
    for ``connected``: fingerprints of canonicals that are not near themselves, by id. *gaps*: why a lookup is
    incomplete.
    """

    near: Mapping[int, Sequence[Document]] = field(default_factory=dict)
    canonicals: Mapping[str, int] = field(default_factory=dict)
    gaps: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    is_compared: bool = False

    def without(self, ids: AbstractSet[str]) -> Existing:
        """Return it without the documents with these *ids*."""
        near = {fingerprint: [each for each in found if each.id not in ids] for fingerprint, found in self.near.items()}
        return replace(self, near=near)


class ExistingLookup:
    """
    The lookups of one ingest, batch after batch; *total*: at least so many will come, as far as is known.
    *is_alias*: documents are written to an alias or a data stream, so searches show another name.
    """

    def __init__(self, ingest: GroupedIngest, total: int, *, is_alias: bool) -> None:
        self._ingest = ingest
        self._index = ingest.index
        self._grouping = ingest.grouping
        self._patience = Patience(ATTEMPTS)
        self._group_lookups = GroupLookups(
            ingest.context,
            ingest.index,
            ingest.settings,
            max_distance=ingest.grouping.max_distance,
            canonicals_only=ingest.grouping.rule == "star",
            source=callable(ingest.options.on_duplicate),
        )
        request = ingest.options.lookup
        self._is_wanted = request.lookups != "server"
        self._is_demanded = request.lookups == "memory"
        self._has_file = request.memory_file is not None and Path(request.memory_file).exists()
        self._resident: Resident | None = None
        self._total = total
        self._asked = self._batches = 0
        self._is_alias = is_alias

    @property
    def batch(self) -> int:
        """How many documents to look up at once: fewer where the server is asked about each."""
        sizes = self._ingest.options.sizes
        return sizes.asking if self._resident is None else sizes.most

    async def prepare(self, server: Port) -> None:
        """Make everything written so far visible to lookups, and read the statistics that their plan needs."""
        await refresh(server, self._index)
        await self._group_lookups.prepare(server)
        if self._resident is not None:
            try:
                await self._resident.catch_up(server, documents=self._group_lookups.documents)
            except ResidentError as error:
                self._give_up(error)
        elif self._is_demanded or (self._has_file and self._is_wanted):
            await self._load(server)

    async def finish(self, server: Port) -> None:
        """Leave what is in memory to the next ingest, if the caller named a file."""
        if self._resident is not None:
            await self._resident.save(server)

    def note_written(self, items: Iterable[Item]) -> None:
        """Note which *items* were written, all of which are in flight until :meth:`prepare`."""
        if self._resident is not None:
            self._resident.note_written(Counter(filter(None, map(_written_to, items))))

    async def ask(self, server: Port, items: Iterable[Item]) -> Asked | None:
        """Return what to ask about *items*; ``None`` where none has a fingerprint."""
        fingerprints = _fingerprints_of(items)
        if not fingerprints:
            return None
        self._asked += len(fingerprints)
        self._batches += 1
        if self._is_worth_it():
            await self._load(server)
        resident = self._resident
        if resident is None:
            return Asked(fingerprints, self._group_lookups.batch(fingerprints))
        near = await server.compute(resident.near, fingerprints)
        with_near = [each for each in fingerprints if each in near]
        batch = self._group_lookups.batch(with_near, known=near) if with_near else None
        return Asked(fingerprints, batch, by_table=True)

    async def take(self, server: Port, asked: Asked, answers: Sequence[Any]) -> Existing:
        """Return what the *answers* to the calls of *asked* show; each may be the exception that it failed with."""
        return await self._read(server, await self._take(server, asked, answers))

    async def look_up_first(self, server: Port, items: Iterable[Item]) -> Existing:
        """Return what searches show near *items* now, while nothing else is asked."""
        asked = await self.ask(server, items)
        return Existing() if asked is None else await self.take(server, asked, await server.together(asked.calls))

    async def look_up(self, server: Port, items: Iterable[Item]) -> Existing:
        """Return what searches show near *items* now; the server is asked, whatever else is being asked."""
        wanted = _fingerprints_of(items)
        if not wanted:
            return Existing()
        batch = self._group_lookups.batch(wanted)
        answer = await attempt(server.send(batch.call()))
        return await self._read(server, await self._group_lookups.take(server, batch, answer))

    async def find_present(self, server: Port, drafts: Sequence[Document]) -> list[Document]:
        """
        Return those of *drafts* whose id searches show in the index that they go to; all if that is not known.
        Cost: one search without texts, and for an alias one request for its write index, which may roll over.
        """
        written = await find_write_index(server, self._index, (self._index,)) if self._is_alias else ""
        self._is_alias = bool(written)  # if it is not known, ids alone are compared from now on

        def place(draft: Document) -> tuple[str, str]:
            name = written if draft.index in (None, self._index) else draft.index or ""
            return name if self._is_alias else "", draft.id

        names, ids = ({*each} for each in zip(*map(place, drafts), strict=True))
        among: list[dict[str, Any]] = [{"ids": {"values": sorted(ids)}}]
        among += [{"terms": {"_index": sorted(names)}}] if self._is_alias else []
        body = {"query": {"bool": {"filter": among}}, "size": len(ids) * len(names), "_source": False}
        answer = await retry(server, lambda: server.search(index=self._index, body=body), patience=self._patience)
        if find_gaps(answer):
            return list(drafts)
        found = {(hit["_index"] if self._is_alias else "", hit["_id"]) for hit in answer["hits"]["hits"]}
        return [each for each in drafts if place(each) in found]

    def _is_worth_it(self) -> bool:
        """Return whether asking the server costs as much as reading all fingerprints, as far as is known."""
        if self._resident is not None or not self._is_wanted or self._batches <= EARLY:
            return False
        lookups = self._group_lookups
        return pays(max(self._asked, self._total), milliseconds=lookups.milliseconds, documents=lookups.documents)

    async def _load(self, server: Port) -> None:
        ingest = self._ingest
        resident = Resident(
            ingest.context,
            ingest.index,
            ingest.settings,
            max_distance=ingest.grouping.max_distance,
            request=ingest.options.lookup,
        )
        try:
            await resident.load(server)
        except ResidentError as error:
            self._give_up(error)
        else:
            logger.info("ingest into %s: %d fingerprints are in memory", self._index, len(resident))
            self._resident = resident
            await resident.save(server)

    def _give_up(self, error: ResidentError) -> None:
        """Ask the server from now on; only for now, if it may be otherwise in a moment."""
        if error.is_passing:
            self._asked = self._total = 0
            return
        if self._is_demanded:
            raise error.for_caller(self._index) from error
        logger.info("ingest into %s: the server is asked about every document: %s", self._index, error)
        self._is_wanted, self._resident = False, None

    async def _take(self, server: Port, asked: Asked, answers: Sequence[Any]) -> dict[int, NearDups]:
        """Return the documents near each fingerprint that has some; *answers* may be exceptions of calls."""
        found = {} if asked.batch is None else await self._group_lookups.take(server, asked.batch, answers[0])
        if not asked.by_table:
            return found
        resident = self._resident
        if resident is None:
            return await self._group_lookups.ask(server, asked.fingerprints)
        try:
            shown = await resident.read_news(server)
        except ResidentError as error:
            self._give_up(error)
            return await self._group_lookups.ask(server, asked.fingerprints)
        if not len(shown):
            return found
        near = await server.compute(resident.near_among, asked.fingerprints, shown)
        # A document with one of these fingerprints may have another one by now. So the server is asked by block terms,
        # but not where every near fingerprint was found already.
        known = {each: {one.fingerprint for one in some} for each, some in found.items()}
        missed = [each for each, some in near.items() if not known.get(each, set()).issuperset(some)]
        also = await self._group_lookups.ask(server, missed)
        return found | {each: _both(found[each], more) if each in found else more for each, more in also.items()}

    async def _read(self, server: Port, found: Mapping[int, NearDups]) -> Existing:
        """Return the documents *found*, with what they are compared by."""
        contents = await self._contents(server, found.values())
        near = {fingerprint: self._documents(each, contents) for fingerprint, each in found.items()}
        canonicals = {} if self._grouping.rule == "star" else await self._other_canonicals(server, near.values())
        gaps = {fingerprint: each.reasons for fingerprint, each in found.items() if not each.complete}
        return Existing(near, canonicals, gaps, is_compared=self._grouping.similarity is not None)

    async def _contents(self, server: Port, found: Iterable[NearDups]) -> dict[Key, Content] | None:
        """Return what the documents *found* are compared by; ``None`` where only distances count."""
        if self._grouping.is_by_distance_alone:
            return None
        wanted = list({each.key: None for answer in found for each in answer})
        return await fetch_contents(
            server,
            self._index,
            wanted,
            grouping=self._grouping,
            text_fields=self._ingest.text_fields,
            patience=self._patience,
        )

    def _documents(self, found: NearDups, contents: Mapping[Key, Content] | None) -> list[Document]:
        # A document that was deleted since the lookup has no content.
        there = [each for each in found if contents is None or each.key in contents]
        return [
            Document(
                each.id,
                each.fingerprint,
                self._group_lookups.group_of(each) or each.id,
                each.index,
                each.source,
                each.routing,
                content=None if contents is None else contents[each.key],
                at=int(milliseconds_of(self._group_lookups.at_of(each)) or 0),
                is_member=self._group_lookups.is_duplicate(each),
            )
            for each in sorted(there, key=lambda each: (self._group_lookups.at_of(each), each.id, each.index))
        ]

    async def _other_canonicals(self, server: Port, found: Iterable[Sequence[Document]]) -> dict[str, int]:
        """Return the fingerprints of the canonicals of members that were found, by group."""
        groups = {each.group for near in found for each in near if each.is_member}
        if not groups:
            return {}
        fields = Fields(self._ingest.prefix)
        body = canonicals_body(sorted(groups), fields)
        known: dict[str, int] = {}

        def note(hits: Hits) -> None:
            known.update({name_of(hit, fields): from_hex(hit["fields"][fields.fingerprint][0]) for hit in hits})

        await retry(server, lambda: read_each(server, self._index, body, note, page=PAGE))
        return known


def _both(one: NearDups, other: NearDups) -> NearDups:
    items = {each.key: each for each in (*one, *other)}
    return replace(
        one,
        items=tuple(items.values()),
        complete=one.complete and other.complete,
        reasons=(*one.reasons, *other.reasons),
    )


def _written_to(item: Item) -> str | None:
    """Return the index of *item*, if it was written whole and under the id by which it is in flight."""
    outcome, operation = item.outcome, item.operation
    if outcome is None or outcome.version is None or operation is None or operation.kind not in ("index", "create"):
        return None
    return None if item.draft is None or item.is_renamed else outcome.index


def _fingerprints_of(items: Iterable[Item]) -> list[int]:
    drafts = (item.draft for item in items if item.draft is not None)
    return list(dict.fromkeys(each.fingerprint for each in drafts if each.fingerprint is not None))
