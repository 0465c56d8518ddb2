"""
Counts documents, and reads all buckets of a field, however many values it has.

A composite aggregation returns buckets in order, and each page of it looks at all documents that match. After a few
pages the other values are therefore cut into ranges, and a page is searched for in one range only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from es_simhash.transport.answers import Gap, check_whole, find_gaps
from es_simhash.transport.protocol import Index
from es_simhash.transport.retry import Patience, retry
from es_simhash.transport.server import Server

# Documents whose values are read; a range of more documents can be cut again.
_DRAWN = 1_000


async def cut_values(
    server: Server, index: Index, clauses: Sequence[Mapping[str, Any]], field: str, *, part: int
) -> list[str]:
    """
    Return values of *field* in ascending order, between which lie about *part* documents each.
    They are values of documents drawn at random among those that match all *clauses*. Where the cuts are decides only
    how much work a range is. Cost: one search, which looks at each of these documents.
    """
    body = {
        "size": _DRAWN,
        "track_total_hits": True,
        "_source": False,
        "docvalue_fields": [field],
        "query": {
            "function_score": {
                "query": {"bool": {"filter": list(clauses)}},
                "random_score": {"seed": 0, "field": "_seq_no"},
                "boost_mode": "replace",
            }
        },
    }
    answer = await retry(server, lambda: server.search(index=index, body=body))
    found = answer["hits"]
    # A shard that is missing here makes the ranges larger; whoever reads them notices that it is missing.
    values = sorted(value for hit in found["hits"] for value in hit.get("fields", {}).get(field, ()))
    step = max(1, round(part * len(values) / max(1, found["total"]["value"])))
    return sorted(set(values[step::step]))


CUT_AFTER = 4
"""Full pages of one range after which the rest of it is cut; fewer cost less than the search that cuts."""


async def aggregate(
    server: Server, index: Index, clauses: Sequence[Mapping[str, Any]], aggs: Mapping[str, Any]
) -> dict[str, Any]:
    """
    Return the results of *aggs* over all documents that match all *clauses*; repeated while the server is busy.
    IncompleteSearchError is raised if the answer does not cover every document.
    """
    body = {"size": 0, "query": {"bool": {"filter": list(clauses)}}, "aggs": aggs, "track_total_hits": False}
    answer = await retry(server, lambda: server.search(index=index, body=body))
    # OpenSearch ends a composite aggregation early once its page is full, and a terms aggregation when it counts
    # without looking at documents, and says so of both.
    check_whole(find_gaps(answer, ignore=["terminated_early"]))
    found: dict[str, Any] = answer["aggregations"]
    return found


async def aggregate_named(
    server: Server,
    index: Index,
    clauses: Sequence[Mapping[str, Any]],
    field: str,
    names: Sequence[str],
    aggs: Mapping[str, Any] | None = None,
) -> dict[str, dict[str, Any]]:
    """Return the buckets of those of *names*, 10,000 at most, that documents have in *field*, by name."""
    if not names:
        return {}
    terms = {"terms": {"field": field, "size": len(names)}, **({"aggs": aggs} if aggs else {})}
    answer = await aggregate(server, index, [*clauses, {"terms": {field: list(names)}}], {"names": terms})
    return {bucket["key"]: bucket for bucket in answer["names"]["buckets"]}


@dataclass(slots=True)
class BucketReader:
    """
    Reads the buckets of one field. The work of the server grows with the number of documents if values can be cut into
    ranges, else with that number times the number of pages. A document with several values is in several buckets.
    *has_missing*: the documents without a value are a bucket too, with the key ``None``. *has_ranges*: the field is a
    keyword without a normalizer in every index; only then are its buckets in the order of Python's strings, and can be
    cut into ranges.
    """

    index: Index
    clauses: Sequence[Mapping[str, Any]]
    field: str
    page: int
    aggs: Mapping[str, Any] | None = None
    has_missing: bool = False
    has_ranges: bool = False
    _after: Any = None
    _has_begun: bool = False
    _is_done: bool = False
    # Last values of the ranges that are left but for the last, the next one at the end.
    _ends: tuple[str, ...] = ()
    _is_cut: bool = False
    _full_pages: int = 0

    async def read(self, server: Server) -> list[tuple[Any, dict[str, Any]]]:
        """Return some more values, each with its bucket; empty after the last one."""
        while not self._is_done:
            if self.has_ranges and self._full_pages >= CUT_AFTER and self._after is not None:
                await self._cut(server)
            found = await self._send(server)
            if page := self._take(found["buckets"]):
                return [(bucket["key"]["value"], bucket) for bucket in page]
        return []

    def _take(self, buckets: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return those of *buckets* that are in the present range, and go on behind them."""
        if self._ends:
            # A document with several values also has buckets outside the range; those need not be whole.
            buckets = [bucket for bucket in buckets if bucket["key"]["value"] <= self._ends[-1]]
        if len(buckets) == self.page:
            self._after = buckets[-1]["key"]["value"]
            self._full_pages += 1
        elif self._ends:
            *ends, self._after = self._ends
            self._ends, self._full_pages = tuple(ends), 0
        else:
            self._is_done = True
        self._has_begun = True
        return buckets

    async def _cut(self, server: Server) -> None:
        """Cut the rest of the present range into ranges of about two pages."""
        self._full_pages = 0
        ends = await cut_values(server, self.index, self._rest(), self.field, part=2 * self.page)
        # A document with several values was also drawn for those outside the range.
        inside = [each for each in ends if self._after < each and not (self._ends and each >= self._ends[-1])]
        self._ends += tuple(reversed(inside))
        self._is_cut = True

    def _rest(self) -> list[Mapping[str, Any]]:
        """Return the queries that the documents in the rest of the present range match."""
        end = {"lte": self._ends[-1]} if self._ends else {}
        # The range must lead the search. Where fewer documents match the other queries, OpenSearch would look at all of
        # those, for every range; with two negations it does not know how few they are.
        others = {"bool": {"must_not": [{"bool": {"filter": list(self.clauses)}}]}}
        return [{"range": {self.field: {"gt": self._after, **end}}}, {"bool": {"must_not": [others]}}]

    async def _send(self, server: Server) -> dict[str, Any]:
        terms = {"field": self.field, **({"missing_bucket": True} if self.has_missing else {})}
        clauses = self._rest() if self._is_cut else self.clauses
        composite: dict[str, Any] = {"sources": [{"value": {"terms": terms}}], "size": self.page}
        if self._has_begun:
            composite["after"] = {"value": self._after}
        every = {"composite": composite, **({"aggs": self.aggs} if self.aggs else {})}
        found: dict[str, Any] = (await aggregate(server, self.index, clauses, {"every": every}))["every"]
        return found


async def count_documents(
    server: Server,
    index: Index,
    query: Mapping[str, Any] | None = None,
    *,
    routing: str | None = None,
    patience: Patience | None = None,
) -> tuple[int, list[Gap]]:
    """
    Return how many documents of *index* match *query*, and why some may not be counted.
    A server that is too busy is asked once, or as *patience* says. Cost: one search, not a count, because only a search
    can leave out the default search pipeline of an index.
    """
    body: dict[str, Any] = {"size": 0, "track_total_hits": True, "query": query or {"match_all": {}}}
    searching = partial(server.search, index=index, body=body, routing=routing)
    answer = await retry(server, searching, patience=patience or Patience(1))
    return answer["hits"]["total"]["value"], find_gaps(answer, ignore=["terminated_early"])


async def count_whole(
    server: Server, index: Index, query: Mapping[str, Any] | None = None, *, patience: Patience | None = None
) -> int:
    """Return how many documents of *index* match *query*; raise IncompleteSearchError if some may not be counted."""
    number, gaps = await count_documents(server, index, query, patience=patience)
    check_whole(gaps)
    return number
