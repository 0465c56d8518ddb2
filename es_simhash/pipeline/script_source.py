"""
The source of the script: the files in ``painless/``, the values of a scheme, pinned tables of characters, and probes.

Painless has no multiplication to 128 bits, so ``multiply_fold`` of ``painless/sums.painless`` goes through halves. A
script keeps nothing between documents, so nothing may need unpacking: a character is found by the number of its block
of 128, then by its place in the block. The probes are texts whose fingerprints a server makes before the pipeline is
stored.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from string import Template
from typing import Any, NamedTuple

import numpy as np

from es_simhash.hashing import Scheme, fingerprints, to_hex
from es_simhash.hashing.characters import (
    BASE,
    CODE_POINTS,
    DIAERESIS,
    DROPPED,
    FIRST_EXPANSION,
    HASHED,
    KANA,
    LOGOGRAPHS,
    MARK,
    RING,
    SEPARATOR,
    UNASSIGNED,
    Ranges,
    character_entries,
    expansion_values,
)
from es_simhash.hashing.scheme import MIX_PRIME_1, MIX_PRIME_2, PRIME_1, SECRET, SHORT_FLIP

_BLOCK = 128

# Numbers become characters that JSON neither escapes nor may lose: no control characters, no surrogates.
_NUMBER = 0x100
_SMALL_NUMBER = 0x30
_PART = 0x4000
# What a server needs of a letter or mark: no fingerprint sees the other marks.
_NEEDED = HASHED | DIAERESIS | RING


class CharacterTables(NamedTuple):
    """
    The strings, in the order in which the script takes them; ``painless/characters.painless`` says what they hold.
    No replacement is one of the capital letters that say how, since replacements are folded.
    """

    blocks: str
    entries: str
    records: str


@cache
def character_tables() -> CharacterTables:
    """Return the table of ``hashing/characters.py`` as the script reads it."""
    expansions, places, records = expansion_values(), dict[str, int](), list[str]()
    end = 0
    entries = []
    for code, entry in enumerate(character_entries(np.arange(CODE_POINTS, dtype=np.uint32)).tolist()):
        if entry == UNASSIGNED:  # three of four
            entries.append("D" + chr(_NUMBER))
            continue
        values = expansions[entry - FIRST_EXPANSION] if FIRST_EXPANSION <= entry <= BASE else [entry]
        needed = [value & _NEEDED for value in values]
        how = _how(code, entry, needed)
        record = chr(_SMALL_NUMBER + len(needed)) + "".join(map(_two_characters, needed)) if how in {"M", "X"} else ""
        if record and record not in places:
            places[record] = end
            records.append(record)
            end += len(record)
        entries.append(how + chr(_NUMBER + places.get(record, 0)))
    return CharacterTables(*_in_blocks(entries), "".join(records))


def _how(code: int, entry: int, needed: list[int]) -> str:
    """Return how a code point is written, or its replacement."""
    [first, *more] = needed
    if entry == DROPPED or (entry >= MARK and not first):
        return "D"
    if entry == SEPARATOR:
        return "S"
    if entry >= MARK:
        return "M"
    if more or (first > 0xFFFF and first != code):
        return "X"
    return "U" if first == code else chr(first)


def _two_characters(value: int) -> str:
    return chr(_PART + (value >> 13)) + chr(_PART + (value & 0x1FFF))


def _in_blocks(values: list[str]) -> tuple[str, str]:
    """Return the number of the block of each 128 *values*, and the different blocks one after the other."""
    numbers: dict[str, int] = {}
    index = [
        numbers.setdefault("".join(values[start : start + _BLOCK]), len(numbers))
        for start in range(0, CODE_POINTS, _BLOCK)
    ]
    return "".join(chr(_NUMBER + number) for number in index), "".join(numbers)


_WORD = 1 << 64


def literal(value: int) -> str:
    """Return the 64 bits of *value* as a constant of Painless, whose numbers are signed."""
    value %= _WORD
    if value == 1 << 63:
        return "Long.MIN_VALUE"
    return f"({value - _WORD}L)" if value >> 63 else f"{value}L"


def hash_function(size: int) -> str:
    """Return the function that hashes *size* (1 to 16) code points from *at* on; all but *count* are U+0000."""
    lines = ["long hash(int[] codes, int at, int count) {"]
    for place in range(size):
        code = f"(long) codes[at + {place}]"
        lines.append(f"  long c{place} = " + (f"count > {place} ? {code} : 0L;" if place else f"{code};"))
    lines += _short(size) if size <= 2 else _middle(size) if size <= 4 else _long(size)
    return "\n".join([*lines, "}"])


def _short(size: int) -> list[str]:
    return [
        f"  long v = (c{size - 1} + (c0 << 32)) ^ {literal(SHORT_FLIP)};",
        "  v ^= (v << 49 | v >>> 15) ^ (v << 24 | v >>> 40);",
        f"  v *= {literal(MIX_PRIME_2)};",
        f"  v ^= (v >>> 35) + {4 * size}L;",
        f"  v *= {literal(MIX_PRIME_2)};",
        "  return v ^ (v >>> 28);",
    ]


def _middle(size: int) -> list[str]:
    return [
        f"  long low = {_read_byte(0)} ^ {literal(SECRET[3] ^ SECRET[4])};",
        f"  long high = {_read_byte(4 * size - 8)} ^ {literal(SECRET[5] ^ SECRET[6])};",
        f"  long v = Long.reverseBytes(low) + high + {4 * size}L + multiply_fold(low, high);",
        *_avalanche(),
    ]


def _long(size: int) -> list[str]:
    length = 4 * size
    lines = [f"  long v = {literal(length * PRIME_1)};"]
    for step in range((length - 1) // 32 + 1):
        for byte, word in ((16 * step, 4 * step), (length - 16 * (step + 1), 4 * step + 2)):
            low = f"{_read_byte(byte)} ^ {literal(SECRET[word])}"
            high = f"{_read_byte(byte + 8)} ^ {literal(SECRET[word + 1])}"
            lines.append(f"  v += multiply_fold({low}, {high});")
    return [*lines, *_avalanche()]


def _read_byte(byte: int) -> str:
    return f"(c{byte // 4} | c{byte // 4 + 1} << 32)"


def _avalanche() -> list[str]:
    return ["  v ^= v >>> 37;", f"  v *= {literal(MIX_PRIME_1)};", "  return v ^ (v >>> 32);"]


LONGEST = 1_000_000
"""Characters (of UTF-16) of the longest text that gets a fingerprint on the server."""

# Characters that are normalised at once: a function may take no more than 1,000,000 steps of its loops.
_STEP = 2_000

# No logograph below this belongs to a range that begins above it, and no kana is below.
_FIRST_KANA = 0x3041

# OpenSearch does not compile some expressions with hexadecimal constants.
_HEXADECIMAL = re.compile(r"\b0x[0-9A-F]+")

_WEIGHTS = {
    "linear": "(long) count * 1048576L",
    "log": "count == 1 ? 1048576L : Math.round(1048576.0 * (1.0 + Math.log((double) (count < 65536 ? count : 65536))))",
    "set": "1048576L",
}


def script_source(scheme: Scheme) -> str:
    """Return the script that makes fingerprints of *scheme* (``shingles`` with XXH3), without comments."""
    size = scheme.parameters["size"]
    early = [logograph for logograph in LOGOGRAPHS if logograph[0] < _FIRST_KANA]
    filled = {
        "longest": LONGEST,
        "size": size,
        "step": _STEP,
        "line_feed": "\n",
        "worth": 3 * size,
        "weight": _WEIGHTS[scheme.parameters["weighting"]],
        "early_logographs": _is_within(early),
        "logographs": _is_within([logograph for logograph in LOGOGRAPHS if logograph not in early]),
        "kana": _is_within(KANA),
        "base": BASE,
        "hashed": HASHED,
        "fields": DIAERESIS | RING,
        "diaeresis": DIAERESIS,
        "ring": RING,
    }
    texts = [_read("sums"), _read("characters"), _read("counts"), hash_function(size)]
    rest = map(_read, ("shingles", "fingerprint", "document", "lookup", "main"))
    return Template("\n".join([*texts, *rest])).substitute(filled)


def _is_within(ranges: Ranges | list[tuple[int, int]]) -> str:
    """Return the condition that the character ``c`` is in one of *ranges*, ends included."""
    return " || ".join(f"c >= {first} && c <= {last}" for first, last in ranges)


@cache
def _read(name: str) -> str:
    """Return a file of ``painless/`` with decimal constants, and without comments: a server keeps it in memory."""
    text = resources.files(__package__).joinpath("painless", f"{name}.painless").read_text(encoding="utf-8")
    lines = map(str.strip, text.splitlines())
    code = "\n".join(line for line in lines if line and not line.startswith("//"))
    return _HEXADECIMAL.sub(lambda found: str(int(found[0], 16)), code)


# Each is there for a part of the script: case folding and ligatures, marks that move or combine, Hangul in parts,
# wide and half-width forms, characters above U+FFFF, characters that Unicode 14.0 does not know, repeated shingles,
# shingles that reach from one piece of a long text into the next, and texts that are too short or have nothing.
_TEXTS = (
    "The quick brown fox jumps over the lazy dog. The quick brown fox jumps over the lazy dog.",
    "STRASSE Straße ﬁne ŒUVRE İstanbul ΣΊΣΥΦΟΣ Ὰ\u0bcd\u0345 ᾳ\u0306 ǅ",
    "Tie\u0302\u0301ng Vie\u0323\u0302t q\u0307\u0323 \u0301\u0323a שָׁלוֹם مُحَمَّد क़ानून क\u093cा",
    "\u1112\u1161\u11ab\u1100\u1173\u11af 한국어 뉴스 ﾊﾝｶｸ ｶﾞ パ\u309a か\u3099 ㍿ ① ２０２４年",
    "近日,美国一名年轻女子在网上发文称,自己成功地拒绝了男友的求婚。繁體中文與简体",
    "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𠮷野家 𐐀𐐨 \U0002f800 \U0001f600 \u0e4e\U0001e030 ไทย ລາວ မြန်မာ ភាសាខ្មែរ",
    "a" + "\u0301\u0323" * 70 + "b",
    "long " * 600 + "é" * 1_500 + "ﷺ" * 900 + "end",
    "ab",
    "京",
    " .,;:!?…—— ",
)


def probe_documents(field: str, *, prefix: str) -> list[dict[str, Any]]:
    """Return documents for the simulation of a pipeline that reads *field*; one has a fingerprint already."""
    documents: list[dict[str, Any]] = [{field: text} for text in _TEXTS]
    documents[0][prefix] = {"fingerprint": "0" * 16}
    return [{"_source": document} for document in documents]


def find_differences(answers: Sequence[Mapping[str, Any]], scheme: Scheme, *, prefix: str) -> list[str]:
    """Return the probes of which the server, by the ``docs`` of its answer, makes another fingerprint than Python."""
    expected = [None if value is None else to_hex(value) for value in fingerprints(_TEXTS, scheme=scheme)]
    found = [((answer.get("doc") or {}).get("_source") or {}).get(prefix) or {} for answer in answers]
    compared = zip(_TEXTS, expected, found, strict=True)
    return [text for text, wanted, fields in compared if fields.get("fingerprint") != wanted]
