"""
Texts as letters without anything between them, as shingles of letters, and edit similarity.

An error changes three shingles of words, or five shingles of characters out of five times as many. A letter
counts 3, a kana 4, a logograph 6; a shingle is the shortest run that reaches 15. Texts of up to 32,768 units
are compared exactly. Longer ones are cut at runs that both have once; what is still long, because it repeats
itself, at runs in nearly the same place of both. The edits between cuts are summed, so the similarity is
never too large, and time does not grow with the square. Source: H. Hyyrö, "A Bit-Vector Algorithm for
Computing Levenshtein and Damerau Edit Distances" (2003), as in rapidfuzz.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
from rapidfuzz.distance import Levenshtein

from es_simhash.hashing.characters import Codes, Places, letter_counts
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


EXACT_UNITS = 1 << 15
"""Two texts of up to so many units each are compared exactly."""

# The largest product of the lengths of two parts between anchors that are compared exactly.
_EXACT_PART = 1 << 26

# An anchor is a run of so many units; one of 16 runs is looked at, and anchors stand at least so many units apart.
_RUN, _ONE_OF, _APART = 16, 16, 256


def edit_similarity(first: Shingles, second: Shingles, *, bound: float = 0.0) -> float:
    """
    Return how much of the longer of two texts stays, 0 to 1; 0 if it is below *bound* or a text is empty.
    The units stand in their order, one number each. For texts longer than 32,768 units the result may be too small,
    never too large. A large *bound* saves most of the time.
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


def _anchored_distance(first: Shingles, second: Shingles, allowed: int) -> int:
    """Return a number of edits that suffices; more than *allowed* as soon as that is passed."""

    def long_part(part: Shingles, other: Shingles, allowed: int) -> int:
        cuts = _nearby_anchors(part, other)
        return _sum_parts(part, other, cuts, allowed, lambda part, other, _: max(part.size, other.size))

    return _sum_parts(first, second, _anchors(first, second), allowed, long_part)


def _sum_parts(
    first: Shingles,
    second: Shingles,
    cuts: Sequence[tuple[int, int]],
    allowed: int,
    long_part: Callable[[Shingles, Shingles, int], int],
) -> int:
    """Return the edits of the parts between *cuts*, *long_part* of those that are not compared exactly."""
    total = start = other_start = 0
    for end, other_end in [*cuts, (first.size, second.size)]:
        part, other = trim_ends(first[start:end], second[other_start:other_end])
        if not part.size or not other.size:
            total += part.size + other.size
        else:
            compare = _distance if part.size * other.size <= _EXACT_PART else long_part
            # At least 0: the cutoff only saves time, and what is above it is not looked at.
            total += compare(part, other, allowed - total)
        if total > allowed:
            break
        start, other_start = end, other_end
    return total


def trim_ends(first: Units, second: Units) -> tuple[Units, Units]:
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


def _single_runs(units: Shingles) -> tuple[Shingles, Places]:
    """Return the hashes of runs that *units* have once, of one run in 16, and where they stand."""
    hashes = _run_hashes(units)
    places = np.flatnonzero(hashes % np.uint64(_ONE_OF) == 0)
    runs, where, counts = np.unique(hashes[places], return_index=True, return_counts=True)
    return runs[counts == 1], places[where[counts == 1]]


def _nearby_anchors(first: Shingles, second: Shingles) -> list[tuple[int, int]]:
    """
    Return where runs stand that both texts have, in the order of both, however often they have them.
    Of each stretch of the first text one run is taken: the one that the other text has nearest to the place to which
    the run before it leads. A run is not taken if it is farther away than the stretch without a run is long.
    """
    places = np.arange(0, first.size - _RUN + 1, _ONE_OF)
    runs, others = _run_hashes(first)[places], _run_hashes(second)
    order = np.argsort(others, kind="stable")
    lows, highs = (np.searchsorted(others[order], runs, side=side).tolist() for side in ("left", "right"))
    known: list[int] = order.tolist()
    kept = [(0, 0)]
    step = max(1, _APART // _ONE_OF)
    for begin in range(0, places.size, step):
        last, other_last = kept[-1]
        nearest: tuple[int, int, int] | None = None
        for number in range(begin, min(begin + step, places.size)):
            place = int(places[number])
            low, high, expected = lows[number], highs[number], place + other_last - last
            after = bisect_left(known, expected, low, high)
            for other in known[max(low, after - 1) : min(high, after + 1)]:
                found = abs(other - expected), place, other
                if other > other_last and (nearest is None or found < nearest):
                    nearest = found
        if nearest is not None and nearest[0] <= nearest[1] - last:
            kept.append(nearest[1:])
    return kept[1:]


def _run_hashes(units: Shingles) -> Shingles:
    """Return the hash of the run of 16 units that begins at each place."""
    hashes, step = units, 1
    while step < _RUN:
        # What was a run of `step` units becomes one of twice as many.
        mixed: Shingles = hashes[:-step] * np.uint64(0x9E37_79B9_7F4A_7C15)
        mixed += (hashes[step:] ^ hashes[step:] >> np.uint64(29)) * np.uint64(0xD6E8_FEB8_6659_FD93)
        mixed ^= mixed >> np.uint64(32)
        hashes, step = mixed, 2 * step
    return hashes


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
