"""Follows an index: the order of the work, and when groups are decided, some documents at a time."""

from __future__ import annotations

import math
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from itertools import islice
from typing import Any

from es_simhash.errors import InvalidInputError, LeaseError, MappingError, shorten
from es_simhash.groups.grouping_request import GroupingRequest, Resources
from es_simhash.groups.reconcile import Reconciled, reconcile
from es_simhash.mapping.port import Port
from es_simhash.mapping.rule import Grouping, target_of
from es_simhash.mapping.shards import Shard, reading_primaries
from es_simhash.transport.buckets import count_documents
from es_simhash.transport.protocol import Index, check_index, index_key, local_names
from es_simhash.transport.retry import Patience, refresh
from es_simhash.upkeep.follow_changes import Changes, FollowedIndices, Place, Places
from es_simhash.upkeep.follow_lease import Lease, LeaseLostError
from es_simhash.upkeep.follow_options import FollowOptions, FollowReport, FollowState, Tally, find_outage
from es_simhash.upkeep.pausing import Pausing, report, stream_reports
from es_simhash.upkeep.put_fields import Target

_SHARE_OF_LEASE = 1 / 3


async def follow(server: Port, index: Index, options: FollowOptions) -> AsyncGenerator[Sequence[FollowReport], None]:
    """
    Give whatever arrives in *index* its fingerprint and its group; emit a :class:`FollowReport` after every step.
    It ends when the caller wants no more, or, with ``once``, when everything is done that was written before. Then the
    position is recorded and the lease given back. Raises LeaseError if another follower has the lease and ``wait`` is
    ``False``, or the lease cannot be written; InvalidInputError for an index on another cluster; MappingError if our
    fields are mapped wrongly, or are lacking and no text field is named.
    """
    if local_names(index) != index_key(check_index(index)).split(","):
        raise InvalidInputError(
            f"index {shorten(index_key(index))} is on another cluster: follow it with a client of that cluster"
        )
    if options.state_index in local_names(index):
        raise InvalidInputError(f"{shorten(options.state_index)} is followed: name another index as the state index")
    async with aclosing(stream_reports(_Follower(server.prefix, index, options).run(server))) as reports:
        async for each in reports:
            yield [each]


