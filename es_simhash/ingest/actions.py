"""
Finds the texts of one bulk action, a dict or its JSON text, and puts the fingerprint fields in.

Nothing is computed or sent here, and nothing given is changed. ``with_fingerprints`` reads many actions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from es_simhash.errors import InvalidInputError, shorten
from es_simhash.mapping.fields import carries, check_prefix, read_text, whole_update, with_fields
from es_simhash.transport.raw_json import JsonObject, JsonText, keep_text, read_json, why_unreadable
from es_simhash.writes.operations import HELPER_METADATA, new_id

IdFrom = Literal["random"] | None


@dataclass(frozen=True, slots=True)
class Problem:
    """
    A document that was passed on without the fingerprint it should have.

    Attributes:
        position:
            Its place among the actions given, from 0.
        id:
            The document's ``_id``, where the action names one.
        index:
            The ``_index``, where the action names one.
        reason:
            One line: what is wrong and what to do.
    """

    position: int
    id: str | None
    index: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class ActionRules:
    """What to read and write in an action."""

    text_fields: tuple[str, ...]
    prefix: str


@dataclass(slots=True)
class Part:
    """A body, or a part of one, to which nothing is added: its texts, and what is wrong with it."""

    body: Any
    texts: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    upsert: Part | None = field(default=None, kw_only=True)

    def place(self, fields: Sequence[dict[str, Any]]) -> Any:  # noqa: ARG002 -- nothing is added to this one
        """Return a copy of the body with *fields*, those below the prefix, for each text."""
        return self.body


@dataclass(slots=True)
class Whole(Part):
    """A whole document."""

    prefix: str = ""

    def place(self, fields: Sequence[dict[str, Any]]) -> Any:
        own = {self.prefix: fields[0]} if fields and fields[0] else {}
        return keep_text(self.body, with_fields(self.body, own, prefix=self.prefix))


@dataclass(slots=True)
class _Partial(Part):
    """A partial document that decides the text of the whole one."""

    prefix: str = ""

    def place(self, fields: Sequence[dict[str, Any]]) -> Any:
        if fields and fields[0]:
            return with_fields(self.body, {self.prefix: whole_update(fields[0])}, prefix=self.prefix)
        # A null takes the place of the whole object in the stored document.
        return {**with_fields(self.body, {}, prefix=self.prefix), self.prefix: None}


@dataclass(slots=True)
class _Update(Part):
    """The body of an update, with the parts of it that change; *upsert* is one of them."""

    parts: Mapping[str, Part] = field(default_factory=dict)

    def place(self, fields: Sequence[dict[str, Any]]) -> Any:
        changed, start = {}, 0
        for key, part in self.parts.items():
            stop = start + len(part.texts)
            changed[key] = part.place(fields[start:stop])
            start = stop
        return keep_text(self.body, {**self.body, **changed})


@dataclass(slots=True)
class Prepared:
    """An action, and the part of it that gets fields; JSON text is a dict that remembers its text."""

    action: Any
    part: Part | None = None
    problems: tuple[str, ...] = ()

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts whose fields are wanted."""
        return () if self.part is None else self.part.texts

    def finish(self, fields: Sequence[dict[str, Any]]) -> None:
        """Put *fields* into a copy of the action, those below the prefix for each text."""
        if self.part is not None:
            finished = self.part.place(fields)
            self.action = finished if self.part.body is self.action else {**self.action, "_source": finished}


def prepare_action(action: Any, rules: ActionRules) -> Prepared:
    """Return *action* with its texts; an action that cannot be used stays as it is, with a problem."""
    try:
        parsed = read_json(action) if isinstance(action, (str, bytes)) else action
        if not isinstance(parsed, (dict, Mapping)):
            raise InvalidInputError(f"action {shorten(action)} is not a document: give a dict")
        kind = parsed.get("_op_type", "index")
        if kind not in ("index", "create", "update"):
            return Prepared(parsed)
        body = body_of(parsed)
        if kind == "update" and not isinstance(body, Mapping):
            body = parsed
        part = prepare_body(kind, body, rules)
        return Prepared(parsed, part, part.problems)
    except (ValueError, RecursionError) as error:
        return Prepared(action, problems=(why_unreadable(error),))


def body_of(action: Mapping[str, Any]) -> Any:
    """Return the document or update of *action*; one that was given as text remembers it."""
    source = action.get("_source", action)
    if isinstance(source, JsonText):
        return read_json(source)
    if isinstance(action, JsonObject) and isinstance(source, Mapping) and source is not action:
        return action.part("_source")
    return source


