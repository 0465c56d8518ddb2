"""
Counts groups by their number of documents, exactly, however many there are.

A ``terms`` aggregation returns only the largest groups, and a ``cardinality`` aggregation estimates their number. So
all groups that have a duplicate are read here, a page at a time. No document is read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from heapq import nsmallest
from typing import Any

from es_simhash.flows.context import Index
from es_simhash.flows.protocol import Flow
from es_simhash.flows.transfer.buckets import BucketReader, aggregate, has_too_many
from es_simhash.index.fields import Fields
from es_simhash.quality.stats import GroupCounts, GroupSize

__all__ = ["count_groups"]

PAGE = 10_000
"""Groups a request."""

LARGEST = 10
"""Groups that are named, largest first."""


def count_groups(index: Index, fields: Fields, clauses: Sequence[Mapping[str, Any]]) -> Flow[GroupCounts]:
    """
    Return how many groups of two or more of the documents that match *clauses* there are, by size.

    Cost: about two searches for every 10,000 groups that have a duplicate. The first few look at all duplicates, and
    each other at the documents of its own names, so the time grows with the number of documents. Memory: one page, and
    a number for each different size.

    Raises:
        IncompleteSearchError: If some documents could not be counted.
    """
    duplicates = [*clauses, {"exists": {"field": fields.duplicate_of}}]
    canonicals: list[Mapping[str, Any]] = [*clauses, {"bool": {"must_not": [duplicates[-1]]}}]
    reader = BucketReader(index, duplicates, fields.group, page=PAGE, has_ranges=True)
    sizes: Counter[int] = Counter()
    largest: list[tuple[int, str]] = []
    without = several = lost = 0
    while page := (yield from reader.read()):
        found = yield from _count(index, canonicals, fields.group, [name for name, _ in page])
        without += sum(not found.get(name) for name, _ in page)
        lost += sum(bucket["doc_count"] for name, bucket in page if not found.get(name))
        several += sum(found.get(name, 0) > 1 for name, _ in page)
        counted = [(found.get(name, 0) + bucket["doc_count"], name) for name, bucket in page]
        sizes.update(size for size, _ in counted)
        largest = nsmallest(LARGEST, [*largest, *counted], key=lambda each: (-each[0], each[1]))
    return GroupCounts(
        {size: number for size, number in sorted(sizes.items()) if size > 1},
        tuple(GroupSize(name, size) for size, name in largest if size > 1),
        without,
        several,
        lost,
    )


def _count(
    index: Index, clauses: Sequence[Mapping[str, Any]], field: str, names: Sequence[str]
) -> Flow[dict[str, int]]:
    """Return how many documents that match *clauses* have each of *names* in *field*."""
    terms = {"terms": {"field": field, "size": len(names)}}
    try:
        found = yield from aggregate(index, [*clauses, {"terms": {field: list(names)}}], {"names": terms})
    except Exception as error:
        if len(names) == 1 or not has_too_many(error):
            raise
        half = len(names) // 2
        first = yield from _count(index, clauses, field, names[:half])
        return first | (yield from _count(index, clauses, field, names[half:]))
    return {bucket["key"]: bucket["doc_count"] for bucket in found["names"]["buckets"]}
