"""
Lines of files as bulk actions: each action can only write one document to the index of the command.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from es_simhash.cli.records import Record
from es_simhash.errors import InvalidInputError, shorten
from es_simhash.transport.raw_json import JsonObject, keep_text

LONGEST_ID_BYTES = 512
"""
The servers' own limit.
"""


def to_action(record: Record, id_field: str | None) -> dict[str, Any]:
    """
    Return the bulk action for a line: a document, or the form of exports with ``_id`` and ``_source``.

    Raises:
        InvalidInputError: If the line is not a document, or its id cannot be used.
    """
    if record.reason is not None:
        raise InvalidInputError(record.reason)
    document = record.value
    if isinstance(document, list):
        raise InvalidInputError("a list, not a document: write one document on each line (jq -c '.[]' does)")
    if not isinstance(document, Mapping):
        raise InvalidInputError(f"{_as_json(document)} is not a document: write a JSON object on each line")
    action: dict[str, Any] = {"_op_type": "index"}
    given: Any = None
    if isinstance(document.get("_source"), Mapping):
        given = document.get("_id")
        if (routing := document.get("_routing")) is not None:
            action["routing"] = str(routing)
        document = document.part("_source") if isinstance(document, JsonObject) else document["_source"]
    elif "_id" in document:
        # No server accepts a field of that name inside a document.
        given = document["_id"]
        document = keep_text(document, {key: value for key, value in document.items() if key != "_id"})
    if id_field is not None:
        given = _read_field(document, id_field) if id_field != "_id" else given
        if given is None:
            raise InvalidInputError(
                f"field {shorten(id_field)}, which --id-field names, is missing or null: each document needs one"
            )
    if given is not None:
        action["_id"] = _check_id(given)
    action["_source"] = document
    return action


def _as_json(value: Any) -> str:
    """Return a JSON value as the file has it, cut."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else f"{text[:79]}…"


def _read_field(document: Any, path: str) -> Any:
    if isinstance(document, Mapping) and path in document:
        return document[path]
    first, dot, rest = path.partition(".")
    return _read_field(document.get(first), rest) if dot and isinstance(document, Mapping) else None


def _check_id(given: Any) -> str:
    if isinstance(given, bool) or not isinstance(given, (str, int)):
        raise InvalidInputError(f"the id {shorten(given)} is neither a string nor a whole number")
    text = str(given)
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise InvalidInputError(f"the id {shorten(text)} has half a character (a lone surrogate)") from error
    # A server refuses the whole bulk request for one such id.
    if not 0 < size <= LONGEST_ID_BYTES:
        raise InvalidInputError(f"the id {shorten(text)} has {size} bytes: give 1 to {LONGEST_ID_BYTES}")
    return text
