"""
The candidates of a lookup of passages, read with their texts: documents with a term of the text; their queries.

One search if the first page has all, else page by page.
"""

from __future__ import annotations

from contextlib import aclosing
from typing import Any

from es_simhash.lookup.query import Query, match_all_of
from es_simhash.mapping.fields import Fields
from es_simhash.mapping.port import Port
from es_simhash.mapping.resolve import confirming, send_confirmed
from es_simhash.passages.lookup import PassageLookup, too_many
from es_simhash.transport.answers import find_gaps
from es_simhash.transport.conversation import search_texts, text_body
from es_simhash.transport.pages import Hits, Pages, Reading
from es_simhash.transport.protocol import Call
from es_simhash.transport.refusals import NO_SOURCE
from es_simhash.transport.server import Answer


async def read_candidates(server: Port, lookup: PassageLookup) -> Pages:
    """
    Yield all candidates, page by page, some twice; note in *lookup* why some may be missing.
    If they are too many, those of the first page alone are read, but not for a stream.
    """
    terms: list[str] = await server.compute(lookup.terms)
    sizes = lookup.options.sizes
    for begin in range(0, len(terms), sizes.terms):
        wanted = {"terms": {Fields(server.prefix).passages: terms[begin : begin + sizes.terms]}}
        query = match_all_of([wanted], lookup.options.filter, lookup.options.exclude_ids)
        number, hits = await _read_first(server, lookup, query)
        yield hits
        if number > sizes.candidates and not lookup.is_stream:
            lookup.note([too_many(number)])
        elif number != 0:
            async with aclosing(_read_all(server, lookup, query)) as pages:
                async for hits in pages:
                    yield hits


async def _read_first(server: Port, lookup: PassageLookup, query: Query) -> tuple[int, Hits]:
    """Return hits, and how many candidates there are if there are more; 0 if the hits are all."""
    body = {"size": lookup.options.sizes.first_page, "query": query, "track_total_hits": True}

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
    sizes, routing = lookup.options.sizes, lookup.options.routing
    body = text_body({"query": query}, lookup.fields)
    for wanted in (body, {**body, "_source": True}):
        confirm_once = confirming(server, lookup.index, lookup.settings)
        reading = Reading(server, lookup.index, wanted, page=sizes.next_page, routing=routing)
        try:
            async with aclosing(reading.pages()) as pages:
                async for hits in pages:
                    await confirm_once()
                    yield hits
            await confirm_once()
            is_refused = NO_SOURCE.meets(reading.gaps)
        except Exception as error:
            if wanted is not body or not NO_SOURCE.meets(error):
                raise
            is_refused = True
        if not is_refused:
            break
    lookup.note(reading.gaps)


def without_passages_query(prefix: str) -> dict[str, Any]:
    fields = Fields(prefix)
    written, filled = ({"exists": {"field": field}} for field in (fields.fingerprint, fields.passages))
    return {"bool": {"filter": [written], "must_not": [filled]}}