class _Follower:
    def __init__(self, prefix: str, index: Index, options: FollowOptions) -> None:
        self._index = index
        self._options = options
        self._lease = Lease(options.state_index, index, prefix, options.lease_seconds)
        self._indices = FollowedIndices(index, options)
        self._places = Places()
        self._tally = Tally()
        self._regroup = Regroup(index, options, self._lease, self._tally)
        self._changes = Changes(self._tally, batch=options.batch, memory_bytes=options.memory_bytes)
        self._verified_at: float | None = None
        self._clock = self._caught_up_at = 0.0
        self._has_begun = self._is_done = False
        # With ``once``: the last operations that were there at the first look.
        self._goal: dict[Shard, int] | None = None

    async def run(self, server: Port) -> None:
        try:
            await self._follow(server)
        finally:
            await self._close(server)

    async def _follow(self, server: Port) -> None:
        self._clock = self._caught_up_at = await server.compute(time.monotonic)
        patience = Patience()
        while not self._is_done:
            try:
                await self._step(server)
            except LeaseLostError:
                self._refuse_to_wait()
            except Exception as error:
                kind = find_outage(error, has_begun=self._has_begun)
                if kind is None:
                    raise
                self._tally.errors[kind] += 1
                self._tally.problem = str(error)
                self._indices.distrust()
                self._clock = await server.compute(time.monotonic)
                await self._report("retrying")
                await patience.wait(server)
            else:
                patience.renew()
        self._clock = await server.compute(time.monotonic)
        await self._report("done")

    async def _close(self, server: Port) -> None:
        """Record the position, and give the lease back; if that fails, the lease ends by itself."""
        try:
            self._note_position()
            await self._lease.release(server)
        except Exception:  # noqa: BLE001 -- what ended the run matters more
            self._lease.is_held = False
        finally:
            await self._indices.close(server)

    async def _step(self, server: Port) -> None:
        """Take the lease, or do a round of work; note when everything is done."""
        if not self._has_begun:
            # What only the user can change is said before the lease is waited for.
            await self._indices.check(server)
            self._has_begun = True
        if not self._lease.is_held:
            await self._stand_by(server)
            return
        await self._round(server)
        self._clock = await server.compute(time.monotonic)
        if self._options.once and self._has_reached_goal() and not self._regroup.is_pending:
            self._is_done = True
        elif not self._options.once:
            await self._report("waiting")
            await server.sleep(min(self._pause, self._regroup.seconds_left(self._clock)))

    @property
    def _pause(self) -> float:
        """How long to wait where nothing is to be done; the holder of a lease must show in time that it lives."""
        return min(self._options.interval, self._options.lease_seconds * _SHARE_OF_LEASE)

    async def _stand_by(self, server: Port) -> None:
        if await self._lease.take(server):
            self._places.load(self._lease.position.get("places"))
            self._regroup.load(self._lease.position.get("groups", {}))
            return
        self._refuse_to_wait()
        self._tally.problem = f"{self._lease.holder} follows {index_key(self._index)}"
        self._clock = await server.compute(time.monotonic)
        await self._report("standby")
        await server.sleep(self._pause)

    def _refuse_to_wait(self) -> None:
        if not self._options.wait:
            raise LeaseError(
                f"{index_key(self._index)} is followed already, by {self._lease.holder}: stop that follower, or wait "
                "for its lease",
                kind="held",
            )

    async def _round(self, server: Port) -> None:
        """Read what changed up to now, then decide groups, then read a share again."""
        begun = await server.compute(time.monotonic)
        await self._look(server, begun)
        behind = self._places.behind
        if behind:
            await self._report("reading")
            await self._read(server, behind)
        await self._verify(server, begun)
        clock = await server.compute(time.monotonic)
        is_quiet = not behind or (self._options.once and self._has_reached_goal())
        if self._regroup.is_due(clock, is_quiet=is_quiet):
            await self._report("grouping")
            await self._regroup.carry_out(server, lambda: self._report("grouping"))
        if not self._regroup.is_pending:
            self._caught_up_at = begun
        self._note_position()
        if behind:
            await self._lease.renew(server)
        else:
            await self._lease.renew_if_due(server)

    async def _look(self, server: Port, clock: float) -> None:
        """Learn how many operations each shard has, and what its documents must carry."""
        positions = await self._indices.look(server, clock)
        self._regroup.note_targets(self._indices.targets)
        self._places.look(positions, self._indices.purposes)
        if self._options.once and self._goal is None:
            self._goal = {each.shard: each.position.largest for each in self._places}

    async def _read(self, server: Port, behind: Sequence[Place]) -> None:
        names = sorted({each.shard.index for each in behind})
        server = await reading_primaries(server, names)
        await refresh(server, names)
        for place in behind:
            last = place.position.checkpoint
            while place.is_behind:
                place.advance(await self._repair(server, place, place.read + 1, last, is_change=True))
                self._note_position()
                await self._lease.renew_if_due(server)
                self._clock = await server.compute(time.monotonic)
                await self._report("reading")

    async def _repair(self, server: Port, place: Place, first: int, last: int, *, is_change: bool) -> int:
        """Read a page of operations, and write what its documents lack; return the last operation of the page."""
        judge = self._indices.judge
        if judge is None:
            raise RuntimeError("documents are read before it is known what they need")
        page = await self._changes.read(server, place, judge, first, last)
        await self._lease.renew_if_due(server)
        before = self._tally.sums["written"]
        await self._changes.repair(server, place, judge, page.hits)
        ids = [hit["_id"] for hit in page.hits]
        if is_change:
            self._tally.sums["read"] += len(page.hits)
            self._regroup.add(ids, may_lack=page.may_lack)
        else:
            self._tally.sums["verified"] += len(page.hits)
            if self._tally.sums["written"] > before:
                self._regroup.add(ids, may_lack=False)
        await self._indices.record_text_fields(server)
        return page.last

    async def _verify(self, server: Port, clock: float) -> None:
        """Read the share again that is due by now, a page of each shard at most."""
        seconds = 0.0 if self._verified_at is None else clock - self._verified_at
        self._verified_at = clock
        if not self._options.verify_share:
            return
        for place in self._places:
            due = place.owe(self._options.verify_share, seconds)
            if due > place.verified:
                place.verify(await self._repair(server, place, place.verified + 1, due, is_change=False))

    def _has_reached_goal(self) -> bool:
        goal = self._goal or {}
        return all(each.read >= goal.get(each.shard, each.read) for each in self._places)

    def _note_position(self) -> None:
        self._lease.position = {"places": self._places.to_dict(), "groups": self._regroup.to_dict()}

    async def _report(self, state: FollowState) -> None:
        seconds = self._clock - self._caught_up_at
        has_lease = self._lease.is_held
        await report(
            self._tally.report(state, lag_operations=self._places.lag, lag_seconds=seconds, has_lease=has_lease)
        )


