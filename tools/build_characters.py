"""
Builds ``es_simhash/hashing/characters.bin``, which ``characters.py`` reads.

A maintainer runs it once for each version of the table, under Python 3.11, whose ``unicodedata`` is Unicode 14.0.
"""

# ruff: noqa: INP001 - a script, not part of a package

from __future__ import annotations

import struct
import unicodedata
import zlib
from pathlib import Path

from es_simhash.hashing import characters
from es_simhash.hashing.characters import (
    COMBINES,
    DROPPED,
    EXPANDS,
    SEPARATOR,
    TABLE_FILE,
    UNASSIGNED,
    UNCHANGED,
    WORD,
)

UNICODE_VERSION = "14.0.0"
CODE_POINTS = 0x110000

_IGNORABLE_RANGES = (
    # Default_Ignorable_Code_Point, Unicode 14.0, DerivedCoreProperties: unicodedata does not know the property.
    (0x00AD, 0x00AD),
    (0x034F, 0x034F),
    (0x061C, 0x061C),
    (0x115F, 0x1160),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x200B, 0x200F),
    (0x202A, 0x202E),
    (0x2060, 0x206F),
    (0x3164, 0x3164),
    (0xFE00, 0xFE0F),
    (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0),
    (0xFFF0, 0xFFF8),
    (0x1BCA0, 0x1BCA3),
    (0x1D173, 0x1D17A),
    (0xE0000, 0xE0FFF),
)
_IGNORABLE = frozenset(code for first, last in _IGNORABLE_RANGES for code in range(first, last + 1))


def classify(character: str) -> str:
    """
    Return what a normalised character becomes: itself (a word character), a space or nothing.

    A word character is a letter, a number, or a combining mark that its script cannot do without. Those marks
    have canonical combining class 0, 7 to 9 or 84 to 132: vowel signs, nuktas, viramas and tone marks of the
    Indic scripts, Thai, Lao and Tibetan; kana voicing. Other marks vanish: Hebrew points, Arabic and Syriac
    vowels, strokes, diacritics that NFKC could not compose, enclosing marks. Ignorable characters vanish too. The
    rest separates words.
    """
    if ord(character) in _IGNORABLE:
        return ""
    category = unicodedata.category(character)
    if category[0] in "LN":
        return character
    if category[0] == "M":
        order = unicodedata.combining(character)
        kept = category != "Me" and (order == 0 or 7 <= order <= 9 or 84 <= order <= 132)
        return character if kept else ""
    return "" if category in {"Cn", "Cs"} else " "


def build_table() -> list[int]:
    """Return for each code point its replacement, or one of the marks of ``characters.py``."""
    if unicodedata.unidata_version != UNICODE_VERSION:
        raise RuntimeError(
            f"this Python has Unicode {unicodedata.unidata_version}: build the table with Unicode {UNICODE_VERSION}"
        )
    seconds = _second_characters()
    return [_entry(chr(code), seconds) for code in range(CODE_POINTS)]


def build_kinds() -> bytes:
    """Return one byte for each code point that is already normalised: WORD, SEPARATOR or DROPPED."""
    kinds = {"": DROPPED, " ": SEPARATOR}
    return bytes(kinds.get(classify(chr(code)), WORD) for code in range(CODE_POINTS))


def pack() -> bytes:
    """Return the content of ``characters.bin``: both tables, compressed."""
    # Nearly all word characters stay as they are: writing that as one value is what makes the file small.
    entries = [UNCHANGED if entry == code else entry for code, entry in enumerate(build_table())]
    return zlib.compress(struct.pack(f"<{CODE_POINTS}I", *entries) + build_kinds(), level=9)


def _second_characters() -> frozenset[str]:
    """Return the characters that normalisation may join with, or move past, the one before them."""
    seconds = {chr(code) for code in range(CODE_POINTS) if unicodedata.combining(chr(code))}
    # Hangul vowels and final consonants join by arithmetic, so no decomposition mapping lists them.
    seconds.update(map(chr, range(0x1161, 0x1176)), map(chr, range(0x11A8, 0x11C3)))
    for code in range(CODE_POINTS):
        mapping = unicodedata.decomposition(chr(code)).split()
        if len(mapping) == 2 and not mapping[0].startswith("<"):
            seconds.add(chr(int(mapping[1], 16)))
    return frozenset(seconds)


def _entry(character: str, seconds: frozenset[str]) -> int:
    if unicodedata.category(character) in {"Cn", "Cs"}:
        return UNASSIGNED
    compatible = unicodedata.normalize("NFKC", character)
    folded = compatible.casefold()
    for form in (character, compatible, folded):
        decomposed = unicodedata.normalize("NFKD", form)
        if decomposed and decomposed[0] in seconds:
            return COMBINES
    result = "".join(map(classify, unicodedata.normalize("NFKC", folded)))
    if not result:
        return DROPPED
    if not result.strip(" "):
        return SEPARATOR
    return ord(result) if len(result) == 1 else EXPANDS


def main() -> None:
    """Write ``characters.bin`` beside the module that reads it."""
    Path(characters.__file__).with_name(TABLE_FILE).write_bytes(pack())


if __name__ == "__main__":
    main()
