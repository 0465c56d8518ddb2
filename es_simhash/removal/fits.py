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


def find_misfits(
    sources: Mapping[int, str], elsewhere: Collection[int], scheme: Scheme, text_fields: Sequence[str], *, prefix: str
) -> set[int]:
    """
    Return which of *sources* have a fingerprint that does not belong into an index of *scheme*.
    *elsewhere*: those that perhaps were in another index; there it must be the one that the scheme gives the text. In
    the index that a document was removed from it may be older than the text; there it does not fit if another scheme
    gives it to the text: an index of that name may have been made again, also from a snapshot. A document without a
    fingerprint fits.
    """
    found = {place: _read(source, text_fields, prefix) for place, source in sources.items()}
    misfits = {place for place, (value, text) in found.items() if value is not None and text is None} & {*elsewhere}
    readable = {
        place: (value, text) for place, (value, text) in found.items() if value is not None and text is not None
    }
    others = readable.keys() - _matching(readable, scheme)
    stale = {place: readable[place] for place in others.difference(elsewhere)}
    for name in schemes() if stale else ():
        with suppress(InvalidInputError, MissingDependencyError):  # it takes no text, or its library is not installed
            misfits |= _matching(stale, name)
    return misfits | others.intersection(elsewhere)


def _read(archived: str, text_fields: Sequence[str], prefix: str) -> tuple[object, str | None]:
    """Return the recorded fingerprint and the text; ``None`` where there is none, or where it cannot be read."""
    source = json.loads(archived, parse_int=float)  # an int of Python has a limit of digits
    own = source.get(prefix)
    found = own.get("fingerprint") if isinstance(own, dict) else source.get(f"{prefix}.fingerprint")
    with suppress(InvalidInputError):
        return found, read_text(source, text_fields)
    return found, None


def _matching(found: Mapping[int, tuple[object, str]], scheme: str | Scheme) -> set[int]:
    """Return where the recorded fingerprint is the one that *scheme* gives the text."""
    # Many texts together are several times as fast.
    values = fingerprints([text for _, text in found.values()], scheme=scheme)
    pairs = zip(found.items(), values, strict=True)
    return {place for (place, (own, _)), value in pairs if value is not None and to_hex(value) == own}
