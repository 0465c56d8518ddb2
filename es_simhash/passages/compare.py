"""
Comparison of two texts by part: how much of each is in the other, and which runs they share; pieces of a short text.

Runs are of normalised characters without separators, as in ``hashing.winnowing``. Their length is counted in letters:
a logograph is 2.5 letters, kana 4/3. A short text in a long one may share none of the hashes that are kept, so most of
its pieces, each about as long as a shingle, must be in the document as phrases. A piece is a part of the original
text, so that the server cuts it into words in its usual way. This module loads numpy.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from es_simhash.hashing.characters import UNSPACED, Codes, Hashes, Places
from es_simhash.hashing.winnowing import (
    GRAM,
    GUARANTEE,
    LETTER,
    normalise_with_positions,
    run_ends,
    run_hashes,
    worth_sums,
)
from es_simhash.passages.found import Passage
from es_simhash.texts.shingle_sets import CHARACTER, run_shingles, share_shingles, unit_runs

# Characters compared at once where two texts are followed until they differ.
_STEP = 256


@dataclass(frozen=True, slots=True)
class Comparison:
    """
    What two texts share.
    *contained*, *contains*: share of the shingles of the first text that the second has, and the reverse. *similarity*:
    Jaccard similarity of the shingles. *passages*: the shared runs of the length asked for; if there are none, those of
    at least 25 letters.
    """

    contained: float
    contains: float
    similarity: float
    has_run: bool
    passages: tuple[Passage, ...]


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


class Question:
    """One text, prepared to be compared with many others; *min_run* is in letters, at least 100."""

    def __init__(self, text: str, *, min_run: int) -> None:
        self.min_run = min_run
        self.shingles = run_shingles([text])[0]
        self.text = _Text(*normalise_with_positions(text))
        self._sorted: dict[int, tuple[Hashes, Places, Places]] = {}

    def runs(self, letters: int) -> tuple[Hashes, Places, Places]:
        """Return the sorted hashes of the runs of so many *letters*, where each begins, and the ends by place."""
        if letters not in self._sorted:
            hashes, ends = self.text.runs(letters)
            order = np.argsort(hashes, kind="stable")
            self._sorted[letters] = hashes[order], order, ends
        return self._sorted[letters]


def compare_passages(question: Question, others: Sequence[str], *, min_contained: float) -> list[Comparison | None]:
    """
    Return what *question* shares with each of *others*; ``None`` for too little.
    Enough is a run of the length that the question asks for, or *min_contained* of the shingles of either text.
    """
    found: list[Comparison | None] = []
    for other, shingles in zip(others, run_shingles(others), strict=True):
        contained, contains, similarity = share_shingles(question.shingles, shingles)
        text = _Text(*normalise_with_positions(other))
        passages = _shared_runs(question, text, question.min_run)
        has_run = bool(passages)
        if not has_run and max(contained, contains) >= min_contained:
            passages = _shared_runs(question, text, GRAM)
        elif not has_run:
            found.append(None)
            continue
        found.append(Comparison(contained, contains, similarity, has_run, passages))
    return found


def covered_share(first: Question, second: Question) -> float:
    """Return the share of the characters of *first* in runs of its min_run letters that *second* has too."""
    covered = done = 0
    for start, _, length in _common_runs(first, second.text, first.min_run):
        covered += max(start + length - max(start, done), 0)
        done = max(done, start + length)
    return covered / first.text.codes.size if first.text.codes.size else 0.0


def _shared_runs(question: Question, other: _Text, letters: int) -> tuple[Passage, ...]:
    """Return :func:`_common_runs` as places in the two original texts."""
    return tuple(
        Passage(
            int(question.text.starts[start]),
            int(question.text.ends[start + length - 1]),
            int(other.starts[there]),
            int(other.ends[there + length - 1]),
        )
        for start, there, length in _common_runs(question, other, letters)
    )


def _common_runs(question: Question, other: _Text, letters: int) -> list[tuple[int, int, int]]:
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


_RANGES = "".join(f"{chr(first)}-{chr(last)}" for first, last in UNSPACED)
_UNIT = re.compile(rf"(?P<unspaced>[{_RANGES}])|[^\s{_RANGES}]+")
# What a word counts where a text is cut into phrases; three are about as long as a shingle.
_WORD = 5
# The longest text that is cut: 48 words or 80 Chinese characters, and no more characters than that, spaces included.
_SHORT, _CHARACTERS = 240, 2_000
# An added word changes two shingles of English, a replaced one three, and either changes one piece, which is one of
# three shingles; in Chinese it is four, five, and one of five. So the share of pieces that change is at most one and a
# half times that of the shingles. The first and the last word change one shingle, and one or two pieces.
_MORE, _ENDS = 1.5, 1


@dataclass(frozen=True, slots=True)
class Pieces:
    """
    Pieces of a text, in order, with every word of it.
    *least*: how many of them are in a document that contains enough of the text.
    """

    pieces: tuple[str, ...]
    least: int


def cut_pieces(text: str, *, min_contained: float) -> Pieces | None:
    """
    Return the pieces of *text*, and how many a document has that has *min_contained* of its shingles.
    ``None`` for a text of more than 48 words or 80 Chinese characters, which nearly always shares a hash with what
    contains it, and for one shorter than a shingle, which no longer text contains.
    """
    if len(text) > _CHARACTERS:
        return None
    units = [each for each in _UNIT.finditer(text) if any(map(str.isalnum, each.group()))]
    counts = np.array([CHARACTER if each["unspaced"] else _WORD for each in units], np.intp)
    if not units or counts.sum() > _SHORT:
        return None
    starts, lengths = unit_runs(counts, np.full(counts.size, counts.size))
    ends = (starts + lengths).tolist()
    if not ends:
        return None
    runs = []
    start = 0
    while start < len(ends):
        runs.append((start, ends[start]))
        start = ends[start]
    if runs[-1][1] < len(units):
        runs.append((len(ends) - 1, len(units)))
    # The small addition keeps a share such as .2 from losing a piece to rounding.
    share = 1 - min_contained
    changed = min(math.floor(share * len(ends) + 1e-9), math.ceil(_MORE * share * len(runs) - 1e-9) + _ENDS)
    pieces = tuple(text[units[first].start() : units[last - 1].end()] for first, last in runs)
    return Pieces(pieces, max(1, len(pieces) - changed))
