"""Reads the fingerprinted documents of an index, all or those that a change may concern, and what decides on groups."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any

from es_simhash.errors import IncompleteSearchError
from es_simhash.hashing import Scheme, fingerprint
from es_simhash.lookup.content import Content, TextStore
from es_simhash.lookup.find import Crowded, Lookup, Scope
from es_simhash.lookup.find_many import MultiSearch, Outcome, make_multi_search, take_answer
from es_simhash.lookup.judge import FETCH_DOCUMENTS, LookupRule, fetch_hits, read_contents
from es_simhash.lookup.lookup_options import LookupOptions
from es_simhash.lookup.near_dups import NearDups, no_fingerprint_shown
from es_simhash.lookup.plan import index_stats
from es_simhash.mapping.context import Context, IndexStats, TextFields
from es_simhash.mapping.fields import Fields, is_masked, text_or_none
from es_simhash.mapping.meta import IndexSettings
from es_simhash.mapping.port import Port
from es_simhash.mapping.resolve import begin_anew, check_unchanged
from es_simhash.mapping.rule import Grouping
from es_simhash.texts.measures import TextMeasure
from es_simhash.transport.answers import check_whole
from es_simhash.transport.buckets import BucketReader
from es_simhash.transport.conversation import attempt
from es_simhash.transport.pages import Hits, Reading, read_each
from es_simhash.transport.protocol import Index, Key, Progress, document_key, ids_query

if TYPE_CHECKING:
    from es_simhash.groups.table import Table, Texts


# A writer plans for at least so many documents: a small index may grow before its size is read again.
SMALLEST = 1_000_000
# Most documents that one page shows, unless more candidates are expected.
CROWD = 300
# Fingerprints with more documents than that in one request: the answer must fit into the memory of a small server.
CROWDED_TOGETHER = 10


class GroupLookups:
    """Many lookups at once in one index; *documents* counts those with fingerprints, after ``prepare``."""

    def __init__(
        self,
        context: Context,
        index: Index,
        settings: IndexSettings,
        *,
        max_distance: int,
    ) -> None:
        self._fields = Fields(context.prefix)
        options = LookupOptions(source=False)
        self.documents = 0
        self._took = 0.0  # milliseconds of the server for one lookup, when it was last asked
        self.scope = Scope(context, index, settings, options, LookupRule(max_distance), stats=IndexStats())

    async def prepare(self, server: Port, *, again: bool = True) -> None:
        """Learn the size that plans are made for; repeat it now and then, since the index grows under a writer."""
        found = await index_stats(server, self.scope.index, again=again)
        self.documents = found.documents
        stats = replace(found, documents=max(found.documents, SMALLEST))
        self.scope = replace(self.scope, stats=stats)

    def batch(
        self, fingerprints: Sequence[int], *, copies: bool | None = None, is_one_page: bool = False
    ) -> MultiSearch:
        """
        Return the request for one or more *fingerprints*; *copies*: of these alone, or of all but these.
        *is_one_page*: a fingerprint that has more documents near it than a page shows gets no answer.
        """
        clause = {"exists": {"field": self._fields.duplicate_of}}
        which = None if copies is None else {"bool": {"filter" if copies else "must_not": [clause]}}
        options = replace(self.scope.options, filter=which)
        if is_one_page:
            options = replace(options, sizes=replace(options.sizes, first_page=CROWD))
        scope = replace(self.scope, options=options, is_one_page=is_one_page)
        return make_multi_search([Lookup(scope, fingerprint) for fingerprint in fingerprints])

    @property
    def milliseconds(self) -> float:
        """How long one lookup by block terms is expected to take the server, or took it."""
        return max(self.scope.milliseconds, self._took)

    async def take(self, server: Port, batch: MultiSearch, answer: Any) -> dict[int, NearDups]:
        """
        Return the documents near each fingerprint, given the *answer* to the batch, or its exception.
        What a busy server refuses, or answers incompletely, is asked again with growing waits. What is incomplete even
        then is returned and marked so; a refusal for another reason raises. What one page does not answer is left out.
        """
        scope = self.scope
        if not isinstance(answer, Exception):
            self._took = answer.get("took", 0) / len(batch.lookups)
        tries = count()

        async def take() -> list[Outcome]:
            if next(tries):  # settings other than the scheme changed, or were unreadable
                await check_unchanged(server, scope.index, scope.settings)
            return await take_answer(server, batch, answer, is_patient=True)

        outcomes = await begin_anew(take)
        found: dict[int, NearDups] = {}
        for lookup, outcome in zip(batch.lookups, outcomes, strict=True):
            if isinstance(outcome, Crowded):
                continue
            if isinstance(outcome, Exception):
                raise outcome
            found[lookup.fingerprint] = outcome
        return found

    async def ask(
        self, server: Port, fingerprints: Sequence[int], *, copies: bool | None = None
    ) -> dict[int, NearDups]:
        """Return the documents near each of *fingerprints*, in one request, and more for those that have many."""
        found = await self._ask(server, fingerprints, copies=copies, is_one_page=True)
        return found | await self.ask_crowded(server, [one for one in fingerprints if one not in found], copies=copies)

    async def ask_crowded(
        self, server: Port, fingerprints: Sequence[int], *, copies: bool | None = None
    ) -> dict[int, NearDups]:
        """Return the documents near each of *fingerprints*. Each has many, so one request asks for few."""
        found: dict[int, NearDups] = {}
        for start in range(0, len(fingerprints), CROWDED_TOGETHER):
            found |= await self._ask(server, fingerprints[start : start + CROWDED_TOGETHER], copies=copies)
        return found

    async def _ask(
        self, server: Port, fingerprints: Sequence[int], *, copies: bool | None, is_one_page: bool = False
    ) -> dict[int, NearDups]:
        if not fingerprints:
            return {}
        await check_unchanged(server, self.scope.index, self.scope.settings)
        batch = self.batch(fingerprints, copies=copies, is_one_page=is_one_page)
        return await self.take(server, batch, await attempt(server.send(batch.call())))


PAGE = 5_000
BUCKETS = 1_000


async def read_all(server: Port, index: Index, table: Table) -> None:
    """Add to *table* each document of *index* that has a row there."""
    fields = Fields(server.prefix)
    body = {**table.search_body(), "query": {"bool": {"filter": {"exists": {"field": fields.fingerprint}}}}}
    reading = Reading(server.patient, index, body, page=PAGE)
    async with aclosing(reading.pages()) as pages:
        async for hits in pages:
            await server.compute(table.add, hits)
            server.tell(Progress(len(table), None, "reading documents"))
    check_whole(reading.gaps)
    if table.unreadable and not len(table):
        reason = no_fingerprint_shown(index, fields.fingerprint)
        raise IncompleteSearchError(reason, reasons=(reason,))


async def grouped_without_fingerprint(server: Port, index: Index) -> list[Key]:
    """Return the documents that are tagged as duplicates, and have no fingerprint."""
    fields = Fields(server.prefix)
    found: list[Key] = []

    def note(hits: Hits) -> None:
        found.extend(map(document_key, hits))

    tagged = [{"exists": {"field": field}} for field in (fields.duplicate_of, fields.distance)]
    rule = {"should": tagged, "minimum_should_match": 1, "must_not": [{"exists": {"field": fields.fingerprint}}]}
    check_whole(await read_each(server, index, {"query": {"bool": rule}, "_source": False}, note, page=PAGE))
    return found


def canonicals_body(names: Sequence[str], fields: Fields) -> dict[str, Any]:
    """Return the search for the canonicals of the groups *names*; other documents may share their ids."""
    ungrouped = {"filter": ids_query(names), "must_not": {"exists": {"field": fields.group}}}
    named = {"bool": {"should": [{"terms": {fields.group: names}}, {"bool": ungrouped}]}}
    there = [{"exists": {"field": fields.fingerprint}}, named]
    query = {"bool": {"filter": there, "must_not": [{"exists": {"field": fields.duplicate_of}}]}}
    return {"query": query, "docvalue_fields": [fields.group, fields.fingerprint], "_source": False}


async def lost_canonicals(server: Port, index: Index) -> list[str]:
    """Return the groups that documents name, and of which no canonical is there."""
    fields = Fields(server.prefix)
    lost: list[str] = []
    field = fields.duplicate_of
    reader = BucketReader(index, [{"exists": {"field": field}}], field, page=BUCKETS)
    while page := await reader.read(server):
        named = [name for name, _ in page]
        there: set[str] = set()

        def note(hits: Hits, there: set[str] = there) -> None:
            there.update(*(hit["fields"].get(fields.group, ()) for hit in hits))

        check_whole(await read_each(server, index, canonicals_body(named, fields), note, page=PAGE))
        lost += [name for name in named if name not in there]
    return lost


async def read_texts(
    server: Port,
    index: Index,
    table: Table,
    places: Sequence[int],
    text_fields: TextFields,
    measure: TextMeasure,
    scheme: Scheme,
    known: Texts | None = None,
) -> Texts:
    """
    Return the present texts of the documents at *places*, with those that are *known*: one search for every 500; raise
    on gaps. A mask, which is not the text of its fingerprint by *scheme*, is none.
    """
    import numpy as np  # noqa: PLC0415

    from es_simhash.groups.table import Texts  # noqa: PLC0415 -- loads numpy

    store = TextStore(measure) if known is None else known.sets
    numbers = np.full(len(table), -1, np.int64)
    versions = np.full((len(table), 2), -1, np.int64)
    if known is not None:
        numbers[: len(known.numbers)], versions[: len(known.versions)] = known.numbers, known.versions
    unread = [place for place in places if versions[place, 0] < 0]
    for begin in range(0, len(unread), FETCH_DOCUMENTS):
        keys = {place: table.row(place).key for place in unread[begin : begin + FETCH_DOCUMENTS]}
        hits, unanswered = await fetch_hits(
            server, index, list(keys.values()), text_fields=text_fields.all, versions=True
        )
        check_whole(gap for gap in unanswered.values() if gap is not None)
        texts: dict[int, str] = {}
        for place, key in keys.items():
            hit = hits.get(key)
            if hit is None:
                continue
            versions[place] = hit["_seq_no"], hit["_primary_term"]
            text = text_or_none(hit, text_fields[key.index])
            if text is None or (is_masked(text) and fingerprint(text, scheme=scheme) != table.row(place).fingerprint):
                continue
            texts[place] = text
        numbers[list(texts)] = await server.compute(store.add, list(texts.values()))
        server.tell(Progress(min(begin + FETCH_DOCUMENTS, len(unread)), len(unread), "reading texts"))
    missing = int((numbers[list(places)] < 0).sum()) if len(places) else 0
    return Texts(store, numbers, versions, missing)


async def fetch_contents(
    server: Port,
    index: Index,
    wanted: Sequence[Key],
    *,
    grouping: Grouping,
    text_fields: TextFields,
) -> dict[Key, Content]:
    """
    Return what each *wanted* document is compared by, without documents that are gone.
    Cost: one search for every 500 documents, repeated while the server is busy or shards do not answer.
    """
    contents = await server.until(
        lambda: read_contents(server, index, wanted, grouping, text_fields),
        is_done=lambda contents: not any(map(_is_unanswered, contents.values())),
    )
    return {
        key: content for key, content in contents.items() if content.unread is None or content.unread.kind != "deleted"
    }


def _is_unanswered(content: Content) -> bool:
    return content.unread is not None and content.unread.kind == "not_read"
