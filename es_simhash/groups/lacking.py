"""
Which documents nobody has finished: with a text field and without its fingerprint, or with a fingerprint and no group.

What a plan, a check, a setup and the command line say of an index that is filled in part is counted here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from es_simhash.mapping.fields import Fields
from es_simhash.mapping.meta import IndexSettings
from es_simhash.mapping.port import Port
from es_simhash.mapping.rule import target_of
from es_simhash.mapping.user_fields import exist_clauses
from es_simhash.transport.buckets import count_whole
from es_simhash.transport.protocol import Index


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
        query = unfilled_query(fields, prefix, [mappings[name] for name in names if name in mappings])
        parts.append((names, query))
    if len(parts) == 1:
        return parts[0][1]
    either = [{"bool": {"filter": [{"terms": {"_index": names}}, query]}} for names, query in parts]
    return {"bool": {"should": either, "minimum_should_match": 1}}


async def count_unfilled(
    server: Port,
    index: Index,
    text_fields: Sequence[str],
    *,
    mappings: Sequence[Mapping[str, Any]] = (),
    clauses: Sequence[Mapping[str, Any]] = (),
) -> int:
    """
    Return how many documents of *index* that match *clauses* have a text field, and no fingerprint.
    No query knows an empty text, or one without letters: such a document counts too, and where *mappings* hide texts
    from queries each one without a fingerprint.
    """
    query = {"bool": {"filter": [unfilled_query(text_fields, server.prefix, mappings), *clauses]}}
    return await count_whole(server.patient, index, query)


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
    grouped = [name for name, own in settings_of.items() if target_of(own) is not None]
    if not grouped or not with_groups:
        return unfilled, 0
    query = {
        "filter": [{"exists": {"field": fields.fingerprint}}, {"terms": {"_index": grouped}}],
        "must_not": [{"exists": {"field": fields.group}}],
    }
    return unfilled, await count_whole(server, index, {"bool": query})
