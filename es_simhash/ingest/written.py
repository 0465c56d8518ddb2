"""The report on one ingested document. No requests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from es_simhash.ingest.item import Item, has_fingerprint
from es_simhash.record import Record
from es_simhash.writes.operations import Hindrance, Outcome

RefusedKind: TypeAlias = Literal["exists", "refused"] | Hindrance

CONFLICT = 409
UPDATED = 200


@dataclass(slots=True)
class Written(Record):
    """
    The outcome for one document.

    Attributes:
        position:
            Its place among the documents given, from 0.
        id:
            Its ``_id``, as the server answered it: assigned where the document had none; ``None`` for one without an
            id that was not written.
        index:
            Name of the index that holds it.
        action:
            ``"written"``, ``"tagged"`` (written as a duplicate), ``"skipped"`` (not written), ``"unchanged"`` (not
            written: the same document is there under its id, and keeps its group), ``"dropped"`` (by an ingest
            pipeline of the server) or ``"refused"`` (by the server, or because it is no document).
        reason:
            Why it was refused, or what is wrong with a document that was written; else ``None``.
        canonical:
            Name of its group: the id of its canonical, its own where it is one, with the index where that id stands
            twice. ``None`` where documents are not grouped, or it has no fingerprint; also where it is ``"unchanged"``
            and was only to be created.
        distance:
            Distance to that document, in bits; ``None`` where it is gone, or has another text now.
        fingerprinted:
            Whether it was sent with a fingerprint: a document without text, or without features, is not.
        kind:
            Why it was refused: ``"exists"`` (it was to be created, and a document with another content has its id),
            ``"refused"`` (for another reason of its own), or what hinders every write now, as in ``kind`` of
            ``WritesRefusedError``: the same document may be written later. ``None`` where it was not refused.
        similarity:
            How similar its text is to that of the document that *distance* is to (shingle Jaccard, 0 to 1); ``None``
            where the two texts were not compared.
        updated:
            Whether it took the place of a document with its id, maybe one that the same ingest wrote: the index then
            has no document more.
        too_short:
            Whether another document is near, and its own text is too short to compare: by a rule that compares texts it
            is no duplicate.
    """

    position: int
    id: str | None
    index: str | None
    action: str
    reason: str | None = None
    canonical: str | None = None
    distance: int | None = None
    fingerprinted: bool = False
    kind: RefusedKind | None = None
    similarity: float | None = None
    updated: bool = False
    too_short: bool = False

    _OPTIONAL = "kind updated too_short canonical distance similarity"


def report(item: Item, *, prefix: str) -> Written:
    """Return what became of *item*."""
    outcome, decision, operation = item.outcome, item.decision, item.operation
    leader = None if decision is None else decision.leader
    if outcome is None and leader is None:
        return Written(item.position, None, None, "refused", item.reason, kind="refused")
    written = Written(item.position, item.given_id, None, "skipped", item.reason)
    if outcome is None:
        written.index = None if leader is None else leader.index
    else:
        written.id, written.index = outcome.id, outcome.index
        written.fingerprinted = operation is not None and has_fingerprint(operation, prefix)
        if not outcome.is_done:
            written.action, written.kind = _refusal(item, outcome)
            written.reason = None if written.action == "unchanged" else str(outcome.error)
            return written
        written.action = "unchanged" if outcome.is_same else "written"
        written.updated = outcome.status == UPDATED and operation is not None and operation.kind == "index"
    if decision is not None and item.document is not None and item.document.fingerprint is not None:
        written.canonical, written.too_short = decision.group, decision.is_short
        if not decision.is_stale:
            written.distance, written.similarity = decision.distance, decision.similarity
        if decision.verdict == "tag" and written.action == "written":
            written.action = "tagged"
    return written


def _refusal(item: Item, outcome: Outcome) -> tuple[str, RefusedKind | None]:
    """Return the action and the kind of a document that was not written."""
    if outcome.is_dropped:
        return "dropped", None
    if outcome.is_same:
        return "unchanged", None
    is_taken = outcome.status == CONFLICT and item.operation is not None and item.operation.kind == "create"
    return "refused", "exists" if is_taken else outcome.hindrance or "refused"
