"""
Follows an index: a loop over changes. What changed gets its fingerprint, then its group, and then the position is
written; so whoever goes on after a kill reads at most the last documents again.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from itertools import islice
from typing import Any

from es_simhash.errors import InvalidInputError, MappingError, shorten
from es_simhash.groups.grouping_request import GroupingRequest
from es_simhash.groups.reconcile import Written, reconcile
from es_simhash.mapping.fields import now
from es_simhash.mapping.port import Port
from es_simhash.mapping.rule import Grouping, target_of
from es_simhash.mapping.shards import Shard, reading_primaries
from es_simhash.transport.buckets import count_documents
from es_simhash.transport.conversation import pause, refresh
from es_simhash.transport.protocol import Index, names_in
from es_simhash.upkeep.follow_changes import FollowedIndices, Place, Places, PositionStore, read_page, repair
from es_simhash.upkeep.follow_options import FollowOptions, FollowReport, FollowState, Tally, find_outage
from es_simhash.upkeep.needed import Judgement

# Groups are decided for so many changed documents at a time; then what arrived meanwhile is read.
GROUPED_DOCUMENTS = 500
# To decide the groups that one document may have touched takes as long as to decide those of so many of all documents.
COST_DOCUMENTS = 4


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
    *ids* are changed documents whose groups are not decided yet, *may_lack*: others may have lost their canonical,
    *is_all*: the groups of all documents are to be decided, because very many changed, or the rule did. *written*: the
    versions that got their group from this follower, so that their operations change nothing.
    """

    def __init__(self, prefix: str, index: Index, options: FollowOptions) -> None:
        self._index = index
        self._options = options
        self._store = PositionStore(options.state_index, index, prefix)
        self._indices = FollowedIndices(index, options)
        self._places = Places()
        self._tally = Tally()
        self._caught_up_at = 0.0
        self._has_begun = self._has_position = self._is_last = self._is_done = False
        # With ``once``: the last operations that were there at the first look.
        self._goal: dict[Shard, int] | None = None
        # The rule that the indices record, if any; ``None`` before the first look.
        self._groupings: list[Grouping] | None = None
        self._ids: dict[str, None] = {}
        self._may_lack = self._is_all = False
        # How far was read when so many of these documents were still to go until their groups are decided.
        self._mark: list[dict[str, Any]] | None = None
        self._to_mark = 0
        self._written: Written = {}

    @property
    def _is_pending(self) -> bool:
        return bool(self._groupings) and bool(self._ids or self._may_lack or self._is_all)

    async def run(self, server: Port) -> AsyncGenerator[FollowReport, None]:
        self._caught_up_at = await server.compute(time.monotonic)
        failures = 0
        try:
            while not self._is_done:
                try:
                    async with aclosing(self._round(server)) as states:
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
            await self._indices.close(server)

    async def _round(self, server: Port) -> AsyncGenerator[FollowState, None]:
        """Do all that is to be done up to now; then wait, unless this is done once."""
        begun, wrote = await server.compute(time.monotonic), self._tally.writes
        await self._look(server, begun)
        if behind := self._places.behind:
            yield "reading"
            names = sorted({place.shard.index for place in behind})
            primaries = await reading_primaries(server, names)
            await refresh(primaries, names)
            if self._groupings and (lag := self._places.lag) > GROUPED_DOCUMENTS:
                documents, _ = await count_documents(server, self._index)
                self._is_all |= COST_DOCUMENTS * (lag + len(self._ids)) > documents
            for place in behind:
                last = place.position.checkpoint
                while place.is_behind:
                    await self._repair(primaries, place, last)
                    await self._keep_position(server)
                    yield "reading"
        is_refused = False
        if self._is_pending:
            yield "grouping"
            is_refused = not await self._group(server)
            await self._keep_position(server)
        if self._is_pending and not is_refused:
            return  # what changed meanwhile gets its fingerprint before the next groups are decided
        if not self._is_pending:
            self._caught_up_at = begun
        if self._options.once:
            goal = self._goal or {}
            is_reached = all(place.read >= goal.get(place.shard, place.read) for place in self._places)
            # One round more, which reads what this one wrote, so that the next follower need not.
            self._is_done = is_reached and (self._is_last or wrote == self._tally.writes)
            self._is_last = is_reached
        else:
            yield "waiting"
            await server.sleep(self._options.interval)

    async def _look(self, server: Port, clock: float) -> None:
        """
        Learn how many operations each shard has, what its documents must carry, and how they are grouped; at first also
        how far the last follower came.
        """
        positions = await self._indices.look(server, clock)
        self._has_begun = True
        if not self._has_position:
            position = await self._store.read(server)
            self._places.load(position.get("places"))
            self._is_all = position.get("groups") == "all"
            self._has_position = True
        self._places.look(positions, self._indices.purposes)
        targets = self._indices.judge.targets.values()
        groupings = [found for target in targets if (found := target_of(target.settings)) is not None][:1]
        self._is_all |= self._groupings not in (None, groupings)
        self._groupings = groupings
        if self._options.once and self._goal is None:
            self._goal = {place.shard: place.position.largest for place in self._places}

    async def _repair(self, server: Port, place: Place, last: int) -> None:
        """Read a page of operations, and write what its documents lack."""
        judge = self._indices.judge
        page = await read_page(server, place, judge, last)
        self._may_lack |= page.may_lack
        changed = []
        for hit in page.changed:
            version = hit["_seq_no"], hit["_primary_term"]
            if self._written.pop((hit["_index"], hit["_id"]), None) != version:
                changed.append(hit["_id"])
        hits = page.hits
        judged: list[Judgement] = await server.compute(judge.judge, hits, await server.compute(now)) if hits else []
        # Another program may have changed the text just before the follower wrote the group.
        changed += [judgement.place.id for judgement in judged if judgement.operation is not None]
        # Before anything is written: what the follower wrote itself is passed over later.
        if self._groupings and not self._is_all:
            self._ids.update(dict.fromkeys(changed))
        await repair(server, place, judged, self._tally)
        self._tally.sums["read"] += len(set(changed))
        place.read = page.last
        await self._indices.record_text_fields(server)

    async def _group(self, server: Port) -> bool:
        """
        Decide the groups of all documents, or those that some changed ones may have touched; return whether it can be.
        Raises WritesRefusedError if the server takes no writes now; the groups are then still to be decided.
        """
        ids = list(self._ids) if self._is_all else list(islice(self._ids, GROUPED_DOCUMENTS))
        try:
            done = await reconcile(
                server,
                self._index,
                GroupingRequest(),
                ids=None if self._is_all else ids,
                may_lack=self._may_lack,
                if_grouped=True,
                written=None if self._is_all else self._written,
            )
        except (MappingError, InvalidInputError) as error:
            # Fingerprints can be written, but not groups: their fields are wrong, or the grouping is being changed.
            if self._options.once:
                raise
            self._tally.errors["grouping"] += 1
            self._tally.problem = str(error)
            self._is_all = True
            self._ids.clear()
            return False
        self._tally.sums["regrouped"] += done.changed
        for failure in done.failures:
            self._tally.fail(failure)
        for id_ in ids:
            del self._ids[id_]
        self._to_mark -= max(1, len(ids))
        self._may_lack = self._is_all = False
        return True

    async def _keep_position(self, server: Port) -> None:
        """Write how far everything is done, groups too, or are to be decided of all documents."""
        places = self._places.to_dict()
        if self._is_all or not self._is_pending:
            self._mark, self._to_mark = None, 0
            await self._store.write(server, {"places": places, "groups": "all" if self._is_all else "decided"})
        elif self._to_mark <= 0:
            if self._mark is not None:
                await self._store.write(server, {"places": self._mark, "groups": "decided"})
            self._mark, self._to_mark = places, max(1, len(self._ids))

    async def _report(self, server: Port, state: FollowState) -> FollowReport:
        seconds = await server.compute(time.monotonic) - self._caught_up_at
        return self._tally.report(state, lag_operations=self._places.lag, lag_seconds=seconds)
