"""
Whether an archived document equals one of an index, and whether its fingerprint fits the index. Pure.

Many fingerprints are computed together, which is several times as fast.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class Incoming:
    """A document to write to an index; *is_elsewhere*: perhaps not the index that it was removed from."""

    source: str
    scheme: Scheme
    text_fields: Sequence[str]
    is_elsewhere: bool


def find_misfits(documents: Sequence[Incoming], *, prefix: str) -> set[int]:
    """
    Return the positions of the *documents* whose fingerprints do not belong into the index.
    Elsewhere, a fingerprint must be the one that the scheme gives the text. In the index that it was removed from, it
    may be older than the text; there it does not fit if another scheme gives it to the text: an index of that name may
    have been made again, also from a snapshot. A document without a fingerprint fits.
    """
    misfits: set[int] = set()
    texts: dict[int, str] = {}
    recorded: dict[int, object] = {}
    for place, document in enumerate(documents):
        found, text = _read(document, prefix)
        if found is None:
            continue
        if text is not None:
            texts[place], recorded[place] = text, found
        elif document.is_elsewhere:
            misfits.add(place)
    for scheme in {documents[place].scheme for place in texts}:
        of_scheme = [place for place in texts if documents[place].scheme == scheme]
        for place in _matching(of_scheme, texts, recorded, scheme):
            del texts[place]
    misfits.update(place for place in texts if documents[place].is_elsewhere)
    stale = [place for place in texts if not documents[place].is_elsewhere]
    for name in schemes() if stale else ():
        try:
            misfits.update(_matching(stale, texts, recorded, name))
        except (InvalidInputError, MissingDependencyError):  # it takes no text, or its library is not installed
            continue
    return misfits


def _read(document: Incoming, prefix: str) -> tuple[object, str | None]:
    """Return the recorded fingerprint and the text; ``None`` where there is none, or where it cannot be read."""
    source = json.loads(document.source, parse_int=float)  # an int of Python has a limit of digits
    own = source.get(prefix)
    found = own.get("fingerprint") if isinstance(own, dict) else source.get(f"{prefix}.fingerprint")
    try:
        return found, read_text(source, document.text_fields)
    except InvalidInputError:
        return found, None


def _matching(
    places: Iterable[int], texts: dict[int, str], recorded: dict[int, object], scheme: str | Scheme
) -> list[int]:
    """Return those of *places* whose recorded fingerprint is the one that *scheme* gives the text."""
    places = list(places)
    values = fingerprints([texts[place] for place in places], scheme=scheme)
    return [
        place
        for place, value in zip(places, values, strict=True)
        if value is not None and to_hex(value) == recorded[place]
    ]
