"""
Adds fingerprint fields to one bulk action: finds its texts, and puts the fields in their places.

An action is a dict, or its JSON text, as the bulk helpers of both clients take it. Pure: nothing is computed or sent
here, and nothing given is changed. ``ingest_helper`` reads many actions and computes their fingerprints.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from es_simhash.errors import InvalidInputError, shorten
from es_simhash.mapping.documents import carries, read_text, with_fields
from es_simhash.mapping.fields import whole_update
from es_simhash.transport.raw_json import JsonObject, JsonText, keep_text, read_json
from es_simhash.writes.operations import HELPER_METADATA, new_id

IdFrom = Literal["random"] | None


OnPartial = Literal["clear", "pass"]


_Place = Callable[[Sequence[dict[str, Any]]], Any]


# Strings, so that what looks like a comment in one is left alone; then comments.
_STRING_OR_COMMENT = re.compile(r"""("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')|//[^\r\n]*|/\*.*?\*/""", re.DOTALL)


# Painless wants functions before statements, so nothing can be put in front of them.
_BEGINS_WITH_FUNCTION = re.compile(r"\s*\w[\w.<>\[\], ]*\s+\w+\s*\([^)]*\)\s*\{")


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
    """
    What to read and write in an action.

    Attributes:
        text_fields:
            Fields of the text, in order.
        prefix:
            Name of the object that holds the fingerprint fields.
        on_partial:
            ``"clear"`` takes a fingerprint out if the update may make it wrong; ``"pass"`` leaves it.
    """

    text_fields: tuple[str, ...]
    prefix: str
    on_partial: OnPartial = "clear"


@dataclass(frozen=True, slots=True)
class Prepared:
    """
    An action whose texts are known and whose fields are not.

    Attributes:
        action:
            The action; JSON text that could be read is a dict here, which remembers its text.
        texts:
            The texts that need a fingerprint, in order.
        problems:
            One line for each reason why a fingerprint is missing or may be wrong.
        build:
            Makes the finished action from the fields of each text; ``None`` leaves the action as it is.
    """

    action: Any
    texts: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    build: _Place | None = None

    def finish(self, fields: Sequence[dict[str, Any]]) -> Any:
        """Return a copy of the action with *fields*, one for each text."""
        return self.action if self.build is None else self.build(fields)


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of an action: its texts, how to make the part from their fields, and its problem."""

    texts: tuple[str, ...]
    place: _Place
    problems: tuple[str, ...] = ()


def prepare_action(action: Any, rules: ActionRules) -> Prepared:
    """
    Return *action* with its texts; an action that cannot be used stays as it is, with a problem.
    """
    try:
        parsed = read_json(action) if isinstance(action, (str, bytes)) else action
        if not isinstance(parsed, Mapping):
            raise InvalidInputError(f"action {shorten(action)} is not a document: give a dict")
        operation = parsed.get("_op_type", "index")
        if operation in ("index", "create"):
            return _prepare_document(parsed, rules)
        if operation == "update":
            return _prepare_update(parsed, rules)
        return Prepared(parsed)
    except (ValueError, RecursionError) as error:
        return Prepared(action, problems=(str(error),))


def _prepare_document(action: Mapping[str, Any], rules: ActionRules) -> Prepared:
    document = _body_of(action)
    if not isinstance(document, Mapping):
        raise InvalidInputError(f"_source {shorten(document)} is not a document: give a dict")
    part = _read_whole(document, rules)

    def build(fields: Sequence[dict[str, Any]]) -> Any:
        finished = keep_text(document, part.place(fields))
        return finished if document is action else {**action, "_source": finished}

    return Prepared(action, part.texts, part.problems, build)


def _prepare_update(action: Mapping[str, Any], rules: ActionRules) -> Prepared:
    source = _body_of(action)
    body = source if isinstance(source, Mapping) else action
    parts: dict[str, _Part] = {}
    for key, read in (("doc", _read_partial), ("upsert", _read_whole)):
        if isinstance(body.get(key), Mapping):
            parts[key] = read(body[key], rules)
    if body.get("script") is not None:
        parts["script"] = _extend_script(body["script"], rules)

    def build(fields: Sequence[dict[str, Any]]) -> Any:
        changed, start = {}, 0
        for key, part in parts.items():
            stop = start + len(part.texts)
            changed[key] = part.place(fields[start:stop])
            start = stop
        finished = keep_text(body, {**body, **changed})
        return finished if body is action else {**action, "_source": finished}

    texts = tuple(text for part in parts.values() for text in part.texts)
    return Prepared(action, texts, tuple(line for part in parts.values() for line in part.problems), build)


def _body_of(action: Mapping[str, Any]) -> Any:
    """Return the document or update of *action*; one that was given as text remembers it."""
    source = action.get("_source", action)
    if isinstance(source, JsonText):
        return read_json(source)
    if isinstance(action, JsonObject) and isinstance(source, Mapping) and source is not action:
        return action.part("_source")
    return source


def _read_texts(document: Mapping[str, Any], rules: ActionRules) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the text of *document*, if it has one, and the problem, if there is one."""
    with_fields(document, {}, prefix=rules.prefix)  # refuses a clash before any work is done
    try:
        text = read_text(document, rules.text_fields)
    except InvalidInputError as error:
        return (), (str(error),)
    return () if text is None else (text,), ()


