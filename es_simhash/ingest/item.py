"""
One document on its way through an ingest, and the group fields that it is sent with. Nothing is sent.

``reading`` makes an item with its *operation* and *part*, and tells what is decided about once its fields are put in;
the engine in ``ingest`` gives it its *decision*; the bulk its *outcome*, where an *upsert* may take its place;
``settle`` decides some again; ``written`` reports on it. One object goes this whole way, and stays as long as it is
known.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence, Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from es_simhash.errors import shorten
from es_simhash.ingest.actions import Part, Whole
from es_simhash.ingest.content_reader import ContentReader
from es_simhash.ingest.decide import Decision, Document, Existing
from es_simhash.lookup.content import Content
from es_simhash.mapping.fields import (
    FINGERPRINTED,
    GROUPED,
    group_fields,
    our_object,
    read_fingerprint,
    users_content,
    with_fields,
    without_fingerprint,
)
from es_simhash.mapping.user_fields import to_moment
from es_simhash.transport.raw_json import JsonObject, keep_text
from es_simhash.writes.operations import Operation, Outcome, new_id

CREATED, UNCHANGED = 201, 304


@dataclass(slots=True, eq=False)
class Item(Document):
    """
    One document of an ingest on its way; ``None`` stands before a step, or where it does not apply.
    *position*: among the documents given, from 0. *operation*: ``None`` if what was given is no operation.
    *is_decided*: whether it is decided about, which an update that leaves the fingerprint alone is not. *problems*: of
    a document that is written anyway; *doubt*: about its decision; *missed*: the part of this about what was not
    compared. *weight*: about how many characters it takes in a request. *texts*: those whose fields are wanted. *part*:
    what was read of it, unless it is a plain document, until it has its fields. *upsert*: of an update, the document
    that the server creates where there is none to update. *given_id*: the id of a whole document, if it came with one.
    *is_text*: a plain text was given.
    """

    id: str = ""
    fingerprint: int | None = None
    position: int = 0
    operation: Operation | None = None
    is_decided: bool = False
    problems: tuple[str, ...] = ()
    outcome: Outcome | None = None
    decision: Decision | None = None
    weight: int = 0
    texts: tuple[str, ...] = ()
    part: Part | None = None
    upsert: Item | None = None
    given_id: str | None = None
    doubt: str | None = None
    missed: str | None = None
    is_text: bool = False

    def finish(self, fields: Sequence[dict[str, Any]]) -> None:
        """Take *fields*, those below the prefix for each text; those of a whole document are put in when it is sent."""
        if self.operation is not None:
            if self.operation.kind == "update":
                if self.part is not None:
                    self.operation.body = self.part.place(fields)
            elif fields or isinstance(self.part, Whole):
                self.operation.ours = fields[0] if fields else {}
        self.texts, self.part = (), None

    def as_written(self, outcome: Outcome | None) -> Item:
        """Return it with its *outcome*; an update that created its ``upsert`` is that document from now on."""
        item = self
        if self.upsert is not None and outcome is not None and outcome.status == CREATED:
            item = self.upsert
        item.outcome = outcome
        return item

    def take(self, decision: Decision, existing: Existing, prefix: str) -> None:
        """Take the *decision* about it: its group fields, unless it is written already, and its doubts."""
        operation = self.operation
        if operation is None:
            return
        leader, self.decision, self.doubt, self.missed = decision.leader, decision, None, None
        gaps = () if self.fingerprint is None else existing.gaps.get(self.fingerprint, ())
        if gaps or decision.uncompared:
            reasons = "; ".join([*gaps, *map(str, decision.uncompared)])
            self.missed = f"a near-duplicate may have been missed ({reasons})"
            # A text that nobody can read is not read by reconcile either.
            may_find = gaps or any(one.why.kind != "text" for one in decision.uncompared)
            self.doubt = f"{self.missed}: run reconcile" if may_find else self.missed
        elif leader is not None and decision.is_stale:
            self.doubt = (
                f"{shorten(leader.id)} is near, and its canonical {shorten(decision.group)} is gone, or has another "
                "text: run reconcile"
            )
        if decision.verdict == "skip" or self.outcome is not None:
            return
        created = self.upsert
        is_alike = created is not None and created.is_decided and _are_alike(self, created)
        self.operation = put_decision(operation, self, decision, prefix=prefix, with_upsert=is_alike)
        if created is not None and is_alike:
            created.decision, created.doubt, created.missed = decision, self.doubt, self.missed
            created.group, created.at = self.group, self.at
            created.is_member, created.canonicals = self.is_member, self.canonicals

    def is_held(self, hits: Iterable[Mapping[str, Any]], index: str, prefix: str, gone: AbstractSet[str]) -> bool:
        """Return whether one of *hits* is the same document and has a group, none of *gone*; note that outcome then."""
        operation = self.operation
        # A pipeline may change the document, a version forbid it.
        if operation is None or not operation.header.keys() <= {"_index", "_id", "routing"}:
            return False
        routing = operation.header.get("routing")
        for hit in hits:
            source = hit.get("_source") or {}
            ours = our_object(source, prefix)
            is_there = operation.header["_index"] in (index, hit["_index"]) and "at" in ours
            is_there = is_there and ours.get("duplicate_of") not in gone
            if is_there and hit.get("_routing") == (None if routing is None else str(routing)):
                plain = {**source, prefix: _without_group(ours)}
                if _as_json(plain) == _as_json({prefix: {}, **operation.document(prefix)}):
                    self.outcome = Outcome(hit["_id"], hit["_index"], UNCHANGED, is_same=True)
                    self.is_decided = False
                    distance = ours.get("distance") if "duplicate_of" in ours else 0
                    self.decision = Decision("write", str(ours.get("group", hit["_id"])), distance)
                    return True
        return False

    @property
    def reason(self) -> str | None:
        """Why a document that is written may be grouped wrongly, or is not grouped."""
        return self.doubt or self.problem

    @property
    def problem(self) -> str | None:
        """What is wrong with a document that is written all the same."""
        return self.problems[-1] if self.problems else None

    @property
    def is_sent(self) -> bool:
        """Whether it is to be sent, and was not yet."""
        return self.operation is not None and self.outcome is None and not self.is_skipped

    @property
    def is_skipped(self) -> bool:
        return self.decision is not None and self.decision.verdict == "skip"

    @property
    def leader_position(self) -> int | None:
        """Position of the document that it duplicates, if that is one of this ingest."""
        leader = None if self.decision is None else self.decision.leader
        return None if leader is None else leader.position

    @property
    def is_lost(self) -> bool:
        """Whether what was decided about is not there: it was refused, or another document was written for it."""
        outcome = self.outcome
        if outcome is None or not self.is_decided:
            return False
        return outcome.error is not None or outcome.id != self.id or self.decision is None

    @property
    def is_refused(self) -> bool:
        """Whether it will not be written: refused before or by the server, or dropped by a pipeline."""
        return self.outcome is not None and not self.outcome.is_done

    def read_operation(self, prefix: str, reader: ContentReader | None) -> None:
        """
        Learn from the operation, which has its fields, what is decided about; it gets an id if it has none.
        A delete has no fingerprint, so that the document is no longer taken for a canonical. *reader*: ``None`` where
        only distances count.
        """
        operation = self.operation
        if operation is None:
            return
        self.fingerprint, self.is_decided = _fingerprint_of(operation, prefix)
        if not self.is_decided:
            return
        header = operation.header
        if operation.kind in ("index", "create") and header.get("_id") is None:
            operation.header = header = {**header, "_id": new_id()}
        self.id, self.index, self.routing = str(header.get("_id")), header.get("_index"), header.get("routing")
        self.must_write = operation.kind in ("update", "delete")
        self.is_deletion = operation.kind == "delete"
        if reader is not None and self.fingerprint is not None:
            self.content = _content_of(operation, reader)

    def release(self) -> None:
        """Let go of all that only its report needs: from now on it is one of the known documents."""
        self.operation = self.part = self.decision = self.upsert = self.outcome = None


def content_id(document: Any, prefix: str) -> str:
    """
    Return an id made only of the content of *document*, so that writing it again adds nothing.
    128 bits of the SHA-256 of its JSON, keys sorted, without the fingerprint fields; 32 hex digits.
    """
    own = without_fingerprint(document, prefix=prefix) if isinstance(document, Mapping) else document
    text = json.dumps(own, sort_keys=True, ensure_ascii=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _as_json(document: Mapping[str, Any]) -> str | None:
    try:
        return json.dumps(document, sort_keys=True)
    except (TypeError, ValueError, RecursionError):
        return None  # what only a client can write


def has_fingerprint(operation: Operation, prefix: str) -> bool:
    if operation.ours is not None:
        return operation.ours.get("fingerprint") is not None
    body = operation.body.get("doc") if operation.kind == "update" else operation.body
    return isinstance(body, Mapping) and our_object(body, prefix).get("fingerprint") is not None


def read_own(body: Any, prefix: str) -> dict[str, Any] | None:
    """Return our fields of a whole document, without the prefix; ``None`` if it has something of the user's there."""
    is_ours = isinstance(body, Mapping) and not isinstance(body, str) and users_content(body, prefix) is None
    return dict(body.get(prefix) or {}) if is_ours else None


