"""
Bulk operations to drafts that can be decided about, and decisions back into operations.

Pure: nothing is sent, and nothing given is changed.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from es_simhash.hashing import from_hex
from es_simhash.index.fields import GROUPED, group_fields, without_fingerprint
from es_simhash.index.grouping.decide import Draft, ExistingDocument
from es_simhash.index.operations import Operation, Outcome

__all__ = ["Item", "content_id", "group_operation", "make_draft", "regroup_body"]


@dataclass(slots=True, eq=False)
class Item:
    """
    One document of an ingest, on its way.

    Attributes:
        position:
            Its place among the documents given, from 0.
        operation:
            What is to be sent; ``None`` where what was given cannot be.
        problem:
            What is amiss with it all the same, for the report.
        outcome:
            What became of it; ``None`` until then.
        draft:
            What was decided about it; ``None`` where it is not grouped.
        found:
            Near-duplicates that the index held, in the order preferred.
        canonicals:
            Fingerprints of canonicals that are not among those, by id.
        is_skipped:
            Whether it was decided not to write it.
    """

    position: int
    operation: Operation | None
    problem: str | None = None
    outcome: Outcome | None = None
    draft: Draft | None = None
    found: Iterable[ExistingDocument] = ()
    canonicals: Mapping[str, int] = field(default_factory=dict)
    is_skipped: bool = False


def content_id(document: Any, prefix: str) -> str:
    """
    Return an id that the content of *document* decides: the same document, written again, adds nothing.

    128 bits of the SHA-256 of its JSON, keys sorted, our own fields left out; 32 hex digits.
    """
    own = without_fingerprint(document, prefix=prefix) if isinstance(document, Mapping) else document
    text = json.dumps(own, sort_keys=True, ensure_ascii=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def make_draft(item: Item, prefix: str, *, with_source: bool) -> None:
    """
    Put a draft into *item*, and an id into its operation where it has none.

    An update that leaves the fingerprint alone gets no draft; a delete gets one that nothing is near to, so that the
    document is not taken for a canonical any more.
    """
    operation = item.operation
    if operation is None:
        return
    fingerprint, is_decided = _fingerprint_of(operation, prefix)
    if not is_decided:
        return
    if operation.kind in ("index", "create") and operation.header.get("_id") is None:
        operation = Operation(operation.kind, {**operation.header, "_id": uuid.uuid4().hex}, operation.body)
        item.operation = operation
    id_ = str(operation.header.get("_id"))
    item.draft = Draft(
        id_,
        fingerprint,
        group=id_,
        index=operation.header.get("_index"),
        source=operation.body if with_source and isinstance(operation.body, Mapping) else None,
        routing=operation.header.get("routing"),
        must_write=operation.kind in ("update", "delete"),
    )


def _fingerprint_of(operation: Operation, prefix: str) -> tuple[int | None, bool]:
    """Return the fingerprint that the document will have, and whether the operation decides that."""
    body = operation.body if isinstance(operation.body, Mapping) else {}
    if operation.kind == "update":
        doc = body.get("doc")
        if not isinstance(doc, Mapping) or prefix not in doc:
            return None, "script" in body
        body = doc
    held = body.get(prefix)
    digits = held.get("fingerprint") if isinstance(held, Mapping) else None
    return (None if digits is None else from_hex(digits)), True


def group_operation(operation: Operation, draft: Draft, prefix: str, at: str) -> Operation:
    """
    Return *operation* with the group fields that were decided for *draft*; those of an earlier life are taken out.

    A document without fingerprint is a group of its own, so that ``collapse`` does not fold all of them into one.
    """
    body = operation.body
    if operation.kind == "delete" or not isinstance(body, Mapping):
        return operation
    fields = _fields_of(draft, at)
    if operation.kind == "update":
        doc = body.get("doc")
        if not isinstance(doc, Mapping) or not isinstance(doc.get(prefix), Mapping):
            return operation
        changed = {"doc": {**doc, prefix: {**doc[prefix], **fields}}}
        upsert = body.get("upsert")
        if isinstance(upsert, Mapping):
            changed["upsert"] = _whole(upsert, fields, prefix)
        return Operation(operation.kind, operation.header, {**body, **changed})
    return Operation(operation.kind, operation.header, _whole(body, fields, prefix))


def _whole(document: Mapping[str, Any], fields: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    held = document.get(prefix)
    if held is not None and not isinstance(held, Mapping):
        return dict(document)  # the user's own field: such a document has no fingerprint, and a problem reported
    dotted = {f"{prefix}.{name}" for name in GROUPED}
    rest = {key: value for key, value in (held or {}).items() if key not in GROUPED}
    given = {key: value for key, value in fields.items() if value is not None}
    return {key: value for key, value in document.items() if key not in dotted} | {prefix: {**rest, **given}}


def _fields_of(draft: Draft, at: str) -> dict[str, Any]:
    is_duplicate = draft.group != draft.id
    return group_fields(draft.group, canonical=draft.group if is_duplicate else None, distance=draft.distance, at=at)


def regroup_body(draft: Draft, prefix: str, at: str) -> dict[str, Any]:
    """
    Return the body of an update that puts the decision about *draft* into the document that is written already.
    """
    return {"doc": {prefix: _fields_of(draft, at)}}
