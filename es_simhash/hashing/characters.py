"""
The fixed table of what each code point becomes before shingles are cut; ranges of scripts; names of array types.

Two ways to write one text give the same letters. Each character is decomposed, its case is folded, and letters that
writers use for one another become one letter (``tools/build_characters.py``). ``unicodedata`` differs between Python
versions, and a fingerprint must not. So the table is made once, from Unicode 14.0; other characters are dropped.

A letter is a number of 31 bits. Its lower 21 bits are the code point of the letter without marks. Marks are added:
bits 21 and 22 count the diaeresis and the ring, bits 23 to 25 the marks that make words (kana voicing, viramas, tones
of Thai), and the bits above all other marks, which no fingerprint sees. The order of additions does not matter, so the
order of marks does not either.
Released schemes depend on the ranges of scripts, so these never change.
"""

from __future__ import annotations

import functools
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
    return code_point_table(3, (KANA, 4), (LOGOGRAPHS, 6)).take(codes & np.uint32(BASE))


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
CODE_POINTS = 0x11_0000

DROPPED = 0
"""In the table: the character vanishes and does not separate words: joiners, soft hyphens, some marks."""
UNASSIGNED = 1
"""Not a character in Unicode 14.0, or half of a surrogate pair: vanishes too."""
SEPARATOR = 0x20
"""The character is not part of a word and stands between words: spaces, punctuation, symbols."""
FIRST_EXPANSION = CODE_POINTS
"""From here to BASE: the number of an expansion, several letters or separators."""
BASE = 0x1F_FFFF
"""The bits of a letter that are its code point without marks."""
DIAERESIS, RING = 1 << 21, 2 << 21
"""What these two add: ä is ae, å is aa."""
HASHED = BASE | 7 << 23
"""The bits of a letter that fingerprints are made of."""
MARK = 1 << 31
"""The other bits are added to the letter before it."""
UNCHANGED = MARK - 1
"""In the file only: the character stays as it is."""

# Worked on at once: few enough that the arrays stay in a core's cache, enough that numpy's calls pay.
PART_CHARACTERS, PART_TEXTS = 1 << 16, 2048


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


def are_new(*columns: Places | Hashes) -> Flags:
    """Return which rows of *columns* differ from the row before; the first one does."""
    found = np.ones(columns[0].size, np.bool_)
    found[1:] = columns[0][1:] != columns[0][:-1]
    for column in columns[1:]:
        found[1:] |= column[1:] != column[:-1]
    return found


def to_codes(text: str) -> Codes:
    """Return the code points of *text*, lone surrogates included."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4").astype(np.uint32, copy=False)


def character_entries(codes: Codes) -> Codes:
    """Return the table's entry for each of *codes*: a letter, an expansion, a mark or one of the constants above."""
    entries: Codes = _tables()[0].take(codes)
    return entries


@functools.cache
def expansion_values() -> list[list[int]]:
    """Return what each expansion becomes, in the order of their numbers."""
    _, values, starts = _tables()
    return [part[1:].tolist() for part in np.split(values, starts[1:-1])]


def hashed_letters(texts: Sequence[str]) -> tuple[Codes, Places]:
    """Return the letters that fingerprints are made of, text after text, and how many each text has."""
    letters, ends = reduce_codes(*join_codes(texts))
    if letters.size and int(letters.max()) > BASE:
        letters &= np.uint32(HASHED)
    return letters, np.diff(ends, prepend=0)


def join_codes(texts: Sequence[str]) -> tuple[Codes, Places]:
    """Return the code points of *texts*, one after the other, and where each text ends."""
    return to_codes("".join(texts)), np.cumsum(np.fromiter(map(len, texts), np.intp, len(texts)))


