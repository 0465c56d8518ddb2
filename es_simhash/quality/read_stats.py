"""
Reads the numbers of an index: documents, duplicates, groups, over time, by source. Nothing is written.

The server counts all documents; no number is an estimate. A ``terms`` aggregation returns only the largest
groups and ``cardinality`` estimates, so all groups with a duplicate are read here, a page at a time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import nsmallest
from itertools import accumulate
from typing import Any

from es_simhash.arguments import check_field
from es_simhash.errors import InvalidInputError, MappingError, shorten
from es_simhash.groups.recorded import refuse_group_faults
from es_simhash.lookup.query import Filter, check_filter
from es_simhash.mapping.context import Resolved
from es_simhash.mapping.fields import Fields, text_or_none
from es_simhash.mapping.port import Port
from es_simhash.mapping.resolve import agree, resolve_index
from es_simhash.mapping.rule import Grouping
from es_simhash.mapping.user_fields import countable_field, find_field_faults
from es_simhash.quality.stats import Count, GroupCounts, GroupSize, SourceCounts, Stats, TimeCounts
from es_simhash.transport.answers import check_whole, find_gaps
from es_simhash.transport.buckets import BucketReader, aggregate, aggregate_named
from es_simhash.transport.conversation import search_texts
from es_simhash.transport.protocol import Index, Progress, check_index, index_key
from es_simhash.writes.targets import refuse_masked_values

PAGE = 10_000
"""Groups a request."""

LARGEST = 10
"""Groups that are named, largest first."""


async def count_groups(server: Port, index: Index, clauses: Sequence[Mapping[str, Any]] = ()) -> GroupCounts:
    """
    Return how many groups of two or more of the documents that match *clauses* there are, by size.
    Cost: for every 50,000 groups that have a duplicate a search that looks at all duplicates, and for every 10,000 one
    for their canonicals. Memory: one page, and a number for each different size. Raises IncompleteSearchError if some
    documents could not be counted.
    """
    fields = Fields(server.prefix)
    duplicates = [*clauses, {"exists": {"field": fields.duplicate_of}}]
    canonicals: list[Mapping[str, Any]] = [*clauses, {"bool": {"must_not": [duplicates[-1]]}}]
    reader = BucketReader(index, duplicates, fields.group, page=PAGE)
    sizes: Counter[int] = Counter()
    largest: list[tuple[int, str]] = []
    without = several = lost = 0
    done = 0
    while page := await reader.read(server):
        server.tell(Progress(done := done + len(page), None, "counting groups"))
        buckets = await aggregate_named(server, index, canonicals, fields.group, [name for name, _ in page])
        found = {name: bucket["doc_count"] for name, bucket in buckets.items()}
        without += sum(not found.get(name) for name, _ in page)
        lost += sum(bucket["doc_count"] for name, bucket in page if not found.get(name))
        several += sum(found.get(name, 0) > 1 for name, _ in page)
        counted = [(found.get(name, 0) + bucket["doc_count"], name) for name, bucket in page]
        sizes.update(size for size, _ in counted)
        largest = nsmallest(LARGEST, [*largest, *counted], key=lambda sized: (-sized[0], sized[1]))
    if without and without == done:  # there may be none, or none by the names that are shown
        await refuse_masked_values(server, index, fields.group, is_read=True)
    return GroupCounts(
        {size: number for size, number in sorted(sizes.items()) if size > 1},
        tuple(GroupSize(name, size) for size, name in largest if size > 1),
        without,
        several,
        lost,
    )


_MINUTE = 60_000
_DAY = 24 * 60 * _MINUTE
# In milliseconds; of a month and longer the shortest, so that no more intervals come than are meant.
_INTERVALS = (
    ("minute", _MINUTE),
    ("hour", 60 * _MINUTE),
    ("day", _DAY),
    ("week", 7 * _DAY),
    ("month", 28 * _DAY),
    ("quarter", 90 * _DAY),
    ("year", 365 * _DAY),
)

_MOST_INTERVALS = 100
# A few wrong dates, such as 1970-01-01, must not make every interval a year long.
_MOST_OUTSIDE = 0.02
Years = Mapping[int, Count]


async def count_over_time(
    server: Port, index: Index, field: str, clauses: Sequence[Mapping[str, Any]], duplicates: Mapping[str, Any]
) -> TimeCounts:
    """Return the documents by the date in *field*, in at most about 100 intervals; costs three searches."""
    counted = {"duplicates": {"filter": duplicates}}
    without = {"filter": {"bool": {"must_not": [{"exists": {"field": field}}]}}, "aggs": counted}
    years = {"date_histogram": _histogram(field, "year"), "aggs": counted}
    found = await aggregate(server, index, clauses, {"years": years, "without": without})
    missing = _count_bucket(found["without"])
    by_year: Years = {bucket["key"]: _count_bucket(bucket) for bucket in found["years"]["buckets"]}
    if not by_year:
        return TimeCounts(field, "year", {}, without=missing)
    first, last = _core(by_year)
    end = next((start for start in by_year if start > last), None)
    bounds = {"gte": first, "format": "epoch_millis"} | ({} if end is None else {"lt": end})
    inside = [*clauses, {"range": {field: bounds}}]
    edges = await aggregate(
        server, index, inside, {"first": {"min": {"field": field}}, "last": {"max": {"field": field}}}
    )
    interval = _interval((edges["last"]["value"] or 0) - (edges["first"]["value"] or 0))
    parts = {"date_histogram": _histogram(field, interval), "aggs": counted}
    found = await aggregate(server, index, inside, {"parts": parts})
    return TimeCounts(
        field,
        interval,
        {bucket["key"]: _count_bucket(bucket) for bucket in found["parts"]["buckets"]},
        sum((count for start, count in by_year.items() if start < first), Count()),
        sum((count for start, count in by_year.items() if start > last), Count()),
        missing,
    )


def _histogram(field: str, interval: str) -> dict[str, Any]:
    return {"field": field, "calendar_interval": interval, "min_doc_count": 1}


def _count_bucket(bucket: Mapping[str, Any]) -> Count:
    return Count(bucket["doc_count"], bucket["duplicates"]["doc_count"])


def _core(years: Years) -> tuple[int, int]:
    """Return the start of the first and of the last of the fewest years in a row that have nearly all documents."""
    starts = sorted(years)
    total = [0, *accumulate(years[start].documents for start in starts)]
    needed = total[-1] * (1 - _MOST_OUTSIDE)
    best = (starts[0], starts[-1])
    low = 0
    for high, last in enumerate(starts):
        while total[high + 1] - total[low + 1] >= needed:
            low += 1
        if total[high + 1] - total[low] >= needed and last - starts[low] < best[1] - best[0]:
            best = (starts[low], last)
    return best


def _interval(span: float) -> str:
    """Return the shortest interval of which not too many are in *span* milliseconds."""
    return next((name for name, length in _INTERVALS if span / length <= _MOST_INTERVALS), "year")


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
    What is counted, and by what, checked.

    Args:
        time_field:
            Date field of the documents, to count over time.
        source_field:
            Keyword field that says where a document comes from, to count by source.
        text_field:
            Field whose text is shown of the largest groups.
        filter:
            A query, or a list of queries; only documents that match all of them are counted.
    """

    time_field: str | None = None
    source_field: str | None = None
    text_field: str | None = None
    filter: Filter = None

    def __post_init__(self) -> None:
        check_filter(self.filter)
        for role in ("time_field", "source_field", "text_field"):
            name = getattr(self, role)
            # Servers take a star for the names of several fields. All other names are data: what is mapped can be read.
            if name is not None and "*" in check_field(role, name):
                raise InvalidInputError(
                    f"{role} {shorten(name)} names several fields: give the full name of one field in the mapping"
                )


