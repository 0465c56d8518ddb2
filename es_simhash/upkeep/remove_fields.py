"""Removes our fields from every document, and our entry from ``_meta``; or only what grouping wrote there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any

from es_simhash.errors import count
from es_simhash.mapping.faults import nothing_recorded
from es_simhash.mapping.fields import FINGERPRINTED, GROUPED, clearing, users_content
from es_simhash.mapping.meta import (
    IndexSettings,
    marker_properties,
    markers_in_use,
    merge_meta,
    read_settings,
    recorded_prefixes,
)
from es_simhash.mapping.port import Port
from es_simhash.mapping.resolve import narrowed
from es_simhash.mapping.rule import take_out
from es_simhash.mapping.shards import reading_primaries
from es_simhash.transport.answers import check_whole
from es_simhash.transport.buckets import count_whole
from es_simhash.transport.conversation import refresh
from es_simhash.transport.pages import Hits, Reading
from es_simhash.transport.protocol import Index, document_key, index_key, names_in, noting
from es_simhash.upkeep.put_fields import read_mappings
from es_simhash.writes.bulk import MISSING, send_bulk
from es_simhash.writes.operations import Failure, Operation, Outcome, refuse_hindered
from es_simhash.writes.targets import change_mapping, refuse_updates, write_settings

PAGE = 1_000
BAD_REQUEST = 400


@dataclass(frozen=True, slots=True)
class RemovedFields:
    """
    What the removal of our fields did.

    Attributes:
        documents:
            Number of documents that no longer carry the fields.
        failures:
            The documents that could not be changed.
        indices:
            Names of the indices whose ``_meta`` no longer names the prefix, or no longer records a grouping; empty
            while there are failures. An index of which an alias hides documents with the fields is not among them.
    """

    documents: int
    failures: tuple[Failure, ...]
    indices: tuple[str, ...]


async def remove_fields(
    server: Port, index: Index, *, groups_only: bool = False, dry_run: bool = False
) -> RemovedFields:
    """
    Remove our fields from every document, and our entry from ``_meta``; or the group fields, and the grouping.
    A field once mapped stays in the mapping, empty: no product can remove it. Where scripts are not allowed,
    ``_source`` keeps the prefix with a null. The markers are retired before any document is changed, because a server
    may refuse that. An index that does not record the prefix is left as it is, and so are keys of others in our object.
    Raises MappingError if none records it and documents have such a field, or if one keeps only a part of ``_source``
    (an update would lose the rest),
    and IncompleteSearchError if not every document could be read; ``_meta`` is then left as it is.
    """
    server = await reading_primaries(server, index)
    every = await read_mappings(server, index)
    prefix = server.prefix
    # Elsewhere nothing of ours was written: what is there with these names is the user's own.
    mappings = {name: mapping for name, mapping in every.items() if prefix in recorded_prefixes(mapping)}
    if not mappings:
        if await count_whole(server, index, {"exists": {"field": prefix}}):
            raise nothing_recorded(index_key(index), every, prefix)
        return RemovedFields(0, (), ())
    await refuse_updates(server, index, mappings)
    fields = GROUPED if groups_only else (*FINGERPRINTED, *GROUPED)
    documents, failures = 0, list[Failure]()
    held = [{"exists": {"field": f"{prefix}.{name}"}} for name in fields]
    ours = {"terms": {"_index": list(mappings)}}
    query = {"bool": {"filter": [ours], "should": held, "minimum_should_match": 1}}
    await refresh(server, list(mappings))
    # What an alias hides keeps its fields; so their record stays, too.
    names = await _shown_whole(server, index, list(mappings), query)
    left = {name: _left(mapping, prefix, groups_only) for name, mapping in mappings.items()}
    recorded = []
    for name in names:
        meta = mappings[name].get("_meta")
        if merge_meta(meta, left[name], prefix=prefix) != (meta or {}):
            recorded.append(name)
    if dry_run:
        return RemovedFields(await count_whole(server, index, query), (), tuple(recorded))
    body = {"query": query, "_source": [prefix, f"{prefix}.*"]}
    with noting(lambda: "no document was changed"):
        for name in names:
            if left[name] is None and markers_in_use(mappings[name], prefix=prefix):
                retired = marker_properties(None, prefix=prefix, mapping=mappings[name])
                await change_mapping(server, name, mappings[name], {"properties": {prefix: {"properties": retired}}})
                server.context.forget()
    with noting(lambda: f"our fields were removed from {count(documents, 'document')}"):
        reading = Reading(server.patient, index, body, page=PAGE)
        async with aclosing(reading.pages()) as pages:
            async for hits in pages:
                carriers = [hit for hit in hits if users_content(hit.get("_source") or {}, prefix) is None]
                outcomes = await _clear(server, carriers, fields)
                for outcome in outcomes:
                    documents += outcome.is_done
                    if not outcome.is_done and outcome.status != MISSING:  # what was deleted meanwhile has no fields
                        failures.append(outcome.to_failure())
                refuse_hindered(outcomes)
        check_whole(reading.gaps)
    if not failures:
        for name in recorded:  # read again: meanwhile, another program may have recorded something
            mapping = (await read_mappings(server, name))[name]
            if (settings := _left(mapping, prefix, groups_only)) is None:
                meta = merge_meta(mapping.get("_meta"), None, prefix=prefix)
                await change_mapping(server, name, mapping, {"_meta": meta})
            else:
                await write_settings(server, name, mapping, settings)
        server.context.forget()
    await refresh(server, index)
    return RemovedFields(documents, tuple(failures), () if failures else tuple(recorded))


async def _shown_whole(server: Port, index: Index, names: Sequence[str], query: Mapping[str, Any]) -> list[str]:
    """Return those of the concrete indices *names* in which no document that matches *query* is hidden by an alias."""
    found = list(names)
    for name in [] if names_in(index) == found else await narrowed(server, index):
        if name not in found:
            continue
        everything = await count_whole(server, name, query)
        shown = await count_whole(server, index, {"bool": {"filter": [query, {"term": {"_index": name}}]}})
        if shown < everything:
            found.remove(name)
    return found


def _left(mapping: Mapping[str, Any], prefix: str, groups_only: bool) -> IndexSettings | None:  # noqa: FBT001
    """Return what ``_meta`` is to record of the prefix; ``None`` for nothing."""
    settings = read_settings(mapping, prefix=prefix) if groups_only else None
    return None if settings is None else replace(settings, extra=take_out(settings.extra))


async def _clear(server: Port, hits: Hits, names: Sequence[str]) -> list[Outcome]:
    """Remove the fields *names* of ours from the documents of *hits*, each by a script if the server allows that."""
    script = _script(names, server.prefix)
    outcomes = await send_bulk(server, [_update(hit, script) for hit in hits])
    # No script language here, none allowed, or not for this document: a partial document does it as well.
    refused = [place for place, outcome in enumerate(outcomes) if outcome.status == BAD_REQUEST]
    changes = [{"doc": clearing(hits[place].get("_source") or {}, names, prefix=server.prefix)} for place in refused]
    again = [_update(hits[place], change) for place, change in zip(refused, changes, strict=True)]
    for place, outcome in zip(refused, await send_bulk(server, again), strict=True):
        outcomes[place] = outcome
    return outcomes


def _update(hit: Mapping[str, Any], change: Mapping[str, Any]) -> Operation:
    return Operation("update", {**document_key(hit).header(), "retry_on_conflict": 5}, change)


def _script(names: Sequence[str], prefix: str) -> dict[str, Any]:
    """Return the update that removes the fields *names* of ours from any document; keys of others stay."""
    source = (
        "for (name in params.dotted) { ctx._source.remove(name) } def own = ctx._source[params.prefix]; "
        "if (own instanceof Map) { for (name in params.names) { own.remove(name) } "
        "if (own.isEmpty()) { ctx._source.remove(params.prefix) } }"
    )
    params = {"dotted": [f"{prefix}.{name}" for name in names], "prefix": prefix, "names": list(names)}
    return {"script": {"lang": "painless", "source": source, "params": params}}
