"""
Finds which fingerprints are near those of a batch, and what documents of the index have them.

A table in memory (``lookup.index_table``) has every fingerprint that a search can show, or the server is asked by block
terms. Then one search shows all of a document at once, so that what it is compared by comes from one moment.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, count
from typing import TYPE_CHECKING, Any

from es_simhash.groups.read import SMALLEST, canonicals_body
from es_simhash.hashing import to_hex
from es_simhash.ingest.decide import (
    FIRST_COMPARED,
    DecisionRule,
    Document,
    Existing,
    Needed,
    Unshown,
    needs_copies,
)
from es_simhash.ingest.ingest_options import IngestOptions
from es_simhash.ingest.item import Item
from es_simhash.ingest.reading import EARLY
from es_simhash.lookup.content import docvalue_fields, prepare_together, read_content
from es_simhash.lookup.find import Crowded, Lookup, Scope
from es_simhash.lookup.find_many import MultiSearch, make_multi_search, take_answer
from es_simhash.lookup.judge import LookupRule
from es_simhash.lookup.lookup_options import LookupOptions, TableError, as_fault, pays
from es_simhash.lookup.near_dups import NearDups
from es_simhash.lookup.plan import index_stats
from es_simhash.mapping.context import Context, IndexStats, TextFields
from es_simhash.mapping.fields import Fields, our_object, read_fingerprint
from es_simhash.mapping.meta import IndexSettings
from es_simhash.mapping.port import Port
from es_simhash.mapping.resolve import SettingsChanged, begin_anew, check_unchanged
from es_simhash.mapping.user_fields import milliseconds_of
from es_simhash.transport.answers import Gap, find_gaps, sentences
from es_simhash.transport.conversation import attempt, refresh, text_body
from es_simhash.transport.pages import Hits, read_each
from es_simhash.transport.protocol import MAX_HITS, Call, Key, document_key, status_of
from es_simhash.transport.refusals import is_passing

if TYPE_CHECKING:
    from es_simhash.lookup.fingerprint_table import Near
    from es_simhash.lookup.index_table import IndexTable

logger = logging.getLogger("es_simhash")
# Most documents that one page shows near a fingerprint, unless more candidates are expected.
CROWD_DOCUMENTS = 300
# Fingerprints with more than that in one request: the answer must fit into the memory of a small server.
CROWDED_TOGETHER = 10


# Most documents with fingerprints of the table that one search brings; more of them are read page by page.
DOCUMENTS = 2_000
# A server takes 65,536 terms in a query.
MAX_FINGERPRINTS = 50_000


@dataclass(slots=True)
class Asked:
    """
    What is asked about one batch: by block terms, or what documents have the fingerprints *near*, by the table.
    *ids*: those that the last of *calls* is about. *answers*: to the calls; each may be the exception it failed with.
    """

    fingerprints: Sequence[int]
    calls: Sequence[Call]
    search: MultiSearch | None = None
    near: Mapping[int, Sequence[int]] = field(default_factory=dict)
    ids: Sequence[str] = ()
    answers: Sequence[Any] = ()


class NearLookup:
    """
    The lookups of one ingest, batch after batch; *total*: at least so many will come, as far as is known.
    *unshown*: what it wrote since the last refresh. *text_fields*: ``others`` are those of the new documents.
    *is_writing*: what is decided is written.
    """

    def __init__(
        self,
        context: Context,
        index: str,
        settings: IndexSettings,
        options: IngestOptions,
        rule: DecisionRule,
        text_fields: TextFields,
        *,
        total: int,
        is_writing: bool,
    ) -> None:
        self.index, self.rule, self.is_writing = index, rule, is_writing
        self.unshown = Unshown(rule.grouping.max_distance)
        self._prefix, self._is_plain = context.prefix, context.is_plain
        self._fields = Fields(context.prefix)
        self._text_fields = text_fields
        self._sizes, self._request = options.sizes, options.lookup
        lookup_rule = LookupRule(rule.grouping.max_distance)
        self._scope = Scope(context, index, settings, LookupOptions(source=False), lookup_rule, stats=IndexStats())
        self._documents = 0  # with fingerprints
        self._took = 0.0  # milliseconds of the server for one lookup, when it was last asked
        self._is_wanted = options.lookup.lookups != "server"
        self._is_demanded = options.lookup.lookups == "memory"
        self._table: IndexTable | None = None
        self._total = total
        self._asked = self._batches = 0
        # Whether a document that searches show under its id may stay; at the start, ids that nothing has yet decide.
        self._may_stay: bool | None = None
        self._is_routed = True  # whether the index may have documents with a routing value

    @property
    def batch(self) -> int:
        """How many documents to look up at once: fewer where the server is asked about each."""
        return self._sizes.asking if self._table is None else self._sizes.most

    async def prepare(self, server: Port) -> None:
        """Make everything written so far visible to lookups, and read the statistics that their plan needs."""
        if self.is_writing:
            await refresh(server, self.index)
        found = await index_stats(server, self.index, again=self.is_writing)
        self._documents = found.documents
        # The index may grow before its size is read again.
        self._scope = replace(self._scope, stats=replace(found, documents=max(found.documents, SMALLEST)))
        if self._may_stay is None:
            self._may_stay = self.is_writing and found.documents > 0
        if self._may_stay:
            routed = {"size": 0, "query": {"exists": {"field": "_routing"}}, "track_total_hits": 1}
            answer = await server.patient.send(self._search(routed))
            self._is_routed = bool(find_gaps(answer)) or answer["hits"]["total"]["value"] > 0
        if self._table is not None or self._is_demanded:
            await self._load(server)

    def note_written(self, items: Iterable[Item]) -> None:
        """Note which *items* were written just now."""
        items = list(items)
        self.keep_written(items)
        if self._table is not None:
            self._table.note_written(Counter(filter(None, map(_written_to, items))))

    def keep_written(self, items: Iterable[Item]) -> None:
        """Keep those of *items* that were written, or would be: searches may not show them before :meth:`prepare`."""
        for item in items:
            outcome = item.outcome
            is_new = outcome.is_done and not outcome.is_same if outcome else not (self.is_writing or item.is_skipped)
            if is_new and item.document is not None and item.decision is not None:
                self.unshown.add(item.document)

    async def ask(self, server: Port, items: Sequence[Item]) -> Asked | None:
        """Return what to ask about *items*; ``None`` where there is nothing to ask."""
        found = (document.fingerprint for document in _looked_up(items))
        fingerprints = list(dict.fromkeys(value for value in found if value is not None))
        # Of an update without a text nothing is kept, so searches may show the document before it.
        self._may_stay = self._may_stay and not any(
            item.operation and item.operation.kind == "update" for item in items
        )
        is_wanted = self._may_stay or self.rule.on_duplicate == "skip"
        given = [item for item in items if item.given_id is not None] if is_wanted else []
        near: Near = {}
        search: MultiSearch | None = None
        calls: list[Call] = []
        if fingerprints:
            self._asked += len(fingerprints)
            self._batches += 1
            if self._is_worth_it():
                await self._load(server)
            if self._table is None:
                search = self._first_search(fingerprints)
                calls.append(search.call())
            else:
                near = await server.compute(self._table.near, fingerprints)
                if self.rule.on_duplicate == "tag" and not self._is_routed:
                    given = [item for item in given if _may_be_held(item, near)]
                values = sorted({*chain(*near.values())})
                if 0 < len(values) <= MAX_FINGERPRINTS:  # too many are asked for in parts
                    body = self._with_contents(self._body(values, copies=False))
                    calls.append(self._search({**body, "size": DOCUMENTS}))
        ids = [item.given_id for item in given if item.given_id is not None]
        if ids:
            calls.append(self._search(_held_body(ids)))
        return Asked(fingerprints, calls, search, near, ids) if fingerprints or ids else None

    async def take(self, server: Port, asked: Asked) -> Existing:
        """
        Return what the answers to the calls of *asked* show.
        Costs a search where copies are there under the ids, and their canonicals are not near: for these.
        """
        answers = list(asked.answers)
        existing = Existing(may_stay=bool(self._may_stay))
        if asked.ids:
            existing.held = await self.held(server, asked.ids, answers.pop())
        if asked.fingerprints:
            await self._take(server, existing, asked, answers[0] if answers else None)
        named = set()
        for hit in chain(*(existing.held or {}).values()):
            ours = our_object(hit.get("_source") or {}, self._prefix)
            if ours.get("duplicate_of") is not None:
                named.add(str(ours["duplicate_of"]))
            at = milliseconds_of(ours.get("at")) or 0
            existing.there[hit["_id"]] = Document(hit["_id"], read_fingerprint(ours.get("fingerprint")), at=at)
        named -= {near.group for near in chain(*existing.near.values()) if not near.is_member}
        canonicals, _ = await self._canonicals(server, named)
        existing.gone = named - canonicals.keys()
        return existing

    async def _take(self, server: Port, existing: Existing, asked: Asked, answer: Any) -> None:
        """Add to *existing* what is near, given the *answer* to the first search of *asked*, if that was sent."""
        if asked.search is not None:
            await self._by_server(server, existing, asked.search, answer)
            return
        near = dict(asked.near)
        try:
            documents, gaps = await self._read(server, near, answer)
            if shown := await self._shown(server, asked.fingerprints):
                # A document that was written again may be among the hits by the fingerprint that it had before.
                more, missed = await self._read(server, shown)
                documents, gaps = {**documents, **more}, (*gaps, *missed)
                near |= {value: [*near.get(value, ()), *some] for value, some in shown.items()}
        except Exception as error:
            # An index may allow only few doc values in a search.
            fault = as_fault(error, "search") if status_of(error) == 400 else error
            if not isinstance(fault, TableError):
                raise
            self._give_up(fault)
            batch = self._first_search(asked.fingerprints)
            await self._by_server(server, existing, batch, await attempt(server.send(batch.call())))
            return
        await server.compute(_add_near, existing, near, documents, gaps)
        existing.copies_unread = near

    async def _by_server(self, server: Port, existing: Existing, batch: MultiSearch, answer: Any) -> None:
        """Add what is near the fingerprints of *batch*, given the *answer* to it; those not answered are crowded."""
        answers = await self._answers(server, batch, answer)
        crowded = [lookup.fingerprint for lookup in batch.lookups if lookup.fingerprint not in answers]
        answers |= await self._ask_crowded(server, crowded, copies=False)
        near = _take_near(existing, answers)
        documents, gaps = await self._read(server, near)
        await server.compute(_add_near, existing, near, documents, gaps)
        existing.copies_unread = {**near, **dict.fromkeys(crowded, ())}

    def _first_search(self, fingerprints: Sequence[int]) -> MultiSearch:
        """Return the request that is answered for those of *fingerprints* with no more near them than a page shows."""
        options = self._scope.options
        options = replace(options, sizes=replace(options.sizes, first_page=CROWD_DOCUMENTS))
        scope = replace(self._scope, options=options, is_one_page=True)
        return make_multi_search([Lookup(scope, fingerprint) for fingerprint in fingerprints])

    async def _ask_crowded(self, server: Port, fingerprints: Sequence[int], *, copies: bool) -> dict[int, NearDups]:
        """Return the *copies*, or all others, near each of *fingerprints*, which has many."""
        is_copy = {"exists": {"field": self._fields.duplicate_of}}
        which = {"bool": {"filter" if copies else "must_not": is_copy}}
        scope = replace(self._scope, options=replace(self._scope.options, filter=which))
        found: dict[int, NearDups] = {}
        for begin in range(0, len(fingerprints), CROWDED_TOGETHER):
            await check_unchanged(server, self.index, scope.settings)
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
                await check_unchanged(server, self.index, self._scope.settings)
            return await take_answer(server, batch, answer, is_patient=True)

        found: dict[int, NearDups] = {}
        for lookup, outcome in zip(batch.lookups, await begin_anew(take), strict=True):
            if isinstance(outcome, Crowded):
                continue
            if isinstance(outcome, Exception):
                raise outcome
            found[lookup.fingerprint] = outcome
        return found

    def _is_worth_it(self) -> bool:
        """Return whether asking the server costs as much as reading all fingerprints, as far as is known."""
        if self._table is not None or not self._is_wanted or self._is_plain:
            return False
        # The first report waits for the table only where that takes less time than to ask about the first documents.
        first = min(self._total, EARLY * self._sizes.first)
        expected = max(self._asked, first if self._batches <= EARLY else self._total)
        return pays(expected, milliseconds=max(self._scope.milliseconds, self._took), documents=self._documents)

    async def _load(self, server: Port) -> None:
        from es_simhash.lookup.index_table import IndexTable  # noqa: PLC0415 -- loads numpy

        table = self._table or IndexTable(self._scope, self._request.most_bytes)
        try:
            if self.is_writing:
                await table.catch_up(server, documents=self._documents)
            else:
                await table.open(server)
        except (TableError, SettingsChanged) as error:
            self._give_up(error if isinstance(error, TableError) else TableError("expired"))
        else:
            logger.info("ingest into %s: %d fingerprints are in memory", self.index, len(table))
            self._table = table
        finally:
            await table.close(server)  # nothing, where no point in time is open

    def _give_up(self, error: TableError) -> None:
        """Ask the server from now on; only for now, if it may be otherwise in a moment."""
        if error.is_passing:
            self._asked = self._total = 0
            return
        if self._is_demanded and not error.is_of_document:
            raise error.for_caller(self.index) from error
        logger.info("ingest into %s: the server is asked about every document: %s", self.index, error)
        self._is_wanted, self._table = False, None

    async def _shown(self, server: Port, fingerprints: Sequence[int]) -> Near:
        """Return, of what others wrote meanwhile, the fingerprints near each of *fingerprints*."""
        if self._table is None:
            raise TableError("expired")
        shown = await self._table.read_news(server)
        return await server.compute(self._table.near_among, fingerprints, shown) if len(shown) else {}

    async def add_copies(self, server: Port, items: Sequence[Item], existing: Existing) -> None:
        """
        Add to *existing* the copies near each of *items* that no canonical accepts, and their canonicals.
        Such a copy counts if its canonical is gone, or has another text now. A text that differs from its canonical
        only in numbers is skipped if a copy has the same fingerprint, letters and numbers. Cost: nothing if there are
        none, else one search of their canonicals, and one of their texts; of copies that were not read, one more.
        """
        needed = await server.compute(self._needed, items, existing)
        if not needed:
            return
        wanted = {
            value: existing.copies_unread[value] if need == "near" else (value,) for value, need in needed.items()
        }
        crowded = [value for value, some in wanted.items() if not some]
        wanted |= _take_near(existing, await self._ask_crowded(server, crowded, copies=True))
        copies, gaps = await self._read(server, wanted, copies=True)
        canonicals, missed = await self._canonicals(server, {copy.group for copy in chain(*copies.values())})
        for copy in chain(*copies.values()):
            copy.canonicals = canonicals.get(copy.group, ())
        await server.compute(_add_near, existing, wanted, copies, (*gaps, *missed))

    async def _read(
        self, server: Port, near: Near, answer: Any = None, *, copies: bool = False
    ) -> tuple[dict[Key, list[Document]], tuple[str, ...]]:
        """
        Return the documents that have one of the fingerprints *near*, and why some may be missing.
        *answer*: to the search for them, if it was sent.
        """
        wanted = sorted({*chain(*near.values())})
        found: dict[Key, list[Document]] = {}
        missing: tuple[str, ...] = ()
        for begin in range(0, len(wanted), MAX_FINGERPRINTS):
            body = self._body(wanted[begin : begin + MAX_FINGERPRINTS], copies=copies)
            hits, gaps = await self._hits(server, self._with_contents(body), answer)
            found |= await server.compute(self._documents_in, hits)
            missing += sentences(gaps)
        return found, missing

    async def _canonicals(
        self, server: Port, names: Collection[str]
    ) -> tuple[dict[str, list[Document]], tuple[str, ...]]:
        """Return the canonicals of the groups *names*, with what they are compared by, and why some may be missing."""
        if not names:
            return {}, ()
        hits, gaps = await self._hits(server, self._with_contents(canonicals_body(sorted(names), self._fields)))
        found: dict[str, list[Document]] = {}
        for document in chain(*(await server.compute(self._documents_in, hits)).values()):
            found.setdefault(document.group, []).append(document)
        return found, sentences(gaps)

    async def held(
        self, server: Port, ids: Sequence[str], answer: Any = None
    ) -> dict[str, list[Mapping[str, Any]]] | None:
        """Return what the index has under *ids*; ``None`` where that cannot be read now."""
        hits, gaps = await self._hits(server, _held_body(ids), answer)
        if gaps:
            return None
        held: dict[str, list[Mapping[str, Any]]] = {}
        for hit in hits.values():
            held.setdefault(hit["_id"], []).append(hit)
        return held

    async def _hits(
        self, server: Port, body: Mapping[str, Any], answer: Any = None
    ) -> tuple[dict[Key, Mapping[str, Any]], list[Gap]]:
        """
        Return the documents that the search *body* finds, and why some may be missing.
        *answer*: to this search, if it was sent; what it does not have whole is read page by page.
        """
        body = {"size": DOCUMENTS, **body}
        if answer is None:
            answer = await attempt(server.patient.send(self._search(body)))
        if isinstance(answer, Exception) and not is_passing(answer):
            raise answer
        if isinstance(answer, Mapping) and not find_gaps(answer) and len(answer["hits"]["hits"]) < body["size"]:
            return {document_key(hit): hit for hit in answer["hits"]["hits"]}, []
        found: dict[Key, Mapping[str, Any]] = {}

        def note(hits: Hits) -> None:
            found.update((document_key(hit), hit) for hit in hits)

        gaps = await server.until(
            lambda: read_each(server, self.index, body, note, page=DOCUMENTS), is_done=lambda gaps: not gaps
        )
        return found, gaps

    def _search(self, body: Mapping[str, Any]) -> Call:
        return Call("search", {"index": self.index, "body": body})

    def _body(self, fingerprints: Iterable[int], *, copies: bool) -> dict[str, Any]:
        """Return the search, without a size, for the *copies*, or all others, that have one of *fingerprints*."""
        fields = self._fields
        is_near = {"terms": {fields.fingerprint: list(map(to_hex, fingerprints))}}
        is_copy = {"exists": {"field": fields.duplicate_of}}
        clauses = {"filter": [is_near, is_copy]} if copies else {"filter": is_near, "must_not": is_copy}
        at = {"field": fields.at, "format": "epoch_millis"}
        return {
            "query": {"bool": clauses},
            "docvalue_fields": [fields.fingerprint, fields.group, fields.duplicate_of, at],
            "_source": False,
            "track_total_hits": False,
        }

    def _with_contents(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return the search *body* of hits that have what documents are compared by, too."""
        rule = self.rule.grouping
        more = {**body, "docvalue_fields": [*body["docvalue_fields"], *docvalue_fields(rule)]}
        return more if rule.similarity is None else text_body(more, self._text_fields.all)

    def _documents_in(self, hits: Mapping[Key, Mapping[str, Any]]) -> dict[Key, list[Document]]:
        """Return the documents of *hits*, one for each of their fingerprints."""
        fields, rule = self._fields, self.rule.grouping
        found: dict[Key, list[Document]] = {}
        for key, hit in hits.items():
            held = hit["fields"]
            copied, group = held.get(fields.duplicate_of), held.get(fields.group, (key.id,))
            content = None if rule.is_by_distance_alone else read_content(hit, rule, self._text_fields)
            at = int(held.get(fields.at, (0,))[0])
            found[key] = [
                Document(
                    key.id,
                    read_fingerprint(digits),
                    (copied or group)[0],
                    key.index,
                    routing=key.routing,
                    content=content,
                    at=at,
                    is_member=copied is not None,
                )
                for digits in held.get(fields.fingerprint, (None,))
            ]
        return found

    def _needed(self, items: Sequence[Item], existing: Existing) -> dict[int, Needed]:
        """Return the fingerprints of *items* about which copies may decide, and which of these."""
        ids = {str(item.operation.header.get("_id")) for item in items if item.operation is not None}
        asked: list[tuple[int, Document, list[Document]]] = []
        for document in _looked_up(items):
            if document.fingerprint is not None and document.fingerprint in existing.copies_unread:
                # Those of ids that are written now are not what they were.
                there = [near for near in existing.of(document.fingerprint) if near.id not in ids]
                asked.append((document.fingerprint, document, there))
        if self.rule.grouping.similarity is not None:
            soon = (document.content for _, item, there in asked for document in (item, *there[:FIRST_COMPARED]))
            prepare_together((content for content in soon if content is not None), self.rule.grouping.measure)
        needed: dict[int, Needed] = {}
        for fingerprint, document, there in asked:
            need = needs_copies(document, there, self.unshown, self.rule)
            if need != "none" and needed.get(fingerprint) != "near":
                needed[fingerprint] = need
        return needed