def _read_whole(document: Mapping[str, Any], rules: ActionRules) -> _Part:
    """Return the part for a whole document."""
    texts, problems = _read_texts(document, rules)

    def place(fields: Sequence[dict[str, Any]]) -> dict[str, Any]:
        return with_fields(document, fields[0] if fields else {}, prefix=rules.prefix)

    return _Part(texts, place, problems)


def _read_partial(doc: Mapping[str, Any], rules: ActionRules) -> _Part:
    """Return the part for a partial document: it sets the text, clears it, changes some of it, or keeps it."""
    carried, wanted = sum(carries(doc, name) for name in rules.text_fields), len(rules.text_fields)
    texts, problems = _read_texts(doc, rules) if carried == wanted else ((), ())
    if 0 < carried < wanted:
        fate = "taken out" if rules.on_partial == "clear" else "left as it was"
        names = ", ".join(rules.text_fields)
        problems = (f"the update has only some of the text fields {names}; its fingerprint is {fate}: {_BACKFILL}",)
    if carried == 0 or (carried < wanted and rules.on_partial == "pass"):
        return _Part((), lambda _: doc, problems)

    def place(fields: Sequence[dict[str, Any]]) -> dict[str, Any]:
        if fields and fields[0]:
            return with_fields(doc, {rules.prefix: whole_update(fields[0][rules.prefix])}, prefix=rules.prefix)
        # A null takes the place of the whole object in the stored document.
        return {**with_fields(doc, {}, prefix=rules.prefix), rules.prefix: None}

    return _Part(texts, place, problems)


_BACKFILL = "backfill the document"


def _extend_script(script: Any, rules: ActionRules) -> _Part:
    """Return the part for a script: it removes the fields first, because it may change the text in any way."""
    inline = {"source": script} if isinstance(script, str) else script
    source = inline.get("source") if isinstance(inline, Mapping) else None
    fate, changed = "left as it was", script
    if (
        rules.on_partial == "clear"
        and isinstance(source, str)
        and inline.get("lang", "painless") == "painless"
        and not begins_with_function(source)
    ):
        fate, changed = "taken out", {**inline, "source": f"ctx._source.remove('{rules.prefix}'); {source}"}
    problem = f"a script may change the text; the fingerprint is {fate}: {_BACKFILL}"
    return _Part((), lambda _: changed, (problem,))


def begins_with_function(source: str) -> bool:
    """
    Return whether a Painless script defines a function before anything else, comments apart.

    Examples:
        >>> begins_with_function("/* n */ int twice(int n) { return 2 * n } ctx._source.n = twice(2)")
        True
        >>> begins_with_function("for (int n : params.all) { ctx._source.n += n }")
        False
    """
    return _BEGINS_WITH_FUNCTION.match(_STRING_OR_COMMENT.sub(lambda found: found[1] or " ", source)) is not None


def for_helpers(action: Any) -> Any:
    """
    Return *action* as the clients' bulk helpers send it: what was given as text is text again, under ``_source``.

    Examples:
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


def with_id(action: Any) -> Any:
    """
    Return *action* with a new ``_id`` if it writes a whole document and has none; any other as it is.

    Examples:
        >>> len(with_id({"body": "a text"})["_id"]), with_id({"_id": "1"}), with_id({"_op_type": "delete"})
        (20, {'_id': '1'}, {'_op_type': 'delete'})
    """
    if not isinstance(action, Mapping) or action.get("_op_type", "index") not in ("index", "create"):
        return action
    return action if action.get("_id") is not None else {**action, "_id": new_id()}
