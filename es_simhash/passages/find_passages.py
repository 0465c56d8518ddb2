"""Lookups of passages, of a text or a document: the order of requests, and the candidates."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import replace

from es_simhash.errors import InvalidInputError, MappingError, WrongTypeError, shorten
from es_simhash.lookup.documents import check_id, differing, read_documents, read_sources
from es_simhash.lookup.query import Query, match_all_of
from es_simhash.mapping.fields import Fields, read_hit
from es_simhash.mapping.meta import require_text_fields
from es_simhash.mapping.port import Port
from es_simhash.mapping.resolve import confirm, read_known, refuse_closed, send_confirmed
from es_simhash.passages.found import Overlaps
from es_simhash.passages.lookup import PassageLookup, PassageOptions, without_passages_query
from es_simhash.transport.answers import check_whole, find_gaps
from es_simhash.transport.buckets import count_documents
from es_simhash.transport.conversation import search_texts, text_body
from es_simhash.transport.pages import Hits, Pages, Reading
from es_simhash.transport.protocol import Call, Index, check_index, document_key, index_key
from es_simhash.transport.server import Answer
from es_simhash.writes.targets import refuse_masked_values

# Candidates read by the first search; most lookups have fewer.
FIRST_PAGE_DOCUMENTS, NEXT_PAGE_DOCUMENTS = 100, 500
# In one search.
MOST_TERMS = 10_000
# Of more, those of the first page alone are read.
MOST_CANDIDATES = 10_000


async def find(
    server: Port, index: Index, options: PassageOptions, *, text: str | None = None, id: str | None = None
) -> Overlaps:
    """
    Return the documents of *index* that share passages with *text*, or with its document *id*, without itself.
    The routing value says which document is meant, and restricts nothing then. If several documents of that *id* have
    different texts, InvalidInputError is raised.
    Cost: one search that brings the texts of up to 100 candidates, and more pages if there are more.
    """
    check_index(index)
    if id is not None:
        check_id(id)
    elif not isinstance(text, str):
        raise WrongTypeError(f"text must be a string, not {type(text).__name__}")
    everywhere = options if id is None else replace(options, routing=None)
    lookup = await _prepare(server, index, everywhere)
    lookup.text = (text or "") if id is None else await _read_document(server, lookup, id, options.routing)
    async with aclosing(_read_candidates(server, lookup)) as pages:
        async for hits in pages:
            await server.compute(lookup.compare, hits)
    answer = await _finish(server, lookup)
    sources = await read_sources(server, index, [overlap.key for overlap in answer], source=options.source)
    return replace(answer, items=tuple(replace(overlap, source=sources.get(overlap.key)) for overlap in answer))


async def _prepare(server: Port, index: Index, options: PassageOptions) -> PassageLookup:
    settings, resolved = await read_known(server, index)
    settings_by_index = resolved.settings_of
    if not settings_by_index:
        raise MappingError(
            f"the mapping of {shorten(index_key(index))} cannot be read, and a lookup of passages needs it: run it "
            "on the cluster that holds the index, as a user who may read mappings"
        )
    lacking = [name for name, of_index in settings_by_index.items() if of_index.passages is None]
    if lacking:
        await refuse_closed(server, index)
        raise MappingError(
            f"index {lacking[0]!r} has no passages: add them with put_mapping(index, passages=True), and "
            "fill them with setup(index)"
        )
    text_fields = {name: of_index.text_fields for name, of_index in settings_by_index.items()}
    require_text_fields(text_fields, "passages cannot be compared")
    lookup = PassageLookup(index, settings, resolved.text_fields, options)
    if not server.context.filled.recall(index):
        missing, gaps = await count_documents(server, index, without_passages_query(server.prefix))
        lookup.note(gaps)
        if missing:
            said = f"{missing} documents of {index_key(index)!r} have a fingerprint and no passages"
            lookup.note([f"{said}: run setup(index)"])
    return lookup


async def _finish(server: Port, lookup: PassageLookup) -> Overlaps:
    """Return the answer; costs two searches where the first one in a minute has no candidates: are terms masked?"""
    if not lookup.gaps and not server.context.filled.recall(lookup.index):
        if not lookup.candidates:
            await refuse_masked_values(server, lookup.index, Fields(server.prefix).passages, is_read=True)
        server.context.filled.learn(lookup.index, value=True)
    return lookup.result()


async def _read_document(server: Port, lookup: PassageLookup, id: str, routing: str | None) -> str:
    """Return the text of the document *id*, and leave it out of what is found."""
    hits, gaps = await read_documents(server, lookup.index, id, routing, text_fields=lookup.fields)
    # A copy of the document that was not read may have another text.
    check_whole(gaps)
    try:
        texts = {read_hit(hit, lookup.text_fields[hit["_index"]]) for hit in hits}
    except InvalidInputError as error:
        raise InvalidInputError(f"document {shorten(id)} cannot be compared: {error}") from error
    if len(texts) > 1:
        raise differing(id, hits)
    lookup.leave_out(map(document_key, hits))
    return texts.pop()


async def _read_candidates(server: Port, lookup: PassageLookup) -> Pages:
    """
    Yield all candidates, page by page, some twice; note in *lookup* why some may be missing.
    If they are too many, those of the first page alone are read.
    """
    terms: list[str] = await server.compute(lambda: lookup.terms)
    for begin in range(0, len(terms), MOST_TERMS):
        wanted = {"terms": {Fields(server.prefix).passages: terms[begin : begin + MOST_TERMS]}}
        query = match_all_of([wanted], lookup.options.filter, lookup.options.exclude_ids)
        number, hits = await _read_first(server, lookup, query)
        yield hits
        if number > MOST_CANDIDATES:
            lookup.note([f"{number} documents share parts with the text: narrow the lookup with a filter"])
        elif number != 0:
            async with aclosing(_read_all(server, lookup, query)) as pages:
                async for hits in pages:
                    yield hits


async def _read_first(server: Port, lookup: PassageLookup, query: Query) -> tuple[int, Hits]:
    """Return hits, and how many candidates there are if there are more; 0 if the hits are all."""
    body = {"size": FIRST_PAGE_DOCUMENTS, "query": query, "track_total_hits": True}

    async def send(call: Call) -> Answer:
        return await send_confirmed(server, lookup.index, call, settings=lookup.settings)

    routing = lookup.options.routing
    answer = await search_texts(server, lookup.index, body, lookup.fields, routing=routing, send=send)
    gaps = find_gaps(answer)
    number: int = answer["hits"]["total"]["value"]
    if not gaps and number > len(answer["hits"]["hits"]):
        return number, answer["hits"]["hits"]
    lookup.note(gaps)
    return 0, answer["hits"]["hits"]


async def _read_all(server: Port, lookup: PassageLookup, query: Query) -> Pages:
    """Yield all pages of *query*; none is given on before the settings were confirmed in its view."""
    body = text_body({"query": query}, lookup.fields)
    started = server.context.clock()
    reading = Reading(server, lookup.index, body, page=NEXT_PAGE_DOCUMENTS, routing=lookup.options.routing)
    async with aclosing(reading.pages()) as pages:
        async for hits in pages:
            await confirm(server, lookup.index, settings=lookup.settings, since=started)
            yield hits
    await confirm(server, lookup.index, settings=lookup.settings, since=started)
    lookup.note(reading.gaps)
