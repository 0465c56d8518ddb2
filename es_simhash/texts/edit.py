"""
Texts as letters without anything between them, as shingles of letters, and edit similarity.

An error changes three shingles of words, or five shingles of characters out of five times as many. A letter
counts 3, a kana 4, a logograph 6; a shingle is the shortest run that reaches 15. Source: H. Hyyrö, "A Bit-Vector
Algorithm for Computing Levenshtein and Damerau Edit Distances" (2003), as in rapidfuzz.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from rapidfuzz.distance import Levenshtein

from es_simhash.hashing.characters import Codes, letter_counts
from es_simhash.texts.letters import compared_letters, text_batches
from es_simhash.texts.shingle_sets import Shingles, cut_units

Units = TypeVar("Units", Codes, Shingles)


def letters_of(texts: Sequence[str]) -> list[Shingles]:
    """Return the letters of each text in their order, one number for each code point."""
    found = map(compared_letters, text_batches(texts))
    return [part for codes, ends in found for part in np.split(codes.astype(np.uint64), ends[:-1])]


def letter_shingles(texts: Sequence[str]) -> list[Shingles]:
    """Return the distinct shingles of the letters of each text, as sorted 64-bit hashes."""
    return [
        part
        for codes, ends in map(compared_letters, text_batches(texts))
        for part in cut_units(codes.astype(np.uint64), letter_counts(codes).astype(np.intp), ends)
    ]


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
    # The units become characters, since rapidfuzz compares strings fastest.
    if max(int(first.max(initial=0)), int(second.max(initial=0))) >= 0x110000:
        # Hashes of pieces. What only one text has is equal to nothing in the other, so one number does for all of it.
        shared = np.intersect1d(first, second)
        first, second = _renumber(first, shared, 1), _renumber(second, shared, 2)
    return Levenshtein.distance(_to_text(first), _to_text(second), score_cutoff=allowed)


def _renumber(units: Shingles, shared: Shingles, other: int) -> Shingles:
    place = np.searchsorted(shared, units)
    is_shared = shared[np.minimum(place, shared.size - 1)] == units if shared.size else np.zeros(units.size, np.bool_)
    # No character has the code of half a surrogate pair.
    numbers = place + 3
    numbers += np.where(numbers >= 0xD800, 0x800, 0)
    renumbered: Shingles = np.where(is_shared, numbers, other).astype(np.uint64)
    return renumbered


def _to_text(units: Shingles) -> str:
    return units.astype("<u4").tobytes().decode("utf-32-le")


def trim_ends(first: Units, second: Units) -> tuple[Units, Units]:
    """Return what is left of two texts without what both begin and end with; nothing of it needs an edit."""
    for _ in range(2):
        size = min(first.size, second.size)
        same = np.append(first[:size] == second[:size], False)
        # From what differs on; reversed, so that the next turn is about the end.
        first, second = first[same.argmin() :][::-1], second[same.argmin() :][::-1]
    return first, second