def _written_fields(operation: Operation) -> Mapping[str, Any] | None:
    """Return the fields that the operation writes: of an update, those of its partial document."""
    body = operation.body.get("doc") if operation.kind == "update" else operation.body
    return body if isinstance(body, Mapping) else None


def _content_of(operation: Operation, reader: ContentReader) -> Content | None:
    written = _written_fields(operation)
    return None if written is None else reader.read(written, is_partial=operation.kind == "update")


def _fingerprint_of(operation: Operation, prefix: str) -> tuple[int | None, bool]:
    """Return the fingerprint that the document will have, and whether the operation decides that."""
    own: Mapping[str, Any] = operation.ours or {}
    if operation.kind == "update":
        body = operation.body if isinstance(operation.body, Mapping) else {}
        doc = body.get("doc")
        if not isinstance(doc, Mapping) or prefix not in doc:
            return None, "script" in body
        own = our_object(doc, prefix)
    return read_fingerprint(own.get("fingerprint")), True


def upsert_of(operation: Operation, prefix: str) -> Operation | None:
    """Return the creation of another document, which the update *operation* writes where there is none to update."""
    body = operation.body
    if operation.kind != "update" or not isinstance(body, Mapping) or not isinstance(body.get("upsert"), Mapping):
        return None
    # With these the server writes the partial document, or what a script makes.
    is_other = any(str(body.get(name)).lower() == "true" for name in ("doc_as_upsert", "scripted_upsert"))
    if is_other:
        return None
    upsert = body["upsert"]
    whole = body.part("upsert").with_values(upsert) if isinstance(body, JsonObject) else upsert
    return Operation("create", operation.header, whole, read_own(whole, prefix))


