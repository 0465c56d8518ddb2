"""
The fixed table of what each code point becomes before shingles are cut; ranges of scripts; names of array types.

``unicodedata`` differs between Python versions, and a fingerprint must not. So the table is made once, from Unicode
14.0 (``tools/build_characters.py``). Characters unknown to it are dropped *before* normalisation; for the others,
Unicode's stability policies guarantee that NFKC and case folding do not change. One look-up does both and the removal
of non-word characters, but for characters whose normal form depends on their neighbours or is longer than one.
Released schemes depend on the ranges of scripts, so these never change.
"""

from __future__ import annotations

import functools
import unicodedata
import zlib
from collections.abc import Iterator, Sequence
from importlib import resources

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.uint32]  # code points
Hashes = NDArray[np.uint64]
Places = NDArray[np.intp]  # positions, or lengths
Flags = NDArray[np.bool_]
Ranges = tuple[tuple[int, int], ...]

UNSPACED: Ranges = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Myanmar
    (0x1780, 0x17FF),  # Khmer
    (0x3005, 0x3007),
    (0x3021, 0x3029),
    (0x3031, 0x3035),
    (0x3038, 0x30FF),  # kana
    (0x3105, 0x312F),  # bopomofo
    (0x31A0, 0x31BF),
    (0x31F0, 0x31FF),
    (0x3400, 0x4DBF),  # Han
    (0x4E00, 0x9FFF),
    (0xA9E0, 0xA9FF),
    (0xAA60, 0xAA7F),
    (0xF900, 0xFAFF),
    (0x1AFF0, 0x1B16F),
    (0x20000, 0x3FFFD),
)
"""Scripts written without spaces. Tibetan is none of them: it separates its syllables."""

LOGOGRAPHS: Ranges = (
    (0x3005, 0x3007),  # iteration and closing marks, zero
    (0x3021, 0x3029),
    (0x3038, 0x303B),
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xA000, 0xA48C),  # Yi
    (0xAC00, 0xD7A3),  # Hangul syllables
    (0xF900, 0xFAFF),
    (0x20000, 0x3FFFD),
)
"""Scripts with thousands of characters, each of which carries about as much information as two or three letters."""

KANA: Ranges = ((0x3041, 0x30FF), (0x3105, 0x312F), (0x31A0, 0x31BF), (0x31F0, 0x31FF), (0x1AFF0, 0x1B16F))
"""Kana and bopomofo: between letters and logographs."""


@functools.cache
def code_point_table(usual: int, *others: tuple[Ranges, int]) -> NDArray[np.uint8]:
    """Return a number for each code point: *usual*, or that of the last of *others* whose ranges have it."""
    every = np.arange(0x11_0000, dtype=np.uint32)
    table = np.full(every.size, usual, np.uint8)
    for ranges, number in others:
        edges = np.array([edge for first, last in ranges for edge in (first, last + 1)], np.uint32)
        table[np.searchsorted(edges, every, side="right") % 2 == 1] = number
    return table


def letter_counts(codes: Codes) -> NDArray[np.uint8]:
    """Return what each of *codes* counts in shingles of characters: a letter 3, a kana 4, a logograph 6."""
    return code_point_table(3, (KANA, 4), (LOGOGRAPHS, 6)).take(codes)


def shingle_lengths(codes: Codes, size: int) -> NDArray[np.uint8]:
    """
    Return the length of the shingle from each of *codes* on: the fewest characters worth *size* letters.
    *codes* have no separators. Letters are assumed after the last one, so the last shingles may reach beyond the end.
    """
    counts = np.concatenate([letter_counts(codes), np.full(size, 3, np.uint8)])
    worth = counts[: codes.size].copy()
    lengths = np.ones(codes.size, np.uint8)
    for step in range(1, size):
        lengths += worth < 3 * size
        worth += counts[step : step + codes.size]
    return lengths


TABLE_FILE = "characters.bin"

# Marks in the table, beside replacements. None of them is the code point of a word character.
DROPPED = 0
"""The character vanishes and does not separate words: marks, joiners, soft hyphens."""
SEPARATOR = 0x20
"""The character is not part of a word and stands between words: spaces, punctuation, symbols."""
WORD = 1
"""In the table of kinds: the character, already normalised, stays."""
UNASSIGNED = 0x11_0000
"""Not a character in Unicode 14.0, or half of a surrogate pair: removed before normalisation."""
COMBINES = 0x11_0001
"""Normalisation may join it with the character before it, or reorder the two."""
EXPANDS = 0x11_0002
"""Its normal form is longer than one character, whatever stands beside it."""
UNCHANGED = 0x11_0003
"""In the file only: the character stays as it is."""

# Worked on at once: few enough that the arrays stay in a core's cache, enough that numpy's calls pay.
PART_CHARACTERS, PART_TEXTS = 1 << 16, 2048

_LARGEST_CODE = 0x10FFFF

