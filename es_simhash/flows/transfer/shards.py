"""
Shards without any active copy: noticed at once, and named. No document is read or written here.

A server waits a minute for such a shard before it refuses a write or a refresh, which is longer than clients wait for
an answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from es_simhash.errors import IncompleteSearchError
from es_simhash.flows.context import Index, index_key
from es_simhash.flows.protocol import Call, Flow, status_of
from es_simhash.flows.transfer.answers import Gap, find_gaps, is_shard_missing, sentences
from es_simhash.flows.transfer.retry import SHARD_ATTEMPTS, Patience, retry

__all__ = ["LOOK_FOR_SHARDS", "check_shards"]

LOOK_FOR_SHARDS = {"size": 0, "track_total_hits": False, "query": {"match_all": {}}}
"""A search that only shows which shards answer."""


def check_shards(index: Index) -> Flow[None]:
    """
    Raise an error if a shard of *index* has no active copy; a shard that is about to start gets a few seconds.

    Cost: one search without hits. A user who may not search is not checked.

    Raises:
        IncompleteSearchError: If a shard has no active copy. It names the shard if the user may see the cluster's
            health.
    """
    missing = yield from retry(
        lambda: _find_missing(index), is_done=lambda gaps: not gaps, patience=Patience(SHARD_ATTEMPTS)
    )
    if missing:
        reason = (yield from _name_missing(index)) or f"index {index_key(index)}: {'; '.join(sentences(missing))}"
        raise IncompleteSearchError(f"{reason}: see the health of the cluster", reasons=(reason,))


def _find_missing(index: Index) -> Flow[list[Gap]]:
    """Return what a search says of shards without any active copy; nothing if the server refuses the search."""
    try:
        answer = yield Call("search", {"index": index, "body": LOOK_FOR_SHARDS})
    except Exception as error:
        if status_of(error) is None:
            raise
        return [Gap("shards_missing")] if is_shard_missing(error) else []
    return [gap for gap in find_gaps(answer) if gap.is_missing_shard]


def _name_missing(index: Index) -> Flow[str]:
    """Return which shards of *index* have no active copy; empty where the user may not ask for the health."""
    try:
        answer = yield Call("cluster_health", {"index": index, "level": "shards"})
    except Exception:  # noqa: BLE001 -- the missing shard matters more
        return ""
    missing = [
        f"shard {number} of index {name}"
        for name, each in sorted((answer.get("indices") or {}).items())
        for number in _inactive(each.get("shards") or {})
    ]
    if not missing:
        return ""
    more = f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""
    return f"{missing[0]}{more} has no active copy"


def _inactive(shards: Mapping[str, Mapping[str, Any]]) -> list[str]:
    return [number for number, shard in sorted(shards.items()) if not shard.get("active_shards")]
