"""
One document of an ingest on its way: from the operation given, by the decision, to the operation sent and its outcome.

Pure. Nothing is sent, and nothing given is changed: each step returns a new item.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from es_simhash.groups.content import Content, to_moment
from es_simhash.hashing import from_hex
from es_simhash.ingest.decide import Decision, Draft
from es_simhash.ingest.read_content import ContentReader
from es_simhash.mapping.fields import GROUPED, group_fields, without_fingerprint
from es_simhash.transport.raw_json import keep_text
from es_simhash.writes.operations import Operation, Outcome


@dataclass(frozen=True, slots=True)
class Container:
    """
    A document that contains another one.

    Attributes:
        id:
            Its ``_id``.
        index:
            Name of the index that holds it.
        share:
            Share of the shingles of the other one that it has.
    """

    id: str
    index: str
    share: float

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        return {"id": self.id, "index": self.index, "share": self.share}


@dataclass(frozen=True, slots=True)
class Item:
    """
    One document of an ingest, on its way.

    Attributes:
        position:
            Its place among the documents given, from 0.
        operation:
            The operation to send; ``None`` where what was given is no operation, or is not written because of its
            *container*.
        problem:
            The problem of a document that is written anyway, for the report.
        outcome:
            What became of it; ``None`` until then, and for a document that is skipped.
        draft:
            The document as it is decided about; ``None`` where it is not grouped.
        decision:
            What was decided; ``None`` until then.
        container:
            The document to which it adds nothing; ``None`` where there is none, or nobody asked.
        container_position:
            The position of *container*, where it is of the same batch.
        withheld:
            The operation that is not sent because of a *container* of the same batch, unless that is not written.
    """

    position: int
    operation: Operation | None
    problem: str | None = None
    outcome: Outcome | None = None
    draft: Draft | None = None
    decision: Decision | None = None
    container: Container | None = None
    container_position: int | None = None
    withheld: Operation | None = None

    def with_outcome(self, outcome: Outcome | None) -> Item:
        """Return it with this *outcome*."""
        return replace(self, outcome=outcome)

    def without_container(self) -> Item:
        """Return it as one that adds something: an operation that was withheld is to be sent."""
        return replace(
            self, operation=self.withheld or self.operation, container=None, container_position=None, withheld=None
        )

    @property
    def is_skipped(self) -> bool:
        """Whether it was decided not to write it."""
        return self.decision is not None and self.decision.verdict == "skip"

    @property
    def leader_position(self) -> int | None:
        """Position of the document that it duplicates, if that is one of this ingest."""
        leader = None if self.decision is None else self.decision.leader
        return None if leader is None else leader.position

    @property
    def is_renamed(self) -> bool:
        """Whether the server, or a pipeline of it, wrote it under another id than the one it was decided about with."""
        outcome, draft = self.outcome, self.draft
        return outcome is not None and outcome.is_done and draft is not None and outcome.id != draft.id

    @property
    def is_refused(self) -> bool:
        """Whether it was sent, and not written: refused, or dropped by a pipeline."""
        return self.outcome is not None and not self.outcome.is_done


def content_id(document: Any, prefix: str) -> str:
    """
    Return an id that depends only on the content of *document*; so writing the same document again adds nothing.

    128 bits of the SHA-256 of its JSON, keys sorted, our own fields left out; 32 hex digits.
    """
    own = without_fingerprint(document, prefix=prefix) if isinstance(document, Mapping) else document
    text = json.dumps(own, sort_keys=True, ensure_ascii=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def has_fingerprint(operation: Operation, prefix: str) -> bool:
    """
    Return whether the document of *operation* is sent with a fingerprint.
    """
    body = operation.body.get("doc") if operation.kind == "update" else operation.body
    own = body.get(prefix) if isinstance(body, Mapping) else None
    return isinstance(own, Mapping) and own.get("fingerprint") is not None


def with_draft(item: Item, prefix: str, *, with_source: bool, reader: ContentReader | None = None) -> Item:
    """
    Return *item* with a draft, and with an id in its operation where that has none.

    An update that does not change the fingerprint gets no draft. A delete gets one without a fingerprint, so that the
    document is no longer taken for a canonical. *reader* reads what the document is compared by, where more than
    distances count.
    """
    operation = item.operation
    if operation is None:
        return item
    fingerprint, is_decided = _fingerprint_of(operation, prefix)
    if not is_decided:
        return item
    if operation.kind in ("index", "create") and operation.header.get("_id") is None:
        operation = Operation(operation.kind, {**operation.header, "_id": uuid.uuid4().hex}, operation.body)
    draft = Draft(
        item.position,
        str(operation.header.get("_id")),
        fingerprint,
        operation.header.get("_index"),
        _written_fields(operation) if with_source else None,
        operation.header.get("routing"),
        must_write=operation.kind in ("update", "delete"),
        content=None if reader is None or fingerprint is None else _content_of(operation, reader),
    )
    return Item(item.position, operation, item.problem, item.outcome, draft)


def _written_fields(operation: Operation) -> Mapping[str, Any] | None:
    """Return the fields that the operation writes: of an update, those of its partial document."""
    body = operation.body.get("doc") if operation.kind == "update" else operation.body
    return body if isinstance(body, Mapping) else None


def _content_of(operation: Operation, reader: ContentReader) -> Content:
    is_partial = operation.kind == "update"
    return reader.read(operation.body["doc"] if is_partial else operation.body, is_partial=is_partial)


def _fingerprint_of(operation: Operation, prefix: str) -> tuple[int | None, bool]:
    """Return the fingerprint that the document will have, and whether the operation decides that."""
    body = operation.body if isinstance(operation.body, Mapping) else {}
    if operation.kind == "update":
        doc = body.get("doc")
        if not isinstance(doc, Mapping) or prefix not in doc:
            return None, "script" in body
        body = doc
    own = body.get(prefix)
    digits = own.get("fingerprint") if isinstance(own, Mapping) else None
    return (None if digits is None else from_hex(digits)), True


def put_decision(operation: Operation, draft: Draft, decision: Decision, *, prefix: str) -> Operation:
    """
    Return *operation* with the group fields of *decision*; group fields that came with the document are dropped.

    A document without fingerprint is a group of its own, so that ``collapse`` does not fold all of them into one.
    """
    body = operation.body
    if operation.kind == "delete" or not isinstance(body, Mapping):
        return operation
    fields = _fields_of(draft, decision)
    if operation.kind == "update":
        doc = body.get("doc")
        if not isinstance(doc, Mapping) or not isinstance(doc.get(prefix), Mapping):
            return operation
        changed = {"doc": {**doc, prefix: {**doc[prefix], **fields}}}
        upsert = body.get("upsert")
        if isinstance(upsert, Mapping):
            changed["upsert"] = _with_fields(upsert, fields, prefix)
        return replace(operation, body=keep_text(body, {**body, **changed}))
    return replace(operation, body=keep_text(body, _with_fields(body, fields, prefix)))


def _with_fields(document: Mapping[str, Any], fields: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    own = document.get(prefix)
    if own is not None and not isinstance(own, Mapping):
        return dict(document)  # the user's own field: such a document has no fingerprint, and a problem reported
    changed = {key: value for key, value in (own or {}).items() if key not in GROUPED}
    changed |= {key: value for key, value in fields.items() if value is not None}
    dotted = _dotted(prefix)
    if dotted.isdisjoint(document):
        return {**document, prefix: changed}
    return {key: value for key, value in document.items() if key not in dotted} | {prefix: changed}


@cache
def _dotted(prefix: str) -> frozenset[str]:
    return frozenset(f"{prefix}.{name}" for name in GROUPED)


def _fields_of(draft: Draft, decision: Decision) -> dict[str, Any]:
    canonical = decision.group if decision.group != draft.id else None
    at = to_moment(decision.at)
    return group_fields(decision.group, canonical=canonical, distance=decision.distance, at=at)


def regroup_body(draft: Draft, decision: Decision, *, prefix: str) -> dict[str, Any]:
    """
    Return the body of an update that puts *decision* into a document that is written already.
    """
    return {"doc": {prefix: _fields_of(draft, decision)}}