# Python reorders a run of combining characters by insertion sort, in quadratic time, so a run is normalised in pieces:
# longer ones than this occur in no language. (Unicode's Stream-Safe Text Format, UAX #15 section 13, says 30.)
_LONGEST_RUN = 64


def text_parts(
    texts: Sequence[str], characters_at_once: int = PART_CHARACTERS, texts_at_once: int = PART_TEXTS
) -> Iterator[slice]:
    """Yield slices of neighbouring texts, each short enough in all to be worked on at once, or a single long text."""
    first = characters = 0
    for place, text in enumerate(texts):
        if place > first and (characters + len(text) > characters_at_once or place - first >= texts_at_once):
            yield slice(first, place)
            first, characters = place, 0
        characters += len(text)
    if first < len(texts):
        yield slice(first, len(texts))


def to_codes(text: str) -> Codes:
    """Return the code points of *text*, lone surrogates included."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4").astype(np.uint32, copy=False)


def character_entries(codes: Codes) -> Codes:
    """Return the table's entry for each of *codes*: a replacement or a mark."""
    entries: Codes = _tables()[0].take(codes)
    return entries


def character_kinds(codes: Codes) -> NDArray[np.uint8]:
    """Return for each of *codes*, already normalised: WORD, SEPARATOR or DROPPED."""
    kinds: NDArray[np.uint8] = _tables()[1].take(codes)
    return kinds


def normalise_codes(codes: Codes) -> Codes:
    """
    Return *codes* after NFKC, case folding and NFKC: word characters, and a space for each separator, at the ends too.
    Cost: one table look-up for each character, and ``unicodedata`` for text that the table cannot settle.
    """
    entries = character_entries(codes)
    if _has_marks(entries):
        entries = _normalise_slowly(codes[entries != UNASSIGNED])
    kept: Codes = entries[entries != DROPPED]
    return kept


def normalise_batch(texts: Sequence[str]) -> tuple[Codes, Places]:
    """Return the word characters of each text, normalised, and how many; memory is some 20 bytes a character."""
    lengths = np.fromiter(map(len, texts), np.intp, len(texts))
    codes = to_codes("".join(texts))
    entries = character_entries(codes)
    ends = np.cumsum(lengths)
    starts = ends - lengths
    # No word character has a code point below the separator's.
    kept = entries > SEPARATOR
    some = lengths > 0
    lengths[some] = np.add.reduceat(kept, starts[some], dtype=np.intp)
    if not _has_marks(entries):
        return entries[kept], lengths
    # Only the texts that the table cannot settle are done again; the spans between them are taken as they are.
    parts, done = [], 0
    for text in np.unique(np.searchsorted(ends, np.flatnonzero(entries > _LARGEST_CODE), side="right")):
        start, end = starts[text], ends[text]
        part = normalise_codes(codes[start:end])
        part = part[part > SEPARATOR]
        parts += [entries[done:start][kept[done:start]], part]
        lengths[text] = part.size
        done = end
    parts.append(entries[done:][kept[done:]])
    return np.concatenate(parts), lengths


def normalise_text(text: str) -> str:
    """
    Return *text* normalised, with one or more spaces between words.
    >>> normalise_text("Ｈello, Wörld!").split()
    ['hello', 'wörld']
    """
    return _to_text(normalise_codes(to_codes(text)))


def _has_marks(entries: Codes) -> bool:
    return bool(entries.size) and int(entries.max()) > _LARGEST_CODE


def _normalise_slowly(codes: Codes) -> Codes:
    """Normalise assigned characters with Python's own tables, then look each result up."""
    cuts = _run_cuts(character_entries(codes) == COMBINES)
    normal = "".join(
        unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", _to_text(piece)).casefold())
        for piece in np.split(codes, cuts)
    )
    result = to_codes(normal)
    kinds = character_kinds(result)
    return np.where(kinds == WORD, result, kinds)


def _run_cuts(combines: Flags) -> Places:
    """Return where to cut runs of combining characters: behind every 64th of a run."""
    positions = np.arange(combines.size)
    run_starts = np.maximum.accumulate(np.where(combines, -1, positions))
    return np.flatnonzero(combines & ((positions - run_starts) % _LONGEST_RUN == 0)) + 1


def _to_text(codes: Codes) -> str:
    return codes.astype("<u4", copy=False).tobytes().decode("utf-32-le")


@functools.cache
def _tables() -> tuple[Codes, NDArray[np.uint8]]:
    """Return the table and the kinds, read on first use: 5.6 MB in memory, a few KiB on disk."""
    data = zlib.decompress(resources.files(__package__).joinpath(TABLE_FILE).read_bytes())
    size = len(data) // 5
    entries = np.frombuffer(data, dtype="<u4", count=size).astype(np.uint32)
    kinds = np.frombuffer(data, dtype=np.uint8, offset=4 * size)
    return np.where(entries == UNCHANGED, np.arange(size, dtype=np.uint32), entries), kinds
