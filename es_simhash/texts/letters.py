"""
The letters by which texts are compared: those of their fingerprints, and forms of one letter made the same. Spaces and
punctuation are left out. No bits depend on it, so it may change.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence

import numpy as np

from es_simhash.hashing.characters import (
    LOGOGRAPHS,
    UNSPACED,
    Codes,
    Flags,
    Places,
    code_point_table,
    normalise_batch,
    text_parts,
)

# Texts are worked on together up to so many characters.
_BATCH = 1 << 18
_FORMS = {
    "ı": "i",
    "آأإٱ": "ا",
    "ىیې": "ي",
    "ک": "ك",
    "ة": "ه",
    "ـ": "\0",
    "ä": "a",
    "ö": "o",
    "ü": "u",
}
_UMLAUTS = "äöü"


def text_batches(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield *texts* in parts of 262,144 characters at most; a longer text is a part alone."""
    return (texts[part] for part in text_parts(texts, _BATCH, _BATCH))


def compared_letters(texts: Sequence[str]) -> tuple[Codes, Places]:
    """Return the letters of several texts, one after the other, and where each text has ended."""
    codes, lengths = normalise_batch(texts)
    ends = np.cumsum(lengths)
    if not codes.size or int(codes.max()) < 0x80:
        return codes, ends
    same = same_forms(codes)
    is_umlaut = np.isin(codes, list(map(ord, _UMLAUTS)))
    if is_umlaut.any():
        places = np.flatnonzero(is_umlaut)
        same = np.insert(same, places + 1, ord("e"))
        ends = ends + np.searchsorted(places, ends)
    kept = same != 0
    if not kept.all():
        ends = np.append(0, np.cumsum(kept))[ends]
        same = same[kept]
    return same, ends


def same_forms(codes: Codes) -> Codes:
    """Return *codes* with one form of each letter and digit; 0 for what is left out."""
    forms: Codes = _forms().take(codes)
    return forms


@functools.cache
def _forms() -> Codes:
    forms = np.arange(0x11_0000, dtype=np.uint32)
    # Characters that Unicode 14.0 does not have never come here, so every version of Python gives the same result.
    for code in range(0x80, 0x2_0000):
        if chr(code).isdecimal():
            forms[code] = ord("0") + int(chr(code))
    for letters, form in _FORMS.items():
        forms[list(map(ord, letters))] = ord(form)
    return forms


def stands_alone(codes: Codes) -> Flags:
    """Return which of *codes* are a unit each: logographs, syllables, and characters of scripts without spaces."""
    return code_point_table(0, (UNSPACED, 1), (LOGOGRAPHS, 1)).take(codes).view(np.bool_)
