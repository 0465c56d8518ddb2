"""
How much of two texts is the same by their shingles, and how letters become pieces, and pieces shingles; edits.

A text is cut where its letters say so, not at blanks: a piece begins where the hash of two neighbouring letters is the
smallest of three. So the same letters are cut in the same way wherever blanks and ends of lines stand. A logograph, a
hangul syllable, or a character of a script without spaces is a piece by itself. A piece of letters counts 8, another 3,
and a shingle is the shortest run that reaches 15: two pieces, or five characters of Chinese.

Edit similarity is by rapidfuzz: H. Hyyrö, "A Bit-Vector Algorithm for Computing Levenshtein and Damerau Edit Distances"
(2003).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from rapidfuzz.distance import Levenshtein

from es_simhash.hashing.characters import CODE_POINTS, Codes, Flags, Hashes, Places, letter_counts
from es_simhash.texts.letters import compared_letters, stands_alone, text_batches

Shingles = Hashes

# What a piece of letters counts, what a character by itself counts, and the length of a shingle.
LETTERS, CHARACTER, SHINGLE = 8, 3, 15

# The letters of a run, as long as such a shingle.
RUN = 7

FEW = 45
"""A text of fewer shingles has few words: some 30, or 45 characters of Chinese; by characters ten words."""
_STRICTER = 16

# The longest piece: only a text that repeats one or two letters has such.
_LONGEST = 16


def shingle_sets(texts: Sequence[str], unit: str = "words") -> list[Shingles]:
    """
    Return the distinct shingles of each text as sorted 64-bit hashes; empty for a text without letters.
    A text shorter than a shingle is one shingle. The chance that two different shingles of a pair of texts share a hash
    is below one in a million even for texts of a million words. Memory: some 60 bytes for each of 262,144 characters at
    a time, or of a longer text. *unit*: ``"words"`` are pieces, ``"characters"`` letters.
    """
    return [part for batch in text_batches(texts) for part in cut_units(*_CUTTERS[unit](batch))]


def units_in_order(texts: Sequence[str], unit: str) -> list[Shingles]:
    """Return the units of each text in their order, one number for each."""
    cut = map(_CUTTERS[unit], text_batches(texts))
    return [part for units, _, ends in cut for part in np.split(units, ends[:-1])]


def run_shingles(texts: Sequence[str]) -> list[Shingles]:
    """
    Return the distinct runs of 7 letters, or of 5 characters by themselves, of each text, as sorted hashes.
    A run begins at every letter, so all those of an excerpt are in the whole text; four times as many as shingles.
    """
    alone = SHINGLE // CHARACTER
    found = []
    for batch in text_batches(texts):
        codes, ends = compared_letters(batch)
        counts = np.where(stands_alone(codes), RUN, alone)
        found += cut_units(codes.astype(np.uint64), counts, ends, length=alone * RUN)
    return found


def share_shingles(first: Shingles, second: Shingles) -> tuple[float, float, float]:
    """Return the share of each set that the other has, and the Jaccard similarity; 0 where either is empty."""
    if not first.size or not second.size:
        return 0.0, 0.0, 0.0
    shared = _count_shared(first, second)
    return shared / first.size, shared / second.size, shared / (first.size + second.size - shared)


def share_of_few(first: Shingles, second: Shingles) -> tuple[float, float]:
    """
    Return Jaccard similarity and containment, smaller where words were replaced in a text of few: with one word
    replaced, a statement of thirty is another one. What is added or cut counts as ever. Never larger than without.
    """
    smaller = min(first.size, second.size)
    if not smaller:
        return 0.0, 0.0
    shared = _count_shared(first, second)
    extra = _STRICTER * max(0, smaller - shared - 1) * max(0.0, FEW / smaller - 1)
    return shared / (first.size + second.size - shared + extra), shared / (smaller + extra)


def _count_shared(first: Shingles, second: Shingles) -> int:
    return int(np.count_nonzero(first.take(first.searchsorted(second), mode="clip") == second))


def _cut_letters(texts: Sequence[str]) -> tuple[Shingles, Places, Places]:
    """Return the code of every letter, what it counts, and for each text the number of the letter after its last."""
    codes, ends = compared_letters(texts)
    return codes.astype(np.uint64), letter_counts(codes).astype(np.intp), ends


def _cut_pieces(texts: Sequence[str]) -> tuple[Shingles, Places, Places]:
    """Return the hash of every piece, what it counts, and for each text the number of the piece after its last."""
    codes, ends = compared_letters(texts)
    if not codes.size:
        return codes.astype(np.uint64), codes.astype(np.intp), ends
    alone = stands_alone(codes)
    is_start = _piece_starts(codes, ends)
    is_start |= alone
    is_start[1:] |= alone[:-1]
    starts = np.flatnonzero(is_start)
    lengths = np.diff(starts, append=codes.size)
    if int(lengths.max()) > _LONGEST:
        within = np.arange(codes.size) - np.repeat(starts, lengths)
        starts = np.flatnonzero(within % _LONGEST == 0)
        lengths = np.diff(starts, append=codes.size)
    hashes = mix_runs(codes.astype(np.uint64), starts, lengths)
    return hashes, np.where(alone[starts], CHARACTER, LETTERS), np.searchsorted(starts, ends)


_CUTTERS = {"words": _cut_pieces, "characters": _cut_letters}


def _piece_starts(codes: Codes, ends: Places) -> Flags:
    """Return at which letters a piece begins, by what the text has around them alone; *ends*: where texts end."""
    begins = np.append(0, ends[:-1])
    begins = begins[begins < codes.size]
    hashes = codes * np.uint32(0x9E37_79B1)
    hashes[1:] += codes[:-1] * np.uint32(0x85EB_CA77)
    hashes ^= hashes >> np.uint32(15)
    hashes *= np.uint32(0x2C1B_3C6D)
    hashes ^= hashes >> np.uint32(12)
    hashes[begins] = 0xFFFF_FFFF
    is_start = np.ones(codes.size, np.bool_)
    is_start[1:] &= hashes[1:] < hashes[:-1]
    is_start[:-1] &= hashes[:-1] <= hashes[1:]
    # Not beside the first or the last letter: what is added before or after changes the first or last piece alone.
    for place in (begins + 1, ends - 1):
        is_start[np.clip(place, 0, codes.size - 1)] = False
    is_start[begins] = True
    return is_start


def cut_units(hashes: Shingles, counts: Places, ends: Places, *, length: int = SHINGLE) -> list[Shingles]:
    """
    Return the distinct shingles of texts that stand one after the other, each as sorted 64-bit hashes.
    A shingle is the shortest run of units (pieces or characters) whose *counts* reach *length*; a text without such a
    run is one shingle. *ends*: for each text the number of the unit after its last.
    """
    if not hashes.size:
        return [hashes] * ends.size
    starts, lengths = unit_runs(counts, np.repeat(ends, np.diff(ends, prepend=0)), length)
    # A text without a run is one shingle, if it has units.
    first_units = np.concatenate(([0], ends[:-1]))
    is_short = (np.diff(np.searchsorted(starts, ends), prepend=0) == 0) & (ends > first_units)
    mixed = mix_runs(hashes, starts, lengths)
    if is_short.any():
        begins, sizes = first_units[is_short], (ends - first_units)[is_short]
        places = np.searchsorted(starts, begins)
        starts, mixed = np.insert(starts, places, begins), np.insert(mixed, places, mix_runs(hashes, begins, sizes))
    stops = np.searchsorted(starts, ends).tolist()
    return [_distinct(mixed[begin:end]) for begin, end in pairwise([0, *stops])]


def unit_runs(counts: Places, ends: Places, length: int = SHINGLE) -> tuple[Places, Places]:
    """Return the start and length of each shingle, in units; *ends* has for each unit the end of its text."""
    passed = np.cumsum(counts)
    wanted = passed - counts + length
    # The first unit whose end lies a shingle's length beyond each start; a start without one begins no shingle.
    last = np.full(counts.size, counts.size)
    most, fewest = (-(-length // max(1, int(count))) for count in (counts.min(), counts.max()))
    for beyond in range(min(most, counts.size) - 1, fewest - 2, -1):
        is_beyond = passed[beyond:] >= wanted[: counts.size - beyond]
        np.copyto(last[: counts.size - beyond], np.arange(beyond, counts.size), where=is_beyond)
    starts = np.flatnonzero(last < ends)
    return starts, last[starts] - starts + 1


def _distinct(shingles: Shingles) -> Shingles:
    if not shingles.size:
        return shingles
    shingles.sort()
    kept = np.empty(shingles.size, np.bool_)
    kept[0] = True
    np.not_equal(shingles[1:], shingles[:-1], out=kept[1:])
    distinct: Shingles = shingles[kept]
    return distinct


def mix_runs(hashes: Shingles, starts: Places, lengths: Places) -> Shingles:
    """Return one hash for each run of units; it depends on the units and on their order."""
    result = lengths.astype(np.uint64)
    shortest, longest = (int(lengths.min()), int(lengths.max())) if lengths.size else (0, 0)
    for place in range(longest):
        inside = slice(None) if place < shortest else np.flatnonzero(lengths > place)
        value = result[inside] * np.uint64(0x9E37_79B9_7F4A_7C15) + hashes[starts[inside] + place]
        value ^= value >> np.uint64(32)
        value *= np.uint64(0xD6E8_FEB8_6659_FD93)
        value ^= value >> np.uint64(29)
        result[inside] = value
    return result


def edit_similarity(first: Shingles, second: Shingles, *, bound: float = 0.0) -> float:
    """
    Return how much of the longer of two texts stays, 0 to 1; 0 if it is below *bound* or a text is empty.
    The units stand in their order, one number each. A large *bound* saves most of the time, which grows with the square
    of the length: with .9 two texts of 100,000 letters take .1 s, of a million 9 s.
    """
    longest, shortest = max(first.size, second.size), min(first.size, second.size)
    # The small addition keeps a bound such as .9 from losing an edit to rounding.
    allowed = int((1 - bound) * longest + 1e-6)
    if not shortest or longest - shortest > allowed:
        return 0.0
    distance = _distance(first, second, allowed)
    similarity = (longest - distance) / longest
    return similarity if distance <= allowed and similarity >= bound else 0.0


def _distance(first: Shingles, second: Shingles, allowed: int) -> int:
    """Return the number of edits; *allowed* + 1 if it is larger than *allowed*."""
    if max(int(first.max(initial=0)), int(second.max(initial=0))) >= CODE_POINTS:  # hashes of pieces
        return Levenshtein.distance(first.tolist(), second.tolist(), score_cutoff=allowed)
    # Letters become characters, since rapidfuzz compares strings fastest.
    texts = (units.astype("<u4").tobytes().decode("utf-32-le") for units in (first, second))
    return Levenshtein.distance(*texts, score_cutoff=allowed)
