"""
Reads the fingerprinted documents of an index and what decides on groups, and counts what nobody has finished: with a
text field and without its fingerprint, or with a fingerprint and no group.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from es_simhash.errors import IncompleteSearchError
from es_simhash.hashing import Scheme, fingerprint
from es_simhash.lookup.content import TextStore
from es_simhash.lookup.documents import FETCH_DOCUMENTS, fetch_hits
from es_simhash.lookup.near_dups import no_fingerprint_shown
from es_simhash.mapping.context import TextFields
from es_simhash.mapping.fields import Fields, is_masked, text_or_none
from es_simhash.mapping.meta import IndexSettings
from es_simhash.mapping.port import Port
from es_simhash.mapping.user_fields import exist_clauses
from es_simhash.texts.measures import TextMeasure
from es_simhash.transport.answers import check_whole
from es_simhash.transport.buckets import BucketReader, count_whole
from es_simhash.transport.conversation import search_texts
from es_simhash.transport.pages import Hits, Reading, read_each
from es_simhash.transport.protocol import Index, Key, Progress, document_key, ids_query

if TYPE_CHECKING:
    from es_simhash.groups.table import Table, Texts


# A writer plans for at least so many documents: a small index may grow before its size is read again.
SMALLEST = 1_000_000
PAGE = 5_000
# Characters of the texts that one search brings.
PAGE_CHARACTERS = 4_000_000
WORDLESS_DOCUMENTS = 100
BUCKETS = 1_000
# Names of indices in one query: a server takes 1,024 clauses.
PREFIXES = 500


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


async def lost_canonicals(server: Port, index: Index, names: Sequence[str]) -> Counter[str]:
    """
    Return the groups that should have a canonical, and have none: how many documents name each, or have a longer name
    because a canonical that shares their id was there. *names*: of the concrete indices.
    """
    fields = Fields(server.prefix)
    is_tagged = {"exists": {"field": fields.duplicate_of}}
    readers = [BucketReader(index, [is_tagged], fields.duplicate_of, page=BUCKETS)]
    for begin in range(0, len(names), PREFIXES):
        some = names[begin : begin + PREFIXES]
        longer = [{"prefix": {fields.group: f"{name}{sign}"}} for name in some for sign in "/?"]
        clause = {"bool": {"should": longer, "minimum_should_match": 1, "must_not": [is_tagged]}}
        readers.append(BucketReader(index, [clause], fields.group, page=BUCKETS))
    lost: Counter[str] = Counter()
    for reader in readers:
        while page := await reader.read(server):
            named: Counter[str] = Counter()
            for name, bucket in page:
                named[name if reader is readers[0] else name.partition("/")[2]] += bucket["doc_count"]
            there: set[str] = set()

            def note(hits: Hits, there: set[str] = there) -> None:
                there.update(*(hit["fields"].get(fields.group, ()) for hit in hits))

            check_whole(await read_each(server, index, canonicals_body(list(named), fields), note, page=PAGE))
            lost.update({name: number for name, number in named.items() if name not in there})
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
    Return the present texts of the documents at *places*, with those that are *known*: one search for every 500, or for
    up to 5,000 short ones; raise on gaps. A mask, which is not the text of its fingerprint by *scheme*, is none.
    """
    import numpy as np  # noqa: PLC0415

    from es_simhash.groups.table import Texts  # noqa: PLC0415 -- loads numpy

    store = TextStore(measure) if known is None else known.sets
    numbers = np.full(len(table), -1, np.int64)
    versions = np.full((len(table), 2), -1, np.int64)
    if known is not None:
        numbers[: len(known.numbers)], versions[: len(known.versions)] = known.numbers, known.versions
    unread = [place for place in places if versions[place, 0] < 0]
    done, longest, page = 0, 1, FETCH_DOCUMENTS
    while done < len(unread):
        keys = {place: table.row(place).key for place in unread[done : done + page]}
        hits, unanswered = await fetch_hits(
            server.patient, index, list(keys.values()), text_fields=text_fields.all, page=page, versions=True
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
        done += len(keys)
        longest = max([longest, *map(len, texts.values())])
        page = max(FETCH_DOCUMENTS, min(PAGE, PAGE_CHARACTERS // longest))
        server.tell(Progress(done, len(unread), "reading texts"))
    missing = int((numbers[list(places)] < 0).sum()) if len(places) else 0
    return Texts(store, numbers, versions, missing)


def unfilled_query(
    text_fields: Sequence[str], prefix: str, mappings: Iterable[Mapping[str, Any]] = ()
) -> dict[str, Any]:
    """
    Return the query for documents that have a value in one of *text_fields*, perhaps empty, and none of ours; for all
    without ours where *mappings* hide texts from queries. No query knows a text without letters: it counts too.
    """
    without = {"must_not": [{"exists": {"field": Fields(prefix).fingerprint}}]}
    return {"bool": {**without, "filter": exist_clauses(text_fields, mappings)}}


def unfilled_by_index(
    text_fields: Mapping[str, tuple[str, ...]], prefix: str, mappings: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """Return :func:`unfilled_query` for indices, by name, each with its own *text_fields*."""
    parts = []
    for fields in dict.fromkeys(text_fields.values()):
        names = [name for name in text_fields if text_fields[name] == fields]
        query = unfilled_query(fields, prefix, [mappings[name] for name in names if name in mappings])
        parts.append((names, query))
    if len(parts) == 1:
        return parts[0][1]
    either = [{"bool": {"filter": [{"terms": {"_index": names}}, query]}} for names, query in parts]
    return {"bool": {"should": either, "minimum_should_match": 1}}


async def count_lacking(
    server: Port,
    index: Index,
    settings_of: Mapping[str, IndexSettings],
    *,
    mappings: Mapping[str, Mapping[str, Any]] = {},
    with_groups: bool = True,
) -> tuple[int, int]:
    """
    Return how many documents with a text field lack a fingerprint, and how many the group that their index records.
    *settings_of*: the settings of the indices behind *index*, and their *mappings* as far as they are known, by name:
    each has text fields of its own. *with_groups*: else the second is 0, without a request.
    """
    fields = Fields(server.prefix)
    unfilled = 0
    if settings_of:
        texts = {name: own.text_fields for name, own in settings_of.items()}
        query = unfilled_by_index(texts, server.prefix, mappings)
        unfilled = await count_whole(server, index, query)
    grouped = [name for name, own in settings_of.items() if own.is_grouped]
    if not grouped or not with_groups:
        return unfilled, 0
    fingerprinted = [{"exists": {"field": fields.fingerprint}}, {"terms": {"_index": grouped}}]
    query = {"bool": {"filter": fingerprinted, "must_not": {"exists": {"field": fields.group}}}}
    return unfilled, await count_whole(server, index, query)


async def count_wordless(server: Port, index: Index, settings_of: Mapping[str, IndexSettings]) -> int:
    """
    Return how many of the documents that :func:`count_lacking` counts first have no text with letters: no setup gives
    them a fingerprint. Cost: one search, which reads the texts of at most 100.
    """
    texts = {name: own.text_fields for name, own in settings_of.items()}
    fields = list(dict.fromkeys(name for names in texts.values() for name in names))
    body = {"query": unfilled_by_index(texts, server.prefix, {}), "size": WORDLESS_DOCUMENTS}
    answer = await search_texts(server, index, body, fields)
    found = ((text_or_none(hit, fields), settings_of.get(hit["_index"])) for hit in answer["hits"]["hits"])
    return sum(
        text is None or (own is not None and fingerprint(text, scheme=own.scheme) is None) for text, own in found
    )
