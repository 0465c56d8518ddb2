"""
Whether the fingerprint in an archived document is one that the scheme of an index may have given its text. Pure.

Many documents are taken at once, because fingerprints are computed several times as fast together.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from es_simhash.errors import InvalidInputError, MissingDependencyError
from es_simhash.hashing import Scheme, fingerprints, schemes, to_hex
from es_simhash.index.documents import read_text

__all__ = ["Incoming", "find_misfits"]


@dataclass(frozen=True, slots=True)
class Incoming:
    """
    A document that is to be written to an index.

    Attributes:
        source:
            Its ``_source``: JSON, as the archive has it.
        scheme:
            Scheme of the index.
        text_fields:
            Fields of the text in that index.
        is_elsewhere:
            Whether that may be another index than the one from which the document was removed.
    """

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
    for place, each in enumerate(documents):
        found, text = _read(each, prefix)
        if found is None:
            continue
        if text is not None:
            texts[place], recorded[place] = text, found
        elif each.is_elsewhere:
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
