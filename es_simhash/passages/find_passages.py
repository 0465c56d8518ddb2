"""Lookups of passages, of a text or a document, or as a stream: the order of requests, and the candidates."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from dataclasses import replace

from es_simhash.errors import InvalidInputError, MappingError, WrongTypeError, shorten
from es_simhash.lookup.find import check_id, no_document
from es_simhash.lookup.judge import read_documents, read_sources
from es_simhash.lookup.query import Query, match_all_of
from es_simhash.mapping.fields import Fields, read_hit
from es_simhash.mapping.port import Port
from es_simhash.mapping.resolve import confirm, read_known, refuse_closed, send_confirmed, stream_anew
from es_simhash.passages.found import Overlap, Overlaps
from es_simhash.passages.lookup import (
    PassageLookup,
    PassageOptions,
    refuse_without_passages,
    too_many,
    without_passages,
    without_passages_query,
)
from es_simhash.transport.answers import check_whole, find_gaps
from es_simhash.transport.buckets import count_documents
from es_simhash.transport.conversation import search_texts, text_body
from es_simhash.transport.pages import Hits, Pages, Reading
from es_simhash.transport.protocol import Call, Index, Key, check_index, document_key, index_key
from es_simhash.transport.server import Answer
from es_simhash.writes.targets import refuse_masked_values

# Candidates read by the first search; most lookups have fewer.
FIRST_PAGE_DOCUMENTS, NEXT_PAGE_DOCUMENTS = 100, 500
# In one search.
MOST_TERMS = 10_000
# More are read for a stream alone.
MOST_CANDIDATES = 10_000


async def find(server: Port, index: Index, text: str, options: PassageOptions) -> Overlaps:
    """
    Return the documents of *index* that share passages with *text*.
    Cost: one search that brings the texts of up to 100 candidates, and more pages if there are more.
    """
    _check_text(text)
    return await _look_up(server, index, options, text)


async def find_of(server: Port, index: Index, id: str, options: PassageOptions) -> Overlaps:
    """
    Return the documents that share passages with the document *id* of *index*, without itself.
    The routing value says which document is meant, and restricts nothing. If several documents of that *id* have
    different texts, InvalidInputError is raised.
    """
    check_id(id)
    return await _look_up(server, index, options, id=id)


async def stream(
    server: Port, index: Index, text: str, options: PassageOptions
) -> AsyncGenerator[Sequence[Overlap], None]:
    """
    Yield all documents that share passages with *text*, as their pages are read, in no order.
    IncompleteSearchError is raised after the last one if some may be missing.
    """
    _check_text(text)
    check_index(index)

    given = set[Key]()
    async with aclosing(stream_anew(lambda: _stream(server, index, text, options, given))) as parts:
        async for found in parts:
            given.update(overlap.key for overlap in found)
            yield found


async def _stream(
    server: Port, index: Index, text: str, options: PassageOptions, given: Iterable[Key]
) -> AsyncGenerator[Sequence[Overlap], None]:
    lookup = await _prepare(server, index, options, is_stream=True)
    lookup.text = text
    lookup.leave_out(given)  # what was given away cannot be taken back, and must not come a second time
    async with aclosing(_read_candidates(server, lookup)) as pages:
        async for hits in pages:
            await server.compute(lookup.compare, hits)
            yield await _with_source(server, lookup, lookup.take_found())
    await _finish(server, lookup)


async def _look_up(
    server: Port, index: Index, options: PassageOptions, text: str = "", *, id: str | None = None
) -> Overlaps:
    """Return what is found of *text*, or of the document *id*, which a routing names, and restricts nothing."""
    check_index(index)
    everywhere = options if id is None else replace(options, routing=None)
    lookup = await _prepare(server, index, everywhere)
    lookup.text = text if id is None else await _read_document(server, lookup, id, options.routing)
    async with aclosing(_read_candidates(server, lookup)) as pages:
        async for hits in pages:
            await server.compute(lookup.compare, hits)
    answer = await _finish(server, lookup)
    return replace(answer, items=tuple(await _with_source(server, lookup, answer)))


async def _with_source(server: Port, lookup: PassageLookup, found: Sequence[Overlap]) -> Sequence[Overlap]:
    keys = [overlap.key for overlap in found]
    sources = await read_sources(server, lookup.index, keys, source=lookup.options.source)
    return [replace(overlap, source=sources[overlap.key]) if overlap.key in sources else overlap for overlap in found]


async def _prepare(server: Port, index: Index, options: PassageOptions, *, is_stream: bool = False) -> PassageLookup:
    settings, resolved = await read_known(server, index)
    settings_by_index = resolved.settings_of
    if not settings_by_index:
        raise MappingError(
            f"the mapping of {shorten(index_key(index))} cannot be read, and a lookup of passages needs it: run it "
            "on the cluster that holds the index, as a user who may read mappings"
        )
    if any(of_index.passages is None for of_index in settings_by_index.values()):
        await refuse_closed(server, index)
    refuse_without_passages(settings_by_index, "passages cannot be compared")
    lookup = PassageLookup(index, settings, resolved.text_fields, options, is_stream=is_stream)
    await _check_filled(server, lookup)
    return lookup


async def _check_filled(server: Port, lookup: PassageLookup) -> None:
    """Note that documents lack passages, before a stream begins; costs a search, unless none did a minute ago."""
    context, index = server.context, lookup.index
    if not context.filled.recall(index):
        missing, gaps = await count_documents(server, index, without_passages_query(context.prefix))
        lookup.note(gaps)
        if missing:
            lookup.note([without_passages(index_key(index), missing)])
    if lookup.gaps and lookup.is_stream:
        lookup.result()


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
    if not hits:
        raise no_document(id, lookup.index)
    try:
        texts = {read_hit(hit, lookup.text_fields[hit["_index"]]) for hit in hits}
    except InvalidInputError as error:
        raise InvalidInputError(f"document {shorten(id)} cannot be compared: {error}") from error
    if len(texts) > 1:
        raise InvalidInputError(
            f"document {shorten(id)} has several texts in {shorten(lookup.index)}: name one index, or the routing"
        )
    lookup.leave_out(map(document_key, hits))
    return texts.pop()


def _check_text(text: str) -> None:
    if not isinstance(text, str):
        raise WrongTypeError(f"text must be a string, not {type(text).__name__}")


async def _read_candidates(server: Port, lookup: PassageLookup) -> Pages:
    """
    Yield all candidates, page by page, some twice; note in *lookup* why some may be missing.
    If they are too many, those of the first page alone are read, but not for a stream.
    """
    terms: list[str] = await server.compute(lambda: lookup.terms)
    for begin in range(0, len(terms), MOST_TERMS):
        wanted = {"terms": {Fields(server.prefix).passages: terms[begin : begin + MOST_TERMS]}}
        query = match_all_of([wanted], lookup.options.filter, lookup.options.exclude_ids)
        number, hits = await _read_first(server, lookup, query)
        yield hits
        if number > MOST_CANDIDATES and not lookup.is_stream:
            lookup.note([too_many(number)])
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
