"""
Builds ``es_simhash/hashing/characters.bin``, which ``characters.py`` reads.

A maintainer runs it once for each version of the table, under Python 3.11, whose ``unicodedata`` is Unicode 14.0.
"""

# ruff: noqa: INP001 - a script, not part of a package

from __future__ import annotations

import re
import struct
import unicodedata
import zlib
from collections.abc import Iterator
from pathlib import Path

from es_simhash.hashing import characters
from es_simhash.hashing.characters import (
    CODE_POINTS,
    DIAERESIS,
    DROPPED,
    FIRST_EXPANSION,
    MARK,
    RING,
    SEPARATOR,
    TABLE_FILE,
    UNASSIGNED,
    UNCHANGED,
)

UNICODE_VERSION = "14.0.0"

# Default_Ignorable_Code_Point, Unicode 14.0, DerivedCoreProperties: unicodedata does not know the property.
_IGNORABLE_RANGES = (
    "AD-AD 34F-34F 61C-61C 115F-1160 17B4-17B5 180B-180F 200B-200F 202A-202E 2060-206F 3164-3164 FE00-FE0F FEFF-FEFF "
    "FFA0-FFA0 FFF0-FFF8 1BCA0-1BCA3 1D173-1D17A E0000-E0FFF"
)
_IGNORABLE = {
    code
    for first, last in (part.split("-") for part in _IGNORABLE_RANGES.split())
    for code in range(int(first, 16), int(last, 16) + 1)
}

# What the writers of a language use for one letter. Decomposition and case folding come first.
_FORMS = {
    "æ": "ae",
    "œ": "oe",
    "ø": "oe",
    "ı": "i",
    # Arabic, Persian, Urdu, Kurdish
    "ىیې": "ي",
    "ک": "ك",
    "ةەہھ": "ه",
    # Thai and Lao: one key, or another one twice
    "แ": "เเ",
    "ແ": "ເເ",
    # Malayalam: a consonant without vowel, before Unicode 5.1
    "ൺ": "ണ്",
    "ൻ": "ന്",
    "ർ": "ര്",
    "ൽ": "ല്",
    "ൾ": "ള്",
    "ൿ": "ക്",
}
_LETTER_FORMS = {letter: form for letters, form in _FORMS.items() for letter in letters}

# Letters that are written as, and for, apostrophes and other signs: Ukrainian, Hawaiian, Arabic in Latin script.
_SIGN_LETTERS = frozenset(map(chr, [*range(0x02B9, 0x02E0), 0x02EC, 0x02EE, 0x0640, 0x07FA, 0xA78B, 0xA78C]))

# A letter with a stroke, hook or tail that Unicode does not decompose, by its name.
_NAMED = re.compile(r"((?:LATIN|CYRILLIC|GREEK) SMALL LETTER .+?) WITH (.+)")

# Where the fields of a letter's marks begin: that of the marks that bits are made of, and that of the others.
_KEPT_SHIFT, _OTHER_SHIFT = 23, 26
# No two of Vietnamese have one sum: tones, then circumflex, breve, horn.
_OTHER = {0x300: 1, 0x301: 2, 0x303: 3, 0x309: 4, 0x323: 5, 0x302: 6, 0x306: 12, 0x31B: 18, 0x326: 24, 0x327: 24}
_HORN_OF_NAMES = 0x31B


def classify(code: int) -> list[int]:
    """
    Return what one code point that is decomposed, case folded and decomposed again becomes.

    A letter or a number stays; of a decimal digit its ASCII form. Marks of combining class 0 are vowel signs, which
    are letters here. Other marks add to the letter before them: those of classes 8, 9 and 84 to 132 (kana voicing,
    viramas, vowels and tones of Thai, Lao and Tibetan) to what bits are made of; those of 7 and 10 to 36 (nuktas,
    Hebrew points, Arabic and Syriac vowels) and all of Arabic add nothing; the others, diacritics, to the letter that
    comparisons see. Ignorable characters vanish, and so do enclosing marks. The rest separates words.
    """
    character = chr(code)
    category = unicodedata.category(character)
    if code in _IGNORABLE or category in {"Me", "Cn", "Cs"} or code in {0x345, 0x640, 0x7FA}:
        return []
    if character in _SIGN_LETTERS:
        return [SEPARATOR]
    if 0x1100 <= code < 0x1113:
        return [0xAC00 + (code - 0x1100) * 588]
    if 0x1161 <= code < 0x1176:
        return [MARK | (code - 0x1161) * 28]
    if 0x11A8 <= code < 0x11C3:
        return [MARK | (code - 0x11A7)]
    if category == "Nd":
        return [ord("0") + unicodedata.decimal(character)]
    order = unicodedata.combining(character)
    if category[0] == "M" and order:
        return _mark(code, order)
    if category[0] in "LNM":
        return _letter(character)
    return [SEPARATOR]


