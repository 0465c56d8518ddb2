"""
Comparison of two texts by part: how much of each is in the other, and which runs they share.

Runs are of normalised characters without separators, as in ``hashing.winnowing``. Their length is counted in letters:
a logograph is 2.5 letters, kana 4/3. This module loads numpy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from es_simhash.hashing.characters import Codes, Hashes, Places
from es_simhash.hashing.winnowing import (
    GRAM,
    GUARANTEE,
    LETTER,
    letters_with_positions,
    run_ends,
    run_hashes,
    worth_sums,
)
from es_simhash.passages.found import Overlap, Passage
from es_simhash.texts.shingle_sets import run_shingles, share_shingles
from es_simhash.transport.protocol import Key

# Characters compared at once where two texts are followed until they differ.
_STEP = 256


@dataclass(frozen=True, slots=True, eq=False)
class _Text:
    """A normalised text: its characters, and where the part of the original starts and ends that each comes from."""

    codes: Codes
    starts: Places
    ends: Places

    def runs(self, letters: int) -> tuple[Hashes, Places]:
        """
        Return the hash and the end of the shortest run from each character on, fewer than there are characters.
        A run has at least so many *letters*, and is worth the guarantee where that is more.
        """
        ends = run_ends(worth_sums(self.codes, in_letters=True), LETTER * letters)
        if letters >= GUARANTEE:
            ends = np.maximum(ends, run_ends(worth_sums(self.codes), LETTER * GUARANTEE))
        ends = ends[: np.searchsorted(ends, self.codes.size, side="right")]
        return run_hashes(self.codes, ends), ends


class PreparedText:
    """One text, prepared to be compared with many others; *min_run* is in letters, at least 100."""

    def __init__(self, text: str, *, min_run: int) -> None:
        self.min_run = min_run
        self.shingles = run_shingles([text])[0]
        self.text = _Text(*letters_with_positions(text))
        self._sorted: dict[int, tuple[Hashes, Places, Places]] = {}

    def runs(self, letters: int) -> tuple[Hashes, Places, Places]:
        """Return the sorted hashes of the runs of so many *letters*, where each begins, and the ends by place."""
        if letters not in self._sorted:
            hashes, ends = self.text.runs(letters)
            order = np.argsort(hashes, kind="stable")
            self._sorted[letters] = hashes[order], order, ends
        return self._sorted[letters]


def compare_passages(question: PreparedText, others: Mapping[Key, str], *, min_contained: float) -> list[Overlap]:
    """
    Return those of the documents with the texts *others* that share enough with *question*.
    Enough is a run of the length that the question asks for, or *min_contained* of the shingles of either text.
    """
    found = []
    for (key, other), shingles in zip(others.items(), run_shingles(list(others.values())), strict=True):
        contained, contains, similarity = share_shingles(question.shingles, shingles)
        text = _Text(*letters_with_positions(other))
        passages = _shared_runs(question, text, question.min_run, other)
        if not passages and max(contained, contains) < min_contained:
            continue
        passages = passages or _shared_runs(question, text, GRAM, other)
        found.append(Overlap(key.id, key.index, contained, contains, similarity, passages, routing=key.routing))
    return found


def _shared_runs(question: PreparedText, other: _Text, letters: int, original: str) -> tuple[Passage, ...]:
    """Return :func:`_common_runs` as places in the two original texts; *original*: the other one."""
    found = []
    for start, there, length in _common_runs(question, other, letters):
        begin, end = int(other.starts[there]), int(other.ends[there + length - 1])
        place = int(question.text.starts[start]), int(question.text.ends[start + length - 1])
        found.append(Passage(*place, begin, end, original[begin:end]))
    return tuple(found)


def _common_runs(question: PreparedText, other: _Text, letters: int) -> list[tuple[int, int, int]]:
    """
    Return runs of at least *letters* that cover every character of *question* in such a shared run.
    Each is (start in *question*, start in *other*, length), in characters of the normalised texts. Each is as long as
    the texts stay the same, in both directions; none lies within another. A run that *other* has several times comes
    once.
    """
    known, begins, ends = question.runs(letters)
    hashes, _ = other.runs(letters)
    places, others = _equal_runs(known, begins, hashes)
    ends = ends[places]
    first, second = question.text.codes, other.codes
    found: list[tuple[int, int, int]] = []
    at = nearest = 0
    while at < places.size:
        start = int(places[at])
        there = _first_place(first[start : ends[at]], second, hashes, int(others[at]))
        if there is None:
            at = nearest = nearest if nearest < at else at + 1
            continue
        length = _common(first[start:], second[there:])
        before = _common(first[:start][::-1], second[:there][::-1])
        start, there, length = start - before, there - before, length + before
        while found and found[-1][0] >= start:
            found.pop()
        found.append((start, there, length))
        # The runs that are not covered yet begin with the nearest. Of those that leave no gap the last is taken: a
        # text that repeats itself has a run at every character.
        nearest = int(np.searchsorted(ends, start + length, side="right"))
        at = max(nearest, int(np.searchsorted(places, start + length, side="right")) - 1)
    return found


def _equal_runs(known: Hashes, begins: Places, others: Hashes) -> tuple[Places, Places]:
    """Return where runs begin that the other text has, in order, and where the first such run begins there."""
    if not known.size or not others.size:
        return np.empty(0, np.intp), np.empty(0, np.intp)
    nearest = np.searchsorted(known, others)
    is_equal = known[np.minimum(nearest, known.size - 1)] == others
    hashes, firsts = np.unique(others[is_equal], return_index=True)
    lows = np.searchsorted(known, hashes)
    counts = np.searchsorted(known, hashes, side="right") - lows
    within = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
    places = begins[np.repeat(lows, counts) + within]
    order = np.argsort(places)
    return places[order], np.repeat(np.flatnonzero(is_equal)[firsts], counts)[order]


def _first_place(run: Codes, codes: Codes, hashes: Hashes, place: int) -> int | None:
    """
    Return where *codes* first have *run*; *place* is where a run first has its hash.
    Different runs of 1,024 characters and more may have one hash: those of the Thue-Morse sequence do.
    """
    if _common(run, codes[place:]) == run.size:
        return place
    others = np.flatnonzero(hashes == hashes[place]).tolist()
    return next((other for other in others if _common(run, codes[other:]) == run.size), None)


def _common(first: Codes, second: Codes) -> int:
    """Return how many characters *first* and *second* have in common from the beginning."""
    length, step, done = min(first.size, second.size), _STEP, 0
    while done < length:
        stop = min(done + step, length)
        differ = np.flatnonzero(first[done:stop] != second[done:stop])
        if differ.size:
            return done + int(differ[0])
        done, step = stop, 2 * step
    return length