async def read_stats(server: Port, index: Index, options: StatsOptions) -> Stats:
    """
    Return the numbers of *index*.
    Cost: a search for the counts, about two for every 10,000 groups with duplicates, three for the dates, and about one
    for every 10,000 sources. The numbers come from several searches: documents that are written meanwhile are in some
    of them only. Raises MappingError if the grouping of the index is changed meanwhile.
    """
    check_index(index)
    resolved = await _resolve(server, index)
    settings = agree(resolved, server.context)
    options = replace(options, source_field=countable_field(options.source_field, resolved.mappings))
    # Where the mappings may not be read, the server decides whether documents can be counted by these fields.
    given = (options.time_field, options.source_field, [options.text_field])
    for fault in find_field_faults(*given, resolved.mappings):
        if fault.is_fatal:
            raise InvalidInputError(f"{fault}: give the full name of one field in the mapping")
    fields = Fields(server.prefix)
    clauses = check_filter(options.filter)
    stats = await _count_documents(server, index, fields, clauses)
    groups = GroupCounts()
    if stats.duplicates:
        groups = await count_groups(server, index, clauses)
        if options.text_field:
            groups = await _read_canonicals(server, index, fields, groups, options.text_field)
    duplicates = {"exists": {"field": fields.duplicate_of}}
    time = sources = None
    if options.time_field:
        time = await count_over_time(server, index, options.time_field, clauses, duplicates)
    if options.source_field:
        sources = await _count_sources(server, index, options.source_field, clauses, duplicates)
    now = await _resolve(server, index)
    grouping = _groupings(resolved)
    if _groupings(now) != grouping:
        raise MappingError("the grouping of the index was changed while its documents were counted: run it again")
    scheme = str(settings.scheme)
    return replace(stats, groups=groups, time=time, sources=sources, scheme=scheme, grouping=grouping)


