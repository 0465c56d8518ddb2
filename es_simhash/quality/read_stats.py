"""
Reads the numbers of an index: documents, duplicates, groups, over time, by source. Nothing is written.

The server counts all documents; no number is an estimate. A ``terms`` aggregation returns only the largest
groups and ``cardinality`` estimates, so all groups with a duplicate are read here, a page at a time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from heapq import nsmallest
from typing import Any

from es_simhash.arguments import check_field
from es_simhash.errors import InvalidInputError, MappingError
from es_simhash.groups.recorded import refuse_group_faults
from es_simhash.lookup.query import Filter, check_filter
from es_simhash.mapping.context import Resolved
from es_simhash.mapping.fields import Fields
from es_simhash.mapping.port import Port
from es_simhash.mapping.resolve import agree, resolve_index
from es_simhash.mapping.rule import Grouping
from es_simhash.mapping.user_fields import countable_field, find_field_faults
from es_simhash.quality.stats import Count, GroupCounts, GroupSize, SourceCounts, Stats, TimeCounts
from es_simhash.transport.buckets import BucketReader, Clauses, aggregate, aggregate_named
from es_simhash.transport.protocol import Index, Progress, check_index, index_key
from es_simhash.writes.targets import refuse_masked_values

PAGE = 10_000
"""Groups a request."""

LARGEST = 10
"""Groups that are named, largest first."""


async def count_groups(server: Port, index: Index, clauses: Clauses = ()) -> GroupCounts:
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
        for name, bucket in page:
            copies = bucket["doc_count"]
            firsts = buckets[name]["doc_count"] if name in buckets else 0
            sizes[firsts + copies] += 1
            largest.append((firsts + copies, name))
            several += firsts > 1
            if not firsts:
                without += 1
                lost += copies
        largest = nsmallest(LARGEST, largest, key=lambda sized: (-sized[0], sized[1]))
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
# A few wrong dates, such as 1970-01-01, must not make every interval a year long: a year with fewer documents than this
# part of those of the fullest year is left out at both ends.
_USUAL = 0.02


async def count_over_time(server: Port, index: Index, field: str, clauses: Clauses) -> TimeCounts:
    """Return the documents by the date in *field*, in at most about 100 intervals; costs two searches."""
    counted = _counted(server)
    bounds = {"first": {"min": {"field": field}}, "last": {"max": {"field": field}}}
    without = {"filter": {"bool": {"must_not": [{"exists": {"field": field}}]}}, "aggs": counted}
    years = {"date_histogram": _histogram(field, "year"), "aggs": counted | bounds}
    found = await aggregate(server, index, clauses, {"years": years, "without": without})
    missing, buckets = _count_bucket(found["without"]), found["years"]["buckets"]
    if not buckets:
        return TimeCounts(field, "year", {}, without=missing)
    fewest = _USUAL * max(bucket["doc_count"] for bucket in buckets)
    usual = [bucket for bucket in buckets if bucket["doc_count"] >= fewest]
    first, last = usual[0], usual[-1]
    earlier = [bucket for bucket in buckets if bucket["key"] < first["key"]]
    later = [bucket for bucket in buckets if bucket["key"] > last["key"]]
    end = {"lt": later[0]["key"]} if later else {}
    inside = {"range": {field: {"gte": first["key"], **end, "format": "epoch_millis"}}}
    interval = _interval(last["last"]["value"] - first["first"]["value"])
    parts = {"date_histogram": _histogram(field, interval), "aggs": counted}
    found = await aggregate(server, index, [*clauses, inside], {"parts": parts})
    return TimeCounts(
        field,
        interval,
        {bucket["key"]: _count_bucket(bucket) for bucket in found["parts"]["buckets"]},
        sum(map(_count_bucket, earlier), Count()),
        sum(map(_count_bucket, later), Count()),
        missing,
    )


def _histogram(field: str, interval: str) -> dict[str, Any]:
    return {"field": field, "calendar_interval": interval, "min_doc_count": 1}


def _counted(server: Port) -> dict[str, Any]:
    """Return the aggregation of a bucket that :func:`_count_bucket` reads."""
    return {"duplicates": {"filter": {"exists": {"field": Fields(server.prefix).duplicate_of}}}}


def _count_bucket(bucket: Mapping[str, Any]) -> Count:
    return Count(bucket["doc_count"], bucket["duplicates"]["doc_count"])


def _interval(span: float) -> str:
    """Return the shortest interval of which not too many are in *span* milliseconds."""
    return next((name for name, length in _INTERVALS if span / length <= _MOST_INTERVALS), "year")


SOURCES = 50
"""Sources that are counted one by one; the others are counted together."""

# A distance is 0 to 64 bits.
_DISTANCES = 65


@dataclass(frozen=True, slots=True, kw_only=True)
class StatsOptions:
    """
    What is counted, and by what, checked.

    Args:
        time_field:
            Date field of the documents, to count over time.
        source_field:
            Keyword field that says where a document comes from, to count by source.
        filter:
            A query, or a list of queries; only documents that match all of them are counted.
    """

    time_field: str | None = None
    source_field: str | None = None
    filter: Filter = None

    def __post_init__(self) -> None:
        check_filter(self.filter)
        for role in ("time_field", "source_field"):
            if (name := getattr(self, role)) is not None:
                check_field(role, name)


async def read_stats(server: Port, index: Index, options: StatsOptions) -> Stats:
    """
    Return the numbers of *index*.
    Cost: a search for the counts, about two for every 10,000 groups with duplicates, two for the dates, and about one
    for every 10,000 sources. The numbers come from several searches: documents that are written meanwhile are in some
    of them only. Raises MappingError if the grouping of the index is changed meanwhile.
    """
    check_index(index)
    resolved = await _resolve(server, index)
    settings = agree(resolved, server.context)
    options = replace(options, source_field=countable_field(options.source_field, resolved.mappings))
    # Where the mappings may not be read, the server decides whether documents can be counted by these fields.
    for fault in find_field_faults(options.time_field, options.source_field, (), resolved.mappings):
        if fault.is_fatal:
            raise InvalidInputError(f"{fault}: give the full name of one field in the mapping")
    clauses = check_filter(options.filter)
    stats = await _count_documents(server, index, clauses)
    groups = await count_groups(server, index, clauses) if stats.duplicates else GroupCounts()
    time = sources = None
    if options.time_field:
        time = await count_over_time(server, index, options.time_field, clauses)
    if options.source_field:
        sources = await _count_sources(server, index, options.source_field, clauses)
    grouping = _groupings(resolved)
    if _groupings(await _resolve(server, index)) != grouping:
        raise MappingError("the grouping of the index was changed while its documents were counted: run it again")
    scheme = str(settings.scheme)
    return replace(stats, groups=groups, time=time, sources=sources, scheme=scheme, grouping=grouping)


async def _resolve(server: Port, index: Index) -> Resolved:
    resolved = await resolve_index(server, index)
    refuse_group_faults(resolved, server.prefix, grouped_only=True)
    return resolved


def _groupings(resolved: Resolved) -> tuple[Mapping[str, Any], ...]:
    read = filter(None, map(Grouping.read, resolved.settings_of.values()))
    return tuple(grouping.to_dict() for grouping in dict.fromkeys(read))


async def _count_documents(server: Port, index: Index, clauses: Clauses) -> Stats:
    fields = Fields(server.prefix)
    has_fingerprint = {"exists": {"field": fields.fingerprint}}
    queries = {
        "documents": {"match_all": {}},
        "fingerprinted": has_fingerprint,
        "ungrouped": {"bool": {"filter": [has_fingerprint], "must_not": [{"exists": {"field": fields.group}}]}},
        "duplicates": {"exists": {"field": fields.duplicate_of}},
    }
    aggs = {name: {"filter": query} for name, query in queries.items()}
    distances = {"distances": {"terms": {"field": fields.distance, "size": _DISTANCES}}}
    found = await aggregate(server, index, clauses, aggs | distances)
    counts = {name: found[name]["doc_count"] for name in queries}
    by_distance = {int(bucket["key"]): bucket["doc_count"] for bucket in found["distances"]["buckets"]}
    return Stats(index_key(index), **counts, distances=dict(sorted(by_distance.items())))


async def _count_sources(server: Port, index: Index, field: str, clauses: Clauses) -> SourceCounts:
    reader = BucketReader(index, clauses, field, page=PAGE, aggs=_counted(server), has_missing=True)
    most: list[tuple[str, Count]] = []
    others = without = Count()
    number = 0
    while page := await reader.read(server):
        for key, bucket in page:
            if key is None:
                without += _count_bucket(bucket)
            else:
                number += 1
                most.append((str(key), _count_bucket(bucket)))
        most.sort(key=lambda source: (-source[1].duplicates, -source[1].documents, source[0]))
        others += sum((count for _, count in most[SOURCES:]), Count())
        del most[SOURCES:]
    return SourceCounts(field, dict(most), others, number, without)
