"""
One operation of a bulk request, its outcome, and why it failed: plain values. Code reads ``kind`` and ``status``.

Every write asks here whether a refusal concerns the document, or whatever is written now.
"""

from __future__ import annotations

import base64
import re
import secrets
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from es_simhash.errors import InvalidInputError, WritesRefusedError, has_lone_surrogate, shorten
from es_simhash.mapping.fields import with_fields
from es_simhash.record import Record
from es_simhash.transport.raw_json import JsonObject, as_sent, keep_text, quoted
from es_simhash.transport.refusals import BLOCK, UNBLOCK, is_passing

FailureKind: TypeAlias = Literal["refused", "changed", "missing", "unreadable", "unusable", "taken"]
_KINDS: Mapping[int, FailureKind] = {404: "missing", 409: "changed"}

# Elasticsearch quotes the beginning of a document that is no JSON, and the place behind it.
_QUOTED = re.compile(r"\(byte\[\]\)\".*\"(?:\[truncated [^\]]*\])?; ", re.DOTALL)

UNAVAILABLE = 503
Hindrance: TypeAlias = Literal["busy", "blocked", "forbidden", "missing"]
# A server may refuse each document of a user with masked fields by 500 (OpenSearch) or 400 (Elasticsearch).
_HINDRANCES: Mapping[str, Hindrance] = {
    BLOCK: "blocked",
    "security_exception": "forbidden",
    "index_closed_exception": "missing",
    "index_not_found_exception": "missing",
}
_ADVICE: Mapping[Hindrance, str] = {
    "busy": "run it again when the server is less busy, or see its log",
    "blocked": UNBLOCK,
    "forbidden": "run it again with a login that may write there, and sees whole documents",
    "missing": "open or create the index, and run it again",
}

# Keys that belong to the action line of a bulk request, with and without the underscore of older spellings.
# fmt: off
_METADATA = (
    "dynamic_templates", "if_primary_term", "if_seq_no", "list_executed_pipelines", "pipeline", "require_alias",
    "require_data_stream", "retry_on_conflict", "routing", "version", "version_type",
)
# fmt: on

HELPER_METADATA = ("_op_type", "_id", "_index", *(f"_{name}" for name in _METADATA), *_METADATA)
"""Names that the clients' bulk helpers may take out of an action that is a dict."""

# Where an action has none of these, it is a document, perhaps with an id.
SPECIAL = frozenset({"_op_type", "_index", "_source", *(f"_{name}" for name in _METADATA)})
_FLAGS = frozenset({"list_executed_pipelines", "require_alias", "require_data_stream"})
_NUMBERS = frozenset({"if_primary_term", "if_seq_no", "retry_on_conflict", "version"})


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why the server did not carry an operation out, in its words; *type* is empty if it gave none."""

    status: int
    type: str = ""
    reason: str = ""
    cause: Refusal | None = None

    def __str__(self) -> str:
        said = f"{self.type}: {self.reason.rstrip(';')}" if self.type else self.reason or f"status {self.status}"
        return said if self.cause is None else f"{said}; {self.cause}"

    @property
    def hindrance(self) -> Hindrance | None:
        """What hinders every write now; ``None`` where the document, or its version, is the reason."""
        if self.type in _HINDRANCES and self.status != UNAVAILABLE:  # a server that starts has a block, too
            return _HINDRANCES[self.type]
        if is_passing(self.status):
            return "busy"
        return "forbidden" if self.status in (401, 403) else None

    @classmethod
    def read(cls, status: int, error: Any) -> Refusal:
        """Return the refusal in the ``error`` of an item of a bulk or multi-get answer."""
        if not isinstance(error, Mapping):
            return cls(status, reason=str(error))
        cause = error.get("caused_by")
        behind = cls(status, *_words(cause)) if isinstance(cause, Mapping) else None
        return cls(status, *_words(error), behind)


def _words(error: Mapping[str, Any]) -> tuple[str, str]:
    return str(error.get("type") or ""), _QUOTED.sub("", str(error.get("reason") or ""))


@dataclass(frozen=True, slots=True)
class Failure(Record):
    """
    A document that could not be read or changed; *status* is ``None`` if the server refused nothing.
    ``"refused"``: the server refused the write; ``"changed"``: others kept changing it; ``"missing"``: there is no such
    document; ``"unreadable"``: the server could not read it now; ``"unusable"``: its content, such as a number for a
    text; ``"taken"``: it has something of its own where our fields go.
    """

    kind: FailureKind
    index: str
    id: str
    reason: str
    status: int | None = None

    def __str__(self) -> str:
        return f"{self.index}/{self.id}: {self.reason}"


@dataclass(slots=True)
class Operation:
    """
    One operation of a bulk request: ``index``, ``create``, ``update`` or ``delete``; *header* is its action line.
    *ours*: our fields, without the prefix, that a whole document gets when it is sent; ``None``: it is sent as it is.
    *members*: the JSON of the body without the last brace, where that was made, and the body has nothing of ours.
    """

    kind: str
    header: Mapping[str, Any]
    body: Any = None
    ours: Mapping[str, Any] | None = None
    members: str | None = None

    def document(self, prefix: str) -> Any:
        """Return the body as it is sent."""
        if self.ours is None:
            return self.body
        return keep_text(self.body, with_fields(self.body, {prefix: self.ours} if self.ours else {}, prefix=prefix))

    def lines(self, prefix: str) -> list[Any]:
        if self.members is not None and self.ours:  # most documents, without detours
            header, ours = as_sent(self.header), as_sent(self.ours)
            return [f'{{"{self.kind}":{header}}}', f"{self.members},{quoted(prefix)}:{ours}}}"]
        first: list[Any] = [{self.kind: dict(self.header)}]
        if self.kind == "delete":
            return first
        body = self.document(prefix)
        return [*first, body.to_json() if isinstance(body, JsonObject) else body]


def to_operation(action: Any, index: str | None = None) -> Operation:
    """Return the operation for *action*, in the form of the clients' bulk helpers; *index* is used if it names none."""
    if not isinstance(action, (dict, Mapping)):
        raise InvalidInputError(f"action {shorten(action)} is not a document: give a dict")
    header: dict[str, Any] = {} if index is None else {"_index": index}
    rest = dict(action)
    if SPECIAL.isdisjoint(rest):  # most documents, without detours
        if (id_ := rest.pop("_id", None)) is not None:
            _check_metadata("_id", id_)
            header["_id"] = id_
        return Operation("index", header, keep_text(action, rest))
    kind = rest.pop("_op_type", "index")
    if kind not in ("index", "create", "update", "delete"):
        raise InvalidInputError(f"_op_type {shorten(kind)} is not known: give index, create, update or delete")
    plain = "_source" not in rest and kind in ("index", "create")
    # In a plain document only the underscored names are metadata: `version` may be the user's own field.
    names = {"_id": "_id", "_index": "_index"} | {f"_{name}": name for name in _METADATA}
    for key, name in (names if plain else names | {name: name for name in _METADATA}).items():
        if key in rest:
            value = rest.pop(key)
            if value is not None:
                header[name] = value
    for name, value in header.items():
        _check_metadata(name, value)
    if kind == "delete":
        return Operation(kind, header)
    return Operation(kind, header, rest["_source"] if "_source" in rest else keep_text(action, rest))