# So many changed documents are judged at once; it takes some seconds.
FEW = 500
# More are not remembered: then all groups are judged.
MOST = 50_000
# To judge what one document may have touched takes as long as to judge so many of all documents.
COSTS = 4
# A mapping that cannot be grouped is looked at again after so many seconds.
REFUSED_SECONDS = 60.0
# While all groups are judged, one step may take long: the lease then lasts so many seconds.
LONG_SECONDS = 600.0


class Regroup:
    """
    Collects changed documents, and decides their groups by the rule that the index records; the *lease* is renewed.
    After changes only the groups are judged that these may have touched, for some documents at a time, so that reading
    continues between; all groups if that is less work. All are also judged at an interval, and, under the rule
    ``connected``, once nothing else is left to do: there a deleted document may have been the link between others,
    which touched groups do not show.
    """

    def __init__(self, index: Index, options: FollowOptions, lease: Lease, tally: Tally) -> None:
        self._index = index
        self._options = options
        self._lease = lease
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

    def is_due(self, clock: float, *, is_quiet: bool) -> bool:
        """Return whether groups are to be decided now; *is_quiet* says that nothing else is left to do."""
        if self._grouping is None or (clock < self._rests_until and not self._options.once):
            return False
        if self._proven_at is None:
            self._proven_at = clock
        is_old = clock - self._proven_at >= self._options.reconcile_seconds
        if self._is_unproven and (is_old or (is_quiet and self._grouping.rule == "connected")):
            self._is_all = True
        return self.is_pending

    async def carry_out(self, server: Port, tell: Callable[[], Awaitable[None]]) -> None:
        """
        Decide the groups of the documents noted, or all groups; *tell* of it before each request.
        Raises WritesRefusedError if the server takes no writes now; the groups are then still to be decided.
        """
        begun = await server.compute(time.monotonic)
        if len(self._ids) > FEW:
            documents, _ = await count_documents(server, self._index)
            self._is_all |= COSTS * len(self._ids) > documents
        is_all, ids = self._is_all, list(islice(self._ids, FEW))
        if is_all:
            await self._lease.renew(server, seconds=LONG_SECONDS)

        async def pause() -> None:
            await self._lease.renew_if_due(server)
            await tell()  # after which the caller may stop

        try:
            done = await reconcile(
                Pausing(server, pause),
                self._index,
                GroupingRequest(),
                ids=None if is_all else ids,
                may_lack=self._may_lack,
                if_grouped=True,
                resources=Resources(memory_bytes=self._options.memory_bytes),
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
        if is_all:
            await self._lease.renew(server)

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
