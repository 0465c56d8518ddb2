"""
A document that goes straight through an ingest: it has a text and an id, and nothing is near it.

Most documents are such. Each is an item and an operation in one, its JSON is made once, and a memory of documents in
flight keeps it as it is. Where a step needs more of it, ``Source.as_item`` makes an :class:`Item` of it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from es_simhash.hashing.pool import TextHashes
from es_simhash.ingest.in_flight import Document
from es_simhash.ingest.item import ContentReader, Item
from es_simhash.mapping.fields import our_fields_json
from es_simhash.mapping.user_fields import to_moment
from es_simhash.transport.raw_json import JsonObject, JsonText
from es_simhash.writes.operations import Operation, Outcome

_quoted = json.encoder.encode_basestring_ascii
# As the clients write JSON. What only they can write, or write otherwise, is refused.
_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


@dataclass(slots=True, eq=False)
class Plain(Operation):
    """
    A document on its way, not changed by a decision but for its place in a group of its own.
    *text*: what it is compared by. *members*: the JSON of its body, without the last brace; with our fields once it is
    decided. *at*: when it was decided, in milliseconds since 1970; 0 before.
    """

    position: int = 0
    weight: int = 0
    text: str = ""
    members: str = ""
    reader: ContentReader | None = None
    fingerprint: int | None = None
    at: int = 0
    is_settled: bool = False
    outcome: Outcome | None = None
    _document: Document | None = None

    action = leader_position = None
    problems = ()
    is_refused = is_skipped = False

    @property
    def id(self) -> str:
        id_: str = self.header["_id"]
        return id_

    @property
    def given_id(self) -> str:
        return self.id

    @property
    def texts(self) -> tuple[str, ...]:
        return (self.text,)

    def finish(self, hashes: Sequence[TextHashes], make: Callable[[TextHashes], Any]) -> Plain:
        """Take the fingerprint of its text."""
        del make
        self.fingerprint = hashes[0].fingerprint
        return self

    def lines(self, prefix: str) -> list[Any]:
        del prefix
        index, id_ = _quoted(self.header["_index"]), _quoted(self.header["_id"])
        return [JsonText(f'{{"{self.kind}":{{"_index":{index},"_id":{id_}}}}}'), JsonText(self.members + "}")]

    def document(self, prefix: str) -> Any:
        del prefix
        return json.loads(self.members + "}")

    @property
    def operation(self) -> Operation:
        return self

    @property
    def is_sent(self) -> bool:
        """Whether it is to be sent, and was not yet."""
        return self.outcome is None

    @property
    def is_as_decided(self) -> bool:
        """Whether it was written under its id."""
        outcome = self.outcome
        return outcome is not None and outcome.error is None and outcome.id == self.id

    def as_written(self, outcome: Outcome | None) -> Plain:
        self.outcome = outcome
        return self

    def to_document(self) -> Document:
        """Return the one document in flight that it is, always the same."""
        if self._document is None:
            reader, group = self.reader, self.id if self.at else ""
            content = None if reader is None else reader.read(dict.fromkeys(reader.text_fields, self.text))
            self._document = Document(
                self.id, self.fingerprint, group, self.header["_index"], content=content, at=self.at
            )
            self._document.position = self.position
        return self._document

    @property
    def size(self) -> int:
        """How many bytes its text occupies, as long as later documents may be compared with it."""
        return self.text.__sizeof__() if self.reader is not None else 0

    def let_go(self) -> None:
        """Let go of what nobody asks for once it is written."""
        self.body, self.members, self.outcome = None, "", None
        if self.reader is None:
            self.text = ""


def put_fields(documents: Iterable[Plain], prefix: str, *, value: bool) -> None:
    """Put our fields into the JSON of *documents*, with those of their groups where they are grouped."""
    at, moment = 0, ""
    for each in documents:
        own = our_fields_json(each.fingerprint or 0, value=value)
        if each.at:
            if each.at != at:
                at, moment = each.at, to_moment(each.at)
            own = f'{own},"group":{_quoted(each.id)},"at":"{moment}"'
        each.members = f'{each.members},"{prefix}":{{{own}}}'


Entry: TypeAlias = Item | Plain
"""One document of a batch."""


def members_of(body: Mapping[str, Any]) -> str | None:
    """Return the JSON of *body* without the last brace; ``None`` if only a client knows how to write it."""
    try:
        return (body.to_json() if isinstance(body, JsonObject) else _encode(body))[:-1]
    except (TypeError, ValueError, RecursionError):
        return None
