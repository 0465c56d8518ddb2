"""
Whether a document of an archive and one of an index are the same: all fields, apart from our own. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

__all__ = ["is_same_source", "read_exactly"]


def read_exactly(source: str) -> dict[str, Any]:
    """
    Return the JSON object *source* with each number as its text, so that no digit is rounded away.

    Raises:
        ValueError: If it is not a JSON object.

    Examples:
        >>> read_exactly('{"a": 1.10}') == read_exactly('{"a": 1.1}')
        False
    """
    found = json.loads(source, parse_int=_number, parse_float=_number, parse_constant=_number)
    if not isinstance(found, dict):
        raise ValueError("not a JSON object")  # noqa: TRY004 -- the text is wrong, not its type
    return found


def _number(text: str) -> tuple[str]:
    return (text,)  # no JSON value is read as a tuple, so a number never equals a string


def is_same_source(archived: str, present: str | Mapping[str, Any], *, prefix: str) -> bool:
    """
    Return whether two documents have the same fields, apart from our own.

    Args:
        archived:
            ``_source`` as the archive has it.
        present:
            ``_source`` as the server has it now: its text, or, where numbers were read already, its values.
        prefix:
            Name of the object that holds our fields.
    """
    if isinstance(present, str):
        return _own_left_out(read_exactly(archived), prefix) == _own_left_out(read_exactly(present), prefix)
    return _own_left_out(json.loads(archived), prefix) == _own_left_out(present, prefix)


def _own_left_out(source: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    return {name: value for name, value in source.items() if name != prefix and not name.startswith(f"{prefix}.")}
