"""
The letters by which texts are compared: those of their fingerprints, and what marks distinguish beside. Spaces and
punctuation are left out. No bits depend on it, so it may change.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence

import numpy as np

from es_simhash.hashing.characters import (
    BASE,
    KANA,
    LOGOGRAPHS,
    UNSPACED,
    Codes,
    Flags,
    Places,
    code_point_table,
    join_codes,
    reduce_codes,
    text_parts,
)

# Texts are worked on together up to so many characters.
_BATCH = 1 << 18
# Greek and Coptic: accents are left out in capitals, and by many writers.
_GREEK = 0x370, 0x400


def text_batches(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield *texts* in parts of 262,144 characters at most; a longer text is a part alone."""
    return (texts[part] for part in text_parts(texts, _BATCH, _BATCH))


def compared_letters(texts: Sequence[str]) -> tuple[Codes, Places]:
    """Return the letters of several texts with their marks, one after the other, and where each text has ended."""
    letters, ends = reduce_codes(*join_codes(texts))
    if letters.size and int(letters.max()) > BASE:
        bases = letters & np.uint32(BASE)
        counts_for_nothing = (bases >= _GREEK[0]) & (bases < _GREEK[1]) | np.isin(letters, _without_marks())
        letters = np.where(counts_for_nothing, bases, letters)
        _move_tones(letters, ends)
    return letters, ends


def _move_tones(letters: Codes, ends: Places) -> None:
    """Let a Vietnamese tone stand on the second vowel of oa, oe and uy: h\u00f2a is ho\u00e0."""
    places = np.flatnonzero(np.isin(letters[:-1], _toned()))
    firsts, seconds = letters[places] & np.uint32(BASE), letters[places + 1]
    is_pair = np.where(firsts == ord("u"), seconds == ord("y"), (seconds == ord("a")) | (seconds == ord("e")))
    places = places[is_pair & ~np.isin(places + 1, ends)]
    letters[places + 1] += letters[places] - (letters[places] & np.uint32(BASE))
    letters[places] &= np.uint32(BASE)


@functools.cache
def _toned() -> Codes:
    """Return o and u with each tone of Vietnamese."""
    return reduce_codes(*join_codes(["òóỏõọùúủũụ"]))[0]


@functools.cache
def _without_marks() -> Codes:
    """Return the letters whose mark is left out in their language: Russian \u0451, Turkish \u0130."""
    return reduce_codes(*join_codes(["\u0451i\u0307"]))[0]


def have_fewer(texts: Sequence[str], letters: int) -> Flags:
    """Return which of *texts* have fewer than so many *letters*, where 2 kana count 3 and 2 logographs 5."""
    codes, ends = compared_letters(texts)
    worth = code_point_table(2, (KANA, 3), (LOGOGRAPHS, 5)).take(codes & np.uint32(BASE))
    passed = np.append(np.int64(0), np.cumsum(worth, dtype=np.int64))
    found: Flags = np.diff(passed[ends], prepend=0) < 2 * letters
    return found


def stands_alone(codes: Codes) -> Flags:
    """Return which of *codes* are a unit each: logographs, syllables, and characters of scripts without spaces."""
    return code_point_table(0, (UNSPACED, 1), (LOGOGRAPHS, 1)).take(codes & np.uint32(BASE)).view(np.bool_)
