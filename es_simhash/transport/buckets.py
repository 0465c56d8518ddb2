"""Counts documents, and reads all buckets of a field, however many values it has."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field as dataclass_field
from typing import Any

from es_simhash.transport.answers import Gap, check_whole, find_gaps
from es_simhash.transport.conversation import until
from es_simhash.transport.protocol import Index
from es_simhash.transport.server import Server

# Buckets of one answer: servers allow 65,535, those of other aggregations below them included.
READ = 50_000

Clauses = Sequence[Mapping[str, Any]]


async def aggregate(server: Server, index: Index, clauses: Clauses, aggs: Mapping[str, Any]) -> dict[str, Any]:
    """
    Return the results of *aggs* over all documents that match all *clauses*; repeated while the server is busy.
    IncompleteSearchError is raised if the answer does not cover every document.
    """
    body = {"size": 0, "query": {"bool": {"filter": list(clauses)}}, "aggs": aggs, "track_total_hits": False}
    answer = await until(server, lambda: server.search(index=index, body=body))
    # OpenSearch ends a composite aggregation early once its page is full, and a terms aggregation when it counts
    # without looking at documents, and says so of both.
    check_whole(find_gaps(answer, ignore=["terminated_early"]))
    found: dict[str, Any] = answer["aggregations"]
    return found


async def aggregate_named(
    server: Server,
    index: Index,
    clauses: Clauses,
    field: str,
    names: Sequence[str],
) -> dict[str, dict[str, Any]]:
    """Return the buckets of those of *names*, 10,000 at most, that documents have in *field*, by name."""
    if not names:
        return {}
    terms = {"terms": {"field": field, "size": len(names)}}
    answer = await aggregate(server, index, [*clauses, {"terms": {field: list(names)}}], {"names": terms})
    return {bucket["key"]: bucket for bucket in answer["names"]["buckets"]}


@dataclass(slots=True)
class BucketReader:
    """
    Reads the buckets of one field, in order, *page* at a time. *ask*: sends an aggregation, as :func:`aggregate` does.
    Cost: one search for every 50,000 values, each of which looks at all documents that match.
    """

    index: Index
    clauses: Clauses
    field: str
    page: int
    ask: Callable[[Any, Index, Clauses, Mapping[str, Any]], Awaitable[dict[str, Any]]] = aggregate
    _after: dict[str, Any] | None = None
    _is_done: bool = False
    _ready: list[dict[str, Any]] = dataclass_field(default_factory=list)

    async def read(self, server: Server) -> list[tuple[Any, dict[str, Any]]]:
        """Return some more values, each with its bucket; empty after the last one."""
        if not self._ready and not self._is_done:
            self._ready = await self._send(server)
        part, self._ready = self._ready[: self.page], self._ready[self.page :]
        return [(bucket["key"]["value"], bucket) for bucket in part]

    async def _send(self, server: Server) -> list[dict[str, Any]]:
        composite: dict[str, Any] = {"sources": [{"value": {"terms": {"field": self.field}}}], "size": READ}
        if self._after is not None:
            composite["after"] = self._after
        found = await self.ask(server, self.index, self.clauses, {"every": {"composite": composite}})
        buckets: list[dict[str, Any]] = found["every"]["buckets"]
        self._is_done = len(buckets) < READ
        self._after = None if self._is_done else buckets[-1]["key"]
        return buckets


async def count_documents(
    server: Server, index: Index, query: Mapping[str, Any] | None = None
) -> tuple[int, list[Gap]]:
    """
    Return how many documents of *index* match *query*, and why some may not be counted.
    Cost: one search, not a count, because only a search can leave out the default search pipeline of an index.
    """
    body: dict[str, Any] = {"size": 0, "track_total_hits": True, "query": query or {"match_all": {}}}
    answer = await server.search(index=index, body=body)
    return answer["hits"]["total"]["value"], find_gaps(answer, ignore=["terminated_early"])


async def count_whole(server: Server, index: Index, query: Mapping[str, Any] | None = None) -> int:
    """Return how many documents of *index* match *query*; raise IncompleteSearchError if some may not be counted."""
    number, gaps = await count_documents(server, index, query)
    check_whole(gaps)
    return number
