"""Creates indices with our fields, adds the fields to indices that exist, and finds what their documents need."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from es_simhash.arguments import check_fields, check_name, check_object
from es_simhash.errors import InvalidInputError, MappingError, shorten
from es_simhash.hashing import DEFAULT_SCHEME, Scheme, get_scheme
from es_simhash.mapping.context import Context, Resolved
from es_simhash.mapping.faults import find_source_faults, refuse_other_use
from es_simhash.mapping.mapping import (
    build_mapping,
    check_users_mapping,
    has_synthetic_source,
    mapping_of,
    with_source_mode,
)
from es_simhash.mapping.meta import (
    META_KEY,
    IndexSettings,
    build_settings,
    is_marked,
    merge_meta,
    text_fields_of,
)
from es_simhash.mapping.port import Port
from es_simhash.mapping.resolve import agree, no_index, resolve_index
from es_simhash.mapping.user_fields import check_texts, exist_clauses, may_hold, no_such_field, say_texts
from es_simhash.transport.buckets import count_whole
from es_simhash.transport.conversation import refresh, unless_refused
from es_simhash.transport.protocol import Index, check_index, check_new_name, noting, status_of
from es_simhash.writes.targets import add_fields, refuse_updates, write_settings

logger = logging.getLogger("es_simhash")


async def create_index(
    server: Port,
    index: str,
    settings: IndexSettings,
    mappings: Mapping[str, Any] | None,
    index_settings: Mapping[str, Any] | None,
    *,
    dry_run: bool = False,
) -> IndexSettings:
    """
    Create *index* with the caller's *mappings* and *index_settings*, and add our fields; in a dry run, only check them.
    If a template gives our fields other settings, *settings* replace them. Logs a warning if ``_source`` leaves fields
    out: such an index can be filled and searched, but an update of a document loses fields. Raises InvalidInputError if
    the mappings have a field with the name of our prefix, MappingError if lookups could not find anything with these
    mappings, or with those of a template.
    """
    check_index(check_name("index", index))
    theirs = check_users_mapping(
        {} if mappings is None else mappings, prefix=server.prefix, text_fields=settings.text_fields
    )
    check_texts(index, theirs, settings.text_fields)
    if index_settings is not None:
        check_object("settings", index_settings)
    if has_synthetic_source(theirs, index_settings or {}):
        settings = replace(settings, value=False)  # _source would show it as a number, which JavaScript rounds
    for fault in find_source_faults(with_source_mode(theirs, index_settings or {})):
        logger.warning("index %r: %s: backfill, reconcile, tags and removals will refuse it", index, fault)
    ours = mapping_of(settings, prefix=server.prefix, mapping=theirs)
    merged = theirs | ours | {"properties": theirs.get("properties", {}) | ours["properties"]}
    refuse_other_use(index, merged, server.prefix)
    body: dict[str, Any] = {"mappings": merged} | ({"settings": dict(index_settings)} if index_settings else {})
    if dry_run:
        check_new_name(index)
        return settings
    await server.create_index(index=index, body=body)
    server.context.forget()
    try:
        await _outdo_templates(server, index, settings)
    except BaseException as error:
        error.add_note(f"The index {index!r} was created, but a template may have given it other settings: see check.")
        raise
    return settings


async def _outdo_templates(server: Port, index: str, settings: IndexSettings) -> None:
    """Let the new *index* have the *settings* alone, and their marker: a server adds up a template's and ours."""
    [(name, mapping)] = (await read_mappings(server, index)).items()
    refuse_other_use(index, mapping, server.prefix)
    recorded = ((mapping.get("_meta") or {}).get(META_KEY) or {}).get(server.prefix) or {}
    wanted = settings.to_dict()
    extra = {key: value for key, value in recorded.items() if key not in wanted}
    settings = replace(settings, extra=extra)
    if recorded != {**extra, **wanted} or not is_marked(mapping, settings, prefix=server.prefix):
        await write_settings(server, name, mapping, settings, adds_fields=True)


