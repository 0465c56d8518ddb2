"""
Reads the numbers of an index: documents, duplicates, groups, over time, by source. Nothing is written.

Every number is counted by the server over all documents, and none is an estimate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import nsmallest
from typing import Any

from es_simhash.arguments import check_field
from es_simhash.dashboards.mapping_faults import find_field_faults, node_of
from es_simhash.errors import InvalidInputError, MappingError, shorten
from es_simhash.flows.context import Context, Index, Resolved, check_index, index_key
from es_simhash.flows.grouping.settings import refuse_regrouping
from es_simhash.flows.protocol import Flow
from es_simhash.flows.resolve import agree, resolve_index
from es_simhash.flows.transfer.answers import check_whole, find_gaps
from es_simhash.flows.transfer.buckets import BucketReader, aggregate
from es_simhash.flows.transfer.texts import search_texts
from es_simhash.flows.upkeep.group_sizes import count_groups
from es_simhash.flows.upkeep.time_counts import count_over_time
from es_simhash.index.documents import text_or_none
from es_simhash.index.fields import Fields
from es_simhash.index.grouping.rule import Grouping
from es_simhash.index.query import check_filter
from es_simhash.quality.stats import Count, GroupCounts, SourceCounts, Stats

__all__ = ["StatsOptions", "read_stats"]

PAGE = 10_000
"""Sources a request."""

SOURCES = 50
"""Sources that are counted one by one; the others are counted together."""

LONGEST_TEXT = 300
"""Characters of the text of a canonical."""

# A distance is 0 to 64 bits.
_DISTANCES = 65
_CANONICALS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class StatsOptions:
    """
    What is counted, and by what: the keyword arguments of the client's method.

    Attributes:
        time_field:
            Date field of the documents.
        source_field:
            Keyword field that says where a document comes from.
        text_field:
            Field whose text is shown of the largest groups.
        filter:
            A query, or several; only documents that match all of them are counted.

    Raises:
        TypeError: If one has the wrong type.
        InvalidInputError: If one has a value that cannot be used.
    """

    time_field: str | None = None
    source_field: str | None = None
    text_field: str | None = None
    filter: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None

    def __post_init__(self) -> None:
        check_filter(self.filter)
        for role in ("time_field", "source_field", "text_field"):
            name = getattr(self, role)
            # Servers take a star for the names of several fields. All other names are data: what is mapped can be read.
            if name is not None and "*" in check_field(role, name):
                raise InvalidInputError(f"{role} {shorten(name)} names several fields: give a field as it is mapped")


def read_stats(context: Context, index: Index, options: StatsOptions) -> Flow[Stats]:
    """
    Return the numbers of *index*.

    Cost: a search for the counts, about two for every 10,000 groups with duplicates, three for the dates, and about one
    for every 10,000 sources. The numbers come from several searches: documents that are written meanwhile are in some
    of them.

    Raises:
        MappingError: If the index lacks our fields, or its grouping is being changed.
        InvalidInputError: If a field is not mapped, or cannot be counted.
        IncompleteSearchError: If some documents could not be counted.
    """
    check_index(index)
    resolved = yield from _resolve(context, index)
    settings = agree(resolved, context)
    _check_fields(resolved, options)
    fields = Fields(context.prefix)
    clauses = check_filter(options.filter)
    stats = yield from _count_documents(index, fields, clauses)
    groups = GroupCounts()
    if stats.duplicates:
        groups = yield from count_groups(index, fields, clauses)
        if options.text_field:
            groups = yield from _read_canonicals(index, fields, groups, options.text_field)
    duplicates = {"exists": {"field": fields.duplicate_of}}
    time = sources = None
    if options.time_field:
        time = yield from count_over_time(index, options.time_field, clauses, duplicates)
    if options.source_field:
        # Of indices on other clusters the mapping is not known.
        has_ranges = ":" not in index_key(index) and _is_keyword(resolved, options.source_field)
        sources = yield from _count_sources(index, options.source_field, clauses, duplicates, has_ranges=has_ranges)
    now = yield from _resolve(context, index)
    if _groupings(now) != _groupings(resolved):
        raise MappingError("the grouping of the index was changed while its documents were counted: run it again")
    return replace(
        stats,
        groups=groups,
        time=time,
        sources=sources,
        scheme=str(settings.scheme),
        grouping=_groupings(resolved),
    )


def _resolve(context: Context, index: Index) -> Flow[Resolved]:
    resolved = yield from resolve_index(context, index)
    refuse_regrouping(resolved.each)
    return resolved


def _groupings(resolved: Resolved) -> tuple[Mapping[str, Any], ...]:
    """Return each different grouping that the indices record."""
    found: list[Mapping[str, Any]] = []
    for own in resolved.each.values():
        grouping = Grouping.read(own)
        if grouping is not None and grouping.to_dict() not in found:
            found.append(grouping.to_dict())
    return tuple(found)


def _check_fields(resolved: Resolved, options: StatsOptions) -> None:
    """Refuse fields by which documents cannot be counted. Where the mappings may not be read, the server decides."""
    if not resolved.mappings:
        return
    for fault in find_field_faults(options.time_field, options.source_field, options.text_field, resolved.mappings):
        if fault.is_fatal:
            raise InvalidInputError(f"{fault}: give a field as it is mapped")


def _is_keyword(resolved: Resolved, field: str) -> bool:
    """Return whether *field* is a keyword that is indexed as it is, wherever it is mapped."""
    nodes = [node for mapping in resolved.mappings.values() if (node := node_of(mapping, field)) is not None]
    return bool(nodes) and all(node.get("type") == "keyword" and "normalizer" not in node for node in nodes)


def _count_documents(index: Index, fields: Fields, clauses: Sequence[Mapping[str, Any]]) -> Flow[Stats]:
    has_fingerprint = {"exists": {"field": fields.fingerprint}}
    has_group = {"exists": {"field": fields.group}}
    aggs = {
        "documents": {"filter": {"match_all": {}}},
        "fingerprinted": {"filter": has_fingerprint},
        "ungrouped": {"filter": {"bool": {"filter": [has_fingerprint], "must_not": [has_group]}}},
        "duplicates": {"filter": {"exists": {"field": fields.duplicate_of}}},
        "distances": {"terms": {"field": fields.distance, "size": _DISTANCES}},
    }
    found = yield from aggregate(index, clauses, aggs)
    counts = {name: found[name]["doc_count"] for name in aggs if name != "distances"}
    distances = {int(bucket["key"]): bucket["doc_count"] for bucket in found["distances"]["buckets"]}
    return Stats(index_key(index), **counts, distances=dict(sorted(distances.items())))


def _count_sources(
    index: Index,
    field: str,
    clauses: Sequence[Mapping[str, Any]],
    duplicates: Mapping[str, Any],
    *,
    has_ranges: bool,
) -> Flow[SourceCounts]:
    aggs = {"duplicates": {"filter": duplicates}}
    reader = BucketReader(index, clauses, field, page=PAGE, aggs=aggs, has_missing=True, has_ranges=has_ranges)
    most: list[tuple[str, Count]] = []
    total = without = Count()
    number = 0
    while page := (yield from reader.read()):
        counted = [(key, Count(each["doc_count"], each["duplicates"]["doc_count"])) for key, each in page]
        without += sum((count for key, count in counted if key is None), Count())
        named = [(str(key), count) for key, count in counted if key is not None]
        number += len(named)
        total += sum((count for _, count in named), Count())
        most = nsmallest(SOURCES, [*most, *named], key=_most_duplicates_first)
    shown = sum((count for _, count in most), Count())
    others = Count(total.documents - shown.documents, total.duplicates - shown.duplicates)
    return SourceCounts(field, dict(most), others, number, without)


def _most_duplicates_first(source: tuple[str, Count]) -> tuple[int, int, str]:
    name, count = source
    return -count.duplicates, -count.documents, name


def _read_canonicals(index: Index, fields: Fields, groups: GroupCounts, text_field: str) -> Flow[GroupCounts]:
    """Return *groups* with the beginning of the text of each canonical."""
    names = [each.id for each in groups.largest]
    query = {
        "bool": {
            "filter": [{"terms": {fields.group: names}}],
            "must_not": [{"exists": {"field": fields.duplicate_of}}],
        }
    }
    # Several indices may have a document of the same id, but hardly a hundred of them.
    body = {"size": _CANONICALS, "query": query, "docvalue_fields": [fields.group]}
    answer = yield from search_texts(index, body, [text_field])
    check_whole(find_gaps(answer))
    texts: dict[str, str] = {}
    for hit in answer["hits"]["hits"]:
        text = text_or_none(hit, [text_field])
        if text is not None:
            texts.setdefault(hit["fields"][fields.group][0], " ".join(text[: 2 * LONGEST_TEXT].split())[:LONGEST_TEXT])
    return replace(groups, largest=tuple(replace(each, text=texts.get(each.id)) for each in groups.largest))