def prepare_body(kind: str, body: Any, rules: ActionRules) -> Part:
    """Return the part for the whole *body* of an operation of this *kind*; raise if it is no document."""
    if kind == "update":
        return _prepare_update(body, rules)
    if not isinstance(body, (dict, Mapping)):
        raise InvalidInputError(f"_source {shorten(body)} is not a document: give a dict")
    return _read_whole(body, rules)


def _prepare_update(body: Any, rules: ActionRules) -> Part:
    if not isinstance(body, Mapping):
        return Part(body)
    parts: dict[str, Part] = {}
    for key, read in (("doc", _read_partial), ("upsert", _read_whole)):
        if isinstance(body.get(key), Mapping):
            parts[key] = read(body[key], rules)
    if body.get("script") is not None:
        problem = f"a script may change the text; the fingerprint is left as it was: {_BACKFILL}"
        parts["script"] = Part(body["script"], (), (problem,))
    texts = tuple(text for part in parts.values() for text in part.texts)
    problems = tuple(line for part in parts.values() for line in part.problems)
    return _Update(body, texts, problems, parts, upsert=parts.get("upsert"))


def _read_texts(document: Mapping[str, Any], rules: ActionRules) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the text of *document*, if it has one, and the problem, if there is one."""
    check_prefix(document, rules.prefix)  # before any work is done
    try:
        text = read_text(document, rules.text_fields)
    except InvalidInputError as error:
        return (), (str(error),)
    return () if text is None else (text,), ()


def _read_whole(document: Mapping[str, Any], rules: ActionRules) -> Part:
    texts, problems = _read_texts(document, rules)
    return Whole(document, texts, problems, rules.prefix)


def _read_partial(doc: Mapping[str, Any], rules: ActionRules) -> Part:
    """Return the part for a partial document: it sets the text, clears it, changes some of it, or keeps it."""
    carried, wanted = sum(carries(doc, name) for name in rules.text_fields), len(rules.text_fields)
    texts, problems = _read_texts(doc, rules) if carried == wanted else ((), ())
    if 0 < carried < wanted:
        names = ", ".join(rules.text_fields)
        problems = (f"the update has only some of the text fields {names}; its fingerprint is taken out: {_BACKFILL}",)
    if carried == 0:
        check_prefix(doc, rules.prefix, is_kept=True)
        return Part(doc, (), problems)
    return _Partial(doc, texts, problems, rules.prefix)


_BACKFILL = "backfill the document"


def for_helpers(action: Any) -> Any:
    """
    Return *action* as bulk helpers send it: what was given as text is text again, under ``_source``.

    >>> for_helpers(read_json('{"_id": "1", "price": 1.10}'))
    {'_id': '1', '_source': '{"price": 1.10}'}
    """
    if not isinstance(action, JsonObject):
        source = action.get("_source") if isinstance(action, dict) else None
        return {**action, "_source": source.to_json()} if isinstance(source, JsonObject) else action
    if action.get("_op_type", "index") not in ("index", "create", "update"):
        return dict(action)
    # The helpers take text without these names as a document, whatever other names it has.
    taken = HELPER_METADATA if any(key in action for key in HELPER_METADATA if key[0] == "_") else ()
    header = {key: action[key] for key in taken if key in action}
    body = {key: value for key, value in action.items() if key not in header}
    return {**header, "_source": action.with_values(body).to_json()}


# Where an action of a bulk request has a document.
_BODIES = ("_source", "doc", "upsert")


def as_given(action: Any) -> Any:
    """Return *action* as it is now: its caller may put other values in and give it again while others are read."""
    if type(action) is not dict:
        return action
    kept = dict(action)
    for name in _BODIES:
        if type(body := kept.get(name)) is dict:
            kept[name] = dict(body)
    return kept


def weigh(value: Any) -> int:
    """Return roughly how many characters *value* takes in a request."""
    if isinstance(value, (str, bytes)):
        return len(value) + 2
    if isinstance(value, (dict, Mapping)):
        weight = 0
        for key, item in value.items():
            size = len(item) + 2 if type(item) is str else 8 if type(item) is int else weigh(item)
            weight += len(key if type(key) is str else str(key)) + 3 + size
        return weight
    if isinstance(value, (list, tuple)):
        return sum(map(weigh, value))
    return 8


def with_id(action: Any) -> Any:
    """Return *action* with a new ``_id`` if it writes a whole document and has none; any other as it is."""
    if not isinstance(action, Mapping) or action.get("_op_type", "index") not in ("index", "create"):
        return action
    return action if action.get("_id") is not None else {**action, "_id": new_id()}
