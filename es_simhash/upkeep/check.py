"""
Finds faults that prevent lookups and ingest in an index; ``mapping.faults`` defines them. Nothing is written.

Cost: two requests (mappings, settings), one more for an alias; up to four searches for each index.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from es_simhash.errors import SimHashError
from es_simhash.groups.read import unfilled_query
from es_simhash.hashing import get_scheme
from es_simhash.mapping.context import Context
from es_simhash.mapping.faults import Fault, find_faults, find_group_faults, find_source_faults
from es_simhash.mapping.fields import Fields
from es_simhash.mapping.meta import IndexSettings, is_marked, markers_in_use, read_settings
from es_simhash.mapping.port import Port
from es_simhash.mapping.resolve import narrowed
from es_simhash.mapping.rule import Grouping, default_rule
from es_simhash.passages.lookup import without_passages_query
from es_simhash.transport.answers import find_gaps, sentences
from es_simhash.transport.buckets import count_documents, count_whole
from es_simhash.transport.conversation import unless_refused
from es_simhash.transport.protocol import Index, names_in, status_of
from es_simhash.transport.refusals import CLOSED
from es_simhash.upkeep.put_fields import read_mappings
from es_simhash.writes.targets import read_source_modes

Clauses: TypeAlias = list[dict[str, Any]]
"""What leaves the documents of one index where several are asked."""


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
    is_sound = not faults and all(fault.kind != "bad_record" for fault in grouping_faults)
    faults += find_source_faults(mapping)
    faults += find_group_faults(mapping, prefix=server.prefix) if is_sound else []
    clauses: Clauses = [] if index == name else [{"term": {"_index": name}}]
    numbers, unseen = await _count(server, index, clauses)
    faults += unseen
    with_passages = None
    if is_sound and not unseen and settings is not None:
        faults += _find_marker_faults(mapping, settings, server.prefix)
        faults += await _find_unfilled(server, index, clauses, mapping, settings, numbers)
        if settings.passages is not None:
            with_passages = numbers["passages"]
            if missing := numbers["without_passages"]:
                passages = Fields(server.prefix).passages
                faults.append(Fault("without_passages", passages, str(missing), str(with_passages + missing)))
    faults += grouping_faults
    return IndexCheck(
        index=name,
        ready=is_sound and not unseen,
        scheme=None if settings is None else str(settings.scheme),
        text_fields=() if settings is None else settings.text_fields,
        max_distance=None if settings is None else settings.max_distance,
        documents=numbers["documents"],
        fingerprinted=numbers["fingerprinted"],
        problems=tuple(f"{fault}: {fault.advice}" for fault in faults),
        faults=tuple(faults),
        grouping=None if grouping is None else grouping.to_dict(),
        with_passages=with_passages,
    )


async def _count(server: Port, index: Index, clauses: Clauses) -> tuple[Counter[str], list[Fault]]:
    """Return numbers of documents of *index* that match *clauses*, and why some are not counted."""
    fields = Fields(server.prefix)
    queries = {
        "fingerprinted": {"exists": {"field": fields.fingerprint}},
        "passages": {"exists": {"field": fields.passages}},
        "without_passages": without_passages_query(server.prefix),
        "errors": {"exists": {"field": fields.error}},
    }
    body = {
        "size": 0,
        "track_total_hits": True,
        "query": {"bool": {"filter": clauses}},
        "aggs": {number: {"filter": query} for number, query in queries.items()},
    }
    try:
        answer = await server.patient.search(index=index, body=body)
    except Exception as error:
        if status_of(error) not in (400, 503):
            raise
        return Counter(), [Fault("not_searchable", found="it is closed" if CLOSED.meets(error) else str(error))]
    numbers = Counter({number: found["doc_count"] for number, found in (answer.get("aggregations") or {}).items()})
    numbers["documents"] = answer["hits"]["total"]["value"]
    gaps = sentences(find_gaps(answer, ignore=["terminated_early"]))
    return numbers, [Fault("not_searchable", found="; ".join(gaps))] if gaps else []


def _find_marker_faults(mapping: Mapping[str, Any], settings: IndexSettings, prefix: str) -> list[Fault]:
    if is_marked(mapping, settings, prefix=prefix):
        return []
    used = len(markers_in_use(mapping, prefix=prefix))
    return [Fault("several_markers" if used > 1 else "no_marker", prefix, str(used))]


async def _find_unfilled(
    server: Port,
    index: Index,
    clauses: Clauses,
    mapping: Mapping[str, Any],
    settings: IndexSettings,
    numbers: Counter[str],
) -> list[Fault]:
    """Return whether documents have no fingerprint, or one that lookups miss."""
    fields, faults = Fields(server.prefix), list[Fault]()
    if numbers["fingerprinted"] < numbers["documents"]:
        unfilled = unfilled_query(settings.text_fields, server.prefix, [mapping])
        lacking = await count_whole(server.patient, index, {"bool": {"filter": [unfilled, *clauses]}})
        if lacking:
            faults.append(Fault("without_fingerprint", found=str(lacking), wanted=str(numbers["documents"])))
        if numbers["errors"]:
            faults.append(Fault("pipeline_errors", fields.error, str(numbers["errors"])))
    if numbers["fingerprinted"]:
        field = fields.fingerprint
        whole = [{"regexp": {field: "[0-9a-f]{16}"}}, *({"exists": {"field": block}} for block in fields.blocks)]
        query = {"filter": [{"exists": {"field": field}}, *clauses], "must_not": {"bool": {"filter": whole}}}
        # The server may refuse to look.
        found = await unless_refused(count_documents(server.patient, index, {"bool": query}), 400, 401, 403)
        if found and found[0]:
            faults.append(Fault("unreadable_fingerprint", field, str(found[0])))
    return faults


def _judge_grouping(settings: IndexSettings | None) -> tuple[Grouping | None, list[Fault]]:
    """Return the grouping that *settings* record, and what a user should know about it."""
    if settings is None:
        return None, []
    try:
        grouping = Grouping.read(settings)
    except SimHashError as error:
        return None, [Fault("bad_record", found=str(error))]
    faults = [Fault("regrouping")] if settings.is_regrouping else []
    is_by_bits = grouping is not None and grouping.similarity is None
    return grouping, [*faults, Fault("not_verified")] if is_by_bits else faults


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
