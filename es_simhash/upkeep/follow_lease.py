"""
The lease of a follower: one document that says who may write, and how far was read. No user document is read.

Clocks of other machines are not trusted. A watcher takes the lease when its document has not changed for the
time that the document names, on the watcher's clock. Every change is conditional, so of two watchers one gets
it. A holder that was stopped for longer notices at its next change that the lease is lost.
"""

from __future__ import annotations

import hashlib
import math
import os
import platform
import time
from collections.abc import Mapping
from typing import Any

from es_simhash.errors import LeaseError
from es_simhash.mapping.port import Port
from es_simhash.transport.protocol import (
    Index,
    error_text,
    index_key,
    status_of,
)
from es_simhash.transport.retry import now, retry
from es_simhash.upkeep.follow_options import LASTING, UnreadableError
from es_simhash.writes.bulk import CONFLICT, MISSING, NO_INDEX, UNREADABLE, Bulk, send_bulk
from es_simhash.writes.operations import Failure, Operation, Refusal, new_id, refuse_hindered

_KEYWORD = {"type": "keyword", "ignore_above": 1024}
_MAPPING = {
    "dynamic": "strict",
    "properties": {
        "index": _KEYWORD,
        "prefix": _KEYWORD,
        "owner": _KEYWORD,
        "host": _KEYWORD,
        "lease_seconds": {"type": "float"},
        "renewed": {"type": "date"},
        "position": {"type": "object", "enabled": False},
    },
}
_SETTINGS = {"number_of_shards": 1, "auto_expand_replicas": "0-1"}
_EXISTS = "resource_already_exists_exception"
# A holder renews when so much of the time is over, so that a slow answer does not lose the lease.
_RENEWED_AFTER = 1 / 3


class LeaseLostError(Exception):
    """Another follower has the lease; caught where the index is followed."""


