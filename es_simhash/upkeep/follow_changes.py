"""
What a follower follows: the indices, the place in each shard up to which it has read, the changes after that, and the
one plain document in which it writes how far it came.

All operations up to the global checkpoint of a shard are in every copy, so a search after a refresh shows each of
them that a later one has not replaced. A follower reads up to that checkpoint and no further. Nothing keeps two
followers of one index apart: whoever goes on reads some operations again, and leaves none out.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import xxhash

from es_simhash.errors import IncompleteSearchError, InvalidInputError
from es_simhash.groups.reconcile import Written
from es_simhash.mapping.port import Port
from es_simhash.mapping.shards import NOTHING, Position, Positions, Shard
from es_simhash.transport.answers import check_whole, find_gaps
from es_simhash.transport.pages import Hits
from es_simhash.transport.protocol import Call, Index, index_key
from es_simhash.transport.refusals import is_lasting, is_there_already
from es_simhash.upkeep.follow_options import FollowOptions, Tally
from es_simhash.upkeep.needed import Judge, Judgement
from es_simhash.upkeep.put_fields import Target, find_targets
from es_simhash.writes.bulk import CONFLICT, MISSING, NO_INDEX, UNREADABLE, send_bulk
from es_simhash.writes.operations import Operation, Refusal, refuse_hindered

# The settings of all indices are read again after so many seconds, and where an index is new.
TARGETS_SECONDS = 60.0


class FollowedIndices:
    """The indices behind a name, as they are now; there is a *judge* after the first look."""

    judge: Judge

    def __init__(self, index: Index, options: FollowOptions) -> None:
        self._index = index
        self._options = options
        self._positions = Positions(index)
        self._targets: dict[str, Target] = {}
        self._read_at = -math.inf
        # A digest of what the documents of each index must carry, by UUID of the index.
        self.purposes: dict[str, str] = {}

    async def look(self, server: Port, clock: float) -> dict[Shard, Position]:
        """
        Return the position of each shard; add our fields to a new index that lacks them.
        Raises MappingError or InvalidInputError if the indices cannot be followed.
        """
        if clock - self._read_at >= TARGETS_SECONDS:
            await self._read_targets(server)
            self._read_at = clock
        found = await self._positions.read(server)
        positions = {shard: found[shard] for shard in found if shard.index != self._options.state_index}
        if {shard.uuid for shard in positions} - self.purposes.keys():
            await self._read_targets(server)
        return positions

    def distrust(self) -> None:
        """Read all settings again at the next look, after a failure."""
        self._read_at = -math.inf

    async def _read_targets(self, server: Port) -> None:
        targets = await find_targets(server, self._index, self._options.text_field, dry_run=False)
        if targets != self._targets:
            self.judge = Judge(server.prefix, targets)
            self._targets = targets
            self.purposes = {target.uuid: _purpose(target) for target in targets.values()}


def _purpose(target: Target) -> str:
    """Return what decides which fields the documents of an index need, as a digest."""
    settings = target.settings
    words = [settings.scheme.to_dict(), settings.value, list(settings.text_fields)]
    if settings.passages is not None:
        words.append("passages")
    return xxhash.xxh3_64_hexdigest(json.dumps(words, sort_keys=True).encode())


_UNKNOWN = Position(NOTHING, NOTHING)


@dataclass(slots=True)
class Place:
    """
    How far one shard was read: all operations up to *read*. *purpose*: a digest of the scheme and text fields that its
    documents were compared with. *deletions*: how many its primary had counted. *position*: the shard's numbers at the
    last look. *is_counted*: deletions were counted at the look before, too.
    """

    shard: Shard
    purpose: str
    read: int = NOTHING
    deletions: int | None = None
    position: Position = _UNKNOWN
    is_counted: bool = False

    @property
    def is_behind(self) -> bool:
        return self.position.checkpoint > self.read


class Places:
    """How far the shards were read; *recorded*: what :meth:`to_list` made; what it cannot have made is read again."""

    def __init__(self, recorded: Any = None) -> None:
        self._places: dict[Shard, Place] = {}
        for made in recorded if isinstance(recorded, list) else ():
            match made:
                case {
                    "index": str(index),
                    "uuid": str(uuid),
                    "number": int(number),
                    "history": str(history),
                    "purpose": str(purpose),
                    "read": int(read),
                    "deletions": int(deletions),
                }:
                    shard = Shard(index, uuid, number, history)
                    self._places[shard] = Place(shard, purpose, read, deletions)

    def __iter__(self) -> Iterator[Place]:
        return iter(self._places.values())

    @property
    def lag(self) -> int:
        return sum(max(0, place.position.largest - place.read) for place in self)

    @property
    def behind(self) -> list[Place]:
        return [place for place in self if place.is_behind]

    def look(self, positions: Mapping[Shard, Position], purposes: Mapping[str, str]) -> bool:
        """
        Note the *positions* of all shards; return whether documents were deleted since the last look.
        *purposes* are by index UUID, and shards of other indices are left out. A shard is read from its beginning if it
        is new, if its documents are compared with something else now, or if its numbers have gone back, as after a copy
        was lost.
        """
        before, self._places = self._places, {}
        for shard, position in positions.items():
            if (purpose := purposes.get(shard.uuid)) is None:
                continue
            place = before.get(shard)
            if place is None or place.purpose != purpose or place.read > position.largest:
                place = Place(shard, purpose, deletions=position.deletions)
            self._places[shard] = place
        is_less = bool(before.keys() - self._places.keys())
        for place in self:
            position = positions[place.shard]
            is_less |= place.deletions != position.deletions
            place.deletions = position.deletions
            place.is_counted = place.position is not _UNKNOWN
            place.position = position
        return is_less

    def to_list(self) -> list[dict[str, Any]]:
        return [
            {**asdict(place.shard), "purpose": place.purpose, "read": place.read, "deletions": place.deletions}
            for place in self
        ]


async def read_page(server: Port, place: Place, judge: Judge, size: int) -> tuple[Hits, bool]:
    """
    Read the next operations of a shard, about *size*; return the documents that they wrote, and whether documents may
    have been deleted that no count shows; a partial answer is an error.
    It ends between two numbers: an index that was shrunk has up to as many documents of one number as it had shards.
    """
    first, last = place.read + 1, place.position.checkpoint
    hits: list[Mapping[str, Any]] = []
    while place.read < first:
        size += 1  # one document more shows whether all of the last number are here
        answer = await server.patient.send(_page_call(place, judge, first, last, size))
        check_whole(find_gaps(answer))
        hits = answer["hits"]["hits"]
        place.read = last if len(hits) < size else hits[-1]["_seq_no"] - 1
        size *= 2  # where all are of one number
    hits = [hit for hit in hits if hit["_seq_no"] <= place.read]
    # An operation may have no document because a later one replaced it. Where several documents have one number, those
    # shown hide that others are gone: looked at once, at the start.
    return hits, not place.is_counted and (first == 0 or place.read + 1 - first > len(hits))


def _page_call(place: Place, judge: Judge, first: int, last: int, size: int) -> Call:
    query = {"range": {"_seq_no": {"gte": first, "lte": last}}}
    body = {
        "size": size,
        "query": {"bool": {"filter": [query], **judge.marks}},
        "sort": [{"_seq_no": "asc"}],
        "seq_no_primary_term": True,
        "track_total_hits": False,
        "_source": judge.source,
    }
    shard = place.shard
    return Call("search", {"index": shard.index, "preference": f"_shards:{shard.number}", "body": body})


async def repair(server: Port, judged: Sequence[Judgement], tally: Tally, written: Written) -> None:
    """
    Write the fingerprints that documents need as *judged*, each only into the version that was read; note what was
    *written*, which is read once more. Raises WritesRefusedError if the server takes no writes now.
    """
    wrong = [judgement for judgement in judged if judgement.operation is not None]
    outcomes = await send_bulk(server, [operation for judgement in wrong if (operation := judgement.operation)])
    for judgement in judged:
        if judgement.failure is not None:
            tally.fail(judgement.failure)
    for judgement, outcome in zip(wrong, outcomes, strict=True):
        if outcome.is_done:
            tally.sums["written"] += 1
            tally.sums["stale"] += judgement.is_stale
            written[judgement.place] = outcome.version
        elif outcome.status == CONFLICT:
            tally.sums["conflicts"] += 1  # the change that was faster has a later number
        elif outcome.status != MISSING and outcome.hindrance is None:
            tally.fail(outcome.to_failure())
    refuse_hindered(outcomes)


_KEYWORD = {"type": "keyword", "ignore_above": 1024}
_MAPPING = {
    "dynamic": "strict",
    "properties": {"index": _KEYWORD, "prefix": _KEYWORD, "position": {"type": "object", "enabled": False}},
}
_SETTINGS = {"number_of_shards": 1, "auto_expand_replicas": "0-1"}


class PositionStore:
    """Keeps the position of a follower of *index*, plain JSON values, in a document of *state_index*."""

    def __init__(self, state_index: str, index: Index, prefix: str) -> None:
        name = index_key(index)
        self._state_index = state_index
        self._fields = {"index": name, "prefix": prefix}
        self._id = hashlib.sha256(f"{prefix}\0{name}".encode()).hexdigest()[:40]
        self._written: Mapping[str, Any] = {}

    async def read(self, server: Port) -> Mapping[str, Any]:
        """Return the position that was written last; empty where there is none. Make the index if it is missing."""
        docs = [{"_index": self._state_index, "_id": self._id}]
        answer = await server.patient.mget(body={"docs": docs})
        [found] = answer["docs"]
        if "error" in found:
            refusal = Refusal.read(UNREADABLE, found["error"])
            said = f"the position in index {self._state_index!r} cannot be read: {refusal}"
            if is_lasting(refusal.type):
                raise InvalidInputError(said)
            if refusal.type != NO_INDEX:  # a shard without a copy, as in the first moments of an index
                raise IncompleteSearchError(said, reasons=(said,))
            await self._create_index(server)
        position = (found.get("_source") or {}).get("position")
        self._written = position if isinstance(position, Mapping) else {}
        return self._written

    async def write(self, server: Port, position: Mapping[str, Any]) -> None:
        """Write *position* where it is another one."""
        if position == self._written:
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
        self._written = position

    async def _create_index(self, server: Port) -> None:
        body = {"mappings": _MAPPING, "settings": _SETTINGS}
        try:
            await server.create_index(index=self._state_index, body=body)
        except Exception as error:
            if not is_there_already(error):
                raise
