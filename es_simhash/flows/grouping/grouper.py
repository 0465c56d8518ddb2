"""
Grouping while documents are written: looks up, has it decided, and mends what a refused write or a replacement upset.

What a duplicate is is decided in ``index.deciding``; the order of batches is ``ingest``'s.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from es_simhash.flows.context import Context
from es_simhash.flows.grouping.lookups import GroupLookups
from es_simhash.flows.lookup.batch import Batch
from es_simhash.flows.protocol import Compute, Flow
from es_simhash.flows.transfer.answers import Gap, sentences
from es_simhash.flows.transfer.bulk import send_bulk
from es_simhash.flows.transfer.conditional_write import MISSING, Place, place_of, rewrite
from es_simhash.flows.transfer.pages import Handle, Hits, read_pages
from es_simhash.flows.transfer.refresh import now, refresh
from es_simhash.flows.transfer.retry import retry
from es_simhash.hashing import from_hex, hamming_distance
from es_simhash.index.fields import Fields, group_fields
from es_simhash.index.grouping.decide import Decider, Draft, ExistingDocument, OnDuplicate
from es_simhash.index.grouping.drafts import Item, group_operation, make_draft, regroup_body
from es_simhash.index.grouping.rule import Grouping
from es_simhash.index.meta import IndexSettings
from es_simhash.index.operations import Operation
from es_simhash.index.rescore import NearDups

__all__ = ["Grouper"]

# Documents remembered because searches may not show them yet. Reaching this, the index is refreshed: whatever its
# refresh interval, the memory is bounded, and nothing is ever looked for only where it cannot be seen.
IN_FLIGHT = 20_000
RELINKED = 500


class Grouper:
    """
    Decides about batch after batch of one ingest.

    Args:
        context:
            What the client object knows.
        index:
            What is written to, and searched.
        settings:
            What the index goes by.
        grouping:
            The rule.
        policy:
            What to do with a duplicate.
    """

    def __init__(
        self, context: Context, index: str, settings: IndexSettings, grouping: Grouping, policy: OnDuplicate
    ) -> None:
        self._context = context
        self._index = index
        self._grouping = grouping
        self._decider = Decider(grouping, policy)
        self._shows_source = callable(policy)
        self._lookups = GroupLookups(
            context,
            index,
            settings,
            max_distance=grouping.max_distance,
            canonicals_only=grouping.rule == "star",
            source=self._shows_source,
        )

    def prepare(self) -> Flow[None]:
        """Learn what lookups go by, and let them see what was written before this ingest began."""
        yield from refresh(self._index)
        yield from self._lookups.prepare()

    def batch(self, items: Sequence[Item]) -> Batch | None:
        """Make drafts of *items*, and return the lookups for them; ``None`` if there are none."""
        for item in items:
            if item.draft is None:
                make_draft(item, self._context.prefix, with_source=self._shows_source)
        wanted = dict.fromkeys(d.fingerprint for d in _drafts(items) if d.fingerprint is not None)
        return self._lookups.batch(list(wanted)) if wanted else None

    def look_up(self, items: Sequence[Item]) -> Flow[None]:
        """Look the near-duplicates of *items* up now."""
        batch = self.batch(items)
        if batch is not None:
            try:
                answer = yield batch.call()
            except Exception as error:  # noqa: BLE001 -- judged by take
                answer = error
            yield from self.take(items, batch, answer)

    def take(self, items: Sequence[Item], batch: Batch, answer: Any) -> Flow[None]:
        """Put what the *answer* tells into *items*."""
        found = yield from self._lookups.take(batch, answer)
        standings = {fingerprint: self._standings(each) for fingerprint, each in found.items()}
        canonicals = yield from self._missing_canonicals(standings)
        for item in items:
            if item.draft is None or item.draft.fingerprint is None:
                continue
            near = found[item.draft.fingerprint]
            item.found, item.canonicals = standings[item.draft.fingerprint], canonicals
            if not near.complete:
                item.problem = f"a near-duplicate may have been missed ({'; '.join(near.reasons)}): run reconcile"

    def _standings(self, found: NearDups) -> list[ExistingDocument]:
        ordered = sorted(found, key=lambda each: (self._lookups.at_of(each), each.id, each.index))
        return [
            ExistingDocument(
                each.id, each.fingerprint, self._lookups.group_of(each) or each.id, each.index, each.source
            )
            for each in ordered
        ]

    def _missing_canonicals(self, found: Mapping[int, Sequence[ExistingDocument]]) -> Flow[dict[str, int]]:
        """Return the fingerprints of canonicals that members belong to, where chains count."""
        if self._grouping.rule == "star":
            return {}
        groups = {each.group for near in found.values() for each in near if each.group != each.id}
        if not groups:
            return {}
        name = Fields(self._context.prefix).fingerprint
        query = {"ids": {"values": sorted(groups)}}
        body = {"query": query, "docvalue_fields": [name], "_source": False}
        known: dict[str, int] = {}

        def note(hits: Hits) -> Flow[bool]:
            yield from ()
            known.update(
                {hit["_id"]: from_hex(hit["fields"][name][0]) for hit in hits if name in hit.get("fields", ())}
            )
            return False

        yield from _read_patiently(self._index, body, note)
        return known

    def decide(self, items: Sequence[Item]) -> Flow[None]:
        """Decide about *items* in their order, and put the decisions into their operations."""
        at = yield Compute(now)
        yield Compute(self._decide, (items, at))
        # Only now, since these were looked up before the refresh; those after them will see what it makes visible.
        if self._decider.settled >= IN_FLIGHT:
            yield from refresh(self._index)
            yield from self._lookups.prepare()
            self._decider.forget_settled()

    def _decide(self, items: Sequence[Item], at: str) -> None:
        for item in items:
            draft = item.draft
            if draft is None or item.operation is None:
                continue
            self._decider.decide(draft, item.found, item.canonicals)
            if draft.verdict == "skip":
                item.is_skipped = True
            else:
                item.operation = group_operation(item.operation, draft, self._context.prefix, at)

    def settle(self, items: Sequence[Item]) -> Flow[None]:
        """
        Take note of what was written of *items*, and mend what depended on a write that was refused.

        A duplicate of a document that the server did not take is decided about again: written if it had been skipped,
        put into another group if it had been tagged.
        """
        at = yield Compute(now)
        refused = self._refused(items)
        while refused:
            for draft in refused:
                self._decider.refuse(draft)
            gone = set(map(id, refused))
            again = [item for item in items if item.draft is not None and id(item.draft.leader) in gone]
            yield from self.look_up(again)
            operations = [self._decide_again(item, at) for item in again]
            wanted = [(item, operation) for item, operation in zip(again, operations, strict=True) if operation]
            outcomes = yield from send_bulk([operation for _, operation in wanted])
            for (item, _), outcome in zip(wanted, outcomes, strict=True):
                # What was written before stays written, should its new tags be refused: reconcile finds it.
                if item.outcome is None or outcome.is_done:
                    item.outcome = outcome
                elif item.draft is not None:
                    item.problem = f"its group is out of date ({outcome.error}): run reconcile"
            refused = [d for d in self._refused(items) if not d.is_gone]
        replaced = [d for d in _drafts(items) if d.replaced and not d.is_gone]
        if replaced:
            yield from self._relink(replaced, items, at)
        for draft in _drafts(items):
            draft.is_settled = True
            for each in draft.replaced:
                each.is_settled = True

    @staticmethod
    def _refused(items: Sequence[Item]) -> list[Draft]:
        return [
            item.draft
            for item in items
            if item.draft is not None and item.outcome is not None and not item.outcome.is_done
        ]

    def _decide_again(self, item: Item, at: str) -> Operation | None:
        draft, operation = item.draft, item.operation
        if draft is None or operation is None or (item.outcome is not None and not item.outcome.is_done):
            return None
        written = item.outcome
        draft.must_write = draft.must_write or written is not None
        self._decider.decide(draft, item.found, item.canonicals)
        item.is_skipped = draft.verdict == "skip"
        if item.is_skipped:
            return None
        if written is None:
            item.operation = group_operation(operation, draft, self._context.prefix, at)
            return item.operation
        header = {"_index": written.index, "_id": written.id}
        if draft.routing is not None:
            header["routing"] = draft.routing
        if written.version is not None:
            header["if_seq_no"], header["if_primary_term"] = written.version  # type: ignore[assignment]
        return Operation("update", header, regroup_body(draft, self._context.prefix, at))

    def _relink(self, drafts: Sequence[Draft], items: Sequence[Item], at: str) -> Flow[None]:
        """Make what *drafts* replaced, and the members of those groups within reach, duplicates; tell what fails."""
        prefix, fields = self._context.prefix, Fields(self._context.prefix)
        successors = {each.id: draft for draft in drafts for each in draft.replaced}
        places = {
            item.outcome.id: Place(item.outcome.index, item.outcome.id, item.draft.routing)
            for item in items
            if item.draft is not None and item.outcome is not None and item.outcome.is_done
            if item.outcome.id and item.outcome.index and item.draft.group in successors
        }

        def note(hits: Hits) -> Flow[bool]:
            yield from ()
            places.update({hit["_id"]: place_of(hit) for hit in hits})
            return False

        def change(place: Place, found: Mapping[str, Any]) -> tuple[str, Any] | None:
            held = found.get("_source", {}).get(prefix) or {}
            successor = successors.get(held.get("group") or place.id)
            while successor is not None and successor.id in successors:
                successor = successors[successor.id]
            if successor is None or successor.fingerprint is None or "fingerprint" not in held:
                return None
            distance = hamming_distance(from_hex(held["fingerprint"]), successor.fingerprint)
            is_out_of_reach = distance > self._grouping.max_distance and self._grouping.rule == "star"
            if is_out_of_reach or place.id == successor.id:
                return None
            taken[place.id] = successor
            own = group_fields(successor.id, canonical=successor.id, distance=distance, at=held.get("at", at))
            return "update", {"doc": {prefix: own}}

        taken: dict[str, Draft] = {}
        old = sorted(successors)
        query = {"bool": {"should": [{"terms": {fields.group: old}}, {"ids": {"values": old}}]}}
        yield from refresh(self._index)
        gaps = yield from _read_patiently(self._index, {"query": query, "_source": False}, note)
        amiss: dict[Draft | None, str] = {None: "; ".join(sentences(gaps))} if gaps else {}  # None for all of them
        every = list(places.values())
        for begin in range(0, len(every), RELINKED):
            part = every[begin : begin + RELINKED]
            for place, outcome in zip(part, (yield from rewrite(part, change, source=[prefix])), strict=True):
                if outcome is not None and not outcome.is_done and outcome.status != MISSING:
                    amiss[taken.get(place.id)] = f"{place.id}: {outcome.error}"
        for item in items:
            reason = amiss.get(item.draft) or amiss.get(None)
            if item.draft is not None and item.draft.replaced and reason:
                item.problem = f"documents of the group it took over may not know ({reason}): run reconcile"


def _read_patiently(index: str, body: Mapping[str, Any], handle: Handle) -> Flow[list[Gap]]:
    """As ``read_pages``, begun anew where the server is too busy; *handle* may then see a hit twice."""
    return retry(lambda: read_pages(index, body, handle, page=1_000))


def _drafts(items: Sequence[Item]) -> list[Draft]:
    return [item.draft for item in items if item.draft is not None]