async def _resolve(server: Port, index: Index) -> Resolved:
    resolved = await resolve_index(server, index)
    refuse_group_faults(resolved, server.prefix, grouped_only=True)
    return resolved


def _groupings(resolved: Resolved) -> tuple[Mapping[str, Any], ...]:
    found: list[Mapping[str, Any]] = []
    for settings in resolved.settings_of.values():
        if (grouping := Grouping.read(settings)) is not None and grouping.to_dict() not in found:
            found.append(grouping.to_dict())
    return tuple(found)


async def _count_documents(server: Port, index: Index, fields: Fields, clauses: Sequence[Mapping[str, Any]]) -> Stats:
    has_fingerprint = {"exists": {"field": fields.fingerprint}}
    has_group = {"exists": {"field": fields.group}}
    aggs = {
        "documents": {"filter": {"match_all": {}}},
        "fingerprinted": {"filter": has_fingerprint},
        "ungrouped": {"filter": {"bool": {"filter": [has_fingerprint], "must_not": [has_group]}}},
        "duplicates": {"filter": {"exists": {"field": fields.duplicate_of}}},
        "distances": {"terms": {"field": fields.distance, "size": _DISTANCES}},
    }
    found = await aggregate(server, index, clauses, aggs)
    counts = {name: found[name]["doc_count"] for name in aggs if name != "distances"}
    distances = {int(bucket["key"]): bucket["doc_count"] for bucket in found["distances"]["buckets"]}
    return Stats(index_key(index), **counts, distances=dict(sorted(distances.items())))


async def _count_sources(
    server: Port,
    index: Index,
    field: str,
    clauses: Sequence[Mapping[str, Any]],
    duplicates: Mapping[str, Any],
) -> SourceCounts:
    aggs = {"duplicates": {"filter": duplicates}}
    reader = BucketReader(index, clauses, field, page=PAGE, aggs=aggs, has_missing=True)
    most: list[tuple[str, Count]] = []
    total = without = Count()
    number = 0

    def most_first(source: tuple[str, Count]) -> tuple[int, int, str]:
        name, count = source
        return -count.duplicates, -count.documents, name

    while page := await reader.read(server):
        counted = [(key, _count_bucket(bucket)) for key, bucket in page]
        without += sum((count for key, count in counted if key is None), Count())
        named = [(str(key), count) for key, count in counted if key is not None]
        number += len(named)
        total += sum((count for _, count in named), Count())
        most = nsmallest(SOURCES, [*most, *named], key=most_first)
    shown = sum((count for _, count in most), Count())
    others = Count(total.documents - shown.documents, total.duplicates - shown.duplicates)
    return SourceCounts(field, dict(most), others, number, without)


async def _read_canonicals(
    server: Port, index: Index, fields: Fields, groups: GroupCounts, text_field: str
) -> GroupCounts:
    names = [group.id for group in groups.largest]
    in_group, is_duplicate = {"terms": {fields.group: names}}, {"exists": {"field": fields.duplicate_of}}
    query = {"bool": {"filter": [in_group], "must_not": [is_duplicate]}}
    # Several indices may have a document of the same id, but hardly a hundred of them.
    body = {"size": _CANONICALS, "query": query, "docvalue_fields": [fields.group]}
    answer = await search_texts(server, index, body, [text_field])
    check_whole(find_gaps(answer))
    texts: dict[str, str] = {}
    for hit in answer["hits"]["hits"]:
        text = text_or_none(hit, [text_field])
        if text is not None:
            texts.setdefault(hit["fields"][fields.group][0], " ".join(text[: 2 * LONGEST_TEXT].split())[:LONGEST_TEXT])
    return replace(groups, largest=tuple(replace(group, text=texts.get(group.id)) for group in groups.largest))
