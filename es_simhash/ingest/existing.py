"""
Reads the documents of an index that are near those of a batch, from the server or by a table in memory.

The table (``lookup.memory_operations``) has every fingerprint that a search can show. Where it has one near
a document, documents with that fingerprint are read, so all facts about documents come from the server.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from es_simhash.groups.read import ATTEMPTS, GroupLookups, canonicals_body, fetch_contents, name_of
from es_simhash.hashing import to_hex
from es_simhash.ingest.decide import Existing
from es_simhash.ingest.in_flight import Document
from es_simhash.ingest.plain import Entry, Plain
from es_simhash.ingest.reading import EARLY, GroupedIngest
from es_simhash.lookup.content import Content, docvalue_fields, read_content
from es_simhash.lookup.find_many import MultiSearch
from es_simhash.lookup.lookup_options import ResidentError, as_fault, pays
from es_simhash.lookup.memory_operations import Resident
from es_simhash.lookup.near_dups import NearDups
from es_simhash.mapping.dates import milliseconds_of
from es_simhash.mapping.fields import Fields, read_fingerprint
from es_simhash.mapping.port import Port
from es_simhash.transport.answers import Gap, find_gaps, sentences
from es_simhash.transport.limits import MAX_HITS
from es_simhash.transport.pages import Hits, read_each
from es_simhash.transport.protocol import Call, Key, document_key, status_of
from es_simhash.transport.retry import Patience, attempt, is_passing, refresh, retry, text_body
from es_simhash.writes.targets import find_write_index

if TYPE_CHECKING:
    from es_simhash.lookup.memory_table import Near

logger = logging.getLogger("es_simhash")
PAGE = 1_000
# Most documents with fingerprints of the table that one search brings; more of them are read page by page.
DOCUMENTS = 2_000
# Most canonicals whose copies a search leaves out: a query may have 65,536 values.
NAMES = 10_000


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked about one batch: by block terms, or what documents have the fingerprints *near*, by the table."""

    fingerprints: Sequence[int]
    calls: Sequence[Call]
    batch: MultiSearch | None = None
    near: Mapping[int, Sequence[int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Facts:
    """Documents of the index, one for each of their fingerprints; *gaps*: why some may be missing."""

    documents: Mapping[Key, Sequence[Document]] = field(default_factory=dict)
    gaps: Sequence[Gap] = ()


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
            canonicals_only=True,
        )
        request = ingest.options.lookup
        self._is_wanted = request.lookups != "server"
        self._is_demanded = request.lookups == "memory"
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
        elif self._is_demanded:
            await self._load(server)

    def note_written(self, items: Iterable[Entry]) -> None:
        """Note which *items* were written, all of which are in flight until :meth:`prepare`."""
        if self._resident is not None:
            self._resident.note_written(Counter(filter(None, map(_written_to, items))))

    async def ask(self, server: Port, items: Iterable[Entry]) -> Asked | None:
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
            batch = self._group_lookups.batch(fingerprints)
            return Asked(fingerprints, [batch.call()], batch)
        near = await server.compute(resident.near, fingerprints)
        body = {**self._with_contents(self._body([self._among(near)])), "size": DOCUMENTS}
        calls = [Call("search", {"index": self._index, "body": body})] if near else []
        return Asked(fingerprints, calls, near=near)

    async def take(self, server: Port, asked: Asked, answers: Sequence[Any]) -> Existing:
        """Return what the *answers* to the calls of *asked* show; each may be the exception that it failed with."""
        if asked.batch is not None:
            return await self._read(server, await self._group_lookups.take(server, asked.batch, answers[0]))
        try:
            facts = await self._facts(server, asked.near, answers[0]) if answers else _Facts()
            shown = await self._shown(server, asked.fingerprints)
            if shown:  # a document that was written again may be among the hits by the fingerprint that it had before
                more = await self._facts(server, shown)
                facts = _Facts({**facts.documents, **more.documents}, [*facts.gaps, *more.gaps])
        except ResidentError as error:
            self._give_up(error)
            return await self._read(server, await self._group_lookups.ask(server, asked.fingerprints))
        near = {each: [*asked.near.get(each, ()), *shown.get(each, ())] for each in {*asked.near, *shown}}
        found = await server.compute(self._documents_near, near, facts.documents.values())
        gaps = dict.fromkeys(near, sentences(facts.gaps)) if facts.gaps else {}
        return await self._existing(server, found, gaps, near)

    async def look_up_first(self, server: Port, items: Iterable[Entry]) -> Existing:
        """Return what searches show near *items* now, while nothing else is asked."""
        asked = await self.ask(server, items)
        return Existing() if asked is None else await self.take(server, asked, await server.together(asked.calls))

    async def look_up(self, server: Port, items: Iterable[Entry]) -> Existing:
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
        body = {"query": {"bool": {"filter": among}}, "size": min(len(ids) * len(names), MAX_HITS), "_source": False}
        answer = await retry(server, lambda: server.search(index=self._index, body=body), patience=self._patience)
        if find_gaps(answer) or len(answer["hits"]["hits"]) == MAX_HITS:
            return list(drafts)
        found = {(hit["_index"] if self._is_alias else "", hit["_id"]) for hit in answer["hits"]["hits"]}
        return [each for each in drafts if place(each) in found]

    def _is_worth_it(self) -> bool:
        """Return whether asking the server costs as much as reading all fingerprints, as far as is known."""
        if self._resident is not None or not self._is_wanted:
            return False
        # The first report waits for the table only where that takes less time than to ask about the first documents.
        first = min(self._total, EARLY * self._ingest.options.sizes.first)
        expected = max(self._asked, first if self._batches <= EARLY else self._total)
        lookups = self._group_lookups
        return pays(expected, milliseconds=lookups.milliseconds, documents=lookups.documents)

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

    def _give_up(self, error: ResidentError) -> None:
        """Ask the server from now on; only for now, if it may be otherwise in a moment."""
        if error.is_passing:
            self._asked = self._total = 0
            return
        if self._is_demanded:
            raise error.for_caller(self._index) from error
        logger.info("ingest into %s: the server is asked about every document: %s", self._index, error)
        self._is_wanted, self._resident = False, None

    async def _shown(self, server: Port, fingerprints: Sequence[int]) -> Near:
        """Return, of what others wrote meanwhile, the fingerprints near each of *fingerprints*."""
        if self._resident is None:
            raise ResidentError("expired")
        shown = await self._resident.read_news(server)
        return await server.compute(self._resident.near_among, fingerprints, shown) if len(shown) else {}

    def _among(self, near: Near) -> dict[str, Any]:
        fingerprints = sorted({*map(to_hex, chain(*near.values()))})
        return {"terms": {Fields(self._ingest.prefix).fingerprint: fingerprints}}

    def _body(self, among: Sequence[Mapping[str, Any]], *, copies: bool = False) -> dict[str, Any]:
        """Return the search, without a size, for the documents that match all of *among*; no *copies*."""
        fields = Fields(self._ingest.prefix)
        query: dict[str, Any] = {"filter": list(among)}
        if not copies:
            query["must_not"] = {"exists": {"field": fields.duplicate_of}}
        at = {"field": fields.at, "format": "epoch_millis"}
        return {
            "query": {"bool": query},
            "docvalue_fields": [fields.fingerprint, fields.group, fields.duplicate_of, at],
            "_source": False,
            "track_total_hits": False,
        }

    def _with_contents(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return the search *body* of hits that have what documents are compared by, too."""
        rule = self._grouping.pair_rule
        more = {**body, "docvalue_fields": [*body["docvalue_fields"], *docvalue_fields(rule)]}
        return more if rule.similarity is None else text_body(more, self._ingest.text_fields.all)

    async def _facts(self, server: Port, near: Near, answer: Any = None) -> _Facts:
        """
        Return what is known of the documents that have one of the fingerprints *near*.
        *answer*: to the search of :meth:`ask`; what it does not have whole is read anew, texts apart from the rest.
        """
        if isinstance(answer, Mapping) and not find_gaps(answer) and len(answer["hits"]["hits"]) < DOCUMENTS:
            hits = {document_key(each): each for each in answer["hits"]["hits"]}
            return _Facts(await server.compute(lambda: self._documents_in(hits, self._read_contents(hits))))
        hits, gaps = await self._hits(server, self._body([self._among(near)]), answer)
        return _Facts(await server.compute(self._documents_in, hits, await self._contents(server, hits)), gaps)

    async def _hits(
        self, server: Port, body: Mapping[str, Any], answer: Any = None
    ) -> tuple[dict[Key, Mapping[str, Any]], list[Gap]]:
        """Return the documents that the search *body* finds, page by page, and why some may be missing."""
        found: dict[Key, Mapping[str, Any]] = {}

        def note(hits: Hits) -> None:
            found.update((document_key(each), each) for each in hits)

        try:
            if isinstance(answer, Exception) and not is_passing(answer):
                raise answer
            gaps = await retry(
                server,
                lambda: read_each(server, self._index, body, note, page=DOCUMENTS),
                is_done=lambda gaps: not gaps,
                patience=self._patience,
            )
        except Exception as error:
            if status_of(error) != 400:  # as where an index allows only few doc values in a search
                raise
            raise as_fault(error, "search") from error
        return found, gaps

    def _documents_in(
        self, hits: Mapping[Key, Mapping[str, Any]], contents: Mapping[Key, Content] | None
    ) -> dict[Key, list[Document]]:
        """Return the documents of *hits*, one for each of their fingerprints, without those deleted since."""
        fields = Fields(self._ingest.prefix)
        return {
            key: [
                Document(
                    key.id,
                    read_fingerprint(digits),
                    (hit["fields"].get(fields.duplicate_of) or hit["fields"].get(fields.group, (key.id,)))[0],
                    key.index,
                    routing=key.routing,
                    content=None if contents is None else contents[key],
                    at=int(hit["fields"].get(fields.at, (0,))[0]),
                    is_member=fields.duplicate_of in hit["fields"],
                )
                for digits in hit["fields"].get(fields.fingerprint, (None,))
            ]
            for key, hit in hits.items()
            if contents is None or key in contents
        }

    @staticmethod
    def _documents_near(near: Near, documents: Iterable[Iterable[Document]]) -> dict[int, list[Document]]:
        """Return the *documents* near each fingerprint, each by its nearest, the one grouped first comes first."""
        by_fingerprint: dict[int, list[Document]] = {}
        for each in chain.from_iterable(documents):
            by_fingerprint.setdefault(each.fingerprint or 0, []).append(each)
        found: dict[int, list[Document]] = {}
        for wanted, some in near.items():
            nearest: dict[tuple[str | None, str, str | None], Document] = {}
            for value in sorted(some, key=lambda each: (each ^ wanted).bit_count()):
                for document in by_fingerprint.get(value, ()):
                    nearest.setdefault((document.index, document.id, document.routing), document)
            found[wanted] = ExistingLookup._in_order(nearest.values())
        return found

    async def _read(self, server: Port, found: Mapping[int, NearDups]) -> Existing:
        """Return the documents *found*, with what they are compared by."""
        contents = await self._contents(server, {each.key: None for answer in found.values() for each in answer})
        near = {fingerprint: self._documents(each, contents) for fingerprint, each in found.items()}
        gaps = {fingerprint: each.reasons for fingerprint, each in found.items() if not each.complete}
        return await self._existing(server, near, gaps)

    async def _existing(
        self,
        server: Port,
        near: Mapping[int, Sequence[Document]],
        gaps: Mapping[int, tuple[str, ...]],
        table: Near | None = None,
    ) -> Existing:
        """Return what is *near*, and the rest that counts; *table*: what the table has near, if that was asked."""
        orphans, more = await self._orphans(server, near, table)
        near = {each: self._in_order((*near.get(each, ()), *orphans.get(each, ()))) for each in {*near, *orphans}}
        gaps = {each: (*gaps.get(each, ()), *more.get(each, ())) for each in {*gaps, *more}}
        return Existing(near, gaps, is_compared=self._grouping.similarity is not None)

    async def _orphans(
        self, server: Port, near: Mapping[int, Sequence[Document]], table: Near | None
    ) -> tuple[dict[int, list[Document]], dict[int, tuple[str, ...]]]:
        """
        Return the copies near each fingerprint whose canonical is gone, deleted by another program, and why some may
        be missing. Cost: the same lookups once more, of copies alone; where some name canonicals that are not near,
        one search for these.
        """
        if not near:
            return {}, {}
        found, gaps = await self._copies_near(server, near, table)
        in_flight = self._ingest.decider.in_flight
        named = {each.group for some in found.values() for each in some}
        named = {each for each in named if not in_flight.hides(each)}
        if not named:
            return {}, gaps
        fields = Fields(self._ingest.prefix)
        hits, unread = await self._hits(server, canonicals_body(sorted(named), fields))
        if unread:
            return {}, gaps | dict.fromkeys((each for each, some in found.items() if some), sentences(unread))
        lost = named - {name_of(hit, fields) for hit in hits.values()}
        orphans = {each: [one for one in some if one.group in lost] for each, some in found.items()}
        wanted = {_key_of(one): None for some in orphans.values() for one in some}
        contents = await self._contents(server, wanted) if wanted else None

        def with_content(orphan: Document) -> Document:
            content = None if contents is None else contents[_key_of(orphan)]
            return replace(orphan, content=content, is_member=False, is_orphan=True)

        return {
            each: [with_content(one) for one in some if contents is None or _key_of(one) in contents]
            for each, some in orphans.items()
            if some
        }, gaps

    async def _copies_near(
        self, server: Port, near: Mapping[int, Sequence[Document]], table: Near | None
    ) -> tuple[dict[int, list[Document]], dict[int, tuple[str, ...]]]:
        """Return the copies near each fingerprint that name no canonical of *near*, and why some may be missing."""
        field = Fields(self._ingest.prefix).duplicate_of
        there = sorted({each.group for some in near.values() for each in some})[:NAMES]
        copies = {"bool": {"filter": {"exists": {"field": field}}, "must_not": {"terms": {field: there}}}}
        if table is None:
            batch = self._group_lookups.batch(list(near), filter=copies)
            answers = await self._group_lookups.take(server, batch, await attempt(server.send(batch.call())))
            gaps = {each: answer.reasons for each, answer in answers.items() if not answer.complete}
            return {each: self._documents(answer, None) for each, answer in answers.items()}, gaps
        hits, unread = await self._hits(server, self._body([self._among(table), copies], copies=True))
        found = await server.compute(self._documents_near, table, self._documents_in(hits, None).values())
        return found, dict.fromkeys(table, sentences(unread)) if unread else {}

    @staticmethod
    def _in_order(documents: Iterable[Document]) -> list[Document]:
        return sorted(documents, key=lambda each: (each.at, each.id, each.index))

    def _read_contents(self, hits: Mapping[Key, Mapping[str, Any]]) -> dict[Key, Content] | None:
        rule, text_fields = self._grouping.pair_rule, self._ingest.text_fields
        if rule.is_by_distance_alone:
            return None
        return {key: read_content(hit, rule, text_fields) for key, hit in hits.items()}

    async def _contents(self, server: Port, wanted: Iterable[Key]) -> dict[Key, Content] | None:
        """Return what the documents *wanted* are compared by; ``None`` where only distances count."""
        if self._grouping.is_by_distance_alone:
            return None
        return await fetch_contents(
            server,
            self._index,
            list(wanted),
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
                self._group_lookups.duplicate_of(each) or self._group_lookups.group_of(each) or each.id,
                each.index,
                routing=each.routing,
                content=None if contents is None else contents[each.key],
                at=int(milliseconds_of(self._group_lookups.at_of(each)) or 0),
                is_member=self._group_lookups.duplicate_of(each) is not None,
            )
            for each in sorted(there, key=lambda each: (self._group_lookups.at_of(each), each.id, each.index))
        ]


def _key_of(document: Document) -> Key:
    return Key(document.index or "", document.id, document.routing)


def _written_to(item: Entry) -> str | None:
    """Return the index of *item*, if it was written whole and under the id by which it is in flight."""
    outcome, operation = item.outcome, item.operation
    if outcome is None or outcome.version is None or operation is None or operation.kind not in ("index", "create"):
        return None
    is_in_flight = isinstance(item, Plain) or (item.draft is not None and not item.is_renamed)
    return outcome.index if is_in_flight else None


def _fingerprints_of(items: Iterable[Entry]) -> list[int]:
    return list(dict.fromkeys(each for item in items if (each := item.fingerprint) is not None))
