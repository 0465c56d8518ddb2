"""
Settles a batch after its bulk: what depends on a document that was not written as it was decided about is decided
again, by the same function.

That is a document that the server refused, wrote under another id, or created from the ``upsert`` of an update.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from es_simhash.ingest.decide import Decision, Existing, decide
from es_simhash.ingest.item import Item, put_decision, regroup_body
from es_simhash.ingest.reading import GroupedIngest
from es_simhash.mapping.faults import find_source_faults
from es_simhash.mapping.fields import now
from es_simhash.mapping.port import Port
from es_simhash.mapping.resolve import resolve_index
from es_simhash.mapping.user_fields import milliseconds_of
from es_simhash.writes.bulk import send_bulk
from es_simhash.writes.operations import UNDECIDED, Operation, Outcome, Refusal
from es_simhash.writes.targets import read_source_modes


async def settle(server: Port, ingest: GroupedIngest, items: Sequence[Item], existing: Existing) -> Exception | None:
    """
    Decide *items* again until none depends on one that is lost; return what went wrong with that.
    Cost: nothing for most batches, else a bulk request each time.
    """
    seen: set[int] = set()
    while lost := {item.position for item in items if item.is_lost} - seen:
        seen |= lost
        again = await _decide_again(server, ingest, items, existing)
        try:
            again = await _leave_partial(server, ingest.index, again)
            outcomes = await send_bulk(server, [operation for _, operation in again])
        except Exception as error:  # noqa: BLE001 -- raised once the batch is reported
            for item, _ in again:
                _give_up(item, error)
            return error
        for (item, _), outcome in zip(again, outcomes, strict=True):
            _take_outcome(item, outcome)
    return None


async def _decide_again(
    server: Port, ingest: GroupedIngest, items: Sequence[Item], existing: Existing
) -> list[tuple[Item, Operation]]:
    """Decide those of *items* that are not refused; return what is to be written, and is not yet so."""
    standing = [item for item in items if not item.is_refused and item.operation is not None]
    standing.sort(key=lambda item: item.decision is None)  # what an update created comes last
    deciding = [item for item in standing if item.is_decided]
    created = [item.decision is None and item.outcome is not None and item.outcome.id == item.id for item in deciding]
    for item in deciding:
        if item.outcome is not None:  # it has its id, and cannot be skipped
            item.id = item.outcome.id or item.id
            item.must_write |= item.fingerprint is not None
    at = milliseconds_of(await server.compute(now)) or 0
    decisions = await server.compute(decide, deciding, existing, ingest.known, ingest.rule, now=at)
    again: list[tuple[Item, Operation]] = []
    for item, is_created, decision in zip(deciding, created, decisions, strict=True):
        before, written = item.decision, item.outcome
        if written is not None and before is not None and _is_same(item, before, decision, ingest.prefix):
            continue
        if _is_overtaken(items, item):
            continue
        item.take(decision, existing, ingest.prefix)
        if decision.verdict == "skip" or item.operation is None:
            continue
        if written is None:
            again.append((item, item.operation))
        else:
            again.append((item, _rewrite(items, item, decision, written, ingest.prefix, is_created=is_created)))
    return again


async def _leave_partial(
    server: Port, index: str, again: Sequence[tuple[Item, Operation]]
) -> list[tuple[Item, Operation]]:
    """
    Return those of *again* that lose nothing by an update: an index may keep only a part of each ``_source``.
    Cost: two requests where a document is there already, because a rollover may have made another index meanwhile.
    """
    if all(item.outcome is None for item, _ in again):
        return list(again)
    resolved = await resolve_index(server, index)
    mappings = await read_source_modes(server, index, resolved.mappings)
    partial = {name for name, mapping in mappings.items() if find_source_faults(mapping)}
    kept: list[tuple[Item, Operation]] = []
    for item, operation in again:
        if item.outcome is not None and item.outcome.index in partial:
            item.doubt = "its group is out of date: its index keeps only a part of each _source"
        else:
            kept.append((item, operation))
    return kept


def _is_same(item: Item, before: Decision, after: Decision, prefix: str) -> bool:
    """Return whether a document that is decided again keeps the group fields that it was written with."""
    return regroup_body(item, before, prefix=prefix) == regroup_body(item, after, prefix=prefix)


def _is_overtaken(items: Sequence[Item], item: Item) -> bool:
    """Return whether a document was written again later in the batch: its older text counts no more."""
    for other in items:
        if other.position <= item.position or other.outcome is None or not other.outcome.is_done:
            continue
        # An update that leaves the text alone does not change what is near.
        if not other.is_decided and item.outcome is not None:
            continue
        id_ = other.operation.header.get("_id") if not other.is_decided and other.operation else other.outcome.id
        if item.is_decided and item.id == id_:
            return True
    return False


def _rewrite(
    items: Sequence[Item],
    item: Item,
    decision: Decision,
    written: Outcome,
    prefix: str,
    *,
    is_created: bool,
) -> Operation:
    """
    Return the operation that puts *decision* into a document that is written already.
    An ``upsert`` that *is_created* is written whole, because in an update the server rewrites its numbers.
    """
    header = {"_index": written.index, "_id": written.id}
    if item.routing is not None:
        header["routing"] = item.routing
    # Updates of the same batch that leave its text alone changed it too.
    others = [other.outcome for other in items if not other.is_decided and other.outcome is not None]
    same = [other.version for other in others if (other.index, other.id) == (written.index, written.id)]
    if version := max((one for one in (written.version, *same) if one is not None), default=None):
        header["if_seq_no"], header["if_primary_term"] = version  # type: ignore[assignment]
    if is_created and item.operation is not None and version == written.version:
        pipeline = {key: value for key, value in item.operation.header.items() if key == "pipeline"}
        whole = replace(item.operation, kind="index", header={**header, **pipeline})
        return put_decision(whole, item, decision, prefix=prefix)
    return Operation("update", header, regroup_body(item, decision, prefix=prefix))


def _take_outcome(item: Item, outcome: Outcome) -> None:
    if item.outcome is not None and not outcome.is_done:
        # What was written before stays written, should its new tags be refused: reconcile finds it.
        item.doubt = f"its group is out of date ({outcome.error}): run reconcile"
    else:  # a document that was new stays so in the report
        item.outcome = outcome if item.outcome is None else replace(outcome, status=item.outcome.status)


def _give_up(item: Item, error: Exception) -> None:
    """Say in the report what is wrong with a document that could not be written as it was decided again."""
    reason = (
        f"a document that it was compared with was refused, and it could not be decided again ({type(error).__name__})"
    )
    if item.outcome is None:
        refusal = Refusal(UNDECIDED, reason=reason)
        item.decision, item.outcome = None, Outcome(item.given_id, None, UNDECIDED, refusal)
    else:
        item.doubt = f"{reason}: run reconcile"
