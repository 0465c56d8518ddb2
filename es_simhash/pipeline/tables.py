"""
The pinned table of characters as strings, which a script on the server searches in place.

A script keeps nothing between documents, so nothing may have to be unpacked first: a character is found in two steps,
by the number of its block of 128 and by its place in the block. What the entries mean is in
``painless/characters.painless``, which reads them; ``hashing.characters`` is the same table for Python.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import astuple, dataclass
from functools import cache

import numpy as np

from es_simhash.hashing.characters import (
    COMBINES,
    DROPPED,
    EXPANDS,
    SEPARATOR,
    UNASSIGNED,
    WORD,
    character_entries,
    character_kinds,
)

CODE_POINTS = 0x110000
_BLOCK = 128
_HANGUL = range(0xAC00, 0xD7A4)

# Numbers become characters that JSON neither escapes nor may lose: no control characters, no surrogates.
_NUMBER = 0x100
_SMALL_NUMBER = 0x30
_PART = 0x4000
# A code point above U+FFFF is two characters; the first of them is in the private use area.
_LARGE = 0xE000
# Forms below this are combining classes, which are at most 240.
_FIRST_FORM = 256


@dataclass(frozen=True, slots=True)
class CharacterTables:
    """
    The strings, in the order in which the script takes them.

    Attributes:
        entry_index:
            For each 128 code points, the number of their block in *entries*.
        entries:
            For each code point of a block what becomes of it: a capital letter that says how, or its replacement.
        form_index:
            For each 128 code points, the number of their block in *forms*.
        forms:
            For each code point of a block its combining class, or the place of its decomposition in *decompositions*.
        decompositions:
            Decompositions (NFKD), each with its length before it; where the entry is ``X`` or ``L``, then the
            replacement, with its length before it.
        compositions:
            Two characters and what they are composed to, sorted.
    """

    entry_index: str
    entries: str
    form_index: str
    forms: str
    decompositions: str
    compositions: str

    def to_list(self) -> list[str]:
        """Return the strings in order."""
        return list(astuple(self))


@cache
def character_tables() -> CharacterTables:
    """
    Return the tables of the characters that Unicode 14.0 assigns.

    Python's own tables may be newer: for these characters Unicode's stability policies let nothing change.
    """
    codes = np.arange(CODE_POINTS, dtype=np.uint32)
    table, kinds = character_entries(codes).tolist(), character_kinds(codes).tolist()
    assigned = [code for code in range(CODE_POINTS) if table[code] != UNASSIGNED]
    entries = [_entry(code, table[code], kinds[code]) for code in range(CODE_POINTS)]
    forms = [chr(_NUMBER)] * CODE_POINTS
    places: dict[str, int] = {}
    end = 0
    for code in assigned:
        character = chr(code)
        decomposed = character if code in _HANGUL else unicodedata.normalize("NFKD", character)
        replaced = entries[code] in "XL"
        if decomposed != character or replaced:
            record = _counted(decomposed) + (_counted(_replacement(character, kinds)) if replaced else "")
            if record not in places:
                places[record] = end
                end += len(record)
            forms[code] = chr(_NUMBER + _FIRST_FORM + places[record])
        else:
            forms[code] = chr(_NUMBER + unicodedata.combining(character))
    return CharacterTables(*_in_blocks(entries), *_in_blocks(forms), "".join(places), _compositions(assigned))


def _entry(code: int, entry: int, kind: int) -> str:
    """Return the entry of a code point. No replacement is a capital letter, since replacements are folded."""
    if entry == COMBINES:
        return "C" if kind == WORD else "M"
    # The space and NUL stand for themselves in the table, as separator and as nothing.
    letters = {code: "U", UNASSIGNED: "N", EXPANDS: "X", DROPPED: "D", SEPARATOR: "S"}
    return letters.get(entry) or ("L" if entry > 0xFFFF else chr(entry))


def _replacement(character: str, kinds: list[int]) -> str:
    """Return the word characters of the normalised form of *character*."""
    folded = unicodedata.normalize("NFKC", character).casefold()
    return "".join(each for each in unicodedata.normalize("NFKC", folded) if kinds[ord(each)] == WORD)


def _counted(text: str) -> str:
    """Return *text* with its length before it."""
    return chr(_SMALL_NUMBER + len(text)) + "".join(map(_code_point, text))


def _code_point(character: str) -> str:
    code = ord(character)
    return character if code <= 0xFFFF else chr(_LARGE + (code >> 10)) + chr(_PART + (code & 0x3FF))


def _in_blocks(values: list[str]) -> tuple[str, str]:
    """Return the number of the block of each 128 *values*, and the different blocks one after the other."""
    numbers: dict[str, int] = {}
    index = [
        numbers.setdefault("".join(values[start : start + _BLOCK]), len(numbers))
        for start in range(0, CODE_POINTS, _BLOCK)
    ]
    return "".join(chr(_NUMBER + number) for number in index), "".join(numbers)


def _compositions(assigned: Iterable[int]) -> str:
    """Return each canonical composition as three code points of two characters each. Hangul is composed by rule."""
    found = []
    for code in assigned:
        parts = unicodedata.decomposition(chr(code)).split()
        if code not in _HANGUL and len(parts) == 2 and not parts[0].startswith("<"):
            first, second = (chr(int(part, 16)) for part in parts)
            if unicodedata.normalize("NFC", first + second) == chr(code):
                found.append((first, second, chr(code)))
    ordered = (ord(each) for row in sorted(found) for each in row)
    return "".join(chr(_PART + (code >> 9)) + chr(_PART + (code & 0x1FF)) for code in ordered)
