"""
Making what was written visible to searches, and the moment of a write. No document is read or written here.
"""

from __future__ import annotations

from datetime import UTC, datetime

from es_simhash.errors import IncompleteSearchError
from es_simhash.transport.names import Index
from es_simhash.transport.protocol import Call, Flow
from es_simhash.transport.retry_flow import check_shards, retry


def now() -> str:
    """
    Return the time as ``simhash.at`` holds it: ISO 8601, UTC, milliseconds.
    """
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def refresh(index: Index) -> Flow[None]:
    """
    Make all that was written to *index* visible to searches, however busy the server is.

    Cost: two requests, because shards without any active copy are looked for first.

    Raises:
        IncompleteSearchError: If some shard has no active copy, or cannot be refreshed.
    """
    yield from check_shards(index)

    def send() -> Flow[int]:
        answer = yield Call("refresh", {"index": index})
        return len((answer.get("_shards") or {}).get("failures") or ())

    failed = yield from retry(send, is_done=lambda failed: not failed)
    if failed:
        reason = f"{failed} shards could not be refreshed"
        raise IncompleteSearchError(f"{reason}: see the health of the cluster", reasons=(reason,))
