"""
Finds faults that prevent lookups and ingest in an index; ``mapping.faults`` defines them. Nothing is written.

Cost: two requests (mappings, settings), one more for an alias, up to seven counts for each index; two requests more for
the candidates of a lookup.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from es_simhash.errors import Said, SimHashError
from es_simhash.groups.lacking import count_unfilled
from es_simhash.hashing import get_scheme
from es_simhash.lookup.plan import explain_plan, sample_stats
from es_simhash.mapping.context import Context
from es_simhash.mapping.faults import Fault, find_faults, find_group_faults, find_source_faults
from es_simhash.mapping.fields import Fields
from es_simhash.mapping.mapping import has_derived_source
from es_simhash.mapping.meta import IndexSettings, is_marked, markers_in_use, read_settings
from es_simhash.mapping.port import Port
from es_simhash.mapping.resolve import narrowed
from es_simhash.mapping.rule import Grouping, Regrouping, default_rule, rule_of
from es_simhash.passages.lookup import without_passages_query
from es_simhash.transport.answers import Gap, sentences
from es_simhash.transport.buckets import count_documents
from es_simhash.transport.conversation import unless_refused
from es_simhash.transport.protocol import Call, Index, names_in, status_of
from es_simhash.transport.refusals import CLOSED
from es_simhash.upkeep.put_fields import read_mappings
from es_simhash.writes.targets import read_source_modes


@dataclass(frozen=True, slots=True)
class IndexCheck:
    """
    What a check found in one index.

    Attributes:
        index:
            Name of the index.
        ready:
            Whether lookups and ingest work there.
        scheme:
            Identifier of the scheme recorded; ``None`` where none is.
        text_fields:
            Fields that the text comes from, as recorded.
        max_distance:
            The default recorded, in bits.
        documents:
            Number of documents.
        fingerprinted:
            Number of documents that carry a fingerprint.
        problems:
            One sentence for each fault: what is wrong, and what to do.
        faults:
            The same faults as data.
        grouping:
            How its documents are grouped, as the mapping records it; ``None`` where they never were.
        with_passages:
            Number of documents that carry the terms of their passages; ``None`` where the index has none.
        candidates:
            About how many candidates a lookup by the rule of the index has there; ``None`` where it is not ready, or
            this login may not send several searches at once.
    """

    index: str
    ready: bool
    scheme: str | None
    text_fields: tuple[str, ...]
    max_distance: int | None
    documents: int
    fingerprinted: int
    problems: tuple[str, ...]
    faults: tuple[Fault, ...] = ()
    grouping: Mapping[str, Any] | None = None
    with_passages: int | None = None
    candidates: float | None = None

    @property
    def rule(self) -> str | None:
        """The rule of the index, in words; ``None`` where no scheme is recorded."""
        if self.grouping is not None:
            return str(Grouping.from_dict(self.grouping))
        if self.scheme is None:
            return None
        recorded = IndexSettings(get_scheme(self.scheme), self.text_fields, self.max_distance)
        return f"{default_rule(recorded).words} (not grouped yet)"


async def check_indices(server: Port, index: Index) -> list[IndexCheck]:
    """Return, for each of the indices, whether lookups work there, and if not, why not. Reads only."""
    mappings = await read_source_modes(server, index, await read_mappings(server, index))
    hidden = [] if names_in(index) == list(mappings) else await narrowed(server, index)
    checks = []
    for name, mapping in mappings.items():
        checks.append(await _check(server, index if name in hidden else name, name, mapping))
    return checks


async def _check(server: Port, index: Index, name: str, mapping: Mapping[str, Any]) -> IndexCheck:
    """Check the index *name*, with the numbers of its documents that *index* shows."""
    settings, faults = judge_mapping(server.context, mapping)
    grouping, grouping_faults = _judge_grouping(settings)
    ready = not faults and all(fault.kind != "bad_record" for fault in grouping_faults)
    faults += find_source_faults(mapping)
    faults += find_group_faults(mapping, prefix=server.prefix) if ready else []
    documents = fingerprinted = 0
    try:
        documents, gaps = await _count(server, index, name, {"match_all": {}})
        fingerprinted, more = await _count(
            server, index, name, {"exists": {"field": Fields(server.prefix).fingerprint}}
        )
        if whole := sentences([*gaps, *more]):
            ready = False
            faults.append(Fault("not_searchable", found="; ".join(whole)))
    except Exception as error:
        if status_of(error) not in (400, 503):
            raise
        ready = False
        faults.append(Fault("not_searchable", found="it is closed" if CLOSED.meets(error) else str(error)))
    if settings is not None and ready and not is_marked(mapping, settings, prefix=server.prefix):
        used = len(markers_in_use(mapping, prefix=server.prefix))
        if used > 1 or not await _is_derived(server, name):
            faults.append(Fault("no_marker" if used < 2 else "several_markers", server.prefix, str(used)))
    if ready and settings is not None and fingerprinted < documents:
        clauses = [] if index == name else [{"term": {"_index": name}}]
        texts = settings.text_fields
        lacking = await count_unfilled(server, index, texts, mappings=[mapping], clauses=clauses)
        if lacking:
            faults.append(Fault("without_fingerprint", found=str(lacking), wanted=str(documents)))
        faults += await _pipeline_errors(server, index, name, mapping)
    if ready and fingerprinted:
        faults += await _find_unreadable(server, index, name)
    with_passages = None
    if ready and settings is not None and settings.passages is not None:
        with_passages, more_faults = await _judge_passages(server, index, name, settings)
        faults += more_faults
    faults += grouping_faults
    return IndexCheck(
        index=name,
        ready=ready,
        scheme=None if settings is None else str(settings.scheme),
        text_fields=() if settings is None else settings.text_fields,
        max_distance=None if settings is None else settings.max_distance,
        documents=documents,
        fingerprinted=fingerprinted,
        problems=tuple(Said(f"{fault}: ", fault.advice) for fault in faults),
        faults=tuple(faults),
        grouping=None if grouping is None else grouping.to_dict(),
        with_passages=with_passages,
        candidates=None
        if settings is None or not ready
        else await _count_candidates(server, index, fingerprinted, settings),
    )


async def _count_candidates(server: Port, index: Index, fingerprinted: int, settings: IndexSettings) -> float | None:
    """Return about how many of the *fingerprinted* are candidates of a lookup; ``None`` if this login may not ask."""
    if not fingerprinted:
        return 0.0
    sampled = await unless_refused(sample_stats(server.patient, index), 401, 403)
    if sampled is None:
        return None
    stats = replace(sampled, documents=fingerprinted)
    plan = explain_plan(rule_of(settings).max_distance, stats=stats, scripts=server.context.may_script(index))[0]
    return round(plan.passing, 1)


async def _is_derived(server: Port, name: str) -> bool:
    """Return whether index *name* has derived source, which takes no marker."""
    call = Call("get_settings", {"index": name, "name": "index.derived_source.enabled"})
    answer = await unless_refused(server.patient.send(call), 401, 403) or {}
    return has_derived_source((answer.get(name) or {}).get("settings") or {})


async def _count(server: Port, index: Index, name: str, query: Mapping[str, Any]) -> tuple[int, list[Gap]]:
    """Count the documents of the concrete index *name* that match *query*, and that *index* shows."""
    if index == name:
        return await count_documents(server.patient, name, query)
    shown = {"bool": {"filter": [query, {"term": {"_index": name}}]}}
    return await count_documents(server.patient, index, shown)


async def _find_unreadable(server: Port, index: Index, name: str) -> list[Fault]:
    """Return whether documents of index *name* have a fingerprint that lookups miss; the server may refuse to look."""
    fields = Fields(server.prefix)
    field = fields.fingerprint
    whole = [{"regexp": {field: "[0-9a-f]{16}"}}, *({"exists": {"field": block}} for block in fields.blocks)]
    query = {"bool": {"filter": {"exists": {"field": field}}, "must_not": {"bool": {"filter": whole}}}}
    found = await unless_refused(_count(server, index, name, query), 400, 401, 403)
    return [Fault("unreadable_fingerprint", field, str(found[0]))] if found and found[0] else []


async def _judge_passages(server: Port, index: Index, name: str, settings: IndexSettings) -> tuple[int, list[Fault]]:
    """Return how many documents of index *name* have passages, and why lookups of passages are refused."""
    fields = Fields(server.prefix)
    number, _ = await _count(server, index, name, {"exists": {"field": fields.passages}})
    missing, _ = await _count(server, index, name, without_passages_query(server.prefix))
    if missing:
        return number, [Fault("without_passages", fields.passages, str(missing), str(number + missing))]
    return number, [Fault("passages_partial", fields.passages)] if settings.passages == "partial" else []


async def _pipeline_errors(server: Port, index: Index, name: str, mapping: Mapping[str, Any]) -> list[Fault]:
    """Return whether an ingest pipeline left documents of index *name* without a fingerprint."""
    prefix = server.prefix
    field = Fields(prefix).error
    if field.removeprefix(f"{prefix}.") not in mapping["properties"][prefix]["properties"]:
        return []
    number, _ = await _count(server, index, name, {"exists": {"field": field}})
    return [Fault("pipeline_errors", field, str(number))] if number else []


def _judge_grouping(settings: IndexSettings | None) -> tuple[Grouping | None, list[Fault]]:
    """Return the grouping that *settings* record, and what a user should know about it."""
    if settings is None:
        return None, []
    try:
        grouping, change = Grouping.read(settings), Regrouping.read(settings)
    except SimHashError as error:
        return None, [Fault("bad_record", found=str(error))]
    faults = [Fault("regrouping", found=str(change))] if change is not None else []
    if grouping is not None and grouping.similarity is None:
        faults.append(Fault("not_verified"))
    return grouping, faults


def judge_mapping(context: Context, mapping: Mapping[str, Any]) -> tuple[IndexSettings | None, list[Fault]]:
    faults = find_faults(mapping, prefix=context.prefix)
    try:
        settings = read_settings(mapping, prefix=context.prefix)
    except SimHashError as error:
        return None, [*faults, Fault("bad_record", found=str(error))]
    if settings is None and not faults:
        faults.append(Fault("no_scheme"))
    if settings is not None and not context.accepts(settings.scheme):
        faults.append(Fault("other_scheme", found=str(settings.scheme), wanted=str(context.wanted)))
    return settings, faults
