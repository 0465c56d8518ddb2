"""
Reads the numbers of an index: documents, duplicates, groups. Nothing is written.

The server counts all documents; no number is an estimate. A ``terms`` aggregation returns only the largest
groups and ``cardinality`` estimates, so all groups with a duplicate are read here, a page at a time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from heapq import nsmallest
from typing import Any

from es_simhash.errors import MappingError
from es_simhash.groups.recorded import refuse_group_faults
from es_simhash.lookup.query import Filter, check_filter
from es_simhash.mapping.context import Resolved
from es_simhash.mapping.fields import Fields
from es_simhash.mapping.port import Port
from es_simhash.mapping.resolve import agree, resolve_index
from es_simhash.mapping.rule import Grouping
from es_simhash.quality.stats import GroupCounts, GroupSize, Stats
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


# A distance is 0 to 64 bits.
_DISTANCES = 65


async def read_stats(server: Port, index: Index, filter: Filter = None) -> Stats:
    """
    Return the numbers of those documents of *index* that match *filter*.
    Cost: a search for the counts, and about two for every 10,000 groups with duplicates. The numbers come from several
    searches: documents that are written meanwhile are in some of them only. Raises MappingError if the grouping of the
    index is changed meanwhile.
    """
    check_index(index)
    clauses = check_filter(filter)
    resolved = await _resolve(server, index)
    settings = agree(resolved, server.context)
    stats = await _count_documents(server, index, clauses)
    groups = await count_groups(server, index, clauses) if stats.duplicates else GroupCounts()
    grouping = _groupings(resolved)
    if _groupings(await _resolve(server, index)) != grouping:
        raise MappingError("the grouping of the index was changed while its documents were counted: run it again")
    return replace(stats, groups=groups, scheme=str(settings.scheme), grouping=grouping)


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
