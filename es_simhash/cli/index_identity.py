"""
Which index a name stands for now: the UUIDs of the indices behind it. No document is read here.

An index that was deleted and created again has its old name and a new UUID. Behind an alias or a data stream a rollover
adds indices, and the earlier ones stay.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from es_simhash.transport.protocol import status_of
from es_simhash.writes.targets_flow import last_generation, write_index


@dataclass(frozen=True, slots=True)
class IndexIdentity:
    """
    The indices behind a name.

    Attributes:
        written:
            UUID of the index that a write goes to, ``None`` if there is no index.
        behind:
            UUIDs of all of them.
        index:
            Name of the index that a write goes to, ``None`` if it is not known.
    """

    written: str | None
    behind: frozenset[str]
    index: str | None = None

    @classmethod
    def read(cls, client: Any, index: str) -> IndexIdentity | None:
        """Return the identity of *index* now, without any UUID if it does not exist; ``None`` if it may not be read."""
        try:
            answer = dict(client.indices.get_settings(index=index, name="index.uuid"))
            uuids = {name: str(each["settings"]["index"]["uuid"]) for name, each in answer.items()}
            written = next(iter(uuids)) if len(uuids) == 1 else _written(client, index, uuids)
        except Exception as error:
            if status_of(error) == 404:
                return cls(None, frozenset())
            if status_of(error) in (401, 403):
                return None
            raise
        return cls(uuids.get(written), frozenset(uuids.values()), written or None)


def _written(client: Any, index: str, uuids: dict[str, str]) -> str:
    """Return which index behind an alias or a data stream is written to."""
    if all(name.startswith(".ds-") for name in uuids):
        return last_generation(uuids)
    return write_index(dict(client.indices.get_alias(name=index)), index) or ""
