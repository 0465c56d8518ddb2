"""
One document on its way through an ingest, and the group fields that it is sent with. Nothing is sent.

``reading`` makes an item with its *operation* and *part*, and tells what is decided about once its fields are put in;
the engine in ``ingest`` gives it its *decision*; the bulk its *outcome*; ``written`` reports on it. Then only its
*document* is kept, as one that searches may not show yet.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence, Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Any

from es_simhash.errors import shorten
from es_simhash.ingest.actions import Part, Whole
from es_simhash.ingest.content_reader import ContentReader
from es_simhash.ingest.decide import Decision, Document, Existing
from es_simhash.mapping.fields import (
    GROUPED,
    group_fields,
    now,
    our_object,
    read_fingerprint,
    users_content,
    without_fingerprint,
)
from es_simhash.mapping.user_fields import milliseconds_of, to_moment
from es_simhash.transport.protocol import Key
from es_simhash.transport.raw_json import keep_text
from es_simhash.writes.operations import Operation, Outcome, new_id

CREATED, UNCHANGED = 201, 304


@dataclass(slots=True, eq=False)
class Item:
    """
    One document of an ingest on its way; ``None`` stands before a step, or where it does not apply.
    *position*: among the documents given, from 0. *operation*: ``None`` if what was given is no operation. *document*:
    what is decided about; ``None`` for an update that leaves the fingerprint alone. *problems*: of a document that is
    written anyway; *doubt*: about its decision; *missed*: the part of this about what was not compared. *weight*: about
    how many characters it takes in a request. *texts*: those whose fields are wanted. *part*: what was read of it,
    unless it is a plain document, until it has its fields. *upsert*: the problems of the ``upsert`` of an update, which
    the server writes where there is nothing to update, if the decision does not hold for that. *given_id*: the id of a
    whole document, if it came with one. *is_text*: a plain text was given. *is_lost*: what was decided about is not
    there: it was refused, or another document was written for it. *is_upset*: it is there, in no group yet, or in that
    of another name.
    """

    position: int = 0
    operation: Operation | None = None
    document: Document | None = None
    problems: tuple[str, ...] = ()
    outcome: Outcome | None = None
    decision: Decision | None = None
    weight: int = 0
    texts: tuple[str, ...] = ()
    part: Part | None = None
    upsert: tuple[str, ...] | None = None
    given_id: str | None = None
    doubt: str | None = None
    missed: str | None = None
    is_text: bool = False
    is_lost: bool = False
    is_upset: bool = False

    def finish(self, fields: Sequence[dict[str, Any]]) -> None:
        """Take *fields*, those below the prefix for each text; those of a whole document are put in when it is sent."""
        if self.operation is not None:
            if self.operation.kind == "update":
                if self.part is not None:
                    self.operation.body = self.part.place(fields)
            elif fields or isinstance(self.part, Whole):
                self.operation.ours = fields[0] if fields else {}
        self.texts, self.part = (), None

    def read_operation(self, prefix: str, reader: ContentReader | None) -> None:
        """
        Learn from the operation, which has its fields, what is decided about; it gets an id if it has none.
        A delete has no fingerprint, so that the document is no longer taken for a canonical. *reader*: ``None`` where
        only distances count.
        """
        operation = self.operation
        if operation is None:
            return
        fingerprint, is_decided = _fingerprint_of(operation, prefix)
        if not is_decided:
            return
        header = operation.header
        if operation.kind in ("index", "create") and header.get("_id") is None:
            operation.header = header = {**header, "_id": new_id()}
        document = Document(str(header.get("_id")), fingerprint, "", header.get("_index"), header.get("routing"))
        document.position = self.position
        document.must_write = operation.kind in ("update", "delete")
        document.is_deletion = operation.kind == "delete"
        if reader is not None and fingerprint is not None:
            written = _written_fields(operation)
            document.content = None if written is None else reader.read(written, is_partial=operation.kind == "update")
        self.document = document
        if self.upsert is not None and self._is_upsert_alike(operation, document, prefix, reader):
            self.upsert = None

    def _is_upsert_alike(
        self, operation: Operation, document: Document, prefix: str, reader: ContentReader | None
    ) -> bool:
        """Return whether whatever is decided about *document* holds for the ``upsert`` of *operation*."""
        upsert = operation.body["upsert"]
        if read_fingerprint(our_object(upsert, prefix).get("fingerprint")) != document.fingerprint:
            return False
        return document.content is None or reader is None or reader.read(upsert).key == document.content.key

    def take(self, decision: Decision, existing: Existing, prefix: str) -> None:
        """Take the *decision* about it: its group fields, and its doubts."""
        operation, document = self.operation, self.document
        if operation is None or document is None:
            return
        leader, self.decision, self.doubt, self.missed = decision.leader, decision, None, None
        gaps = () if document.fingerprint is None else existing.gaps.get(document.fingerprint, ())
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
        if decision.verdict != "skip":
            self.operation = put_decision(operation, document, decision, prefix=prefix, with_upsert=self.upsert is None)

    def take_outcome(
        self, outcome: Outcome | None, prefix: str, reader: ContentReader | None, *, is_grouped: bool
    ) -> None:
        """
        Take the *outcome* of its operation, and see whether that wrote what was decided about.
        It did not where it was refused, where a pipeline chose the id, or where an update created its ``upsert``, which
        is the document from then on.
        """
        self.outcome, document = outcome, self.document
        if outcome is None or outcome.error is not None:
            self.is_lost = outcome is not None and document is not None
        elif outcome.status == CREATED and self.upsert is not None and self.operation is not None:
            self.problems, self.upsert, self.decision = self.upsert, None, None
            self.is_lost, self.is_upset = document is not None, True
            self.operation = created_by(self.operation, prefix)
            if is_grouped:
                self.read_operation(prefix, reader)
        elif document is not None and outcome.id not in (None, document.id):
            self.is_lost = self.is_upset = True
            self.document = replace(document, id=outcome.id)

    def take_group(self, ours: Mapping[str, Any]) -> None:
        """Take the group that our fields *ours* say, if it is another one."""
        group, is_copy = str(ours.get("group")), ours.get("duplicate_of") is not None
        if self.document is not None and self.document.group == group and not self.is_upset:
            return
        if self.document is not None:
            at = milliseconds_of(ours.get("at")) or 0
            self.document = replace(self.document, group=group, at=at, is_member=is_copy, canonicals=None)
        self.is_upset = False
        self.decision = Decision("tag" if is_copy else "write", group, ours.get("distance") if is_copy else 0)
        self.doubt = None

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
                    self.take_group({"group": hit["_id"], **ours})
                    self.outcome = Outcome(hit["_id"], hit["_index"], UNCHANGED, is_same=True)
                    return True
        return False

    def takes_for_gone(self, ids: AbstractSet[str]) -> bool:
        """Return whether it was decided as if one of *ids*, its canonical, were gone or had another text."""
        return self.decision is not None and self.decision.is_stale and self.decision.group in ids

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
    def is_bare(self) -> bool:
        """Whether the document has no fingerprint."""
        return self.document is not None and self.document.fingerprint is None

    @property
    def is_skipped(self) -> bool:
        return self.decision is not None and self.decision.verdict == "skip"

    @property
    def leader(self) -> Document | None:
        """The document that it duplicates."""
        return None if self.decision is None else self.decision.leader

    @property
    def key(self) -> Key:
        """The key of the document that was written."""
        document, outcome = self.document, self.outcome
        routing = None if document is None or document.routing is None else str(document.routing)
        return Key(outcome.index or "", outcome.id or "", routing) if outcome else Key("", "")

    @property
    def is_done(self) -> bool:
        return self.outcome is not None and self.outcome.is_done


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


def has_upsert(operation: Operation) -> bool:
    """Return whether the update *operation* may write its ``upsert``."""
    body = operation.body
    if operation.kind != "update" or not isinstance(body, Mapping) or not isinstance(body.get("upsert"), Mapping):
        return False
    # With these the server writes the partial document, or what a script makes.
    is_other = any(str(body.get(name)).lower() == "true" for name in ("doc_as_upsert", "scripted_upsert"))
    return not is_other


def created_by(operation: Operation, prefix: str) -> Operation:
    """Return the creation of the ``upsert`` that the update *operation* wrote."""
    whole = operation.body["upsert"]
    return Operation("create", operation.header, whole, read_own(whole, prefix))


def put_decision(
    operation: Operation, document: Document, decision: Decision, *, prefix: str, with_upsert: bool
) -> Operation:
    """
    Return *operation* with the group fields of *decision*; those that came with it are dropped.
    Without *with_upsert*, the ``upsert`` of an update is another document, and gets its group once it is written. A
    document without fingerprint is a group by itself, so that ``collapse`` does not fold all into one.
    """
    body, fields = operation.body, _fields_of(document, decision)
    given = {name: value for name, value in fields.items() if value is not None}
    if operation.ours is not None:
        own = _without_group(operation.ours) | given
        return Operation(operation.kind, operation.header, body, own, operation.members)
    doc = body.get("doc") if operation.kind == "update" and isinstance(body, Mapping) else None
    if not isinstance(doc, Mapping) or not isinstance(doc.get(prefix), Mapping):
        return operation
    changed = {**body, "doc": {**doc, prefix: {**doc[prefix], **fields}}}
    if with_upsert and isinstance(upsert := body.get("upsert"), Mapping) and prefix in upsert:
        changed["upsert"] = {**upsert, prefix: {**upsert[prefix], **given}}
    return Operation(operation.kind, operation.header, keep_text(body, changed))


def name_group(prefix: str, place: Key, found: Mapping[str, Any]) -> tuple[str, Any]:
    """Return the update that makes a document without a fingerprint, as it was *found*, a group by itself."""
    at = our_object(found.get("_source") or {}, prefix).get("at") or now()
    return "update", {"doc": {prefix: {"group": place.id, "at": at}}}


def _without_group(own: Mapping[str, Any]) -> dict[str, Any]:
    kept = dict(own)
    for name in GROUPED:
        kept.pop(name, None)
    return kept


def _fields_of(document: Document, decision: Decision) -> dict[str, Any]:
    canonical = decision.group if decision.group != document.id else None
    at = to_moment(decision.at)
    return group_fields(decision.group, canonical=canonical, distance=decision.distance, at=at)
