"""
How far a follower has read each shard, and what is left. Plain values: no request is made here.

All operations up to the global checkpoint of a shard are in every copy, so a search after a refresh shows each of them
that a later one has not replaced. A follower reads up to that checkpoint and no further.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from es_simhash.mapping.positions_flow import NOTHING, Position, Shard

SECONDS_OF_DAY = 86_400
_UNKNOWN = Position(NOTHING, NOTHING)


@dataclass(slots=True)
class Place:
    """
    How far one shard was read.

    Attributes:
        shard:
            The shard.
        purpose:
            What its documents were compared with: the scheme and the text fields, as a digest.
        read:
            All operations up to this one were read.
        verified:
            The present round of reading again has come to this one.
        position:
            The shard's numbers, as of the last look.
        owed:
            How many operations are to be read again by now.
        own:
            Sequence numbers and primary terms of our own writes beyond *read*, which need not be read.
    """

    shard: Shard
    purpose: str
    read: int = NOTHING
    verified: int = NOTHING
    position: Position = _UNKNOWN
    owed: float = 0.0
    own: set[tuple[int, int]] = field(default_factory=set)

    @property
    def is_behind(self) -> bool:
        """Whether there is something to read now."""
        return self.position.checkpoint > self.read

    @property
    def lag(self) -> int:
        """How many operations are not read."""
        return max(0, self.position.largest - self.read)

    def advance(self, last: int) -> None:
        """Note that all operations up to *last* were read."""
        self.read = last
        self.own = {each for each in self.own if each[0] > last}

    def owe(self, share: float, seconds: float) -> int:
        """Owe a *share* of the shard for each day of *seconds*; return the last operation to read again now."""
        if self.verified >= self.read:
            self.verified = NOTHING
        self.owed = min(self.owed + share * (self.read + 1) * seconds / SECONDS_OF_DAY, self.read - self.verified)
        return self.verified + int(self.owed)

    def verify(self, last: int) -> None:
        """Note that all operations up to *last* were read again."""
        self.owed -= last - self.verified
        self.verified = last


class Places:
    """
    The places of all shards of what is followed.
    """

    def __init__(self) -> None:
        self._places: dict[Shard, Place] = {}

    def __iter__(self) -> Iterator[Place]:
        return iter(self._places.values())

    @property
    def lag(self) -> int:
        """How many operations are not read."""
        return sum(each.lag for each in self._places.values())

    @property
    def behind(self) -> list[Place]:
        """The places of shards with something to read now."""
        return [each for each in self._places.values() if each.is_behind]

    def look(self, positions: Mapping[Shard, Position], purposes: Mapping[str, str]) -> None:
        """
        Note the *positions* of all shards.

        A shard is read from its beginning if it is new, if its documents are compared with something else now, or if
        its numbers have gone back, as after a copy was lost.

        Args:
            positions:
                What the server says.
            purposes:
                What documents are compared with, by UUID of the index; shards of other indices are left out.
        """
        places = {}
        for shard, position in positions.items():
            if (purpose := purposes.get(shard.uuid)) is None:
                continue
            place = self._places.get(shard)
            if place is None or place.purpose != purpose or place.read > position.largest:
                place = Place(shard, purpose)
            place.position = position
            places[shard] = place
        self._places = places

    def to_dict(self) -> list[dict[str, Any]]:
        """Return the places as plain JSON values."""
        return [
            {
                "index": each.shard.index,
                "uuid": each.shard.uuid,
                "shard": each.shard.number,
                "purpose": each.purpose,
                "read": each.read,
                "verified": each.verified,
            }
            for each in self._places.values()
        ]

    def load(self, recorded: Any) -> None:
        """Take over the places that :meth:`to_dict` made; leave out what it cannot have made, which is read again."""
        places = [_read_place(each) for each in recorded] if isinstance(recorded, list) else []
        self._places = {each.shard: each for each in places if each is not None}


def _read_place(recorded: Any) -> Place | None:
    match recorded:
        case {
            "index": str(index),
            "uuid": str(uuid),
            "shard": int(number),
            "purpose": str(purpose),
            "read": int(read),
            "verified": int(verified),
        }:
            return Place(Shard(index, uuid, number), purpose, read, verified)
    return None
