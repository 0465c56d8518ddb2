"""
Winnowing: a few hashes of a text, such that texts that share a long run of characters share a hash.

Normalised as for ``shingles``, a letter is worth 1, a logograph 5/4, kana 4/3. From every character on, a
gram is the fewest characters worth 25, a window the fewest worth 100; of each window the smallest hash of its
grams is kept. Both depend on their characters alone, so texts that share a run worth 100 share the window
that begins with it, whatever is around. A shorter text is one window, or one gram. The terms of a released
version never change. Callers import this lazily (numpy). Source: Schleimer, Wilkerson, Aiken, "Winnowing:
Local Algorithms for Document Fingerprinting", SIGMOD 2003, section 3, with worth for length.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from es_simhash.hashing.characters import (
    BASE,
    HASHED,
    KANA,
    LOGOGRAPHS,
    MARK,
    UNASSIGNED,
    Codes,
    Hashes,
    Places,
    are_new,
    character_entries,
    code_point_table,
    hashed_letters,
    reduce_codes,
    to_codes,
)

GUARANTEE = 100
GRAM = 25

# What a character is worth, in twelfths of a letter: a letter, a logograph, kana.
LETTER, _LOGOGRAPH, _KANA = 12, 15, 16

# The hash of a run is its polynomial in this base modulo 2**64, whose powers repeat only after 2**62, then mixed.
_BASE = 0x9E37_79B9_7F4A_7C15
_INVERSE = pow(_BASE, -1, 1 << 64)

# A window has 32 to 96 grams, so its smallest hash is the smallest of three runs of 32.
_STEPS, _THIRD = 5, 32

LONGEST_QUESTION = 10_000
"""Characters of the longest text whose grams are all asked for."""

TERM_CHARACTERS = 6
"""A term has six characters of six bits each. Which hash of a window is the smallest depends on all 64 bits."""

# In the order of ASCII, so that terms are sorted as the numbers are.
_ALPHABET = np.frombuffer(b"-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz", np.uint8)
_BITS = np.uint64((1 << 6 * TERM_CHARACTERS) - 1)


def passage_terms(texts: Sequence[str]) -> list[list[str]]:
    """Return the distinct terms of each of *texts*, sorted; memory is some 100 bytes for each character."""
    codes, lengths = hashed_letters(texts)
    hashes, owners = _keep(codes, lengths)
    return _to_terms(hashes, owners, len(texts))


def question_terms(text: str) -> list[str]:
    """
    Return the terms that find documents which share passages with *text*.
    These are the terms of all its grams: a document shorter than a window keeps one gram, which need not be the
    smallest of a window of a longer text around it. A text longer than :data:`LONGEST_QUESTION` gives only those kept.
    """
    is_short = len(text) <= LONGEST_QUESTION
    hashes = gram_hashes(hashed_letters([text])[0]) if is_short else np.empty(0, np.uint64)
    if not hashes.size:
        return passage_terms([text])[0]
    return _to_terms(hashes, np.zeros(hashes.size, np.intp), 1)[0]


def gram_hashes(codes: Codes) -> Hashes:
    """Return the hashes of all grams of *codes*, normalised code points without separators; none of a shorter text."""
    ends = run_ends(worth_sums(codes), LETTER * GRAM)
    return run_hashes(codes, ends[: np.searchsorted(ends, codes.size, side="right")])


def _keep(codes: Codes, lengths: Places) -> tuple[Hashes, Places]:
    """Return the hashes kept of the texts that follow one another in *codes*, and the text of each; some come twice."""
    if not codes.size:
        return np.empty(0, np.uint64), np.empty(0, np.intp)
    sums = worth_sums(codes)
    ends, window_ends = run_ends(sums, LETTER * GRAM), run_ends(sums, LETTER * GUARANTEE)
    hashes = run_hashes(codes, np.minimum(ends, codes.size))
    owners = np.repeat(np.arange(lengths.size), lengths)
    text_ends = np.cumsum(lengths)
    starts = np.flatnonzero(window_ends <= text_ends[owners])
    smallest = _smallest(hashes, starts, _last_starts(sums, window_ends[starts]))
    owners = owners[starts]
    is_new = are_new(smallest, owners)
    short = np.flatnonzero((lengths > 0) & (np.bincount(owners, minlength=lengths.size) == 0))
    alone = _keep_of_short(codes, hashes, ends, text_ends[short] - lengths[short], text_ends[short])
    return np.concatenate([smallest[is_new], alone]), np.concatenate([owners[is_new], short])


def _last_starts(sums: NDArray[np.int64], window_ends: Places) -> Places:
    """Return where the last gram begins that ends within each window."""
    if _is_of_letters(sums):
        return window_ends - GRAM
    return np.searchsorted(sums, sums[window_ends] - LETTER * GRAM, side="right") - 1


def _smallest(hashes: Hashes, firsts: Places, lasts: Places) -> Hashes:
    """Return the smallest of the *hashes* from each of *firsts* to the one of *lasts*: 32 to 96 of them."""
    if not firsts.size:
        return hashes[:0]
    best = hashes
    for step in range(_STEPS):
        best = np.minimum(best[: best.size - (1 << step)], best[1 << step :])
    third = lasts - (_THIRD - 1)
    return np.minimum(np.minimum(best[firsts], best[np.minimum(firsts + _THIRD, third)]), best[third])


def _keep_of_short(codes: Codes, hashes: Hashes, ends: Places, starts: Places, stops: Places) -> Hashes:
    """Return the one hash kept of each text, from *starts* to *stops*, that is shorter than a window."""
    kept = np.empty(starts.size, np.uint64)
    for number, (start, stop) in enumerate(zip(starts.tolist(), stops.tolist(), strict=True)):
        grams = int(np.searchsorted(ends[start:stop], stop, side="right"))
        if grams:
            kept[number] = hashes[start : start + grams].min()
        else:
            kept[number] = run_hashes(codes[start:stop], np.full(1, stop - start))[0]
    return kept


def worth_sums(codes: Codes, *, in_letters: bool = False) -> NDArray[np.int64]:
    """
    Return the worth, in twelfths of a letter, of the characters before each position of *codes*, and of all.
    *codes* have no separators. *in_letters*: a logograph counts as the 2.5 letters that stand for as much text.
    """
    sums = np.zeros(codes.size + 1, np.int64)
    logograph = 2 * _LOGOGRAPH if in_letters else _LOGOGRAPH
    worths = code_point_table(LETTER, (KANA, _KANA), (LOGOGRAPHS, logograph))
    np.cumsum(worths.take(codes & np.uint32(BASE)), out=sums[1:])
    return sums


def run_ends(sums: NDArray[np.int64], worth: int) -> Places:
    """Return where the shortest run worth *worth* from each position ends, or past the end."""
    count = sums.size - 1
    if _is_of_letters(sums):
        return np.minimum(np.arange(count) + -(-worth // LETTER), count + 1)
    return np.searchsorted(sums, sums[:-1] + worth)


def _is_of_letters(sums: NDArray[np.int64]) -> bool:
    """Return whether every character is worth one letter: then nothing needs to be searched."""
    return int(sums[-1]) == LETTER * (sums.size - 1)


def run_hashes(codes: Codes, ends: Places) -> Hashes:
    """
    Return the hash of the run from each position of *codes* to the one of *ends*; perhaps fewer.
    Runs of the same characters have the same hash, wherever they are.
    """
    sums = np.zeros(codes.size + 1, np.uint64)
    np.cumsum(codes * _powers(_BASE, codes.size), out=sums[1:])
    values = sums[ends]
    values -= sums[: ends.size]
    values *= _powers(_INVERSE, ends.size)
    values ^= values >> np.uint64(30)
    values *= np.uint64(0xBF58_476D_1CE4_E5B9)
    values ^= values >> np.uint64(27)
    values *= np.uint64(0x94D0_49BB_1331_11EB)
    values ^= values >> np.uint64(31)
    return values


def _powers(base: int, count: int) -> Hashes:
    factors = np.full(count, base, np.uint64)
    factors[:1] = 1
    return np.multiply.accumulate(factors)


def _to_terms(hashes: Hashes, owners: Places, count: int) -> list[list[str]]:
    """Return the distinct terms of each of *count* texts, given its hashes."""
    values = hashes & _BITS
    order = np.lexsort((values, owners))
    values, owners = values[order], owners[order]
    is_new = are_new(values, owners)
    values, owners = values[is_new], owners[is_new]
    shifts = np.arange(6 * (TERM_CHARACTERS - 1), -1, -6, dtype=np.uint64)
    digits = _ALPHABET.take((values[:, None] >> shifts & np.uint64(63)).astype(np.intp))  # numpy 1 takes no uint64
    terms = digits.view(f"S{TERM_CHARACTERS}").ravel().astype(f"U{TERM_CHARACTERS}").tolist()
    stops = np.searchsorted(owners, np.arange(count), side="right").tolist()
    return [terms[start:stop] for start, stop in zip([0, *stops], stops, strict=False)]


def letters_with_positions(text: str) -> tuple[Codes, Places, Places]:
    """
    Return the letters of *text* that fingerprints are made of, and where in *text* each of them starts and ends.
    Letters that one character and its marks become share one start and end. Memory: some 40 bytes for each.
    """
    codes = to_codes(text)
    entries = character_entries(codes)
    starts = np.flatnonzero((entries > UNASSIGNED) & (entries < MARK))
    stops = np.append(starts[1:], codes.size)[: starts.size]
    letters, ends = reduce_codes(codes[starts[0] if starts.size else codes.size :], stops - starts[:1])
    counts = np.diff(ends, prepend=0)
    # What is dropped behind a character does not belong to it.
    places = np.flatnonzero(entries != UNASSIGNED)
    lasts = places[np.searchsorted(places, stops) - 1] + 1
    return letters & np.uint32(HASHED), np.repeat(starts, counts), np.repeat(lasts, counts)