def reduce_codes(codes: Codes, ends: Places) -> tuple[Codes, Places]:
    """
    Return the letters, with their marks, of texts that end at *ends* in *codes*, and where each text ends among them.
    Cost: one table look-up for each character, a second one for some, and sums where marks stand apart.
    """
    entries = character_entries(codes)
    largest = int(entries.max(initial=0))
    if largest >= FIRST_EXPANSION:
        entries, ends = expand(entries, ends)
        if largest >= MARK:
            entries, ends = _add_marks(entries, ends)
    kept = entries > SEPARATOR
    letters, ends = entries[kept], ends_among(kept, ends)
    return _write_out(letters, ends) if largest > BASE else (letters, ends)


def ends_among(kept: Flags, ends: Places) -> Places:
    """Return how many characters are *kept* before each of *ends*."""
    moved: Places = np.append(0, np.cumsum(kept))[ends]
    return moved


def find_expansions(entries: Codes) -> tuple[Places, Places, Places]:
    """Return which characters become several, where these begin among the values of the table, and how many are new."""
    _, values, starts = _tables()
    others = np.flatnonzero(entries >= FIRST_EXPANSION)
    places = others[entries[others] <= BASE]
    firsts = starts[entries[places] - FIRST_EXPANSION]
    return places, firsts + 1, values[firsts].astype(np.intp) - 1


def expand(entries: Codes, ends: Places) -> tuple[Codes, Places]:
    """Put several letters in the place of those that expand."""
    places, firsts, more = find_expansions(entries)
    if not places.size:
        return entries, ends
    values, passed = _tables()[1], np.append(0, np.cumsum(more))
    entries[places] = values[firsts]
    sources = np.repeat(firsts + 1 - passed[:-1], more) + np.arange(passed[-1])
    expanded = np.insert(entries, np.repeat(places + 1, more), values[sources])
    return expanded, ends + passed[np.searchsorted(places, ends)]


def _add_marks(entries: Codes, ends: Places) -> tuple[Codes, Places]:
    """Add each mark to the letter before it in its text; one without a letter vanishes."""
    kept = entries > UNASSIGNED
    entries, ends = entries[kept], ends_among(kept, ends)
    is_first = entries < MARK
    is_first[ends[ends < entries.size]] = True
    is_first[:1] = True
    firsts = np.flatnonzero(is_first)
    bases = entries[firsts]
    sums = np.add.reduceat(entries & np.uint32(MARK - 1), firsts, dtype=np.uint32) & np.uint32(MARK - 1)
    letters = np.where((bases == SEPARATOR) | (bases >= MARK), np.uint32(SEPARATOR), sums)
    return letters, np.searchsorted(firsts, ends)


def _write_out(letters: Codes, ends: Places) -> tuple[Codes, Places]:
    """Write ä as ae, å as aa, and so on."""
    marked = np.flatnonzero(letters > BASE)
    bases, added = letters[marked] & np.uint32(BASE), letters[marked] & np.uint32(DIAERESIS | RING)
    is_written = (added == DIAERESIS) & np.isin(bases, _WITH_E) | (added == RING) & (bases == ord("a"))
    places, added = marked[is_written], added[is_written]
    if not places.size:
        return letters, ends
    letters[places] -= added
    seconds = np.where(added == RING, np.uint32(ord("a")), np.uint32(ord("e")))
    return np.insert(letters, places + 1, seconds), ends + np.searchsorted(places, ends)


_WITH_E = np.array([ord("a"), ord("o"), ord("u")], np.uint32)


@functools.cache
def _tables() -> tuple[Codes, Codes, Places]:
    """Return the table, the expansions, each after its length, and where each begins; read on first use, 4.5 MB."""
    data = zlib.decompress(resources.files(__package__).joinpath(TABLE_FILE).read_bytes())
    values = np.frombuffer(data, "<u4").astype(np.uint32)
    entries, behind = values[:CODE_POINTS], values[CODE_POINTS:]
    starts = [0]
    while starts[-1] < behind.size:
        starts.append(starts[-1] + int(behind[starts[-1]]) + 1)
    return np.where(entries == UNCHANGED, np.arange(CODE_POINTS, dtype=np.uint32), entries), behind, np.array(starts)
