"""
Leaves the passages of a mask out of texts.

Texts stay in their original form, so that every scheme and every measure can go on with what is left. numpy only;
callers import this module lazily.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from es_simhash.hashing.characters import COMBINES, PIECE, UNASSIGNED, character_entries, normalise_batch, to_codes
from es_simhash.hashing.mask import STRIDE, Grams, gram_hashes, runs_of
from es_simhash.hashing.winnowing import GRAM, LETTER, normalise_with_positions, run_ends, run_hashes, worth_sums

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray


# Characters worked on at once, as for fingerprints.
_BATCH = 1 << 16
# A long text is cut into pieces at one of so many last characters of a piece: no script combines as many.
_TAIL = 256


class Cutter:
    """
    Leaves the passages of one mask out of texts.

    Args:
        passages:
            The texts of the passages.
        piece:
            Characters of a long text that are normalised at once.
    """

    def __init__(self, passages: Sequence[str], *, piece: int = PIECE) -> None:
        self._piece = piece
        codes, lengths = normalise_batch(passages, separators=False)
        self._grams = Grams(np.concatenate([gram_hashes(each) for each in np.split(codes, np.cumsum(lengths)[:-1])]))

    def cut(self, texts: Sequence[str]) -> list[str]:
        """
        Return each of *texts* with a space in place of each masked run.

        A run goes from its first letter or digit to its last one. Characters that are normalised together are left out
        together, or not at all.
        """
        found = list(texts)
        for part in _parts(texts):
            places = (part.start + self._suspects(texts[part])).tolist()
            suspects = [texts[place] for place in places]
            for place, text, spans in zip(places, suspects, self._spans(suspects), strict=True):
                found[place] = _without(text, spans)
        return found

    def spans(self, text: str) -> list[tuple[int, int]]:
        """
        Return where the masked runs of *text* begin and end, in characters; memory is some 15 bytes a character.
        """
        return self._spans([text])[0]

    def _spans(self, texts: Sequence[str]) -> list[list[tuple[int, int]]]:
        if len(texts) == 1 and len(texts[0]) > self._piece:
            return [self._spans_of_long(texts[0])]
        # A separator after each text: none is normalised together with the next one.
        ends = np.cumsum([len(text) + 1 for text in texts])
        codes, starts, stops = normalise_with_positions("\n".join(texts))
        text_stops = np.searchsorted(starts, ends)
        found: list[list[tuple[int, int]]] = [[] for _ in texts]
        for start, stop in _covered_spans(self._covered(codes, text_stops), starts, stops, text_stops):
            text = int(np.searchsorted(ends, start, side="right"))
            before = int(ends[text - 1]) if text else 0
            found[text].append((start - before, stop - before))
        return found

    def _spans_of_long(self, text: str) -> list[tuple[int, int]]:
        pieces = list(_pieces(text, self._piece))
        covered = self._covered(np.concatenate([normalise_with_positions(text[piece])[0] for piece in pieces]))
        found, at = [], 0
        for piece in pieces:
            _, starts, stops = normalise_with_positions(text[piece])
            here = covered[at : at + starts.size]
            found += [(piece.start + start, piece.start + stop) for start, stop in _covered_spans(here, starts, stops)]
            at += starts.size
        return found

    def _suspects(self, texts: Sequence[str]) -> NDArray[np.intp]:
        """Return the places of the texts that may have a masked run: of its grams every 16th is looked at."""
        if sum(map(len, texts)) > self._piece:
            return np.arange(len(texts))
        codes, lengths = normalise_batch(texts, separators=False)
        ends = run_ends(worth_sums(codes), LETTER * GRAM, step=STRIDE)
        ends = ends[: np.searchsorted(ends, codes.size, side="right")]
        hits = np.flatnonzero(self._grams.contain(run_hashes(codes, ends, step=STRIDE))) * STRIDE
        return np.unique(np.searchsorted(np.cumsum(lengths), hits, side="right"))

    def _covered(self, codes: NDArray[np.uint32], stops: NDArray[np.intp] | None = None) -> NDArray[np.bool_]:
        """Return for each of *codes*, of texts that end at *stops*, whether it is in a masked run."""
        covered = np.zeros(codes.size, np.bool_)
        for first, stop in zip(*(each.tolist() for each in runs_of(codes, self._grams.contain, stops)), strict=True):
            covered[first:stop] = True
        return covered


def _without(text: str, spans: Sequence[tuple[int, int]]) -> str:
    if not spans:
        return text
    starts, ends = zip(*spans, strict=True)
    return " ".join(text[first:last] for first, last in zip((0, *ends), (*starts, len(text)), strict=True))


def _parts(texts: Sequence[str]) -> Iterator[slice]:
    """Yield slices of neighbouring texts of limited length, or a single long text."""
    first = characters = 0
    for place, text in enumerate(texts):
        if place > first and characters + len(text) > _BATCH:
            yield slice(first, place)
            first, characters = place, 0
        characters += len(text)
    if first < len(texts):
        yield slice(first, len(texts))


def _pieces(text: str, piece: int) -> Iterator[slice]:
    """Yield the parts of *text* that are normalised alone: none begins with a character that combines."""
    first = 0
    while len(text) - first > piece:
        last = first + piece
        entries = character_entries(to_codes(text[max(first + 1, last - _TAIL) : last]))
        safe = np.flatnonzero((entries != COMBINES) & (entries != UNASSIGNED))
        stop = last - entries.size + int(safe[-1]) if safe.size else last
        yield slice(first, stop)
        first = stop
    yield slice(first, len(text))


def _covered_spans(
    covered: NDArray[np.bool_],
    starts: NDArray[np.intp],
    ends: NDArray[np.intp],
    stops: NDArray[np.intp] | None = None,
) -> list[tuple[int, int]]:
    """Return the parts of texts all of whose characters are *covered*, neighbours in one text together."""
    # Characters of one part of the text have one start; a part of which one character is not covered stays.
    is_first = np.ones(starts.size + 1, np.bool_)
    np.not_equal(starts[1:], starts[:-1], out=is_first[1:-1])
    parts = np.cumsum(is_first) - 1
    stays = np.zeros(int(parts[-1]) + 1, np.bool_)
    stays[parts[:-1][~covered]] = True
    begins_text = np.zeros(stays.size, np.bool_)
    if stops is not None:
        begins_text[parts[stops]] = True
    # The last part stands for the end.
    stays[-1] = True
    is_begun = ~stays & (begins_text | np.append(True, stays[:-1]))
    is_ended = ~stays[:-1] & (begins_text | stays)[1:]
    places = np.flatnonzero(is_first[:-1])
    return list(zip(starts[places[is_begun[:-1]]].tolist(), ends[places[is_ended]].tolist(), strict=True))
