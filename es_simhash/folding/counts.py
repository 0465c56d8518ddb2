"""
Counts the distinct hits of a search exactly.

A cardinality aggregation estimates; so every group is read, 10,000 in a request, each of which looks at all documents
that match.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from es_simhash.folding.request import DistinctSearch
from es_simhash.mapping.port import Port
from es_simhash.transport.answers import check_whole, find_gaps
from es_simhash.transport.pages import View
from es_simhash.transport.protocol import Call, Index
from es_simhash.transport.retry import retry

_PAGE = 10_000


async def read_answer(server: Port, index: Index, view: View | None, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the whole answer in the *view*, or without one of *index* as it is; repeated while the server is busy."""
    call = Call("search", {"index": index, "body": body}) if view is None else view.call(body)
    answer = await retry(server, lambda: server.send(call))
    if view is not None:
        view.note(answer)
    check_whole(find_gaps(answer, ignore=["terminated_early"]))
    return answer


async def count_hits(server: Port, view: View | None, search: DistinctSearch) -> int:
    """Return the number of distinct hits of *search*, by group."""
    ungrouped = search.matching({"bool": {"must_not": [{"exists": {"field": search.fields.group}}]}})
    body = {**search.common, "size": 0, "query": ungrouped, "track_total_hits": True}
    alone = await read_answer(server, search.index, view, body)
    return await _count_groups(server, view, search) + int(alone["hits"]["total"]["value"])


async def _count_groups(server: Port, view: View | None, search: DistinctSearch) -> int:
    composite: dict[str, Any] = {"sources": [{"group": {"terms": {"field": search.fields.group}}}]}
    groups = 0
    while True:
        every = {"every": {"composite": {**composite, "size": _PAGE}}}
        body = {**search.common, "size": 0, "query": search.matching(), "aggs": every, "track_total_hits": False}
        answer = (await read_answer(server, search.index, view, body))["aggregations"]["every"]
        groups += len(answer["buckets"])
        if len(answer["buckets"]) < _PAGE:
            return groups
        composite["after"] = answer["after_key"]
