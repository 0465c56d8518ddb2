"""
How far a follower came: one plain document, read when it begins and written while it works.

Nothing keeps two followers of one index apart: each writes where it came itself, so whoever goes on reads some
operations again, and leaves none out.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from typing import Any

from es_simhash.errors import InvalidInputError
from es_simhash.mapping.port import Port
from es_simhash.transport.protocol import Index, error_text, index_key, status_of
from es_simhash.transport.retry import retry
from es_simhash.upkeep.follow_options import LASTING, UnreadableError
from es_simhash.writes.bulk import NO_INDEX, UNREADABLE, send_bulk
from es_simhash.writes.operations import Failure, Operation, Refusal, refuse_hindered

_KEYWORD = {"type": "keyword", "ignore_above": 1024}
_MAPPING = {
    "dynamic": "strict",
    "properties": {"index": _KEYWORD, "prefix": _KEYWORD, "position": {"type": "object", "enabled": False}},
}
_SETTINGS = {"number_of_shards": 1, "auto_expand_replicas": "0-1"}
_EXISTS = "resource_already_exists_exception"


class PositionStore:
    """Keeps the position of a follower of *index*, plain JSON values, in a document of *state_index*."""

    def __init__(self, state_index: str, index: Index, prefix: str) -> None:
        name = index_key(index)
        self._state_index = state_index
        self._fields = {"index": name, "prefix": prefix}
        self._id = hashlib.sha256(f"{prefix}\0{name}".encode()).hexdigest()[:40]
        self._written: Mapping[str, Any] | None = None
        self._written_at = 0.0

    async def read(self, server: Port) -> Mapping[str, Any]:
        """Return the position that was written last; empty where there is none. Make the index if it is missing."""
        docs = [{"_index": self._state_index, "_id": self._id}]
        answer = await retry(server, lambda: server.mget(body={"docs": docs}))
        [found] = answer["docs"]
        if "error" in found:
            refusal = Refusal.read(UNREADABLE, found["error"])
            if refusal.type in LASTING:
                raise InvalidInputError(f"the position in index {self._state_index!r} cannot be read: {refusal}")
            if refusal.type != NO_INDEX:  # a shard without a copy, as in the first moments of an index
                failure = Failure("unreadable", self._state_index, self._id, str(refusal), refusal.status)
                raise UnreadableError(failure)
            await self._create_index(server)
        position = (found.get("_source") or {}).get("position")
        return position if isinstance(position, Mapping) else {}

    async def write(self, server: Port, position: Mapping[str, Any], *, seconds: float = 0.0) -> None:
        """Write *position* where it is another one, and the last was written that long ago."""
        clock = await server.compute(time.monotonic)
        if position == self._written or clock - self._written_at < seconds:
            return
        body = {**self._fields, "position": position}
        [outcome] = await send_bulk(server, [Operation("index", {"_index": self._state_index, "_id": self._id}, body)])
        if not outcome.is_done:
            if outcome.hindrance != "forbidden":
                refuse_hindered([outcome])
            raise InvalidInputError(
                f"the position in index {self._state_index!r} cannot be written: {outcome.error}; use a login that "
                "may write there, or name another state index"
            )
        self._written, self._written_at = position, clock

    async def _create_index(self, server: Port) -> None:
        body = {"mappings": _MAPPING, "settings": _SETTINGS}
        try:
            await server.create_index(index=self._state_index, body=body)
        except Exception as error:
            if status_of(error) != 400 or _EXISTS not in error_text(error):
                raise