class Lease:
    """
    The right to write fingerprints and groups of an index, for *seconds* without a sign of its holder.
    *is_held*: this follower has it, as far as it knows. *position*: what a later holder has to know, as plain JSON
    values. *holder*: who has it, for people; empty before the first look.
    """

    def __init__(self, state_index: str, index: Index, prefix: str, seconds: float) -> None:
        name = index_key(index)
        self._state_index = state_index
        self._fields = {"index": name, "prefix": prefix}
        self._id = hashlib.sha256(f"{prefix}\0{name}".encode()).hexdigest()[:40]
        self._owner = new_id()
        self._version: tuple[int, int] | None = None
        self._renewed_at = 0.0
        self._seen: tuple[int, int] | None = None
        self._seen_at = 0.0
        self.is_held = False
        self.position: Mapping[str, Any] = {}
        self.seconds = seconds
        self.holder = ""

    async def take(self, server: Port) -> bool:
        """
        Look once whether the lease is free, and take it if it is; then :attr:`position` is that of the last holder.
        Raises LeaseError if the document cannot be read or written, UnreadableError or WritesRefusedError if only now.
        """
        before = await server.compute(time.monotonic)
        found = await self._read(server)
        after = await server.compute(time.monotonic)
        if found is None:
            self.position, self._version = {}, None
        else:
            held, version = self._source(found), (found["_seq_no"], found["_primary_term"])
            self.holder = str(held.get("host"))
            if held.get("owner") not in (None, self._owner):
                if version != self._seen:
                    self._seen, self._seen_at = version, after
                    return False
                if before - self._seen_at < self._seconds_of(held):
                    return False
            position = held.get("position")
            self.position, self._version = position if isinstance(position, Mapping) else {}, version
        try:
            await self.renew(server)
        except LeaseLostError:
            return False
        self.is_held = True
        return True

    async def renew(self, server: Port, *, seconds: float | None = None) -> None:
        """
        Record that the holder lives, and its position; the lease lasts *seconds* from now, by default as always.
        Raises LeaseLostError if another follower has it, LeaseError if the document cannot be read or written.
        """
        begun = await server.compute(time.monotonic)
        renewed = await server.compute(now)
        await self._write(server, self._owner, self.seconds if seconds is None else seconds, renewed)
        # After a long lease, as if it had been renewed when it has an ordinary one left.
        self._renewed_at = begun if seconds is None else begun + seconds - self.seconds

    async def renew_if_due(self, server: Port) -> None:
        """Do as :meth:`renew` if a third of the time is over, or else nothing."""
        if self.is_held and await server.compute(time.monotonic) - self._renewed_at >= self.seconds * _RENEWED_AFTER:
            await self.renew(server)

    async def release(self, server: Port) -> None:
        """Give the lease back, if it is held: with one request, because a lease that is not given back ends too."""
        if self.is_held:
            renewed = await server.compute(now)
            self.is_held = False
            await server.send(Bulk([self._operation(None, self.seconds, renewed)]).call())

    async def _read(self, server: Port) -> Mapping[str, Any] | None:
        """Return the document, or ``None`` where there is none; make the index where it is missing."""
        answer = await retry(
            server, lambda: server.mget(body={"docs": [{"_index": self._state_index, "_id": self._id}]})
        )
        [found] = answer["docs"]
        if "error" in found:
            refusal = Refusal.read(UNREADABLE, found["error"])
            if refusal.type in LASTING:
                raise LeaseError(f"the lease in index {self._state_index!r} cannot be read: {refusal}", kind="refused")
            if refusal.type != NO_INDEX:  # a shard without a copy, as in the first moments of an index
                failure = Failure("unreadable", self._state_index, self._id, str(refusal), refusal.status)
                raise UnreadableError(failure)
            await self._create_index(server)
        return found if found.get("found") else None

    async def _create_index(self, server: Port) -> None:
        body = {"mappings": _MAPPING, "settings": _SETTINGS}
        try:
            await server.create_index(index=self._state_index, body=body)
        except Exception as error:
            if status_of(error) != 400 or _EXISTS not in error_text(error):
                raise

    def _source(self, found: Mapping[str, Any]) -> Mapping[str, Any]:
        if "_source" not in found:
            raise LeaseError(
                f"the lease in index {self._state_index!r} cannot be read, because the index stores no _source: name "
                "another state index",
                kind="refused",
            )
        source: Mapping[str, Any] = found["_source"]
        return source

    def _seconds_of(self, held: Mapping[str, Any]) -> float:
        """Return how long the lease of another follower lasts; as long as ours, if its document does not say it."""
        seconds = held.get("lease_seconds")
        return seconds if isinstance(seconds, (int, float)) and math.isfinite(seconds) else self.seconds

    def _operation(self, owner: str | None, seconds: float, renewed: str) -> Operation:
        header: dict[str, Any] = {"_index": self._state_index, "_id": self._id}
        if self._version is not None:
            header |= {"if_seq_no": self._version[0], "if_primary_term": self._version[1]}
        body = {
            **self._fields,
            "owner": owner,
            "host": f"{platform.node()} process {os.getpid()}",
            "lease_seconds": seconds,
            "renewed": renewed,
            "position": self.position,
        }
        return Operation("create" if self._version is None else "index", header, body)

    async def _write(self, server: Port, owner: str | None, seconds: float, renewed: str) -> None:
        [outcome] = await send_bulk(server, [self._operation(owner, seconds, renewed)])
        if outcome.is_done:
            self._version = outcome.version
        elif outcome.status in (CONFLICT, MISSING):
            await self._adopt(server)
        else:
            if outcome.hindrance != "forbidden":
                refuse_hindered([outcome])
            raise LeaseError(
                f"the lease in index {self._state_index!r} cannot be written: {outcome.error}; use a login that may "
                "write there, or name another state index",
                kind="refused",
            )

    async def _adopt(self, server: Port) -> None:
        """Find out whether the refused write was carried out before, by an attempt whose answer was lost."""
        was_held, self.is_held = self.is_held, False  # until it is known
        found = await self._read(server)
        held = {} if found is None else self._source(found)
        if found is None or held.get("owner") != self._owner:
            self.holder = str(held.get("host"))
            raise LeaseLostError
        self._version, self.is_held = (found["_seq_no"], found["_primary_term"]), was_held
