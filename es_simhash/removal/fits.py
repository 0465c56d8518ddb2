"""Whether an archived document equals one of an index, and whether its fingerprint fits the index. Pure."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from math import isclose
from typing import Any

from es_simhash.errors import InvalidInputError, MissingDependencyError
from es_simhash.hashing import Scheme, fingerprints, schemes, to_hex
from es_simhash.mapping.fields import read_text

ROUNDING = 1e-5


def read_exactly(source: str) -> dict[str, Any]:
    """
    Return the JSON object *source* with each number as its text, so that no digit is rounded away.

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
    Return whether two texts of ``_source`` have the same fields, apart from the object *prefix*.
    *vectors*: names of fields that a server keeps as vectors; it rounds their numbers a little at each write.
    """
    one, other = (_own_left_out(read_exactly(source), prefix) for source in (archived, present))
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


def is_misfit(source: str, scheme: Scheme, text_fields: Sequence[str], *, prefix: str, is_elsewhere: bool) -> bool:
    """
    Return whether a document has a fingerprint that does not belong into an index of *scheme*.
    *is_elsewhere*: perhaps it was in another index; there it must be the one that the scheme gives the text. In the
    index that it was removed from it may be older than the text; there it does not fit if another scheme gives it to
    the text: that of the index may have changed. A document without a fingerprint fits.
    """
    plain = json.loads(source, parse_int=float)  # an int of Python has a limit of digits
    ours = plain.get(prefix)
    held = ours.get("fingerprint") if isinstance(ours, dict) else plain.get(f"{prefix}.fingerprint")
    if held is None or not text_fields:
        return False
    text = None
    with suppress(InvalidInputError):
        text = read_text(plain, text_fields)
    if text is None:
        return is_elsewhere

    if _fingerprint(text, scheme) == held:
        return False
    for other in () if is_elsewhere else schemes():
        with suppress(InvalidInputError, MissingDependencyError):  # it takes no text, or its library is not installed
            if _fingerprint(text, other) == held:
                return True
    return is_elsewhere


def _fingerprint(text: str, scheme: str | Scheme) -> str | None:
    [value] = fingerprints([text], scheme=scheme)
    return None if value is None else to_hex(value)
