"""
Making what was written visible to searches, and the moment of a write. No document is read or written here.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from es_simhash.errors import IncompleteSearchError
from es_simhash.flows.protocol import Call, Flow, Wait, status_of
from es_simhash.flows.transfer.bulk import wait_seconds

__all__ = ["now", "refresh"]

ATTEMPTS = 8
_PASSING = (429, 502, 503, 504)


def now() -> str:
    """
    Return the time as ``simhash.at`` holds it: ISO 8601, UTC, milliseconds.
    """
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def refresh(index: Any) -> Flow[None]:
    """
    Make all that was written to *index* visible to searches, however busy the server is.

    Raises:
        IncompleteSearchError: If some shard cannot be refreshed.
    """
    attempt = 0
    while True:
        failed: list[Any] = []
        try:
            answer = yield Call("refresh", {"index": index})
            failed = (answer.get("_shards") or {}).get("failures") or []
        except Exception as error:
            if status_of(error) not in _PASSING or attempt == ATTEMPTS:
                raise
        else:
            if not failed:
                return
            if attempt == ATTEMPTS:
                reason = f"{len(failed)} shards could not be refreshed"
                raise IncompleteSearchError(f"{reason}: see the health of the cluster", reasons=(reason,))
        yield Wait(wait_seconds(attempt))
        attempt += 1
