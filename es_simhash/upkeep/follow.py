"""
Follows an index: a loop over changes. What changed gets its fingerprint, then its group, and then the position is
written; so whoever goes on after a kill, or an outage, reads at most the last documents again.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any

from es_simhash.errors import InvalidInputError, MappingError, shorten
from es_simhash.groups.grouping_request import GroupingRequest
from es_simhash.groups.reconcile import Written, reconcile
from es_simhash.mapping.port import Port
from es_simhash.mapping.rule import Grouping
from es_simhash.mapping.shards import Shard, reading_primaries
from es_simhash.transport.buckets import count_documents
from es_simhash.transport.conversation import pause, refresh
from es_simhash.transport.protocol import Index, names_in
from es_simhash.upkeep.follow_changes import FollowedIndices, Places, PositionStore, read_page, repair
from es_simhash.upkeep.follow_options import FollowOptions, FollowReport, FollowState, Tally, find_outage
from es_simhash.upkeep.needed import Judgement

# Operations that are read, and of which groups are decided, in one step.
PAGE_DOCUMENTS = 500
# To decide the groups that one document may have touched takes as long as to decide those of so many of all documents;
# measured: 125 of 150,000, and 9 to 16 of 20,000, where all is done in seconds either way.
COST_DOCUMENTS = 100


async def follow(server: Port, index: Index, options: FollowOptions) -> AsyncGenerator[Sequence[FollowReport], None]:
    """
    Give whatever arrives in *index* its fingerprint and its group; emit a :class:`FollowReport` after every step.
    It ends when the caller wants no more, or, with ``once``, when everything is done that was written before.
    Raises InvalidInputError if the position cannot be written; MappingError if our fields are mapped wrongly, or are
    lacking and no text field is named.
    """
    if options.state_index in names_in(index):
        raise InvalidInputError(f"{shorten(options.state_index)} is followed: name another index as the state index")
    async with aclosing(_Follower(server.prefix, index, options).run(server)) as reports:
        async for report in reports:
            yield [report]


class _Follower:
    """
    *grouping*: what the indices record, ``None`` for nothing; *decided_by*: the one by which all groups are decided, up
    to the places. *may_lack*: documents were deleted, so others may have lost their canonical. *written*: the versions
    that this follower wrote in the last round, so that their operations change nothing.
    """

    def __init__(self, prefix: str, index: Index, options: FollowOptions) -> None:
        self._index = index
        self._options = options
        self._store = PositionStore(options.state_index, index, prefix)
        self._indices = FollowedIndices(index, options)
        self._places: Places | None = None
        self._tally = Tally()
        self._caught_up_at = 0.0
        self._has_begun = self._is_last = self._is_done = False
        # With ``once``: the last operations that were there at the first look.
        self._goal: dict[Shard, int] | None = None
        self._grouping: dict[str, Any] | None = None
        self._decided_by: dict[str, Any] | None = None
        self._may_lack = False
        self._written: Written = {}

    @property
    def _is_decided(self) -> bool:
        return self._decided_by == self._grouping

    async def run(self, server: Port) -> AsyncGenerator[FollowReport, None]:
        self._caught_up_at = await server.compute(time.monotonic)
        failures = 0
        while not self._is_done:
            try:
                async with aclosing(self._round(server)) as states:
                    async for state in states:
                        yield await self._report(server, state)
            except Exception as error:
                kind = find_outage(error, has_begun=self._has_begun)
                if kind is None or (kind == "blocked" and self._options.once):
                    raise
                self._tally.errors[kind] += 1
                self._tally.problem = str(error)
                self._indices.distrust()
                yield await self._report(server, "retrying")
                self._places = None
                await pause(server, failures)
                failures += 1
            else:
                failures = 0
        yield await self._report(server, "done")

    async def _round(self, server: Port) -> AsyncGenerator[FollowState, None]:
        """Do all that is to be done up to now; then wait, unless this is done once."""
        begun, wrote = await server.compute(time.monotonic), self._tally.writes
        places = await self._look(server, begun)
        known, self._written = self._written, {}
        if names := sorted({place.shard.index for place in places.behind}):
            primaries = await reading_primaries(server, names)
            await refresh(primaries, names)
        while places.behind:
            yield "reading"
            ids = await self._read(primaries, places, known)
            if (ids or self._may_lack) and self._grouping and self._is_decided:
                yield "grouping"
                await self._group(server, ids)
            await self._keep_position(server, places)
        if self._grouping and (self._may_lack or not self._is_decided):
            yield "grouping"
            await self._group(server, [] if self._is_decided else None)
            await self._keep_position(server, places)
        if self._is_decided:
            self._caught_up_at = begun
        if self._options.once:
            goal = self._goal or {}
            is_reached = all(place.read >= goal.get(place.shard, place.read) for place in places)
            # One round more, which reads what this one wrote, so that the next follower need not.
            self._is_done = is_reached and (self._is_last or wrote == self._tally.writes)
            self._is_last = is_reached
        else:
            yield "waiting"
            await server.sleep(self._options.interval)

    async def _look(self, server: Port, clock: float) -> Places:
        """
        Learn how many operations each shard has, what its documents must carry, and how they are grouped; at first, and
        after an outage, also how far everything was done.
        """
        positions = await self._indices.look(server, clock)
        self._has_begun = True
        if (places := self._places) is None:
            kept = await self._store.read(server)
            places = self._places = Places(kept.get("places"))
            self._decided_by = kept.get("decided_by")
        self._may_lack |= places.look(positions, self._indices.purposes)
        targets = self._indices.judge.targets.values()
        groupings = [found for target in targets if (found := Grouping.read(target.settings)) is not None]
        self._grouping = groupings[0].to_dict() if groupings else None
        if self._grouping is None:
            self._decided_by = None
        elif (lag := places.lag) > PAGE_DOCUMENTS:
            documents, _ = await count_documents(server, self._index)
            if COST_DOCUMENTS * lag > documents:
                self._decided_by = None
        if self._options.once and self._goal is None:
            self._goal = {place.shard: place.position.largest for place in places}
        return places

    async def _read(self, server: Port, places: Places, known: Written) -> list[str]:
        """
        Read a page of operations, from as many shards as it takes, and write what its documents lack; return the ids of
        those that changed. What has a *known* version was written by this follower.
        """
        judge, changed, left = self._indices.judge, dict[str, None](), PAGE_DOCUMENTS
        for place in places.behind:
            hits, may_lack = await read_page(server, place, judge, left)
            self._may_lack |= may_lack
            judged: list[Judgement] = await server.compute(judge.judge, hits) if hits else []
            for hit, judgement in zip(hits, judged, strict=True):
                version = hit["_seq_no"], hit["_primary_term"]
                # Another program may have changed the text just before the follower wrote the group.
                if judgement.operation is not None or known.get(judgement.place) != version:
                    changed[hit["_id"]] = None
            await repair(server, judged, self._tally, self._written)
            left -= len(hits)
            if left <= 0:
                break
        self._tally.sums["read"] += len(changed)
        return list(changed)

    async def _group(self, server: Port, ids: list[str] | None) -> None:
        """
        Decide the groups that the documents *ids* may have touched, or, without *ids*, those of all documents.
        Raises WritesRefusedError if the server takes no writes now.
        """
        grouping = self._grouping
        written = None if ids is None else self._written
        try:
            done = await reconcile(
                server,
                self._index,
                GroupingRequest(),
                ids=ids,
                may_lack=self._may_lack,
                if_grouped=True,
                written=written,
            )
        except (MappingError, InvalidInputError) as error:
            # Fingerprints can be written, but not groups: their fields are wrong, or the grouping is being changed.
            if self._options.once:
                raise
            self._tally.errors["grouping"] += 1
            self._tally.problem = str(error)
            self._decided_by = None
            return
        self._tally.sums["regrouped"] += done.changed
        for failure in done.failures:
            self._tally.fail(failure)
        self._decided_by, self._may_lack = grouping, False

    async def _keep_position(self, server: Port, places: Places) -> None:
        """Write how far everything is done; of groups, if they are decided up to there."""
        await self._store.write(server, {"places": places.to_list(), "decided_by": self._decided_by})

    async def _report(self, server: Port, state: FollowState) -> FollowReport:
        seconds = await server.compute(time.monotonic) - self._caught_up_at
        lag = 0 if self._places is None else self._places.lag
        return self._tally.report(state, lag_operations=lag, lag_seconds=seconds)
