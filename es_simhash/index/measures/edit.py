"""
Edit similarity: the share of a text that stays if the fewest units are replaced, inserted or deleted (Levenshtein).

Two texts are compared exactly up to 32,768 units each. Longer ones are cut at runs that both have once, and the edits
between these are summed: some sequence of edits, if perhaps not the shortest, so the similarity is never too large. The
time grows with the length of the texts, not with its square.

Source: H. Hyyrö, "A Bit-Vector Algorithm for Computing Levenshtein and Damerau Edit Distances" (2003), as in rapidfuzz.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

import numpy as np
from rapidfuzz.distance import Levenshtein

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from es_simhash.index.similarity import Shingles

__all__ = ["EXACT_UNITS", "edit_similarity"]

EXACT_UNITS = 1 << 15
"""Two texts of up to so many units each are compared exactly."""

# The largest product of the lengths of two parts between anchors that are compared exactly.
_EXACT_PART = 1 << 26
# An anchor is a run of so many units; one of 16 runs is looked at, and anchors stand at least so many units apart.
_RUN, _ONE_OF, _APART = 16, 16, 256


def edit_similarity(first: Shingles, second: Shingles, *, bound: float = 0.0) -> float:
    """
    Return how much of the longer of two texts stays, 0 to 1; 0 if either has no unit, or if it is below *bound*.

    For texts longer than 32,768 units it may be smaller than it is, never larger.

    Args:
        first:
            The units of a text in order, one number each.
        second:
            Those of another.
        bound:
            Smallest similarity of interest: a large bound saves most of the time.
    """
    longest, shortest = max(first.size, second.size), min(first.size, second.size)
    # The small addition keeps a bound such as .9 from losing an edit to rounding.
    allowed = int((1 - bound) * longest + 1e-6)
    if not shortest or longest - shortest > allowed:
        return 0.0
    is_short = longest * shortest <= EXACT_UNITS**2
    distance = _distance(first, second, allowed) if is_short else _anchored_distance(first, second, allowed)
    similarity = (longest - distance) / longest
    return similarity if distance <= allowed and similarity >= bound else 0.0


def _distance(first: Shingles, second: Shingles, allowed: int) -> int:
    """Return the number of edits; *allowed* + 1 if it is larger than *allowed*."""
    return Levenshtein.distance(*_to_strings(first, second), score_cutoff=allowed)


def _to_strings(first: Shingles, second: Shingles) -> tuple[str, str]:
    """Return the units as strings that are as far apart, since rapidfuzz compares strings fastest."""
    if max(int(first.max(initial=0)), int(second.max(initial=0))) >= 0x110000:
        # Hashes of words. What only one text has is equal to nothing in the other, so one number does for all of it.
        shared = np.intersect1d(first, second)
        first, second = _renumber(first, shared, 1), _renumber(second, shared, 2)
    return _to_text(first), _to_text(second)


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


def _anchored_distance(first: Shingles, second: Shingles, allowed: int) -> int:
    """Return a number of edits that suffices; more than *allowed* as soon as that is passed."""
    total = start = other_start = 0
    for end, other_end in [*_anchors(first, second), (first.size, second.size)]:
        part, other = _trim(first[start:end], second[other_start:other_end])
        if part.size * other.size <= _EXACT_PART:
            # At least 0: the cutoff only saves time, and what is above it is not looked at.
            total += _distance(part, other, allowed - total) if part.size and other.size else part.size + other.size
        else:
            total += max(part.size, other.size)
        if total > allowed:
            break
        start, other_start = end, other_end
    return total


def _trim(first: Shingles, second: Shingles) -> tuple[Shingles, Shingles]:
    """Return what is left of two texts without what both begin and end with; nothing of it needs an edit."""
    for _ in range(2):
        size = min(first.size, second.size)
        same = np.append(first[:size] == second[:size], False)
        # From what differs on; reversed, so that the next turn is about the end.
        first, second = first[same.argmin() :][::-1], second[same.argmin() :][::-1]
    return first, second


def _anchors(first: Shingles, second: Shingles) -> list[tuple[int, int]]:
    """Return where runs stand that each text has once, in the order of both; the longest such sequence, thinned."""
    (runs, places), (other_runs, other_places) = _single_runs(first), _single_runs(second)
    _, mine, others = np.intersect1d(runs, other_runs, assume_unique=True, return_indices=True)
    order = np.argsort(places[mine])
    pairs = list(zip(places[mine][order].tolist(), other_places[others][order].tolist(), strict=True))
    kept: list[tuple[int, int]] = []
    for pair in _longest_rising(pairs):
        if not kept or min(pair[0] - kept[-1][0], pair[1] - kept[-1][1]) >= _APART:
            kept.append(pair)
    return kept


def _single_runs(units: Shingles) -> tuple[Shingles, NDArray[np.intp]]:
    """Return the hashes of runs that *units* have once, of one run in 16, and where they stand."""
    hashes, step = units, 1
    while step < _RUN:
        # What was a run of `step` units becomes one of twice as many.
        mixed: Shingles = hashes[:-step] * np.uint64(0x9E37_79B9_7F4A_7C15)
        mixed += (hashes[step:] ^ hashes[step:] >> np.uint64(29)) * np.uint64(0xD6E8_FEB8_6659_FD93)
        mixed ^= mixed >> np.uint64(32)
        hashes, step = mixed, 2 * step
    places = np.flatnonzero(hashes % np.uint64(_ONE_OF) == 0)
    runs, where, counts = np.unique(hashes[places], return_index=True, return_counts=True)
    return runs[counts == 1], places[where[counts == 1]]


def _longest_rising(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the longest part of *pairs*, which rise in the first place, that rises in the second too."""
    tails: list[int] = []
    ends: list[int] = []
    before: list[int] = []
    for number, (_, value) in enumerate(pairs):
        length = bisect_left(tails, value)
        before.append(ends[length - 1] if length else -1)
        tails[length : length + 1] = [value]
        ends[length : length + 1] = [number]
    found = []
    number = ends[-1] if ends else -1
    while number >= 0:
        found.append(pairs[number])
        number = before[number]
    return found[::-1]