def _take_near(existing: Existing, answers: Mapping[int, NearDups]) -> dict[int, list[int]]:
    """Return the fingerprints near each that was asked about; note in *existing* why some may be missing."""
    existing.gaps |= {value: answer.reasons for value, answer in answers.items() if not answer.complete}
    return {value: list({found.fingerprint: None for found in answer}) for value, answer in answers.items() if answer}


def _written_to(item: Item) -> str | None:
    """Return the index of *item*, if it was written whole and under the id that it had."""
    outcome, operation = item.outcome, item.operation
    is_whole = operation is not None and operation.kind in ("index", "create") and not item.is_lost
    return outcome.index if is_whole and outcome is not None and outcome.version is not None else None


def _looked_up(items: Iterable[Item]) -> Iterator[Document]:
    """Yield what is decided about of *items*, and has a fingerprint."""
    for item in items:
        if item.document is not None and item.outcome is None and item.document.fingerprint is not None:
            yield item.document


def _may_be_held(item: Item, near: Near) -> bool:
    """
    Return whether the index may hold *item* as it is given, or its id under another routing value, where it has none.
    *near*: the fingerprints of the index near each; what is held has its very fingerprint.
    """
    fingerprint = None if item.document is None else item.document.fingerprint
    has_routing = item.operation is not None and "routing" in item.operation.header
    return has_routing or fingerprint is None or fingerprint in near.get(fingerprint, ())


def _held_body(ids: Sequence[str]) -> dict[str, Any]:
    # One more than there are ids: an answer that is not full has all of them.
    return {"query": {"ids": {"values": list(ids)}}, "size": min(len(ids) + 1, MAX_HITS), "track_total_hits": False}


def _add_near(
    existing: Existing, near: Near, documents: Mapping[Key, Iterable[Document]], gaps: tuple[str, ...]
) -> None:
    """Add to *existing* the *documents* near each fingerprint, each by its nearest, and why some may be missing."""
    by_fingerprint: dict[int, list[Document]] = {}
    for document in chain.from_iterable(documents.values()):
        by_fingerprint.setdefault(document.fingerprint or 0, []).append(document)
    for wanted, some in near.items():
        nearest: dict[tuple[str | None, str, str | None], Document] = {}
        for value in sorted(some, key=lambda value: (value ^ wanted).bit_count()):
            for document in by_fingerprint.get(value, ()):
                nearest.setdefault((document.index, document.id, document.routing), document)
        found = [*existing.of(wanted), *nearest.values()]
        existing.near[wanted] = sorted(found, key=lambda document: (document.at, document.id, document.index))
        if gaps:
            existing.gaps[wanted] = (*existing.gaps.get(wanted, ()), *gaps)