async def put_mapping(
    server: Port,
    index: Index,
    scheme: str | Scheme | None,
    text_field: str | Sequence[str],
    max_distance: int | None,
    *,
    value: bool | None,
    passages: bool | None = None,
    dry_run: bool = False,
) -> list[str]:
    """
    Add our fields and the ``_meta`` entry to indices that exist; return the names of those changed, or to be changed.
    Settings that are not given stay as the index records them. All indices are judged before one is changed. Raises
    MappingError if an index maps the prefix to something else, or records another scheme for it.
    """
    wanted = server.context.wanted if scheme is None else scheme
    server.context.learn_files(wanted)
    # Refuses what cannot be used before a server is asked.
    build_mapping(
        scheme=DEFAULT_SCHEME if wanted is None else wanted,
        text_field=text_field,
        max_distance=max_distance,
        prefix=server.prefix,
    )

    named = check_fields("text_field", text_field, may_lack=True)
    asked = {"text_fields": named or None, "max_distance": max_distance, "value": value}
    given: dict[str, Any] = {key: setting for key, setting in asked.items() if setting is not None}

    def settings_for(name: str, mapping: Mapping[str, Any]) -> IndexSettings:
        refuse_other_use(name, mapping, server.prefix)
        check_texts(name, mapping, named)
        recorded = server.context.settings_in(mapping)
        if recorded is not None and not Context(wanted=wanted).accepts(recorded.scheme):
            raise MappingError(
                f"index {name!r} records scheme {recorded.scheme} for prefix {server.prefix!r}, not {wanted}: "
                "backfill the new scheme under a second prefix"
            )
        settings = replace(recorded or IndexSettings(get_scheme(wanted or DEFAULT_SCHEME)), **given)
        if passages is False:
            settings = replace(settings, passages=None)
        elif passages:  # a scheme of which they cannot be made is refused
            settings = replace(settings, passages=build_settings(scheme=settings.scheme, passages=True).passages)
        merge_meta(mapping.get("_meta"), settings, prefix=server.prefix)  # refuses what is not ours
        return settings

    mappings = await read_mappings(server, index)
    for name, mapping in mappings.items():
        settings_for(name, mapping)
    changed: list[str] = []
    with noting(lambda: f"the mappings changed before this: {', '.join(changed) or 'none'}"):
        for name in [] if dry_run else mappings:  # read again: another program may have recorded something meanwhile
            mapping = (await read_mappings(server, name))[name]
            await write_settings(server, name, mapping, settings_for(name, mapping), adds_fields=True)
            changed.append(name)
    return sorted(mappings)


async def read_mappings(server: Port, index: Index) -> dict[str, Mapping[str, Any]]:
    """Return the mapping of each concrete index behind *index*, sorted by name; costs one request."""
    answer = await server.get_mapping(index=check_index(index))
    if not answer:
        raise no_index(index)
    return {name: answer[name].get("mappings") or {} for name in sorted(answer)}


@dataclass(frozen=True, slots=True)
class Target:
    """
    The fields that the documents of one concrete index need.
    *uuid*: an index that is deleted and created again has another. *is_synthetic*: ``_source`` is put together from the
    other fields, so it shows numbers as numbers.
    """

    settings: IndexSettings
    uuid: str
    is_synthetic: bool = False


async def find_targets(
    server: Port, index: Index, text_field: str | Sequence[str] | None, *, dry_run: bool
) -> dict[str, Target]:
    """
    Return the target of each index behind *index*; add our fields to indices that lack them, and record the text
    fields, but not in a dry run. Costs three requests, three for each index that lacks something, and counts for text
    fields that are not recorded yet. Raises SchemeMismatchError for different schemes, MappingError if fields are
    mapped wrongly or nothing says where the text is, InvalidInputError if *text_field* differs from what an index
    records or no index can have such a field.
    """
    resolved = await resolve_index(server, index)
    await refuse_updates(server, index, resolved.mappings)
    if resolved.assumed is not None:
        raise MappingError(
            f"the mapping of {shorten(index)} cannot be read, and a backfill needs it: run it on the cluster that "
            "holds the index, as a user who may read mappings"
        )
    if not text_field and (resolved.faults or not resolved.settings_of):
        agree(resolved, server.context)  # raises
    future = with_our_fields(server.context, resolved, check_fields("text_field", text_field, may_lack=True))
    await refuse_impossible(server, resolved, future)
    answer = await server.patient.get_settings(index=index)
    if gone := sorted(future.settings_of.keys() - answer.keys()):  # deleted since its mapping was read
        raise no_index(gone)
    targets = {}
    for name in sorted(future.settings_of):
        found = answer[name]["settings"]
        is_synthetic = has_synthetic_source(resolved.mappings[name], found)
        targets[name] = Target(future.settings_of[name], found["index"]["uuid"], is_synthetic)
    if not dry_run:
        await _add_fields(server, resolved, targets)
    return targets


