"""
Settles a batch that was written: documents that depended on a refused write are decided again.

A duplicate of a document that the server did not write is written if it had been skipped, and put into another group
if it had been tagged. What a refused write hid is there all the same, and documents near it are decided again. A
document that an ingest pipeline wrote under another id is decided again under that id. A document that was left out, or
tagged, because a document of the batch contains it adds something if the index has not got that one. The pipeline of
batches is in ``ingest``; replaced canonicals are in ``relink``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from es_simhash.groups.content import Content, milliseconds_of, prepare_together
from es_simhash.groups.contents_flow import untag
from es_simhash.ingest.contained_flow import ContainedLookup
from es_simhash.ingest.decide import Decider, Uncompared
from es_simhash.ingest.existing_flow import Existing, ExistingLookup
from es_simhash.ingest.item import Item, put_decision, regroup_body
from es_simhash.transport.keys import Key
from es_simhash.transport.protocol import Compute, Flow
from es_simhash.transport.refresh_flow import now
from es_simhash.writes.bulk_flow import send_bulk
from es_simhash.writes.operations import Operation, Outcome, Refusal

UNDECIDED = 424
FIRST = 3


def decide_items(decider: Decider, items: Sequence[Item], existing: Existing, *, prefix: str, at: str) -> list[Item]:
    """
    Return *items*, decided in their order at the moment *at*, with the group fields in their operations.
    """
    now = int(milliseconds_of(at) or 0)
    if existing.is_compared:
        prepare_together(_compared_soon(items, existing), decider.grouping.measure)
    drafts = [item.draft for item in items if item.draft is not None]
    decider.in_flight.foresee([each.fingerprint for each in drafts if each.fingerprint is not None])
    return [_decide(decider, item, existing, prefix=prefix, now=now) for item in items]


def _compared_soon(items: Sequence[Item], existing: Existing) -> Iterator[Content]:
    """Yield the contents that will be compared: of new documents near one in the index, and of those near them."""
    for item in items:
        draft = item.draft
        near = existing.near.get(draft.fingerprint, ()) if draft and draft.fingerprint is not None else ()
        if draft and draft.content is not None and near:
            yield draft.content
            # The first neighbour decides, so those after it are seldom compared.
            yield from (each.content for each in near[:FIRST] if each.content is not None)


def _decide(decider: Decider, item: Item, existing: Existing, *, prefix: str, now: int) -> Item:
    draft, operation = item.draft, item.operation
    if draft is None or operation is None:
        return item
    near = () if draft.fingerprint is None else existing.near.get(draft.fingerprint, ())
    decision = decider.decide(draft, near, existing.canonicals, now=now)
    gaps = None if draft.fingerprint is None else existing.gaps.get(draft.fingerprint)
    problem = _missed(gaps or (), decision.uncompared) or item.problem
    if decision.verdict != "skip" and item.outcome is None:
        operation = put_decision(operation, draft, decision, prefix=prefix)
    return replace(item, operation=operation, problem=problem, decision=decision)


def _missed(gaps: Sequence[str], uncompared: Sequence[Uncompared]) -> str | None:
    """Return the sentence about near-duplicates that may have been missed, if any."""
    reasons = [*gaps, *map(str, uncompared)]
    if not reasons:
        return None
    # A text that nobody can read is not read by reconcile either.
    may_find = gaps or any(each.why.kind != "text" for each in uncompared)
    return f"a near-duplicate may have been missed ({'; '.join(reasons)}){': run reconcile' if may_find else ''}"


class Settlement:
    """
    Settles one batch.

    Args:
        items:
            The batch, with decisions and outcomes.
        decider:
            What decided about it.
        lookup:
            Looks up what is decided again.
        prefix:
            Name of the object that holds the fields.
        contained:
            Looked up which documents add nothing; ``None`` where nobody asked.
        is_updatable:
            Whether documents of the index can be updated without losing something.

    Attributes:
        items:
            The batch as it is now, also when :meth:`run` was cut short by an exception.
    """

    def __init__(
        self,
        items: Sequence[Item],
        *,
        decider: Decider,
        lookup: ExistingLookup,
        prefix: str,
        contained: ContainedLookup | None = None,
        is_updatable: bool = True,
    ) -> None:
        self.items = list(items)
        self._contained = contained
        self._seen: set[int] = set()
        self._is_updatable = is_updatable
        self._decider = decider
        self._lookup = lookup
        self._prefix = prefix

    def run(self) -> Flow[None]:
        """Decide again until no document depends on one that was refused."""
        yield from self._settle_refused()
        if self._contained is not None:
            self._contained.note_written(self.items)
            before = list(self.items)
            yield from self._settle_contained(self._contained)
            yield from self._settle_refused()
            pairs = zip(before, self.items, strict=True)
            self._contained.note_written(now for then, now in pairs if now.outcome is not then.outcome)

    def _settle_contained(self, contained: ContainedLookup) -> Flow[None]:
        """Write, or untag, the documents whose container of the same batch is not in the index."""
        before = list(self.items)
        unsure = [n for n, each in enumerate(before) if each.withheld is not None]
        try:
            self.items[:] = yield from contained.confirm(before)
            unsure = [n for n in unsure if self.items[n].withheld is None]
            if unsure:
                yield from self._decide_again(unsure)
        except Exception as error:
            self._give_up(unsure, error)
            raise
        yield from self._untag(
            [n for n, each in enumerate(before) if each.container and not self.items[n].container], before
        )

    def _untag(self, places: Sequence[int], before: Sequence[Item]) -> Flow[None]:
        """Remove the tags of the documents at *places*, which were written with them."""
        tags: dict[Key, str] = {}
        keys: dict[Key, int] = {}
        for n in places:
            outcome, draft, container = before[n].outcome, before[n].draft, before[n].container
            if outcome is not None and outcome.is_done and draft is not None and container is not None:
                routing = None if draft.routing is None else str(draft.routing)
                keys[key := Key(outcome.index or "", outcome.id or "", routing)] = n
                tags[key] = container.id
        if not tags:
            return
        outcomes = (yield from untag(tags, self._prefix)) if self._is_updatable else {}
        for key, n in keys.items():
            outcome = outcomes.get(key)
            if not self._is_updatable or (outcome is not None and not outcome.is_done):
                reason = "the document that contains it was not written, and its tag could not be removed"
                self.items[n] = replace(self.items[n], problem=f"{reason}: run reconcile")

    def _settle_refused(self) -> Flow[None]:
        while lost := [
            n for n, each in enumerate(self.items) if (each.is_refused or each.is_renamed) and n not in self._seen
        ]:
            self._seen.update(lost)
            followers = self._withdraw(lost)
            try:
                if followers:
                    yield from self._decide_again(followers)
            except Exception as error:
                self._give_up(followers, error)
                raise

    def _withdraw(self, lost: Sequence[int]) -> list[int]:
        """
        Take documents out of the memory that were not written under their id, and all that depend on them.

        Returns:
            The places of those to decide again.
        """
        drafts = [item.draft for n in lost if (item := self.items[n]).draft is not None]
        positions, ids = {draft.position for draft in drafts if draft}, {draft.id for draft in drafts if draft}
        followers: list[int] = []
        for n, item in enumerate(self.items):
            if item.draft is None or item.decision is None or item.is_refused:
                continue
            group = item.decision.group
            is_misnamed = group in ids and group != item.draft.id  # under "connected" its leader may be a member
            is_near_hidden = not positions.isdisjoint(item.decision.hiders)
            is_follower = is_misnamed or is_near_hidden or item.leader_position in positions
            if (is_follower and not self._is_overtaken(n)) or (item.is_renamed and n in lost):
                followers.append(n)
                # It may be no canonical any more, or replace another one: those after it depend on that.
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

    def _decide_again(self, places: Sequence[int]) -> Flow[None]:
        at = yield Compute(now)
        written = {n for n in places if self.items[n].outcome is not None}
        again = [_must_stay(self.items[n]) for n in places]
        existing = yield from self._lookup.look_up(again)
        # Searches may show what this batch wrote: the order of writing counts, so each is compared as it is decided.
        existing = existing.without({item.draft.id for item in again if item.outcome and item.draft})
        decided = decide_items(self._decider, again, existing, prefix=self._prefix, at=at)
        operations = {
            n: self._operation(item)
            for n, item in zip(places, decided, strict=True)
            if n not in written or not _is_same(self.items[n], item, self._prefix)
        }
        sending = {n: operation for n, operation in operations.items() if operation is not None}
        outcomes = yield from send_bulk(list(sending.values()))
        by_place = dict(zip(sending, outcomes, strict=True))
        for n, item in zip(places, decided, strict=True):
            is_stale = n in written and n in operations
            self.items[n] = _with_outcome(item, by_place.get(n), was_written=is_stale)

    def _operation(self, item: Item) -> Operation | None:
        """Return the operation for a document that was decided again."""
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
        if written.version is not None:
            header["if_seq_no"], header["if_primary_term"] = written.version  # type: ignore[assignment]
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
    """Return *item* as it is decided again: one that is written already has its id, and cannot be skipped."""
    if item.draft is None or item.outcome is None:
        return item
    draft = replace(item.draft, id=item.outcome.id or item.draft.id, must_write=True)
    return replace(item, draft=draft)


def _with_outcome(item: Item, outcome: Outcome | None, *, was_written: bool) -> Item:
    if outcome is None and was_written:
        return replace(item, problem="its group is out of date: its index keeps only a part of each _source")
    if outcome is None:
        return item
    if was_written and not outcome.is_done:
        # What was written before stays written, should its new tags be refused: reconcile finds it.
        return replace(item, problem=f"its group is out of date ({outcome.error}): run reconcile")
    return replace(item, outcome=outcome)
