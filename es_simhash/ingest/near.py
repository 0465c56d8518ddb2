"""
Finds which fingerprints are near those of a batch, and what documents of the index have them.

A table in memory (``lookup.index_table``) has every fingerprint that a search can show, or the server is asked by block
terms. Then ``facts`` reads the documents.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, count
from typing import TYPE_CHECKING, Any

from es_simhash.groups.read import SMALLEST
from es_simhash.ingest.decide import FIRST_COMPARED, Document, Existing, Needed, needs_copies
from es_simhash.ingest.facts import Facts, documents_near, in_order
from es_simhash.ingest.item import Item
from es_simhash.ingest.reading import EARLY, GroupedIngest
from es_simhash.lookup.content import prepare_together
from es_simhash.lookup.find import Crowded, Lookup, Scope
from es_simhash.lookup.find_many import MultiSearch, make_multi_search, take_answer
from es_simhash.lookup.judge import LookupRule
from es_simhash.lookup.lookup_options import LookupOptions, TableError, as_fault, pays
from es_simhash.lookup.near_dups import NearDups
from es_simhash.lookup.plan import index_stats
from es_simhash.mapping.context import IndexStats
from es_simhash.mapping.fields import Fields, our_object, read_fingerprint
from es_simhash.mapping.port import Port
from es_simhash.mapping.resolve import SettingsChanged, begin_anew, check_unchanged
from es_simhash.mapping.user_fields import milliseconds_of
from es_simhash.transport.conversation import attempt, refresh
from es_simhash.transport.protocol import Call, status_of
from es_simhash.writes.targets import find_write_index

if TYPE_CHECKING:
    from es_simhash.lookup.fingerprint_table import Near
    from es_simhash.lookup.index_table import IndexTable

logger = logging.getLogger("es_simhash")
# Most documents that one page shows near a fingerprint, unless more candidates are expected.
CROWD_DOCUMENTS = 300
# Fingerprints with more than that in one request: the answer must fit into the memory of a small server.
CROWDED_TOGETHER = 10


@dataclass(frozen=True, slots=True)
class Asked:
    """
    What is asked about one batch: by block terms, or what documents have the fingerprints *near*, by the table.
    *ids*: those that the last of *calls* is about.
    """

    fingerprints: Sequence[int]
    calls: Sequence[Call]
    batch: MultiSearch | None = None
    near: Mapping[int, Sequence[int]] = field(default_factory=dict)
    ids: Sequence[str] = ()


class NearLookup:
    """
    The lookups of one ingest, batch after batch; *total*: at least so many will come, as far as is known.
    *is_alias*: documents are written to an alias or a data stream, so searches show another name.
    """

    def __init__(self, ingest: GroupedIngest, total: int, *, is_alias: bool) -> None:
        self._ingest = ingest
        self._index = ingest.index
        self._grouping = ingest.grouping
        self._facts = Facts(ingest)
        options = LookupOptions(source=False)
        rule = LookupRule(ingest.grouping.max_distance)
        self._scope = Scope(ingest.context, ingest.index, ingest.settings, options, rule, stats=IndexStats())
        self._documents = 0  # with fingerprints
        self._took = 0.0  # milliseconds of the server for one lookup, when it was last asked
        request = ingest.options.lookup
        self._is_wanted = request.lookups != "server"
        self._is_demanded = request.lookups == "memory"
        self._table: IndexTable | None = None
        self._total = total
        self._asked = self._batches = 0
        self._is_alias = is_alias
        # Whether a document that searches show under its id may stay; at the start, ids that nothing has yet decide.
        self._may_stay: bool | None = None

    @property
    def batch(self) -> int:
        """How many documents to look up at once: fewer where the server is asked about each."""
        sizes = self._ingest.options.sizes
        return sizes.asking if self._table is None else sizes.most

    async def prepare(self, server: Port) -> None:
        """Make everything written so far visible to lookups, and read the statistics that their plan needs."""
        if self._ingest.is_writing:
            await refresh(server, self._index)
        found = await index_stats(server, self._index, again=self._ingest.is_writing)
        self._documents = found.documents
        # The index may grow before its size is read again.
        self._scope = replace(self._scope, stats=replace(found, documents=max(found.documents, SMALLEST)))
        if self._may_stay is None:
            self._may_stay = self._ingest.is_writing and found.documents > 0
        if self._table is not None or self._is_demanded:
            await self._load(server)

    def note_written(self, items: Iterable[Item]) -> None:
        """Note which *items* were written, all of which are known until :meth:`prepare`."""
        if self._table is not None:
            self._table.note_written(Counter(filter(None, map(_written_to, items))))

    async def ask(self, server: Port, items: Iterable[Item]) -> Asked | None:
        """Return what to ask about *items*; ``None`` where there is nothing to ask."""
        items = list(items)
        fingerprints = _fingerprints_of(items)
        # An update without a text is not known, so searches may show the document before it.
        self._may_stay = self._may_stay and not any(map(_is_partial, items))
        is_wanted = self._may_stay or self._ingest.rule.on_duplicate == "skip"
        ids = [id_ for item in items if (id_ := item.given_id) is not None] if is_wanted else []
        held = self._facts.held_calls(ids)
        if not fingerprints:
            return Asked((), held, ids=ids) if ids else None
        self._asked += len(fingerprints)
        self._batches += 1
        if self._is_worth_it():
            await self._load(server)
        table = self._table
        if table is None:
            batch = self._first_search(fingerprints)
            return Asked(fingerprints, [batch.call(), *held], batch, ids=ids)
        near = await server.compute(table.near, fingerprints)
        calls = self._facts.calls(sorted({*chain(*near.values())}))
        return Asked(fingerprints, [*calls, *held], near=near, ids=ids)

    async def take(self, server: Port, asked: Asked, answers: Sequence[Any]) -> Existing:
        """
        Return what the *answers* to the calls of *asked* show; each may be the exception that it failed with.
        Costs a search where copies are there under the ids, and their canonicals are not near: for these.
        """
        held = await self._facts.held(server, asked.ids, answers[-1]) if asked.ids else None
        answers = answers[:-1] if asked.ids else answers
        existing = await self._take(server, asked, answers) if asked.fingerprints else Existing()
        named, there = set(), {}
        for hit in chain(*(held or {}).values()):
            ours = our_object(hit.get("_source") or {}, self._ingest.prefix)
            if ours.get("duplicate_of") is not None:
                named.add(str(ours["duplicate_of"]))
            at = milliseconds_of(ours.get("at")) or 0
            there[hit["_id"]] = Document(hit["_id"], read_fingerprint(ours.get("fingerprint")), at=at)
        named -= {near.group for near in chain(*existing.near.values()) if not near.is_member}
        canonicals, _ = await self._facts.canonicals(server, named)
        may_stay = bool(self._may_stay)
        return replace(existing, held=held, may_stay=may_stay, there=there, gone=named - canonicals.keys())

    async def _take(self, server: Port, asked: Asked, answers: Sequence[Any]) -> Existing:
        if asked.batch is not None:
            return await self._by_server(server, asked.batch, answers[0])
        near = dict(asked.near)
        try:
            answer = answers[0] if answers else None
            documents, gaps = await self._facts.read(server, near, answer) if near else ({}, ())
            shown = await self._shown(server, asked.fingerprints)
            if shown:  # a document that was written again may be among the hits by the fingerprint that it had before
                more, missed = await self._facts.read(server, shown)
                documents, gaps = {**documents, **more}, (*gaps, *missed)
                near |= {value: [*near.get(value, ()), *some] for value, some in shown.items()}
        except Exception as error:
            # An index may allow only few doc values in a search.
            fault = as_fault(error, "search") if status_of(error) == 400 else error
            if not isinstance(fault, TableError):
                raise
            self._give_up(fault)
            batch = self._first_search(asked.fingerprints)
            return await self._by_server(server, batch, await attempt(server.send(batch.call())))
        found = await server.compute(documents_near, near, documents.values())
        return Existing(found, dict.fromkeys(near, gaps) if gaps else {}, copies_unread=near)

    async def _by_server(self, server: Port, batch: MultiSearch, answer: Any) -> Existing:
        """Return what is near the fingerprints of *batch*, given the *answer* to it; those not answered are crowded."""
        answers = await self._answers(server, batch, answer)
        crowded = [lookup.fingerprint for lookup in batch.lookups if lookup.fingerprint not in answers]
        answers |= await self._ask_crowded(server, crowded, copies=False)
        near, gaps = _near_of(answers)
        documents, missed = await self._facts.read(server, near) if near else ({}, ())
        found = await server.compute(documents_near, near, documents.values())
        gaps |= {value: (*gaps.get(value, ()), *missed) for value in near} if missed else {}
        return Existing(found, gaps, copies_unread={**near, **dict.fromkeys(crowded, ())})

    def _first_search(self, fingerprints: Sequence[int]) -> MultiSearch:
        """Return the request that is answered for those of *fingerprints* with no more near them than a page shows."""
        options = self._scope.options
        options = replace(options, sizes=replace(options.sizes, first_page=CROWD_DOCUMENTS))
        scope = replace(self._scope, options=options, is_one_page=True)
        return make_multi_search([Lookup(scope, fingerprint) for fingerprint in fingerprints])

    async def _ask_crowded(self, server: Port, fingerprints: Sequence[int], *, copies: bool) -> dict[int, NearDups]:
        """Return the *copies*, or all others, near each of *fingerprints*, which has many."""
        is_copy = {"exists": {"field": Fields(self._ingest.prefix).duplicate_of}}
        which = {"bool": {"filter" if copies else "must_not": is_copy}}
        scope = replace(self._scope, options=replace(self._scope.options, filter=which))
        found: dict[int, NearDups] = {}
        for begin in range(0, len(fingerprints), CROWDED_TOGETHER):
            await check_unchanged(server, self._index, scope.settings)
            part = fingerprints[begin : begin + CROWDED_TOGETHER]
            batch = make_multi_search([Lookup(scope, fingerprint) for fingerprint in part])
            found |= await self._answers(server, batch, await attempt(server.send(batch.call())))
        return found

    async def _answers(self, server: Port, batch: MultiSearch, answer: Any) -> dict[int, NearDups]:
        """
        Return the documents near each fingerprint, given the *answer* to the batch, or its exception.
        What a busy server refuses, or answers incompletely, is asked again with growing waits. What is incomplete even
        then is returned and marked so; a refusal for another reason raises. What one page does not answer is left out.
        """
        if not isinstance(answer, Exception):
            self._took = answer.get("took", 0) / len(batch.lookups)
        tries = count()

        async def take() -> list[NearDups | Exception]:
            if next(tries):  # settings other than the scheme changed, or were unreadable
                await check_unchanged(server, self._index, self._scope.settings)
            return await take_answer(server, batch, answer, is_patient=True)

        found: dict[int, NearDups] = {}
        for lookup, outcome in zip(batch.lookups, await begin_anew(take), strict=True):
            if isinstance(outcome, Crowded):
                continue
            if isinstance(outcome, Exception):
                raise outcome
            found[lookup.fingerprint] = outcome
        return found

    async def find_present(
        self, server: Port, items: Sequence[Item], held: Mapping[str, Sequence[Mapping[str, Any]]] | None
    ) -> list[Item]:
        """
        Return those of *items* whose id is *held*, by id, in the index that they go to; all if that is not known.
        Cost: for an alias one request for its write index, where something is held.
        """
        if not held:
            return list(items) if held is None else []
        written = await find_write_index(server, self._index, (self._index,)) if self._is_alias else ""
        self._is_alias = bool(written)  # if it is not known, ids alone are compared from now on
        found = {(hit["_index"], hit["_id"]) for hit in chain(*held.values())}
        if not written:
            return [item for item in items if item.id in held]
        return [item for item in items if (_concrete(item.index, self._index, written), item.id) in found]

    def _is_worth_it(self) -> bool:
        """Return whether asking the server costs as much as reading all fingerprints, as far as is known."""
        if self._table is not None or not self._is_wanted or self._ingest.context.is_plain:
            return False
        # The first report waits for the table only where that takes less time than to ask about the first documents.
        first = min(self._total, EARLY * self._ingest.options.sizes.first)
        expected = max(self._asked, first if self._batches <= EARLY else self._total)
        return pays(expected, milliseconds=max(self._scope.milliseconds, self._took), documents=self._documents)

    async def _load(self, server: Port) -> None:
        from es_simhash.lookup.index_table import IndexTable  # noqa: PLC0415 -- loads numpy

        table = self._table or IndexTable(self._scope, self._ingest.options.lookup.most_bytes)
        try:
            if self._ingest.is_writing:
                await table.catch_up(server, documents=self._documents)
            else:
                await table.open(server)
        except (TableError, SettingsChanged) as error:
            self._give_up(error if isinstance(error, TableError) else TableError("expired"))
        else:
            logger.info("ingest into %s: %d fingerprints are in memory", self._index, len(table))
            self._table = table
        finally:
            await table.close(server)  # nothing, where no point in time is open

    def _give_up(self, error: TableError) -> None:
        """Ask the server from now on; only for now, if it may be otherwise in a moment."""
        if error.is_passing:
            self._asked = self._total = 0
            return
        if self._is_demanded and not error.is_of_document:
            raise error.for_caller(self._index) from error
        logger.info("ingest into %s: the server is asked about every document: %s", self._index, error)
        self._is_wanted, self._table = False, None

    async def _shown(self, server: Port, fingerprints: Sequence[int]) -> Near:
        """Return, of what others wrote meanwhile, the fingerprints near each of *fingerprints*."""
        if self._table is None:
            raise TableError("expired")
        shown = await self._table.read_news(server)
        return await server.compute(self._table.near_among, fingerprints, shown) if len(shown) else {}

    async def with_copies(self, server: Port, items: Sequence[Item], existing: Existing) -> Existing:
        """
        Return *existing* with the copies near each of *items* that no canonical accepts, and their canonicals.
        Such a copy counts if its canonical is gone, or has another text now. A text that differs from its canonical
        only in numbers is skipped if a copy has the same fingerprint, letters and numbers. Cost: nothing if there are
        none, else one search of their canonicals, and one of their texts; of copies that were not read, one more.
        """
        needed = await server.compute(self._needed, items, existing)
        if not needed:
            return existing
        wanted = {
            value: existing.copies_unread[value] if need == "near" else (value,) for value, need in needed.items()
        }
        crowded = [value for value, some in wanted.items() if not some]
        near, gaps = _near_of(await self._ask_crowded(server, crowded, copies=True))
        wanted |= near
        facts, missed = await self._facts.read(server, wanted, copies=True) if any(wanted.values()) else ({}, ())
        canonicals, unread = await self._facts.canonicals(server, {copy.group for copy in chain(*facts.values())})
        for copy in chain(*facts.values()):
            copy.canonicals = canonicals.get(copy.group, ())
        found = dict(existing.near)
        for value, copies in documents_near(wanted, facts.values()).items():
            found[value] = in_order([*existing.of(value), *copies])
        every = {value: (*existing.gaps.get(value, ()), *gaps.get(value, ()), *missed, *unread) for value in wanted}
        return replace(
            existing, near=found, gaps={**existing.gaps, **{value: some for value, some in every.items() if some}}
        )

    def _needed(self, items: Iterable[Item], existing: Existing) -> dict[int, Needed]:
        """Return the fingerprints of *items* about which copies may decide, and which of these."""
        items = list(items)
        ids = {str(item.operation.header.get("_id")) for item in items if item.operation is not None}
        asked: list[tuple[int, Document, list[Document]]] = []
        for item in _looked_up(items):
            if item.fingerprint is not None and item.fingerprint in existing.copies_unread:
                # Those of ids that are written now are not what they were.
                there = [near for near in existing.of(item.fingerprint) if near.id not in ids]
                asked.append((item.fingerprint, item, there))
        if self._grouping.similarity is not None:
            soon = (document.content for _, item, there in asked for document in (item, *there[:FIRST_COMPARED]))
            prepare_together((content for content in soon if content is not None), self._grouping.measure)
        needed: dict[int, Needed] = {}
        for fingerprint, document, there in asked:
            need = needs_copies(document, there, self._ingest.known, self._ingest.rule)
            if need != "none" and needed.get(fingerprint) != "near":
                needed[fingerprint] = need
        return needed


def _near_of(answers: Mapping[int, NearDups]) -> tuple[dict[int, list[int]], dict[int, tuple[str, ...]]]:
    """Return the fingerprints near each that was asked about, where there are any, and why some may be missing."""
    near = {value: list({found.fingerprint: None for found in answer}) for value, answer in answers.items() if answer}
    return near, {value: answer.reasons for value, answer in answers.items() if not answer.complete}


def _written_to(item: Item) -> str | None:
    """Return the index of *item*, if it was written whole and under the id that it had."""
    outcome, operation = item.outcome, item.operation
    if outcome is None or outcome.version is None or operation is None or operation.kind not in ("index", "create"):
        return None
    return outcome.index if item.is_decided and item.id == outcome.id else None


def _concrete(name: str | None, alias: str, written: str) -> str:
    """Return the concrete index that *name* means: *written*, if there is no name, or it is the *alias*."""
    return written if name in (None, alias) else name or ""


def _is_partial(item: Item) -> bool:
    return item.operation is not None and item.operation.kind == "update"


def _looked_up(items: Iterable[Item]) -> Iterator[Item]:
    """Yield those of *items* that are decided about and have a fingerprint, and what updates among them may create."""
    for item in items:
        for document in (item, item.upsert):
            if document is not None and document.is_decided and document.fingerprint is not None:
                yield document


def _fingerprints_of(items: Iterable[Item]) -> list[int]:
    found = (item.fingerprint for item in _looked_up(items))
    return list(dict.fromkeys(fingerprint for fingerprint in found if fingerprint is not None))
