"""
What is followed: the shards of its concrete indices, and what their documents must carry. No document is read here.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping

import xxhash

from es_simhash.hashing import Scheme
from es_simhash.hashing.pool import FingerprintPool
from es_simhash.mapping.context import Context
from es_simhash.mapping.positions_flow import Position, Positions, Shard
from es_simhash.transport.names import Index
from es_simhash.transport.protocol import Compute, Flow
from es_simhash.upkeep.follow_options import FollowOptions
from es_simhash.upkeep.judge_flow import Judge
from es_simhash.upkeep.targets_flow import Target, find_targets, has_passages, record_text_fields, scheme_of

# The settings of all indices are read again after so many seconds, and where an index is new.
TARGETS_SECONDS = 60.0


class Subject:
    """
    The indices behind a name, as they are now.

    Args:
        context:
            What the client object knows.
        index:
            What is followed.
        options:
            How.

    Attributes:
        judge:
            Says what documents need; ``None`` before the first look.
    """

    def __init__(self, context: Context, index: Index, options: FollowOptions) -> None:
        self._context = context
        self._index = index
        self._options = options
        self._positions = Positions(index)
        self._pool: FingerprintPool | None = None
        self._computed: tuple[Scheme, bool] | None = None
        self._read_at = -math.inf
        self.judge: Judge | None = None

    @property
    def targets(self) -> Mapping[str, Target]:
        """What the documents of each index must carry, as of the last look."""
        return {} if self.judge is None else self.judge.targets

    @property
    def purposes(self) -> dict[str, str]:
        """A digest of that, by UUID of the index."""
        return {each.uuid: _purpose(each) for each in self.targets.values()}

    def check(self) -> Flow[None]:
        """
        Check that the indices can be followed; nothing is changed.

        Raises:
            MappingError: If an index maps our fields wrongly, or lacks them and no text field is named.
            InvalidInputError: If the text field cannot be meant.
        """
        yield from find_targets(self._context, self._index, self._options.text_field, dry_run=True)

    def look(self, clock: float) -> Flow[dict[Shard, Position]]:
        """Return the position of each shard; add our fields to a new index that lacks them."""
        found = yield from self._positions.read()
        positions = {shard: each for shard, each in found.items() if shard.index != self._options.state_index}
        is_new = {each.uuid for each in positions} - self.purposes.keys()
        if is_new or clock - self._read_at >= TARGETS_SECONDS:
            yield from self._read_targets()
            self._read_at = clock
        return positions

    def distrust(self) -> None:
        """Read all settings again at the next look, after a failure."""
        self._read_at = -math.inf

    def record_text_fields(self) -> Flow[None]:
        """Record the text fields that a document has shown since the last call."""
        if self.judge is not None:
            for name in self.judge.take_shown():
                target = self.judge.targets[name]
                self.judge.targets[name] = yield from record_text_fields(self._context, name, target)

    def close(self) -> Flow[None]:
        """Stop the processes that compute fingerprints."""
        if self._pool is not None:
            yield Compute(self._pool.close)

    def _read_targets(self) -> Flow[None]:
        targets = yield from find_targets(self._context, self._index, self._options.text_field, dry_run=False)
        before = self._computed
        scheme, passages = self._computed = scheme_of(targets), has_passages(targets)
        if self._pool is None or self._computed != before:
            yield from self.close()
            self._pool = FingerprintPool(scheme, workers=self._options.workers, passages=passages)
        self.judge = Judge(self._context.prefix, targets, self._pool)


def _purpose(target: Target) -> str:
    """Return what decides which fields the documents of an index need, as a digest."""
    settings = target.settings
    words = [settings.scheme.to_dict(), settings.value, list(target.text_fields)]
    if settings.passages is not None:
        words.append("passages")
    return xxhash.xxh3_64_hexdigest(json.dumps(words, sort_keys=True).encode())
