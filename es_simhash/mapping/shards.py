"""
How far the operations of each shard were read, and searches of primaries where replicas may lag behind.

A server numbers the operations of a shard (``_seq_no``), but they do not become visible in that order: a
search may show 105 while 104 is still being indexed. Two numbers make certain what a search shows: the global
checkpoint, up to which every copy in sync has every operation, also after a failover, and the largest number
given. If a later search shows an operation beyond that largest number, then what it searches was opened after
both were read, and it shows everything up to the checkpoint. So does a search after a refresh that began
after they were read.

With segment replication (OpenSearch) a refresh makes writes visible on primaries first: :func:`reading_primaries`
returns the port of an operation that must see what was just written. Which documents it reads is not decided here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from es_simhash.mapping.port import Around, Port
from es_simhash.transport.conversation import unless_refused
from es_simhash.transport.protocol import Call, Index, check_index, index_key, names_in
from es_simhash.transport.server import Answer

NOTHING = -1

# More positions than these are thinned out: then a checkpoint is only noticed a little later.
MOST_POSITIONS = 64


@dataclass(frozen=True, slots=True)
class Shard:
    """
    A shard of a concrete index; an index that is created again has another *uuid*.
    *history*: another one where a primary was allocated from a stale or empty copy, after which the same numbers mean
    other operations; empty if the server does not show it.
    """

    index: str
    uuid: str
    number: int
    history: str = ""


@dataclass(frozen=True, slots=True)
class Position:
    """
    Sequence numbers of a shard, as its primary gave them.
    *checkpoint*: every copy in sync has all operations up to this one. *largest*: the largest number given to an
    operation; -2 in a position that every later search has passed. *deletions*: how many the primary has counted since
    it was opened.
    """

    checkpoint: int
    largest: int
    deletions: int = 0


@dataclass(slots=True)
class ShardReading:
    """How far a shard was read: all operations up to *certain*, if a search can still show them."""

    latest: Position
    certain: int = NOTHING
    _positions: list[Position] = field(default_factory=list)

    @property
    def is_behind(self) -> bool:
        """Whether there may be operations that were not read."""
        return self.latest.largest > self.certain

    def note(self, position: Position) -> None:
        """Note a *position*; only what is searched after this counts for it."""
        self.latest = position
        if position.checkpoint > self.certain:
            self._positions.append(position)
            if len(self._positions) > MOST_POSITIONS:
                del self._positions[1::2]

    def note_refresh(self) -> None:
        """Note a refresh that began after the last position was read and is done."""
        self._positions = [Position(position.checkpoint, NOTHING - 1) for position in self._positions]

    def advance(self, shown: int | None) -> None:
        """
        Note that a search has shown all operations beyond :attr:`certain`, the last of which was *shown*.
        Give ``None`` for several searches, or for one that showed nothing.
        """
        last = NOTHING if shown is None else shown
        passed = [position for position in self._positions if position.largest < last]
        self._positions = [position for position in self._positions if position.largest >= last]
        self.certain = max([self.certain, *(position.checkpoint for position in passed)])


def read_positions(answer: Mapping[str, Any]) -> dict[Shard, Position]:
    """Return the position of each shard that has a primary, by the *answer* of index stats by shard."""
    found = {}
    for name, index in answer.get("indices", {}).items():
        for number, copies in index.get("shards", {}).items():
            copy = next((copy for copy in copies if copy["routing"]["primary"] and "seq_no" in copy), None)
            if copy is not None:
                numbers, commit = copy["seq_no"], copy.get("commit", {})
                history = commit.get("user_data", {}).get("history_uuid") or ""
                deletions = copy.get("indexing", {}).get("delete_total", 0)
                position = Position(numbers["global_checkpoint"], numbers["max_seq_no"], deletions)
                found[Shard(name, index.get("uuid", ""), int(number), history)] = position
    return found


_PARTS = ("routing.primary", "seq_no", "commit.user_data.history_uuid", "indexing.delete_total")
_STATS = ",".join(("_shards", "indices.*.uuid", *(f"indices.*.shards.*.{name}" for name in _PARTS)))


class PositionsError(Exception):
    """The positions of some shards are not available now: the server shows none, or a shard has no primary."""

    def __init__(self, kind: Literal["statistics", "primary"]) -> None:
        super().__init__(kind)
        self.kind = kind

    def __str__(self) -> str:
        if self.kind == "primary":
            return "a shard has no primary"
        return "the server does not show the sequence numbers of the shards"


class Positions:
    def __init__(self, index: Index) -> None:
        self._index = index
        self._shards_of: dict[str, int] = {}  # by uuid

    async def read(self, server: Port) -> dict[Shard, Position]:
        """Return the position of every shard of every index; raise PositionsError if a shard has none."""
        asked = {"index": self._index, "metric": "indexing", "level": "shards", "filter_path": _STATS}
        answer = await server.patient.send(Call("index_stats", asked))
        positions = read_positions(answer)
        if answer.get("_shards", {}).get("failed") or not positions:
            raise PositionsError("statistics")
        await self._check(server, positions)
        return positions

    async def _check(self, server: Port, positions: Mapping[Shard, Position]) -> None:
        """Raise an error unless *positions* has every shard of every index."""
        numbers: dict[str, set[int]] = {}
        for shard in positions:
            numbers.setdefault(shard.uuid, set()).add(shard.number)
        if new := {shard.index: shard.uuid for shard in positions if shard.uuid not in self._shards_of}:
            asked = sorted(new)
            answer = await server.patient.get_settings(index=asked, name="index.number_of_shards")
            for name in new.keys() & answer.keys():
                self._shards_of[new[name]] = int(answer[name]["settings"]["index"]["number_of_shards"])
        if any(len(found) != self._shards_of.get(uuid) for uuid, found in numbers.items()):
            raise PositionsError("primary")


_SEARCHES = ("open_point_in_time", "search")
_PRIMARY = "_primary"


class ReadingPrimaries(Around):
    """A port whose searches read primary shards; such ports may nest."""

    def change(self, call: Call) -> Call:
        if call.api in _SEARCHES and "index" in call.arguments:  # a search in a point in time names no index
            return replace(call, arguments=_preferring(call.arguments))
        if call.api == "msearch":
            lines = call.arguments["body"]
            body = [line if n % 2 else _preferring(line) for n, line in enumerate(lines)]
            return replace(call, arguments={**call.arguments, "body": body})
        return call


async def reading_settings(server: Port, index: Index) -> Answer | None:
    """Return the settings of *index* that decide how it is read; ``None`` for a user who may not read settings."""
    names = "index.mapping.source.mode,index.replication.type"
    asked = index_key(index)
    return await unless_refused(server.patient.get_settings(index=asked, name=names), 401, 403)


async def reading_primaries(server: Port, index: Index) -> Port:
    """
    Return a port whose searches see what was just written: they read primaries if replicas of *index* may lag behind.
    Cost: one request, for the settings of the index.
    """
    return ReadingPrimaries(server) if await _may_lag(server, check_index(index)) else server


async def _may_lag(server: Port, index: Index) -> bool:
    """Return whether a refresh of *index* may not reach its replicas."""
    names = names_in(index)
    if not names:
        return False
    answer = await reading_settings(server, index)
    if answer is not None:
        settings = [held.get("settings", {}).get("index") or {} for held in answer.values()]
        return any(some.get("replication", {}).get("type") == "SEGMENT" for some in settings)
    # A user who may not read settings may search: only OpenSearch knows the preference. One who may not search either
    # reads nothing that could lag.
    searched = server.search(index=names, body={"size": 0}, preference=_PRIMARY)
    return await unless_refused(searched, 400, 401, 403) is not None


def _preferring(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the *arguments* of a search that reads primaries, of certain shards where they name some."""
    wanted = (arguments.get("preference") or _PRIMARY).removesuffix(f"|{_PRIMARY}")
    return {**arguments, "preference": _PRIMARY if wanted == _PRIMARY else f"{wanted}|{_PRIMARY}"}
