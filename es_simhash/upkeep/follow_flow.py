"""
Follows an index: reads what changed, gives it fingerprints, decides its groups, and waits for more.

The order of the work is here; the ``follow_*`` modules have the rest: ``follow_lease_flow`` (who may work),
``follow_changes_flow`` (what is followed, what is left to read, fingerprints), ``follow_regroup_flow`` (when groups are
decided).
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from es_simhash.errors import InvalidInputError, LeaseError, shorten
from es_simhash.mapping.context import Context
from es_simhash.mapping.shards_flow import Shard, reads_primaries
from es_simhash.transport.names import Index, check_index, index_key, local_names
from es_simhash.transport.protocol import Compute, Emit, Flow, Wait
from es_simhash.transport.retry_flow import Patience, refresh
from es_simhash.upkeep.follow_changes_flow import Changes, Place, Places, Subject
from es_simhash.upkeep.follow_lease_flow import Lease, LeaseLostError
from es_simhash.upkeep.follow_options import FollowOptions, FollowReport, FollowState, Tally, find_outage
from es_simhash.upkeep.follow_regroup_flow import Regroup

_SHARE_OF_LEASE = 1 / 3


def follow(context: Context, index: Index, options: FollowOptions) -> Flow[None]:
    """
    Give whatever arrives in *index* its fingerprint and its group; emit a :class:`FollowReport` after every step.

    It ends when the caller wants no more, or, with ``once``, when everything is done that was written before.
    Then the position is recorded and the lease given back. Raises LeaseError if another follower has the lease
    and ``wait`` is ``False``, or the lease cannot be written; InvalidInputError for an index on another cluster;
    MappingError if our fields are mapped wrongly, or are lacking and no text field is named.
    """
    if local_names(index) != index_key(check_index(index)).split(","):
        raise InvalidInputError(
            f"index {shorten(index_key(index))} is on another cluster: follow it with a client of that cluster"
        )
    if options.state_index in local_names(index):
        raise InvalidInputError(f"{shorten(options.state_index)} is followed: name another index as the state index")
    follower = _Follower(context, index, options)
    try:
        yield from follower.run()
    finally:
        yield from follower.close()


class _Follower:
    """The loop of one follower."""

    def __init__(self, context: Context, index: Index, options: FollowOptions) -> None:
        self._context = context
        self._index = index
        self._options = options
        self._lease = Lease(options.state_index, index, context.prefix, options.lease_seconds)
        self._subject = Subject(context, index, options)
        self._places = Places()
        self._tally = Tally()
        self._regroup = Regroup(context, index, options, self._lease, self._tally)
        self._changes = Changes(context.prefix, self._tally, batch=options.batch, memory_bytes=options.memory_bytes)
        self._verified_at: float | None = None
        self._clock = self._caught_up_at = 0.0
        self._has_begun = False
        # With ``once``: the last operations that were there at the first look.
        self._goal: dict[Shard, int] | None = None

    def run(self) -> Flow[None]:
        """Work until nothing is wanted any more."""
        self._clock = self._caught_up_at = yield Compute(time.monotonic)
        patience = Patience()
        is_done = False
        while not is_done:
            try:
                is_done = yield from self._step()
            except LeaseLostError:
                self._refuse_to_wait()
            except Exception as error:
                kind = find_outage(error, has_begun=self._has_begun)
                if kind is None:
                    raise
                self._tally.errors[kind] += 1
                self._tally.problem = str(error)
                self._subject.distrust()
                self._clock = yield Compute(time.monotonic)
                yield Emit(self._report("retrying"))
                yield patience.wait()
            else:
                patience.renew()
        self._clock = yield Compute(time.monotonic)
        yield Emit(self._report("done"))

    def close(self) -> Flow[None]:
        """Record the position, and give the lease back; if that fails, the lease ends by itself."""
        try:
            self._note_position()
            yield from self._lease.release()
        except Exception:  # noqa: BLE001 -- what ended the run matters more
            self._lease.is_held = False
        finally:
            yield from self._subject.close()

    def _step(self) -> Flow[bool]:
        """Take the lease, or do a round of work; return whether everything is done."""
        if not self._has_begun:
            # What only the user can change is said before the lease is waited for.
            yield from self._subject.check()
            self._has_begun = True
        if not self._lease.is_held:
            yield from self._stand_by()
            return False
        yield from self._round()
        self._clock = yield Compute(time.monotonic)
        if self._is_done():
            return True
        if not self._options.once:
            yield Emit(self._report("waiting"))
            yield Wait(min(self._pause, self._regroup.seconds_left(self._clock)))
        return False

    @property
    def _pause(self) -> float:
        """How long to wait where nothing is to be done; the holder of a lease must show in time that it lives."""
        return min(self._options.interval, self._options.lease_seconds * _SHARE_OF_LEASE)

    def _stand_by(self) -> Flow[None]:
        """Look at the lease; take it over if it is free."""
        if (yield from self._lease.take()):
            self._places.load(self._lease.position.get("places"))
            self._regroup.load(self._lease.position.get("groups", {}))
            return
        self._refuse_to_wait()
        self._tally.problem = f"{self._lease.holder} follows {index_key(self._index)}"
        self._clock = yield Compute(time.monotonic)
        yield Emit(self._report("standby"))
        yield Wait(self._pause)

    def _refuse_to_wait(self) -> None:
        if not self._options.wait:
            raise LeaseError(
                f"{index_key(self._index)} is followed already, by {self._lease.holder}: stop that follower, or wait "
                "for its lease",
                kind="held",
            )

    def _round(self) -> Flow[None]:
        """Read what changed up to now, then decide groups, then read a share again."""
        begun = yield Compute(time.monotonic)
        yield from self._look(begun)
        behind = self._places.behind
        if behind:
            yield Emit(self._report("reading"))
            yield from _read(self._context, sorted({each.shard.index for each in behind}), self, behind)
        yield from self._verify(begun)
        clock = yield Compute(time.monotonic)
        is_quiet = not behind or (self._options.once and self._has_reached_goal())
        if self._regroup.is_due(clock, is_quiet=is_quiet):
            yield Emit(self._report("grouping"))
            yield from self._regroup.carry_out(lambda: self._report("grouping"))
        if not self._regroup.is_pending:
            self._caught_up_at = begun
        self._note_position()
        if behind:
            yield from self._lease.renew()
        else:
            yield from self._lease.renew_if_due()

    def _look(self, clock: float) -> Flow[None]:
        """Learn how many operations each shard has, and what its documents must carry."""
        positions = yield from self._subject.look(clock)
        self._regroup.note_targets(self._subject.targets)
        self._places.look(positions, self._subject.purposes)
        if self._options.once and self._goal is None:
            self._goal = {each.shard: each.position.largest for each in self._places}

    def read_place(self, place: Place) -> Flow[None]:
        """Read one shard up to its checkpoint, and repair its documents."""
        last = place.position.checkpoint
        while place.is_behind:
            page_last = yield from self._repair(place, place.read + 1, last, is_change=True)
            place.advance(page_last)
            self._note_position()
            yield from self._lease.renew_if_due()
            self._clock = yield Compute(time.monotonic)
            yield Emit(self._report("reading"))

    def _repair(self, place: Place, first: int, last: int, *, is_change: bool) -> Flow[int]:
        """Read a page of operations, and write what its documents lack; return the last operation of the page."""
        judge = self._subject.judge
        if judge is None:
            raise RuntimeError("documents are read before it is known what they need")
        page = yield from self._changes.read(place, judge, first, last)
        yield from self._lease.renew_if_due()
        before = self._tally.written
        yield from self._changes.repair(place, judge, page.hits)
        ids = [hit["_id"] for hit in page.hits]
        if is_change:
            self._tally.read += len(page.hits)
            self._regroup.add(ids, may_lack=page.replaced > 0)
        else:
            self._tally.verified += len(page.hits)
            if self._tally.written > before:
                self._regroup.add(ids, may_lack=False)
        yield from self._subject.record_text_fields()
        return page.last

    def _verify(self, clock: float) -> Flow[None]:
        """Read the share again that is due by now, a page of each shard at most."""
        seconds = 0.0 if self._verified_at is None else clock - self._verified_at
        self._verified_at = clock
        if not self._options.verify_share:
            return
        for place in self._places:
            due = place.owe(self._options.verify_share, seconds)
            if due > place.verified:
                place.verify((yield from self._repair(place, place.verified + 1, due, is_change=False)))

    def _has_reached_goal(self) -> bool:
        goal = self._goal or {}
        return all(each.read >= goal.get(each.shard, each.read) for each in self._places)

    def _is_done(self) -> bool:
        return self._options.once and self._has_reached_goal() and not self._regroup.is_pending

    def _note_position(self) -> None:
        self._lease.position = {"places": self._places.to_dict(), "groups": self._regroup.to_dict()}

    def _report(self, state: FollowState) -> FollowReport:
        return self._tally.report(
            state,
            lag_operations=self._places.lag,
            lag_seconds=self._clock - self._caught_up_at,
            has_lease=self._lease.is_held,
        )


@reads_primaries
def _read(_context: Context, names: Index, follower: _Follower, behind: Sequence[Place]) -> Flow[None]:
    """Read all that is new in the shards *behind* of the indices with these *names*."""
    yield from refresh(names)
    for place in behind:
        yield from follower.read_place(place)
