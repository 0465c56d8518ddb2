"""
Whether a document of an archive and one of an index are the same: all fields, apart from our own. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from math import isclose
from typing import Any

__all__ = ["is_same_source", "read_exactly"]

ROUNDING = 1e-5


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


def is_same_source(archived: str, present: str, *, prefix: str, vectors: Collection[str] = ()) -> bool:
    """
    Return whether two documents have the same fields, apart from our own.

    Args:
        archived:
            ``_source`` as the archive has it.
        present:
            ``_source`` as the server has it now.
        prefix:
            Name of the object that holds our fields.
        vectors:
            Names of the fields that a server keeps as vectors, and not as text; their numbers are rounded a little each
            time the document is written.
    """
    one, other = (_own_left_out(read_exactly(each), prefix) for each in (archived, present))
    return one == other or (bool(vectors) and _is_close(one, other, vectors, ""))


def _is_close(one: Any, other: Any, vectors: Collection[str], path: str, *, is_vector: bool = False) -> bool:
    """Return whether two values are equal, apart from the last digits of the numbers of vectors."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(
            _is_close(value, other[name], vectors, full, is_vector=is_vector or full in vectors)
            for name, value in one.items()
            for full in [f"{path}{'.' if path else ''}{name}"]
        )
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(
            _is_close(*pair, vectors, path, is_vector=is_vector) for pair in zip(one, other, strict=True)
        )
    if is_vector and isinstance(one, tuple) and isinstance(other, tuple):
        return isclose(float(one[0]), float(other[0]), rel_tol=ROUNDING, abs_tol=ROUNDING)
    return bool(one == other)


def _own_left_out(source: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    return {name: value for name, value in source.items() if name != prefix and not name.startswith(f"{prefix}.")}
