"""
Settles a batch after its bulk: some documents are decided again.

Decided again are: duplicates of a document not written (skipped ones are written, tagged ones change their
group); documents near one that a refused write had hidden; documents that a server pipeline wrote under another
id, under that id; updates that created their ``upsert``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from es_simhash.ingest.existing import ExistingLookup
from es_simhash.ingest.item import Item, decide_items, put_decision, regroup_body
from es_simhash.ingest.reading import GroupedIngest
from es_simhash.mapping.fields import now
from es_simhash.mapping.port import Port
from es_simhash.writes.bulk import send_bulk
from es_simhash.writes.operations import UNDECIDED, Operation, Outcome, Refusal


class Settlement:
    """The settling of one batch; *items* is valid also when :meth:`run` was cut short by an exception."""

    def __init__(
        self,
        ingest: GroupedIngest,
        items: Sequence[Item],
        lookup: ExistingLookup,
    ) -> None:
        self.items = list(items)
        self._seen: set[int] = set()
        self._is_updatable = ingest.is_updatable
        self._decider = ingest.decider
        self._lookup = lookup
        self._prefix = ingest.prefix

    async def run(self, server: Port) -> None:
        """Decide again until no document depends on one that was refused."""
        while lost := [
            n for n, each in enumerate(self.items) if (each.is_refused or each.is_misjudged) and n not in self._seen
        ]:
            self._seen.update(lost)
            followers = self._withdraw(lost)
            try:
                if followers:
                    await self._decide_again(server, followers)
            except Exception as error:
                self._give_up(followers, error)
                raise

    def _withdraw(self, lost: Sequence[int]) -> list[int]:
        """Take *lost* documents, and all that depend on them, out of memory; return places to decide again."""
        drafts = [item.draft for n in lost if (item := self.items[n]).draft is not None]
        positions, ids = {draft.position for draft in drafts if draft}, {draft.id for draft in drafts if draft}
        followers: list[int] = []
        for n, item in enumerate(self.items):
            if item.draft is None or item.is_refused:
                continue
            is_follower = n in lost and item.is_misjudged
            if item.decision is not None:
                group = item.decision.group
                is_misnamed = group in ids and group != item.draft.id
                is_near_hidden = not positions.isdisjoint(item.decision.blockers)
                is_follower |= is_misnamed or is_near_hidden or item.leader_position in positions
            if is_follower and (not self._is_overtaken(n) or (item.is_renamed and n in lost)):
                followers.append(n)
                # It may be no canonical any more: those after it depend on that.
                positions.add(item.draft.position)
                ids.add(item.draft.id)
        for n in (*lost, *followers):
            self._decider.in_flight.withdraw(self.items[n].position)
        return followers

    def _is_overtaken(self, place: int) -> bool:
        """Return whether a document was written again later in the batch: its older text counts no more."""
        item = self.items[place]
        if item.operation is None:
            return False
        id_ = item.operation.header.get("_id")
        later = (each for each in self.items[place + 1 :] if each.operation and each.outcome and each.outcome.is_done)
        if item.outcome is not None:  # an update that leaves the text alone does not change what is near
            later = (each for each in later if each.draft is not None)
        return any(each.operation.header.get("_id") == id_ for each in later if each.operation)

    def _give_up(self, followers: Sequence[int], error: Exception) -> None:
        """Say in the reports what is wrong with documents that could not be decided again."""
        reason = (
            f"a document that it was compared with was refused, and it could not be decided again "
            f"({type(error).__name__})"
        )
        for n in followers:
            item = self.items[n]
            if item.outcome is None:
                self.items[n] = replace(
                    item, decision=None, outcome=Outcome(None, None, UNDECIDED, Refusal(UNDECIDED, reason=reason))
                )
            else:
                self.items[n] = replace(item, problem=f"{reason}: run reconcile")

    async def _decide_again(self, server: Port, places: Sequence[int]) -> None:
        at = await server.compute(now)
        written = {n for n in places if self.items[n].outcome is not None}
        again = [_must_stay(self.items[n]) for n in places]
        existing = await self._lookup.look_up(server, again)
        # Searches may show what this batch wrote: the order of writing counts, so each is compared as it is decided.
        existing = existing.without({item.draft.id for item in again if item.outcome and item.draft})
        await server.compute(decide_items, self._decider, again, existing, self._prefix, at)
        operations = {
            n: self._operation(item, is_created=self.items[n].decision is None)
            for n, item in zip(places, again, strict=True)
            if n not in written or not _is_same(self.items[n], item, self._prefix)
        }
        sending = {n: operation for n, operation in operations.items() if operation is not None}
        outcomes = await send_bulk(server, list(sending.values()))
        by_place = dict(zip(sending, outcomes, strict=True))
        for n, item in zip(places, again, strict=True):
            is_stale = n in written and n in operations
            self.items[n] = _with_outcome(item, by_place.get(n), was_written=is_stale)

    def _operation(self, item: Item, *, is_created: bool) -> Operation | None:
        """
        Return the operation for a document that was decided again.
        An ``upsert`` that *is_created* is written whole, because in an update the server rewrites its numbers.
        """
        draft, decision, written = item.draft, item.decision, item.outcome
        if draft is None or decision is None or decision.verdict == "skip":
            return None
        if written is None:
            return item.operation
        if not self._is_updatable:
            return None
        header = {"_index": written.index, "_id": written.id}
        if draft.routing is not None:
            header["routing"] = draft.routing
        # Updates of the same batch that leave its text alone changed it too.
        others = [each.outcome for each in self.items if each.draft is None and each.outcome is not None]
        same = [each.version for each in others if (each.index, each.id) == (written.index, written.id)]
        if version := max((each for each in (written.version, *same) if each is not None), default=None):
            header["if_seq_no"], header["if_primary_term"] = version  # type: ignore[assignment]
        if is_created and item.operation is not None and version == written.version and not item.is_renamed:
            pipeline = {key: value for key, value in item.operation.header.items() if key == "pipeline"}
            whole = replace(item.operation, kind="index", header={**header, **pipeline})
            return put_decision(whole, draft, decision, prefix=self._prefix)
        return Operation("update", header, regroup_body(draft, decision, prefix=self._prefix))


def _is_same(before: Item, after: Item, prefix: str) -> bool:
    """Return whether a document that is decided again keeps the group fields that it was written with."""
    bodies = [
        regroup_body(each.draft, replace(each.decision, at=0), prefix=prefix)
        for each in (before, after)
        if each.draft is not None and each.decision is not None
    ]
    return len(bodies) == 2 and bodies[0] == bodies[1]


def _must_stay(item: Item) -> Item:
    """Return a copy of *item* to decide again: one that is written already has its id, and cannot be skipped."""
    draft, outcome = item.draft, item.outcome
    if draft is None:
        return replace(item)
    id_ = draft.id if outcome is None else outcome.id or draft.id
    return replace(item, draft=replace(draft, id=id_, must_write=draft.must_write or outcome is not None))


def _with_outcome(item: Item, outcome: Outcome | None, *, was_written: bool) -> Item:
    if outcome is None and was_written:
        return replace(item, problem="its group is out of date: its index keeps only a part of each _source")
    if outcome is None:
        return item
    if was_written and not outcome.is_done:
        # What was written before stays written, should its new tags be refused: reconcile finds it.
        return replace(item, problem=f"its group is out of date ({outcome.error}): run reconcile")
    return replace(item, outcome=outcome)