def _check_metadata(name: str, value: Any) -> None:
    """Refuse a value with which the server would refuse the whole request, or a search for the document."""
    if name == "dynamic_templates" or (name in ("_id", "_index") and type(value) is str and value and value.isascii()):
        return
    if name == "_id" and value == "":
        raise InvalidInputError("_id '' is empty: give one, or leave it out")
    if isinstance(value, bool) != (name in _FLAGS) or not isinstance(value, (str, int)):
        raise InvalidInputError(f"{name} cannot be {shorten(value)}: give a string or a whole number")
    if isinstance(value, str) and has_lone_surrogate(value):
        raise InvalidInputError(f"{name} {shorten(value)} has half of a surrogate pair: no server can store it")
    if name in _NUMBERS and not re.fullmatch(r"-?[0-9]{1,19}", str(value)):
        raise InvalidInputError(f"{name} {shorten(value)} is no whole number")


@dataclass(slots=True)
class Outcome:
    """
    The outcome of one operation; *error* is ``None`` if it was carried out.
    *version*: sequence number and primary term, if the document was written. With an *error* too: *is_dropped*, by an
    ingest pipeline; *is_same*: it was to be created, and a document with its id and content was there before;
    *is_unread*: it could not be read, so nothing was sent; *is_unsure*: perhaps it was carried out all the same.
    """

    id: str | None
    index: str | None
    status: int
    error: Refusal | None = None
    version: tuple[int, int] | None = None
    is_dropped: bool = False
    is_same: bool = False
    is_unread: bool = False
    is_unsure: bool = False

    @property
    def is_done(self) -> bool:
        return self.error is None

    @property
    def hindrance(self) -> Hindrance | None:
        """What hinders every write now: the document is not done, and the same request may be carried out later."""
        return None if self.error is None or self.is_unread or self.is_unsure else self.error.hindrance

    def to_failure(self) -> Failure:
        kind: FailureKind = "unreadable" if self.is_unread else _KINDS.get(self.status, "refused")
        return Failure(kind, self.index or "", self.id or "", str(self.error), self.status)


def writes_refused(kind: Hindrance, index: str, reason: str) -> WritesRefusedError:
    name = f"index {shorten(index)}" if index else "the server"
    return WritesRefusedError(f"{name} takes no writes now ({reason}): {_ADVICE[kind]}", kind=kind, index=index)


def find_hindrance(outcomes: Iterable[Outcome | None]) -> WritesRefusedError | None:
    """
    Return the error for the first of *outcomes* that shows that no write is taken now, whichever the document.
    Of a busy server only if it took none of them: one document alone may be too much for it each time.
    """
    given = [outcome for outcome in outcomes if outcome is not None]
    is_taking = any(outcome.is_done for outcome in given)
    for outcome in given:
        kind = outcome.hindrance
        if kind is not None and not (kind == "busy" and is_taking):
            return writes_refused(kind, outcome.index or "", str(outcome.error))
    return None


def refuse_hindered(outcomes: Iterable[Outcome | None]) -> None:
    """Raise what :func:`find_hindrance` returns; call it when what was done is counted."""
    if (error := find_hindrance(outcomes)) is not None:
        raise error


def new_id() -> str:
    """Return a new id of 20 characters that begins with the time, so that a server sees fast that it is unused."""
    milliseconds = time.time_ns() // 1_000_000
    return base64.urlsafe_b64encode(milliseconds.to_bytes(6, "big") + secrets.token_bytes(9)).decode("ascii")
