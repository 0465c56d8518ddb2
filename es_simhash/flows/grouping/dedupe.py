"""
Deleting the duplicates of an index, or tagging them: shown first, then done, each only if it is still a duplicate.

Which documents are duplicates is decided in ``index.grouping.table``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from es_simhash.errors import InvalidInputError, shorten
from es_simhash.flows.context import Context, Index
from es_simhash.flows.grouping.reconcile import read_groups, reconcile
from es_simhash.flows.grouping.settings import settle_grouping
from es_simhash.flows.protocol import Call, Emit, Flow
from es_simhash.flows.resolve import resolve_index
from es_simhash.flows.transfer.conditional_write import CONFLICT, MISSING, Place, rewrite
from es_simhash.flows.transfer.primaries import reads_primaries
from es_simhash.flows.transfer.refresh import refresh
from es_simhash.hashing import to_hex
from es_simhash.index.faults import refuse_updates
from es_simhash.index.grouping.rule import GroupingRequest

if TYPE_CHECKING:
    from es_simhash.index.grouping.groups import Groups
    from es_simhash.index.grouping.table import Row

__all__ = ["Action", "Deduped", "dedupe"]

Action = Literal["tag", "delete"]
BATCH = 500


@dataclass(frozen=True, slots=True)
class Deduped:
    """
    The outcome for one duplicate; in a dry run, the planned one.

    Attributes:
        id:
            Its ``_id``.
        index:
            Name of the index that contains it, or contained it.
        canonical:
            Id of the document that stays.
        canonical_index:
            Name of the index that contains that.
        distance:
            Their distance in bits.
        action:
            ``"deleted"`` or ``"tagged"``; in a dry run ``"would delete"`` or ``"would tag"``; ``"kept"`` where the
            document or its canonical changed meanwhile, or the server refused.
        reason:
            Why it was kept; else ``None``.
        source:
            The document as it was, where it was deleted: enough to write it again.
        routing:
            Its routing value, where it had one.
    """

    id: str
    index: str
    canonical: str
    canonical_index: str
    distance: int
    action: str
    reason: str | None = None
    source: Mapping[str, Any] | None = None
    routing: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the record as plain JSON values."""
        plain: dict[str, Any] = {
            "id": self.id,
            "index": self.index,
            "canonical": self.canonical,
            "canonical_index": self.canonical_index,
            "distance": self.distance,
            "action": self.action,
            "reason": self.reason,
        }
        if self.routing is not None:
            plain["routing"] = self.routing
        return plain if self.source is None else plain | {"source": dict(self.source)}


@reads_primaries
def dedupe(context: Context, index: Index, action: Action, request: GroupingRequest, *, dry_run: bool) -> Flow[None]:
    """
    Emit a :class:`Deduped` for each duplicate in *index*, after it was tagged or deleted; in a dry run, instead.

    The canonical always stays. A document is deleted only if it, and its canonical, still have the fingerprints that
    made it a duplicate.
    """
    if action not in ("tag", "delete"):
        raise InvalidInputError(f"action {shorten(action)} is not known: give 'tag' or 'delete'")
    resolved = yield from resolve_index(context, index)
    if not dry_run:
        refuse_updates(resolved.mappings)  # nor could what is deleted be written again
    grouping = yield from settle_grouping(
        context, resolved, request, record=not dry_run and action == "tag", may_differ=dry_run
    )
    failed: dict[tuple[str, str], str] = {}
    if action == "tag" and not dry_run:
        done = yield from reconcile(context, index, request)
        failed = {(each.index, each.id): each.reason for each in done.failures}
    _, groups = yield from read_groups(context, index, resolved, grouping)
    duplicates: list[int] = groups.duplicates.tolist()
    for begin in range(0, len(duplicates), BATCH):
        places = duplicates[begin : begin + BATCH]
        if action == "delete" and not dry_run:
            for record in (yield from _delete(context.prefix, groups, places)):
                yield Emit(record)
            continue
        for place in places:
            record = _record(groups, place, f"would {action}" if dry_run else "tagged")
            reason = failed.get((record.index, record.id))
            yield Emit(record if reason is None else _kept(record, reason))
    if action == "delete" and not dry_run and duplicates:
        yield from refresh(index)


def _record(groups: Groups, place: int, action: str) -> Deduped:
    row = groups.table.row(place)
    canonical = groups.table.row(int(groups.canonical[place]))
    distance = int(groups.distance[place])
    return Deduped(row.id, row.index, canonical.id, canonical.index, distance, action, routing=row.routing)


def _kept(record: Deduped, reason: str) -> Deduped:
    return replace(record, action="kept", reason=reason)


def _delete(prefix: str, groups: Groups, places: Sequence[int]) -> Flow[list[Deduped]]:
    rows = [groups.table.row(place) for place in places]
    canonicals = {int(groups.canonical[place]) for place in places}
    standing = yield from _unchanged(prefix, [groups.table.row(each) for each in sorted(canonicals)])
    wanted = {_place(row): (row, place) for row, place in zip(rows, places, strict=True)}
    sources: dict[Place, Mapping[str, Any]] = {}

    def change(target: Place, found: Mapping[str, Any]) -> tuple[str, Any] | None:
        row, place = wanted[target]
        canonical = groups.table.row(int(groups.canonical[place]))
        source = found.get("_source") or {}
        if _place(canonical) not in standing or not _has(source, prefix, row.fingerprint):
            return None
        sources[target] = source
        return "delete", None

    outcomes = yield from rewrite(list(wanted), change, source=True)
    records = []
    for row, place, outcome in zip(rows, places, outcomes, strict=True):
        record = _record(groups, place, "deleted")
        if outcome is not None and outcome.is_done:
            records.append(replace(record, source=sources[_place(row)]))
        elif outcome is None or outcome.status in (CONFLICT, MISSING):
            records.append(_kept(record, "it or its canonical was changed or deleted meanwhile: run dedupe again"))
        else:
            records.append(_kept(record, str(outcome.error)))
    return records


def _place(row: Row) -> Place:
    return Place(row.index, row.id, row.routing)


def _has(source: Mapping[str, Any], prefix: str, fingerprint: int) -> bool:
    own = source.get(prefix)
    return isinstance(own, Mapping) and own.get("fingerprint") == to_hex(fingerprint)


def _unchanged(prefix: str, rows: Sequence[Row]) -> Flow[set[Place]]:
    """Return the places of those of *rows* that are there with the fingerprint they were judged by."""
    docs = [
        {"_index": row.index, "_id": row.id, "_source": [prefix]}
        | ({} if row.routing is None else {"routing": row.routing})
        for row in rows
    ]
    answer = yield Call("mget", {"body": {"docs": docs}})
    return {
        _place(row)
        for row, found in zip(rows, answer["docs"], strict=True)
        if found.get("found") and _has(found.get("_source") or {}, prefix, row.fingerprint)
    }
