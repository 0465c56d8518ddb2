"""
Which documents nobody has finished: with a text and without its fingerprint, or with a fingerprint and no group.

What a plan, a check, a setup and the command line say of an index that is filled in part is counted here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from es_simhash.hashing import Scheme, fingerprints
from es_simhash.mapping.fields import Fields, text_or_none
from es_simhash.mapping.mapping import exist_clauses
from es_simhash.mapping.meta import IndexSettings
from es_simhash.mapping.port import Port
from es_simhash.mapping.rule import target_of
from es_simhash.transport.buckets import count_whole
from es_simhash.transport.limits import is_beyond
from es_simhash.transport.protocol import Index
from es_simhash.transport.retry import ATTEMPTS, Patience, retry, search_texts

_READ = 200


def unfilled_query(
    text_fields: Sequence[str], prefix: str, mappings: Iterable[Mapping[str, Any]] = ()
) -> dict[str, Any]:
    """
    Return the query for documents that have a value in one of *text_fields*, perhaps empty, and none of ours; for all
    without ours where *mappings* hide texts from queries.
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
        query = unfilled_query(fields, prefix, [mappings[name] for name in names])
        parts.append((names, query))
    if len(parts) == 1:
        return parts[0][1]
    each = [{"bool": {"filter": [{"terms": {"_index": names}}, query]}} for names, query in parts]
    return {"bool": {"should": each, "minimum_should_match": 1}}


async def count_unfilled(
    server: Port,
    index: Index,
    scheme: Scheme,
    text_fields: Sequence[str],
    *,
    mappings: Sequence[Mapping[str, Any]] = (),
    clauses: Sequence[Mapping[str, Any]] = (),
    attempts: int = ATTEMPTS,
) -> int:
    """
    Return how many documents of *index* that match *clauses* should have a fingerprint, and have none.
    No query knows an empty text, or one without letters. So up to 200 of them are read, drawn at random: the number is
    exact where there are no more, else it is 0 if none of these needs one, or how many the query finds; of these the
    share of those drawn where *mappings* hide texts from queries.
    """
    query = {"bool": {"filter": [unfilled_query(text_fields, server.prefix, mappings), *clauses]}}
    number = await count_whole(server, index, query, patience=Patience(attempts))
    if not number or not text_fields:
        return number
    if scheme.name == "weighted":
        return 0  # it has features, and nobody but their writer knows which documents should have some
    drawn = {"query": query, "random_score": {"seed": 0, "field": "_seq_no"}, "boost_mode": "replace"}
    try:
        body = {"size": _READ, "query": {"function_score": drawn}}
        search = partial(search_texts, server, index, body, text_fields)
        answer = await retry(server, search, patience=Patience(attempts))
    except Exception as error:
        if not is_beyond(error, "hits"):
            raise
        return number
    texts = [text_or_none(hit, text_fields) for hit in answer["hits"]["hits"]]
    # What cannot be read is for backfill to report.
    known = [text for text in texts if text is not None]
    values: list[int | None] = await server.compute(lambda: fingerprints(known, scheme=scheme))
    lacking = len(texts) - values.count(None)
    if not exist_clauses(text_fields, mappings):
        lacking -= texts.count(None)  # most of these have no text
        return lacking if number <= _READ else number * lacking // len(texts)
    return lacking if number <= _READ or not lacking else number


async def count_lacking(
    server: Port,
    index: Index,
    each: Mapping[str, IndexSettings],
    *,
    mappings: Sequence[Mapping[str, Any]] = (),
    with_groups: bool = True,
    attempts: int = ATTEMPTS,
) -> tuple[int, int]:
    """
    Return how many documents lack the fingerprint of their text, and how many the group that their index records.
    *each*: the settings of the indices behind *index*, by name. *with_groups*: else the second is 0, without a request.
    *attempts*: of each count, while the server is too busy.
    """
    fields = Fields(server.prefix)
    unfilled = 0
    if each:
        scheme = next(iter(each.values())).scheme
        texts = sorted({name for own in each.values() for name in own.text_fields})
        unfilled = await count_unfilled(server, index, scheme, texts, mappings=mappings, attempts=attempts)
    grouped = [name for name, own in each.items() if target_of(own) is not None]
    if not grouped or not with_groups:
        return unfilled, 0
    query = {
        "filter": [{"exists": {"field": fields.fingerprint}}, {"terms": {"_index": grouped}}],
        "must_not": [{"exists": {"field": fields.group}}],
    }
    return unfilled, await count_whole(server, index, {"bool": query}, patience=Patience(attempts))