def _are_alike(one: Document, other: Document) -> bool:
    """Return whether whatever is decided about *one* holds for *other*, which is written under the same id."""
    contents = [None if document.content is None else document.content.key for document in (one, other)]
    return one.fingerprint == other.fingerprint and contents[0] == contents[1]


def put_decision(
    operation: Operation, document: Document, decision: Decision, *, prefix: str, with_upsert: bool = False
) -> Operation:
    """
    Return *operation* with the group fields of *decision*; those that came with it are dropped.
    The ``upsert`` of an update is another document: if not *with_upsert*, it gets none, and is decided about once it is
    written. A document without fingerprint is a group by itself, so that ``collapse`` does not fold all into one.
    """
    body, doc = operation.body, None
    if operation.ours is not None:
        own = _without_group(operation.ours)
        own |= {name: value for name, value in _fields_of(document, decision).items() if value is not None}
        return Operation(operation.kind, operation.header, body, own, operation.members)
    if operation.kind == "update" and isinstance(body, Mapping):
        doc = body.get("doc")
    if not isinstance(doc, Mapping) or not isinstance(doc.get(prefix), Mapping):
        return operation
    fields = _fields_of(document, decision)
    changed = {**body, "doc": {**doc, prefix: {**doc[prefix], **fields}}}
    if (ours := read_own(upsert := body.get("upsert"), prefix)) is not None:
        ours = _without_group(ours) | (
            {key: value for key, value in fields.items() if value is not None} if with_upsert else {}
        )
        changed["upsert"] = with_fields(upsert, {prefix: ours}, prefix=prefix, gone=(*FINGERPRINTED, *GROUPED))
    return Operation(operation.kind, operation.header, keep_text(body, changed))


def _without_group(own: Mapping[str, Any]) -> dict[str, Any]:
    kept = dict(own)
    for name in GROUPED:
        kept.pop(name, None)
    return kept


def _fields_of(document: Document, decision: Decision) -> dict[str, Any]:
    canonical = decision.group if decision.group != document.id else None
    at = to_moment(decision.at)
    return group_fields(decision.group, canonical=canonical, distance=decision.distance, at=at)


def regroup_body(document: Document, decision: Decision, *, prefix: str) -> dict[str, Any]:
    """Return the body of an update that puts *decision* into a document that is written already."""
    return {"doc": {prefix: _fields_of(document, decision)}}
