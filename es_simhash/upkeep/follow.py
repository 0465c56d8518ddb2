"""Follows an index: the order of the work, and when groups are decided, some documents at a time."""

from __future__ import annotations

import math
import time
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import aclosing
from itertools import islice
from typing import Any

from es_simhash.errors import InvalidInputError, MappingError, shorten
from es_simhash.groups.grouping_request import GroupingRequest
from es_simhash.groups.reconcile import Reconciled, reconcile
from es_simhash.mapping.port import Port
from es_simhash.mapping.rule import Grouping, target_of
from es_simhash.mapping.shards import Shard, reading_primaries
from es_simhash.transport.buckets import count_documents
from es_simhash.transport.conversation import pause, refresh
from es_simhash.transport.protocol import Index, names_in
from es_simhash.upkeep.follow_changes import Changes, FollowedIndices, Place, Places, PositionStore
from es_simhash.upkeep.follow_options import FollowOptions, FollowReport, FollowState, Tally, find_outage
from es_simhash.upkeep.put_fields import Target

# While many pages are read, the position is written once in so many seconds.
POSITION_SECONDS = 10.0


async def follow(server: Port, index: Index, options: FollowOptions) -> AsyncGenerator[Sequence[FollowReport], None]:
    """
    Give whatever arrives in *index* its fingerprint and its group; emit a :class:`FollowReport` after every step.
    It ends when the caller wants no more, or, with ``once``, when everything is done that was written before. Then the
    position is recorded. Raises InvalidInputError if the position cannot be written; MappingError if our fields are
    mapped wrongly, or are lacking and no text field is named.
    """
    if options.state_index in names_in(index):
        raise InvalidInputError(f"{shorten(options.state_index)} is followed: name another index as the state index")
    async with aclosing(_Follower(server.prefix, index, options).run(server)) as reports:
        async for report in reports:
            yield [report]


class _Follower:
    def __init__(self, prefix: str, index: Index, options: FollowOptions) -> None:
        self._options = options
        self._store = PositionStore(options.state_index, index, prefix)
        self._indices = FollowedIndices(index, options)
        self._places = Places()
        self._tally = Tally()
        self._regroup = Regroup(index, options, self._tally)
        self._changes = Changes(self._tally)
        self._caught_up_at = 0.0
        self._has_begun = self._has_position = self._is_done = False
        # With ``once``: the last operations that were there at the first look.
        self._goal: dict[Shard, int] | None = None

    async def run(self, server: Port) -> AsyncGenerator[FollowReport, None]:
        self._caught_up_at = await server.compute(time.monotonic)
        failures = 0
        try:
            while not self._is_done:
                try:
                    async with aclosing(self._step(server)) as states:
                        async for state in states:
                            yield await self._report(server, state)
                except Exception as error:
                    kind = find_outage(error, has_begun=self._has_begun)
                    if kind is None:
                        raise
                    self._tally.errors[kind] += 1
                    self._tally.problem = str(error)
                    self._indices.distrust()
                    yield await self._report(server, "retrying")
                    await pause(server, failures)
                    failures += 1
                else:
                    failures = 0
            yield await self._report(server, "done")
        finally:
            await self._close(server)

    async def _close(self, server: Port) -> None:
        """Record the position; if that fails, the next follower reads some operations again."""
        try:
            if self._has_position:
                await self._store.write(server, self._position())
        except Exception:  # noqa: BLE001 -- what ended the run matters more
            self._has_position = False
        finally:
            await self._indices.close(server)

    async def _step(self, server: Port) -> AsyncGenerator[FollowState, None]:
        """Do a round of work, and wait; note when everything is done."""
        if not self._has_begun:
            await self._indices.check(server)
            self._has_begun = True
        if not self._has_position:
            position = await self._store.read(server)
            self._places.load(position.get("places"))
            self._regroup.load(position.get("groups", {}))
            self._has_position = True
        async with aclosing(self._round(server)) as states:
            async for state in states:
                yield state
        if self._options.once and self._has_reached_goal() and not self._regroup.is_pending:
            self._is_done = True
        elif not self._options.once:
            yield "waiting"
            clock = await server.compute(time.monotonic)
            await server.sleep(min(self._options.interval, self._regroup.seconds_left(clock)))

    async def _round(self, server: Port) -> AsyncGenerator[FollowState, None]:
        """Read what changed up to now, then decide groups, then read a share again."""
        begun = await server.compute(time.monotonic)
        await self._look(server, begun)
        behind = self._places.behind
        if behind:
            yield "reading"
            names = sorted({place.shard.index for place in behind})
            primaries = await reading_primaries(server, names)
            await refresh(primaries, names)
            for place in behind:
                last = place.position.checkpoint
                while place.is_behind:
                    place.read = await self._repair(primaries, place, last)
                    await self._store.write(server, self._position(), seconds=POSITION_SECONDS)
                    yield "reading"
        clock = await server.compute(time.monotonic)
        if self._regroup.is_due(clock):
            yield "grouping"
            await self._regroup.carry_out(server)
        if not self._regroup.is_pending:
            self._caught_up_at = begun
        await self._store.write(server, self._position())

    async def _look(self, server: Port, clock: float) -> None:
        """Learn how many operations each shard has, and what its documents must carry."""
        positions = await self._indices.look(server, clock)
        self._regroup.note_targets(self._indices.targets)
        self._places.look(positions, self._indices.purposes)
        if self._options.once and self._goal is None:
            self._goal = {each.shard: each.position.largest for each in self._places}

    async def _repair(self, server: Port, place: Place, last: int) -> int:
        """Read a page of operations, and write what its documents lack; return the last operation of the page."""
        judge = self._indices.judge
        if judge is None:
            raise RuntimeError("documents are read before it is known what they need")
        page = await self._changes.read(server, place, judge, last)
        await self._changes.repair(server, judge, page.hits)
        self._tally.sums["read"] += len(page.hits)
        self._regroup.add([hit["_id"] for hit in page.hits], may_lack=page.may_lack)
        await self._indices.record_text_fields(server)
        return page.last

    def _has_reached_goal(self) -> bool:
        goal = self._goal or {}
        return all(each.read >= goal.get(each.shard, each.read) for each in self._places)

    def _position(self) -> dict[str, Any]:
        return {"places": self._places.to_dict(), "groups": self._regroup.to_dict()}

    async def _report(self, server: Port, state: FollowState) -> FollowReport:
        seconds = await server.compute(time.monotonic) - self._caught_up_at
        return self._tally.report(state, lag_operations=self._places.lag, lag_seconds=seconds)


