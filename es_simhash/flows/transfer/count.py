"""
Counts documents, and says what may be missing from the count. No document is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from es_simhash.flows.context import Index
from es_simhash.flows.protocol import Call, Flow
from es_simhash.flows.transfer.answers import Gap, find_gaps
from es_simhash.flows.transfer.retry import Patience, ask

__all__ = ["count_documents"]


def count_documents(
    index: Index, query: Mapping[str, Any] | None = None, *, patience: Patience | None = None
) -> Flow[tuple[int, list[Gap]]]:
    """
    Return how many documents of *index* match *query*, and why some may not be counted.

    A server that is too busy is asked once, or as *patience* says. Cost: one search; the default search pipeline of an
    index can be left out of a search, but not of a count.
    """
    body: dict[str, Any] = {"size": 0, "track_total_hits": True, "query": query or {"match_all": {}}}
    answer = yield from ask(Call("search", {"index": index, "body": body}), patience=patience or Patience(1))
    return answer["hits"]["total"]["value"], find_gaps(answer, ignore=["terminated_early"])