async def _add_fields(server: Port, resolved: Resolved, targets: Mapping[str, Target]) -> None:
    """Add our fields and the text fields to the indices that lack them, and where it is allowed, the marker."""
    for name, target in targets.items():
        mapping, fields = resolved.mappings[name], target.settings.text_fields
        is_lacking = not all(_records(resolved, name, field) for field in fields)
        # An index in which no document has such a text needs no fields; its documents are only read.
        if is_lacking and not any(may_hold(mapping, field) for field in fields):
            continue
        if not is_lacking and (target.is_synthetic or is_marked(mapping, target.settings, prefix=server.prefix)):
            continue
        try:
            await add_fields(server, name, target.settings)
        except Exception as error:
            # Lookups without a marker read the mapping.
            if is_lacking or status_of(error) not in (400, 401, 403):
                raise


def with_our_fields(
    context: Context, resolved: Resolved, text_field: tuple[str, ...], *, scheme: Scheme | None = None
) -> Resolved:
    """
    Return *resolved* as if each index had our fields and recorded its text fields, by default those of the other
    indices; raise where that cannot be. *scheme*: that of new fields where no index records one.
    """
    if any(fault.kind != "no_scheme" for _, fault in resolved.faults):
        agree(resolved, context)  # raises
    new = IndexSettings(scheme or get_scheme(context.wanted or DEFAULT_SCHEME))
    if resolved.settings_of:
        new = agree(replace(resolved, faults=()), context)
    mappings, every = dict(resolved.mappings), {}
    for name, mapping in resolved.mappings.items():
        refuse_other_use(name, mapping, context.prefix)
        check_texts(name, mapping, text_field)
        recorded = resolved.settings_of.get(name, new)
        if not text_field and not recorded.text_fields:
            raise InvalidInputError(
                f"index {name!r} does not record its text field: give text_field=FIELD{say_texts(mapping)}"
            )
        every[name] = replace(recorded, text_fields=text_fields_of(recorded, text_field, index=name))
        body = mapping_of(every[name], prefix=context.prefix, mapping=mapping)
        properties = {**(mapping.get("properties") or {}), **body["properties"]}
        mappings[name] = {**mapping, **body, "properties": properties}
    return Resolved(mappings, every)


async def refuse_impossible(server: Port, resolved: Resolved, future: Resolved) -> None:
    """
    Refuse text fields of *future*, which :func:`with_our_fields` made of *resolved*, that no document has, as far as a
    query sees them, before a fingerprint is written or removed. An index without documents proves nothing. A text field
    that is recorded, but not in the mapping, of an index with fingerprints is hidden from this user: to them every
    document looks as if its text had been deleted.
    """
    names = {name: settings.text_fields for name, settings in future.settings_of.items()}
    for field in dict.fromkeys(field for fields in names.values() for field in fields):
        holders = [name for name, fields in names.items() if field in fields]
        possible = [name for name in holders if may_hold(resolved.mappings[name], field)]
        exists = exist_clauses([field], [resolved.mappings[name] for name in possible])
        unrecorded = [name for name in holders if not _records(resolved, name, field)]
        if (possible and not exists) or {*possible} - {*unrecorded} or not unrecorded:
            continue
        # A login may have rights on an alias alone: then nothing is proved.
        if await unless_refused(_lack(server, unrecorded, possible, exists), 401, 403):
            raise no_such_field(unrecorded[0], field, resolved.mappings[unrecorded[0]])
    for name, fields in names.items():
        if all(_records(resolved, name, field) and not may_hold(resolved.mappings[name], field) for field in fields):
            query = {"exists": {"field": f"{server.prefix}.fingerprint"}}
            if await count_whole(server.patient, name, query):
                raise MappingError(
                    f"index {name!r} has fingerprints of field {fields[0]!r}, which its mapping does not show: the "
                    "documents have lost their text, or it is hidden from this user; a backfill would delete the "
                    "fingerprints"
                )


async def _lack(server: Port, names: list[str], possible: list[str], exists: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether the indices *names* have documents, and those that are *possible* none that *exists* matches."""
    await refresh(server, names)
    if possible and await count_whole(server.patient, possible, exists[0]):
        return False
    return bool(await count_whole(server.patient, names))


def _records(resolved: Resolved, name: str, field: str) -> bool:
    return name in resolved.settings_of and field in resolved.settings_of[name].text_fields