# So many changed documents are judged at once; it takes some seconds.
FEW = 500
# More are not remembered: then all groups are judged.
MOST = 50_000
# To judge what one document may have touched takes as long as to judge so many of all documents.
COSTS = 4
# A mapping that cannot be grouped is looked at again after so many seconds.
REFUSED_SECONDS = 60.0


class Regroup:
    """
    Collects changed documents, and decides their groups by the rule that the index records.
    After changes only the groups are judged that these may have touched, for some documents at a time, so that reading
    continues between; all groups if that is less work. All are also judged at an interval.
    """

    def __init__(self, index: Index, options: FollowOptions, tally: Tally) -> None:
        self._index = index
        self._options = options
        self._tally = tally
        self._grouping: Grouping | None = None
        self._ids: dict[str, None] = {}
        self._may_lack = False
        self._is_all = False
        # Whether something changed since all groups were judged.
        self._is_unproven = False
        self._rests_until = 0.0
        self._proven_at: float | None = None

    @property
    def is_pending(self) -> bool:
        return self._grouping is not None and bool(self._ids or self._may_lack or self._is_all)

    def load(self, recorded: Any) -> None:
        """Take over what :meth:`to_dict` made: changed documents are not kept, so after them all groups are judged."""
        recorded = recorded if isinstance(recorded, Mapping) else {"pending": True}
        self._ids.clear()
        self._may_lack = False
        self._is_all = bool(recorded.get("pending"))
        self._is_unproven = bool(recorded.get("unproven"))

    def to_dict(self) -> dict[str, Any]:
        return {"pending": bool(self._ids or self._may_lack or self._is_all), "unproven": self._is_unproven}

    def note_targets(self, targets: Mapping[str, Target]) -> None:
        groupings = [found for each in targets.values() if (found := target_of(each.settings)) is not None]
        grouping = groupings[0] if groupings else None
        if grouping != self._grouping and self._grouping is not None:
            self._is_all = True
        self._grouping = grouping

    def add(self, ids: Iterable[str], *, may_lack: bool) -> None:
        """Note documents that changed, and whether others may lack their canonical."""
        self._may_lack |= may_lack
        if not self._is_all:
            self._ids.update(dict.fromkeys(ids))
        self._is_unproven |= bool(self._ids or self._may_lack or self._is_all)
        if len(self._ids) > MOST:
            self._ids.clear()
            self._is_all = True

    def seconds_left(self, clock: float) -> float:
        """Return how long it is until groups are to be decided again; infinite where none are pending."""
        return max(0.0, self._rests_until - clock) if self.is_pending else math.inf

    def is_due(self, clock: float) -> bool:
        """Return whether groups are to be decided now."""
        if self._grouping is None or (clock < self._rests_until and not self._options.once):
            return False
        if self._proven_at is None:
            self._proven_at = clock
        is_old = clock - self._proven_at >= self._options.reconcile_seconds
        if self._is_unproven and is_old:
            self._is_all = True
        return self.is_pending

    async def carry_out(self, server: Port) -> None:
        """
        Decide the groups of the documents noted, or all groups.
        Raises WritesRefusedError if the server takes no writes now; the groups are then still to be decided.
        """
        begun = await server.compute(time.monotonic)
        if len(self._ids) > FEW:
            documents, _ = await count_documents(server, self._index)
            self._is_all |= COSTS * len(self._ids) > documents
        is_all, ids = self._is_all, list(islice(self._ids, FEW))
        try:
            done = await reconcile(
                server,
                self._index,
                GroupingRequest(),
                ids=None if is_all else ids,
                may_lack=self._may_lack,
                if_grouped=True,
            )
        except (MappingError, InvalidInputError) as error:
            # Fingerprints can be written, but not groups: their fields are wrong, or the grouping is being changed.
            if self._options.once:
                raise
            self._tally.errors["grouping"] += 1
            self._tally.problem = str(error)
            self._is_all = True
            self._rests_until = begun + REFUSED_SECONDS
        else:
            self._settle(done, None if is_all else ids)
            ended = await server.compute(time.monotonic)
            self._rests_until = 2 * ended - begun  # reading has half of the time
            if is_all:
                self._proven_at = ended

    def _settle(self, done: Reconciled, ids: Sequence[str] | None) -> None:
        """Note that the groups that *ids* may have touched were decided, or all groups."""
        self._tally.sums["regrouped"] += done.changed
        for failure in done.failures:
            self._tally.fail(failure)
        if not done.is_settled and not done.failures and not self._options.once:
            return  # others kept changing documents: all that was noted is judged once more
        self._may_lack = False
        for id_ in ids or ():
            del self._ids[id_]
        if ids is None:
            self._ids.clear()
            self._is_all = self._is_unproven = False
