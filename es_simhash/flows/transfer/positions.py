"""
Asks for the positions of all shards behind a name: how many operations each was given. No document is read here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from es_simhash.flows.context import Index
from es_simhash.flows.protocol import Call, Flow
from es_simhash.flows.transfer.retry import ask, is_passing
from es_simhash.index.resident.shards import Position, Shard, read_positions

__all__ = ["Positions", "PositionsError"]

_STATS = "_shards,indices.*.uuid,indices.*.shards.*.routing.primary,indices.*.shards.*.seq_no"


class PositionsError(Exception):
    """
    The positions of some shards cannot be had now.

    Attributes:
        kind:
            ``"statistics"``: the server shows none; ``"primary"``: a shard has no primary.
    """

    def __init__(self, kind: Literal["statistics", "primary"]) -> None:
        super().__init__(kind)
        self.kind = kind

    def __str__(self) -> str:
        """Return the sentence for people."""
        if self.kind == "primary":
            return "a shard has no primary"
        return "the server does not show the sequence numbers of the shards"


class Positions:
    """
    The positions of all shards behind *index*.

    Args:
        index:
            Name of the index, alias or data stream.
    """

    def __init__(self, index: Index) -> None:
        self._index = index
        self._shards_of: dict[str, int] = {}  # by uuid

    def call(self) -> Call:
        """Return the request for the positions, whose answer is for :meth:`read`."""
        arguments = {"index": self._index, "metric": "docs", "level": "shards", "filter_path": _STATS}
        return Call("index_stats", arguments)

    def read(self, answer: Any = None) -> Flow[dict[Shard, Position]]:
        """
        Return the position of every shard of every index.

        Args:
            answer:
                The answer to :meth:`call`, or the exception that it failed with; ``None`` to ask now.

        Raises:
            PositionsError: If a shard has none.
        """
        if isinstance(answer, Exception) and not is_passing(answer):
            raise answer
        if answer is None or isinstance(answer, Exception):
            answer = yield from ask(self.call())
        positions = read_positions(answer)
        if (answer.get("_shards") or {}).get("failed") or not positions:
            raise PositionsError("statistics")
        yield from self._check(positions)
        return positions

    def _check(self, positions: Mapping[Shard, Position]) -> Flow[None]:
        """Raise an error unless *positions* has every shard of every index."""
        numbers: dict[str, set[int]] = {}
        for each in positions:
            numbers.setdefault(each.uuid, set()).add(each.number)
        if new := {each.index: each.uuid for each in positions if each.uuid not in self._shards_of}:
            call = Call("get_settings", {"index": ",".join(sorted(new)), "name": "index.number_of_shards"})
            answer = yield from ask(call)
            for name in new.keys() & answer.keys():
                self._shards_of[new[name]] = int(answer[name]["settings"]["index"]["number_of_shards"])
        if any(len(found) != self._shards_of.get(uuid) for uuid, found in numbers.items()):
            raise PositionsError("primary")
