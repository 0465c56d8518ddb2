"""Reads documents by their ids, with what they are compared by or what the caller wants of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from es_simhash.arguments import check_key
from es_simhash.errors import InvalidInputError, shorten
from es_simhash.hashing import from_hex
from es_simhash.lookup.near_dups import hit_fingerprints
from es_simhash.lookup.query import check_source
from es_simhash.mapping.fields import Fields
from es_simhash.mapping.port import Port
from es_simhash.transport.answers import Gap, check_whole, find_gaps
from es_simhash.transport.conversation import search_texts
from es_simhash.transport.pages import Hits
from es_simhash.transport.protocol import Index, Key, check_index, document_key

# One id may stand in several indices, and in several shards of one.
COPIES_OF_ID = 1_000


def check_id(id: str) -> None:
    """Raise an error if *id* cannot be the ``_id`` of a document, or cannot be sent."""
    check_key("id", id, wanted="the id of a document")


async def read_documents(
    server: Port,
    index: Index,
    id: str,
    routing: str | None = None,
    *,
    text_fields: Sequence[str] = (),
    docvalue_fields: Sequence[Any] = (),
) -> tuple[Hits, list[Gap]]:
    """
    Return the documents with that *id*, and why some may be missing; those with the *routing*, if there are any.
    InvalidInputError is raised if there is none, IncompleteSearchError if nobody knows.
    """
    body = {"size": COPIES_OF_ID, "query": {"ids": {"values": [id]}}}
    answer = await search_hits(server, index, body, text_fields, docvalue_fields=docvalue_fields)
    hits: Hits = answer["hits"]["hits"]
    if len(hits) >= COPIES_OF_ID:
        raise InvalidInputError(f"{COPIES_OF_ID} documents or more have the id {shorten(id)}: name one index")
    gaps = find_gaps(answer)
    if not hits:
        check_whole(gaps)
        raise InvalidInputError(f"no document {shorten(id)} in {shorten(index)}: check the id; new ones need a refresh")
    if routing is not None:
        hits = [hit for hit in hits if hit.get("_routing") == routing] or hits
    return hits, gaps


def differing(id: str, hits: Hits) -> InvalidInputError:
    """Return the error for documents of one *id* that differ in what a lookup of it goes by."""
    where = ", ".join(sorted(map(_place_of, hits)))
    return InvalidInputError(
        f"document {shorten(id)} differs between {where}: name one index, or the document's routing"
    )


def _place_of(hit: Mapping[str, Any]) -> str:
    routing = hit.get("_routing")
    return str(hit["_index"]) if routing is None else f"{hit['_index']} (routing {shorten(routing)})"


def shared_fingerprint(hits: Hits, id: str, field: str) -> int:
    """Return the fingerprint of the documents *hits* of one id; raise if they differ in it."""
    values = {value for hit in hits for value in hit_fingerprints(hit, field)}
    if not values:
        raise InvalidInputError(
            f"document {shorten(id)} has no fingerprint: its text has no features, or it was never backfilled"
        )
    if len(values) > 1:
        raise differing(id, hits)
    return from_hex(values.pop())


async def read_fingerprint_of(server: Port, index: Index, id: str, routing: str | None = None) -> int:
    """
    Return the fingerprint that *index* has for the document *id*; errors as ``find`` for one.
    IncompleteSearchError is raised if a shard did not answer: a copy of the document there may have another
    fingerprint.
    """
    check_id(id)
    if routing is not None:
        check_key("routing", routing)
    field = Fields(server.prefix).fingerprint
    hits, gaps = await read_documents(server, check_index(index), id, routing, docvalue_fields=[field])
    check_whole(gaps)
    return shared_fingerprint(hits, id, field)


FETCH_DOCUMENTS = 500
"""Documents fetched at once. With texts of a few thousand characters each, these are a few megabytes."""

# An index has at most so many shards, and each of them may have a document with one id.
MOST_SHARDS = 1_024


async def fetch_hits(
    server: Port,
    index: Index,
    wanted: Sequence[Key],
    *,
    text_fields: Sequence[str],
    source: Sequence[str] = (),
    docvalue_fields: Sequence[Any] = (),
    page: int = FETCH_DOCUMENTS,
    versions: bool = False,
) -> tuple[dict[Key, Mapping[str, Any]], dict[Key, Gap | None]]:
    """
    Return the hits of the documents *wanted*, perhaps with others that have one of the ids; and which have none, and
    why: ``None`` for a document that is gone, a gap if shards did not answer. *text_fields* come from ``_source``; they
    may be empty. *source* names more of it. *versions*: whether hits have ``_seq_no`` and ``_primary_term``.
    Cost: one search for every *page* of documents.
    """
    found: dict[Key, Mapping[str, Any]] = {}
    unanswered: dict[Key, Gap | None] = {}
    done = 0
    while done < len(wanted):
        part = wanted[done : done + page]
        ids, names = sorted({key.id for key in part}), sorted({key.index for key in part})
        # Others may have one of the ids.
        query = {"bool": {"filter": [{"ids": {"values": ids}}, {"terms": {"_index": names}}]}}
        size = page + MOST_SHARDS
        body: dict[str, Any] = {"size": size, "query": query}
        if versions:
            body["seq_no_primary_term"] = True
        answer = await search_hits(server, index, body, text_fields, source=source, docvalue_fields=docvalue_fields)
        hits = answer["hits"]["hits"]
        found.update((document_key(hit), hit) for hit in hits)
        missing = [key for key in part if key not in found]
        if missing and len(hits) >= size:
            page = max(1, page // 2)
            continue
        done += len(part)
        gaps = find_gaps(answer)
        unanswered.update(dict.fromkeys(missing, gaps[0] if gaps else None))
    return found, unanswered


async def read_sources(
    server: Port, index: Index, keys: Sequence[Key], *, source: bool | Sequence[str]
) -> dict[Key, Mapping[str, Any]]:
    """Return the fields *source* of the documents *keys*, perhaps with others that have one of the ids."""
    if not keys or (wanted := check_source(source)) is False:
        return {}
    names = ["*"] if wanted is True else wanted
    hits, unanswered = await fetch_hits(server.patient, index, keys, text_fields=(), source=names)
    check_whole(gap for gap in unanswered.values() if gap is not None)
    return {key: hit.get("_source") or {} for key, hit in hits.items()}


async def search_hits(
    server: Port,
    index: Index,
    body: Mapping[str, Any],
    text_fields: Sequence[str],
    *,
    source: Sequence[str] = (),
    docvalue_fields: Sequence[Any] = (),
) -> dict[str, Any]:
    """Return the answer to *body*, whose hits have *text_fields*, *source* and *docvalue_fields*, and nothing else."""
    if docvalue_fields:
        body = {**body, "docvalue_fields": list(docvalue_fields)}
    if text_fields or source:
        return await search_texts(server, index, body, text_fields, source=source)
    answer: dict[str, Any] = await server.search(index=index, body={**body, "_source": False})
    return answer
