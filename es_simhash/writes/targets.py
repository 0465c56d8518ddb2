"""
Before a write: every index behind the name, and that of its next rollover, must map our fields and take updates.

In an index without our mapping the server maps our fields as text, and then every lookup through the alias fails.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from es_simhash.errors import MappingError, WritesRefusedError, shorten
from es_simhash.hashing import block_terms, fingerprint
from es_simhash.mapping.context import Resolved
from es_simhash.mapping.faults import Fault, find_faults, mapping_error, refuse_other_use, refuse_partial_sources
from es_simhash.mapping.fields import Fields, full_name, read_fingerprint, read_values, text_or_none
from es_simhash.mapping.mapping import mapping_of, with_source_mode
from es_simhash.mapping.meta import (
    IndexSettings,
    marker_name,
    marker_properties,
    markers_in_use,
    read_settings,
)
from es_simhash.mapping.port import Port
from es_simhash.mapping.resolve import SETTINGS_ATTEMPTS, agree
from es_simhash.mapping.shards import reading_settings
from es_simhash.mapping.user_fields import walk_fields
from es_simhash.transport.buckets import count_whole
from es_simhash.transport.conversation import search_texts, unless_refused
from es_simhash.transport.pages import Hits
from es_simhash.transport.protocol import Call, Index, Key, document_key, index_key
from es_simhash.transport.refusals import MAPPING_FULL
from es_simhash.writes.bulk import send_bulk
from es_simhash.writes.operations import Operation, new_id

# Looked at to see which field is masked, of canonicals and of copies.
SAMPLED_DOCUMENTS = 20
# Whose values are looked for, and most of these values.
SEARCHED_DOCUMENTS, MOST_VALUES = 5, 1_000


async def change_mapping(server: Port, name: str, mapping: Mapping[str, Any], body: Mapping[str, Any]) -> None:
    """Put *body* into the *mapping* of index *name*; if that is full, a note of the error names the new fields."""
    try:
        await server.put_mapping(index=name, body=body)
    except Exception as error:
        if MAPPING_FULL.meets(error):
            held = {path for path, _ in walk_fields(mapping)}
            new = ", ".join(path for path, _ in walk_fields(body) if path not in held)
            error.add_note(
                f"The mapping of index {name!r} is full, and this adds {new}: "
                "raise the index setting index.mapping.total_fields.limit, and do it again."
            )
        raise


async def add_fields(server: Port, name: str, settings: IndexSettings) -> tuple[Mapping[str, Any], IndexSettings]:
    """
    Add our fields to the index *name*, and what it does not record of *settings*; return its mapping and settings then.
    Its mapping is read again first: what another program has recorded meanwhile stays.
    """
    mapping = (await server.get_mapping(index=name))[name].get("mappings", {})
    recorded = server.context.settings_in(mapping) or settings
    settings = replace(recorded, text_fields=recorded.text_fields or settings.text_fields)
    return await write_settings(server, name, mapping, settings, adds_fields=True), settings


async def write_settings(
    server: Port, name: str, mapping: Mapping[str, Any], settings: IndexSettings, *, adds_fields: bool = False
) -> Mapping[str, Any]:
    """
    Record *settings* of the index *name* in its *mapping*, with their marker; return the mapping then.
    Two programs that record at the same time do not see the marker of each other. So the mapping is read again: the
    program whose settings are recorded in the end retires the other marker.
    """
    prefix = server.prefix
    for _ in range(SETTINGS_ATTEMPTS):
        body = mapping_of(settings, prefix=prefix, mapping=mapping)
        if not adds_fields:
            body["properties"] = {prefix: {"properties": marker_properties(settings, prefix=prefix, mapping=mapping)}}
        await change_mapping(server, name, mapping, body)
        server.context.forget()
        mapping = (await server.get_mapping(index=name))[name]["mappings"]
        others = set(markers_in_use(mapping, prefix=prefix)) - {marker_name(settings)}
        if not others or read_settings(mapping, prefix=prefix) != settings:
            break
    return mapping


# Statuses of a server without the API, of a name it does not know, and of a user without the right.
_NO_ANSWER = (400, 401, 403, 404, 405)
_ROLLOVER = re.compile("(.*-)([0-9]+)")


async def prepare_targets(server: Port, index: str, resolved: Resolved) -> Resolved:
    """
    Return *resolved* with our fields in every index behind the name *index*, to which documents are to be written.
    No request for a concrete index that has the fields. An alias or data stream costs up to three; what a user may not
    ask is left out. MappingError is raised if none of its indices has the fields, or its next rollover would create one
    without.
    """
    if resolved.assumed is not None:
        return resolved
    settings = agree(resolved, server.context)
    resolved = await _map_lacking(server, resolved, settings)
    if index not in resolved.mappings:
        await _check_next(server, index, settings)
    return resolved


async def _map_lacking(server: Port, resolved: Resolved, settings: IndexSettings) -> Resolved:
    """Add our fields to the indices without them, with the settings of the other indices."""
    if not (lacking := resolved.unmapped):
        return resolved
    mappings, settings_of = dict(resolved.mappings), dict(resolved.settings_of)
    for name in lacking:
        refuse_other_use(name, mappings[name], server.prefix)
        try:
            mappings[name], settings_of[name] = await add_fields(server, name, settings)
        except Exception as error:
            error.add_note(f"Index {name!r} lacks our fields: let a user who may change mappings run setup(index).")
            raise
    return replace(resolved, mappings=mappings, settings_of=dict(sorted(settings_of.items())))


async def read_source_modes(
    server: Port, index: Index, mappings: Mapping[str, Mapping[str, Any]]
) -> dict[str, Mapping[str, Any]]:
    """
    Return *mappings* with the mode of ``_source`` that index settings may give them; costs one request.
    A user who may not read settings gets them as they are.
    """
    if not mappings:
        return {}
    answer = await reading_settings(server, index) or {}
    settings = {name: answer.get(name, {}).get("settings") or {} for name in mappings}
    return {name: with_source_mode(mapping, settings[name]) for name, mapping in mappings.items()}


async def refuse_updates(server: Port, index: Index, mappings: Mapping[str, Mapping[str, Any]]) -> None:
    """Carry out :func:`refuse_partial_sources` for the indices behind *index*, by their settings too: one request."""
    refuse_partial_sources(await read_source_modes(server, index, mappings))


async def refuse_masked(server: Port, names: Iterable[str]) -> None:
    """
    Raise WritesRefusedError if this login may see only parts of the documents of an index, or only some of them.
    What it reads may be hashes in place of values, and would be archived so. Costs a bulk request.
    """
    for name, error in (await _find_restricted(server, names)).items():
        raise WritesRefusedError(
            f"this login sees only a part of index {shorten(name)}: masked or hidden fields, or some documents "
            f"({error}): use a login that sees all of it",
            kind="forbidden",
            index=name,
        )


async def refuse_unseen(server: Port, resolved: Resolved) -> None:
    """
    Raise WritesRefusedError if this login sees a mask, or nothing, where decisions need our fields or the text.
    A login that sees only some documents decides among these. Costs a bulk request; for a login that sees only a part
    also two searches for each index.
    """
    for name in await _find_restricted(server, resolved.settings_of):
        if field := await _find_unseen(server, name, resolved.settings_of[name]):
            raise _unseen(name, field)


async def refuse_masked_values(server: Port, index: Index, field: str, *, is_read: bool = False) -> None:
    """
    Raise WritesRefusedError, or MappingError where *is_read* alone, if this login sees the keyword *field* masked.
    A search for what is shown finds nothing then. Costs two searches.
    """
    body: dict[str, Any] = {"query": {"exists": {"field": field}}, "size": SEARCHED_DOCUMENTS}
    if field == Fields(server.prefix).passages:  # they have no doc values
        hits = (await search_texts(server.patient, index, body, [field]))["hits"]["hits"]
        shown = {value for hit in hits for value in read_values(hit.get("_source", {}), field)}
    else:
        body |= {"docvalue_fields": [field], "_source": False}
        hits = (await server.patient.search(index=index, body=body))["hits"]["hits"]
        shown = {value for hit in hits for value in hit.get("fields", {}).get(field, ())}
    values = sorted(shown)[:MOST_VALUES]
    if values and not await count_whole(server.patient, index, {"terms": {field: values}}):
        error = _unseen(index_key(index), field)
        raise MappingError(str(error)) if is_read else error


def _unseen(index: str, field: str) -> WritesRefusedError:
    return WritesRefusedError(
        f"this login sees {field} of index {shorten(index)} masked, or not at all, so nothing can be decided by it: "
        "use a login that sees the field as it is",
        kind="forbidden",
        index=index,
    )


async def _find_restricted(server: Port, names: Iterable[str]) -> dict[str, str]:
    """
    Return the indices of which this login may see only a part, and what the server says.
    Both products refuse its updates, so an update of a document that is not there shows it, and changes nothing.
    """
    names = list(names)
    if not names:
        return {}
    probes = [Operation("update", Key(name, new_id(), "0").header(), {"doc": {}}) for name in names]
    outcomes = zip(names, await send_bulk(server, probes), strict=True)
    # A login that lacks the right to write is refused by 403, these by 500 (OpenSearch) or 400 (Elasticsearch).
    return {
        name: str(outcome.error)
        for name, outcome in outcomes
        if outcome.hindrance == "forbidden" and outcome.status not in (401, 403)
    }


async def _find_unseen(server: Port, name: str, settings: IndexSettings) -> str | None:
    """
    Return which of our fields, or the text, is never as it must be in a sample of the index; ``None`` if all are.
    A mask is told from what contradicts: no server says what it masks.
    """
    fields, hits = Fields(server.prefix), list[Mapping[str, Any]]()
    shown = [fields.fingerprint, *fields.blocks, fields.group, fields.duplicate_of]
    tagged = {"exists": {"field": fields.duplicate_of}}
    for clause in ({"must_not": tagged}, {"filter": tagged}):
        query = {"bool": {"must": {"exists": {"field": fields.fingerprint}}, **clause}}
        body = {"query": query, "size": SAMPLED_DOCUMENTS, "docvalue_fields": shown}
        hits += (await search_texts(server, name, body, settings.text_fields))["hits"]["hits"]
    return await server.compute(_never_right, hits, fields, settings)


def _judge_hit(hit: Mapping[str, Any], fields: Fields, settings: IndexSettings) -> dict[str, bool]:
    """Return for each field of *hit* whether it is as it must be."""
    values = {name: some[0] for name, some in hit.get("fields", {}).items()}
    digits, group, canonical = (values.get(name) for name in (fields.fingerprint, fields.group, fields.duplicate_of))
    if (wanted := read_fingerprint(digits)) is None:
        return {fields.fingerprint: False}
    right = {fields.fingerprint: True}
    right |= {name: values.get(name) == term for name, term in zip(fields.blocks, block_terms(wanted), strict=True)}
    if canonical is not None:
        right[fields.duplicate_of] = canonical == group
    elif group is not None:
        key = document_key(hit)
        right[fields.group] = group in (key.id, full_name(key.index, key.id), full_name(*key))
    if settings.text_fields:
        text = text_or_none(hit, settings.text_fields)
        right[", ".join(settings.text_fields)] = (
            text is not None and fingerprint(text, scheme=settings.scheme) == wanted
        )
    return right


def _never_right(hits: Hits, fields: Fields, settings: IndexSettings) -> str | None:
    """Return a field that is in none of *hits* as it must be."""
    judged = [_judge_hit(hit, fields, settings) for hit in hits]
    seen = dict.fromkeys(field for right in judged for field in right)
    return next((field for field in seen if not any(right.get(field) for right in judged)), None)


async def _check_next(server: Port, index: str, settings: IndexSettings) -> None:
    """Refuse an alias or data stream whose next index would lack our fields: only a template can add them there."""
    streams = (await ask_about(server, "get_data_stream", index) or {}).get("data_streams")
    if streams:
        name = streams[0].get("template") or ""
        template = f"index template {name!r}"
        simulated = await ask_about(server, "simulate_template", name)
    else:
        created = next_index(await ask_about(server, "get_alias", index) or {}, index)
        if created is None:
            return
        template = f"the index template for {created!r}"
        simulated = await ask_about(server, "simulate_index", created)
    if simulated is None:
        return
    if not (made := simulated.get("template")):
        fault = Fault("no_template", server.prefix, found=f"{template} does not exist", wanted=index)
        raise mapping_error(index, [fault])
    mapping, reason = made.get("mappings", {}), ""
    recorded = read_settings(mapping, prefix=server.prefix)
    if find_faults(mapping, prefix=server.prefix):
        reason = f"{template} does not map them"
    elif recorded is None or recorded.scheme != settings.scheme:
        reason = f"{template} does not record scheme {settings.scheme}"
    if reason:
        raise mapping_error(index, [Fault("template", server.prefix, found=reason, wanted=index)])


def next_index(aliases: Mapping[str, Any], alias: str) -> str | None:
    """
    Return the name of the index that a rollover of *alias* creates; ``None`` for an alias that is not rolled over.
    *aliases*: answer of a get-alias request. An alias is taken to be rolled over if its write index ends in a number.
    """
    parts = _ROLLOVER.fullmatch(write_index(aliases, alias) or "")
    return None if parts is None else f"{parts[1]}{int(parts[2]) + 1:06d}"


def write_index(aliases: Mapping[str, Any], alias: str) -> str | None:
    """Return the index that a write to *alias* goes to, if the answer of a get-alias request says so."""
    named = {name: held.get("aliases", {}).get(alias) or {} for name, held in aliases.items()}
    return next((name for name, held in named.items() if held.get("is_write_index")), None)


async def find_write_index(server: Port, index: str, names: Iterable[str]) -> str:
    """Return which of *names* a write to the alias or data stream *index* goes to; empty if unknown."""
    if all(name.startswith(".ds-") for name in names):
        return last_generation(names)
    answer = await unless_refused(server.get_alias(name=index), 401, 403, 404)
    return write_index(answer or {}, index) or ""


def last_generation(names: Iterable[str]) -> str:
    """Return the last backing index of a data stream; names differ before the number by date and product."""
    return max(names, key=lambda name: name.rsplit("-", 1)[-1])


async def ask_about(server: Port, api: str, name: str) -> dict[str, Any] | None:
    """Return the answer about *name*; ``None`` where the server, or the user's rights, give none."""
    return await unless_refused(server.send(Call(api, {"name": name})), *_NO_ANSWER)