def _mark(code: int, order: int) -> list[int]:
    if code == 0x308:
        return [MARK | DIAERESIS]
    if code == 0x30A:
        return [MARK | RING]
    if order in {8, 9} or 84 <= order <= 132:
        return [MARK | (1 + code % 7) << _KEPT_SHIFT]
    if order == 7 or 10 <= order <= 36 or 0x600 <= code < 0x700:
        return []
    return [MARK | _OTHER.get(code, 25 + code % 7) << _OTHER_SHIFT]


def _letter(character: str) -> list[int]:
    if form := _LETTER_FORMS.get(character):
        return [value for part in form for value in (classify(ord(part)) if len(form) > 1 else [ord(part)])]
    named = _NAMED.fullmatch(unicodedata.name(character, ""))
    if named:
        try:
            base = unicodedata.lookup(named[1])
        except KeyError:
            return [ord(character)]
        tail = 25 + zlib.crc32(named[2].encode()) % 7
        return [*classify(ord(base)), MARK | (_OTHER[_HORN_OF_NAMES] if named[2] == "HORN" else tail) << _OTHER_SHIFT]
    return [ord(character)]


def decompose(character: str) -> str:
    """Return the compatibility decomposition; a Hangul syllable, and a letter of Hangul by itself, stays."""
    code = ord(character)
    stays = 0xAC00 <= code <= 0xD7A3 or 0x3131 <= code < 0x318F
    return character if stays else unicodedata.normalize("NFKD", character)


def reduce(code: int) -> list[int]:
    """Return what a code point becomes: letters, separators, and marks that have no letter before them."""
    character = chr(code)
    if 0xFFA1 <= code < 0xFFDD:  # a Hangul letter of half width
        character = chr(int(unicodedata.decomposition(character).split()[1], 16))
    folded = (part.casefold() for part in decompose(character) if part != "\u0345")
    found: list[int] = []
    for part in (again for forms in folded for form in forms for again in decompose(form)):
        for value in classify(ord(part)):
            if not value & MARK or not found:
                found.append(value)
            elif found[-1] & MARK:
                found[-1] = MARK | (found[-1] + value) % MARK
            elif found[-1] != SEPARATOR:
                found[-1] = (found[-1] + value) % MARK
    return found if any(value != SEPARATOR for value in found) else found[:1]


def entries(expansions: dict[tuple[int, ...], int]) -> Iterator[int]:
    """Yield for each code point what it becomes, as ``characters.py`` says, and number the *expansions*."""
    for code in range(CODE_POINTS):
        if unicodedata.category(chr(code)) in {"Cn", "Cs"}:
            yield UNASSIGNED
        elif len(reduced := tuple(reduce(code))) > 1:
            yield FIRST_EXPANSION + expansions.setdefault(reduced, len(expansions))
        else:
            # Nearly all word characters stay as they are: writing that as one value is what makes the file small.
            yield UNCHANGED if reduced == (code,) else reduced[0] if reduced else DROPPED


def pack() -> bytes:
    """Return the content of ``characters.bin``, compressed: the table, then each expansion after its length."""
    expansions: dict[tuple[int, ...], int] = {}
    values = [*entries(expansions)]
    values += [value for expansion in expansions for value in (len(expansion), *expansion)]
    return zlib.compress(struct.pack(f"<{len(values)}I", *values), level=9)


def main() -> None:
    """Write ``characters.bin`` beside the module that reads it."""
    if unicodedata.unidata_version != UNICODE_VERSION:
        raise SystemExit(f"this Python has Unicode {unicodedata.unidata_version}: run one with {UNICODE_VERSION}")
    Path(characters.__file__).with_name(TABLE_FILE).write_bytes(pack())


if __name__ == "__main__":
    main()
