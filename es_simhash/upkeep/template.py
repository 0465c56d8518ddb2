"""
Puts our fields into an index template that exists, so that the next index of an alias or data stream has them.

They go into the template itself: that is one write, where a component beside it would be two, and each template has
the settings of its own indices. The server simulates the result first; nothing here changes an index.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from es_simhash.arguments import check_fields, check_server_name
from es_simhash.errors import Advice, InvalidInputError, MappingError, NoIndexError, Said
from es_simhash.mapping.context import Resolved
from es_simhash.mapping.faults import Fault, find_faults, mapping_error
from es_simhash.mapping.mapping import has_derived_source, has_synthetic_source, mapping_update
from es_simhash.mapping.meta import (
    IndexSettings,
    PassageState,
    build_settings,
    for_derived_source,
    merge_meta,
    read_settings,
    text_fields_of,
)
from es_simhash.mapping.port import Port
from es_simhash.mapping.resolve import agree, resolve_index
from es_simhash.record import Record
from es_simhash.transport.protocol import Index, status_of
from es_simhash.transport.retry import unless_refused
from es_simhash.upkeep.put_fields import simulate
from es_simhash.writes.targets import ask_about, next_index, write_index

NOT_FOUND = 404
# Written by the server alone, which refuses them in a request.
_MOMENTS = ("created_date", "modified_date")


@dataclass(frozen=True, slots=True)
class TemplateChange(Record):
    """
    What our fields change in an index template.

    Attributes:
        name:
            Name of the index template.
        before:
            The template as it was read, as in a request that stores it.
        after:
            The template with our fields; equal to *before* if new indices have them already.
        stored:
            Whether *after* was stored.
    """

    name: str
    before: Mapping[str, Any]
    after: Mapping[str, Any]
    stored: bool

    @property
    def difference(self) -> str:
        """What changes, as a unified diff of the two as JSON without commas; empty if nothing does."""
        before, after = (
            [line.rstrip(",") for line in json.dumps(each, indent=2, ensure_ascii=False).splitlines()]
            for each in (self.before, self.after)
        )
        return "\n".join(difflib.unified_diff(before, after, "before", "after", lineterm=""))


async def put_index_template(server: Port, name: str, text_field: Any, *, dry_run: bool = False) -> TemplateChange:
    """
    Put our fields into the index template that *name* means: an alias, a data stream, or a template.
    Cost: up to nine requests. No server writes a template on condition, so it is read again just before it is stored;
    what somebody else stores after that is lost.
    """
    check_server_name("name", name, of="an index template, an alias or a data stream")
    check_fields("text_field", text_field, may_lack=True)
    template, users = await _find_template(server, name)
    before = await _read_template(server, template)
    shown = await simulate(server, before, f"index template {template!r}")
    mapping, index_settings = shown.get("mappings") or {}, shown.get("settings") or {}
    _refuse_faults(template, mapping, prefix=server.prefix, but=("no_fields", "not_mapped"))
    settings = await _read_wanted(server, users or before["index_patterns"], mapping, text_field)
    if has_synthetic_source(mapping, index_settings):
        settings = replace(settings, value=False)
    update = mapping_update(mapping, settings, prefix=server.prefix)
    if has_derived_source(index_settings):
        update = for_derived_source(update, prefix=server.prefix)
    after = _with_fields(before, update["properties"][server.prefix], settings, prefix=server.prefix)
    result = (await simulate(server, after, f"index template {template!r} with our fields")).get("mappings") or {}
    if result == mapping:
        return TemplateChange(template, before, before, stored=False)
    _refuse_managed(template, before)
    _refuse_faults(template, result, prefix=server.prefix)
    if read_settings(result, prefix=server.prefix) != settings:
        raise InvalidInputError(
            f"a component template of index template {template!r} records other settings for {server.prefix!r} "
            f"({', '.join(before.get('composed_of') or ())}): take it out of composed_of, and run this again"
        )
    if not dry_run:
        if await _read_template(server, template) != before:
            raise MappingError(f"somebody else changed index template {template!r} meanwhile: run it again")
        await server.put_index_template(name=template, body=after)
    return TemplateChange(template, before, after, stored=not dry_run)


async def _find_template(server: Port, name: str) -> tuple[str, str | None]:
    """Return the template of *name*, and the name that shows what its indices record; ``None`` for its patterns."""
    streams = (await ask_about(server, "get_data_stream", name) or {}).get("data_streams")
    if streams:
        return streams[0]["template"], name
    aliases = await ask_about(server, "get_alias", name) or {}
    answer = await server.get_index_template()
    templates = {each["name"]: each["index_template"] for each in answer["index_templates"]}
    if not aliases and name in templates:
        return name, None
    created = next_index(aliases, name) or write_index(aliases, name) or max(aliases, default=name)
    fitting = [each for each, body in templates.items() if _matches(created, body["index_patterns"])]
    if not fitting:
        await _refuse_legacy(server, created)
        if not aliases:
            if await unless_refused(server.get_mapping(index=name), 401, 403, 404):
                raise InvalidInputError(
                    f"{name!r} is an index, not an index template, alias or data stream: setup is enough"
                )
            raise InvalidInputError(f"there is no alias, data stream or index template {name!r}: check the name")
        raise mapping_error(
            name, [Fault("no_template", server.prefix, found=f"no index template matches {created!r}", wanted=name)]
        )
    return max(fitting, key=lambda each: int(templates[each].get("priority") or 0)), name


def _matches(index: str, patterns: Iterable[str]) -> bool:
    return any(re.fullmatch(".*".join(map(re.escape, each.split("*"))), index) for each in patterns)


async def _refuse_legacy(server: Port, created: str) -> None:
    """Raise if only a template of the older kind makes the index *created*, or has that name."""
    legacy: Mapping[str, Any] = await server.get_legacy_template()
    for name, body in sorted(legacy.items()):
        if name == created or _matches(created, body.get("index_patterns") or ()):
            raise InvalidInputError(
                f"{name!r} is a legacy template (PUT _template), which every index template outdoes: store what it has "
                f"as an index template (PUT _index_template/{name}), and run this again"
            )


def _refuse_managed(name: str, template: Mapping[str, Any]) -> None:
    """Raise if a program, such as Fleet or the server itself, may write the template again without our fields."""
    meta = template.get("_meta") or {}
    if not (meta.get("managed") or meta.get("managed_by") or name.startswith(".")):
        return
    custom = next((each for each in template.get("composed_of") or () if each.endswith("@custom")), None)
    advice = (
        "copy it under another name with a higher priority, and put our fields into the copy"
        if custom is None
        else Said(
            f"put our mapping into its component template {custom!r}, which is yours: ",
            Advice("build_component_template", command="export mapping --component-template"),
        )
    )
    by = f"by {meta['managed_by']!r}" if meta.get("managed_by") else "by a program"
    raise InvalidInputError(Said(f"index template {name!r} is managed {by}, which may write it again: ", advice))


def _refuse_faults(name: str, mapping: Mapping[str, Any], *, prefix: str, but: Sequence[str] = ()) -> None:
    if faults := [each for each in find_faults(mapping, prefix=prefix) if each.kind not in but]:
        raise InvalidInputError(
            f"index template {name!r} does not fit: {faults[0]}: correct that there or in its components, or use "
            "another prefix"
        )


async def _read_template(server: Port, name: str) -> dict[str, Any]:
    answer = await server.get_index_template(name=name)
    body = answer["index_templates"][0]["index_template"]
    return {key: value for key, value in body.items() if not key.startswith(_MOMENTS)}


async def _read_wanted(server: Port, users: Index, mapping: Mapping[str, Any], text_field: Any) -> IndexSettings:
    """
    Return what new indices are to record: what the indices *users* do, else what the template's *mapping* does.
    Without the grouping: an ingest records it, and a change of it would leave a template behind. A new index has no
    documents that lack passages.
    """
    try:
        resolved = await resolve_index(server, users)
    except Exception as error:
        # Nothing has to be there yet that the patterns of a template match.
        if isinstance(users, str) or not (isinstance(error, NoIndexError) or status_of(error) == NOT_FOUND):
            raise
        resolved = Resolved()
    # An index that a rollover made without our fields is faulty, and is the reason to call this.
    if resolved.each or resolved.assumed is not None:
        settings = agree(replace(resolved, faults=()), server.context)
    else:
        known = read_settings(mapping, prefix=server.prefix)
        settings = server.context.assumed_settings() or known or build_settings()
    recorded = [each.text_fields for each in resolved.each.values()]
    if text_field or not recorded or any(recorded):
        settings = replace(settings, text_fields=text_fields_of(settings, text_field or None))
    passages: PassageState = None if settings.passages is None else "complete"
    return replace(settings, extra=None, passages=passages, is_assumed=False)


def _with_fields(
    template: Mapping[str, Any], ours: Mapping[str, Any], settings: IndexSettings, *, prefix: str
) -> dict[str, Any]:
    """Return *template* with *ours* as the object *prefix*, and *settings* in its ``_meta``; all else stays."""
    content = template.get("template") or {}
    mapping = content.get("mappings") or {}
    properties = mapping.get("properties") or {}
    there = properties.get(prefix) or {}
    merged = {**there, **ours, "properties": {**(there.get("properties") or {}), **ours["properties"]}}
    mappings = {
        **mapping,
        "_meta": merge_meta(mapping.get("_meta"), settings, prefix=prefix),
        "properties": {**properties, prefix: merged},
    }
    return {**template, "template": {**content, "mappings": mappings}}
