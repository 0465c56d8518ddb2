"""
The mask, a JSON file of template passages, and the texts without them. Loads numpy: import lazily.

Masks with the same passages after normalisation, in any order, have the same digest. A run is *masked* if it is worth
at least 50 letters and each gram inside it stands in a passage, whatever surrounds it; a passage that was cut or
changed is still found in its parts. Time is linear in the text. What is left keeps its original form.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from es_simhash.errors import SchemeError, shorten
from es_simhash.hashing.characters import (
    COMBINES,
    PIECE,
    SEPARATOR,
    UNASSIGNED,
    Codes,
    Flags,
    Hashes,
    Places,
    character_entries,
    normalise_batch,
    normalise_text,
    text_parts,
    to_codes,
)
from es_simhash.hashing.winnowing import (
    GRAM,
    LETTER,
    gram_hashes,
    normalise_with_positions,
    run_ends,
    run_hashes,
    worth_sums,
)
from es_simhash.record import Record

Runs = tuple[Places, Places]

FEWEST_LETTERS = 50
"""Letters of the shortest passage, and of the shortest run that is left out; a logograph is worth 5/4, kana 4/3."""

STRIDE = 16
"""Among so many neighbouring grams of a masked run at least one is the first of its stride: it has 18 or more."""

# Grams whose hashes are made at once: the table of powers is no longer.
_BLOCK = 1 << 16
_BITS = 20


class Grams:
    """A set of grams, which arrays of hashes are compared with."""

    def __init__(self, hashes: Hashes) -> None:
        self._hashes = np.unique(hashes)
        # Most grams of most texts are in no passage: a small table says so without a search.
        self._table = np.zeros(1 << _BITS, np.bool_)
        self._table[self._hashes >> np.uint64(64 - _BITS)] = True

    def contain(self, hashes: Hashes) -> Flags:
        found: Flags = self._table.take(hashes >> np.uint64(64 - _BITS))
        places = np.flatnonzero(found)
        if places.size:
            at = np.minimum(np.searchsorted(self._hashes, hashes[places]), self._hashes.size - 1)
            found[places] = self._hashes[at] == hashes[places]
        return found


def count_worth(codes: Codes) -> float:
    return int(worth_sums(codes)[-1]) / LETTER


def runs_of(codes: Codes, contain: Callable[[Hashes], Flags], stops: Places | None = None) -> Runs:
    """
    Return where the runs of *codes* begin and end that are worth 50 letters and have only contained grams.
    Runs are as long as possible; two of them may overlap by less than a gram. *codes* have no separators. *stops*:
    where each text ends, if they are several.
    """
    sums = worth_sums(codes)
    ends = run_ends(sums, LETTER * GRAM)
    ends = ends[: np.searchsorted(ends, codes.size, side="right")]
    # False before the first gram and after the last one.
    flags = np.zeros(ends.size + 2, np.int8)
    for at in range(0, ends.size, _BLOCK):
        some = ends[at : at + _BLOCK]
        flags[at + 1 : at + 1 + some.size] = contain(run_hashes(codes[at : some[-1]], some - at))
    if stops is not None:
        # A gram that reaches into the next text is none.
        flags[1:-1] &= ends <= np.repeat(stops, np.diff(stops, prepend=0))[: ends.size]
    steps = np.diff(flags)
    firsts, lasts = np.flatnonzero(steps > 0), np.flatnonzero(steps < 0) - 1
    last_ends = ends[lasts]
    is_long = sums[last_ends] - sums[firsts] >= LETTER * FEWEST_LETTERS
    return firsts[is_long], last_ends[is_long]


FORMAT, VERSION = "es-simhash boilerplate", 1

LARGEST_MASK = 8 << 20
"""Largest mask file in bytes."""

_ADVICE = "give a file that es-simhash boilerplate wrote"


@dataclass(frozen=True, slots=True)
class MaskPassage(Record):
    """A passage of template text, and how many of the counted documents, of one *source* or of all, have it."""

    _OPTIONAL = "documents share source"

    text: str
    documents: int | None = None
    share: float | None = None
    source: str | None = None


def mask_json(passages: Iterable[MaskPassage]) -> str:
    content = {"format": FORMAT, "version": VERSION, "passages": [each.to_dict() for each in passages]}
    return json.dumps(content, ensure_ascii=False, indent=2) + "\n"


def read_mask(content: bytes) -> list[str]:
    """Return the texts of the passages of a mask file; nothing else about a passage is read."""
    if len(content) > LARGEST_MASK:
        raise SchemeError(f"the mask has {len(content):,} bytes, and {LARGEST_MASK:,} are allowed: remove passages")
    try:
        data = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise SchemeError(f"the mask is not JSON ({error}): {_ADVICE}") from error
    if not isinstance(data, Mapping) or data.get("format") != FORMAT:
        raise SchemeError(f'the mask has no "format": "{FORMAT}": {_ADVICE}')
    if data.get("version") != VERSION:
        raise SchemeError(f"the mask has version {shorten(data.get('version'))}, not {VERSION}: upgrade es_simhash")
    passages = data.get("passages")
    if not isinstance(passages, list) or not passages:
        raise SchemeError("the mask has no passages: add one, or use the scheme without boilerplate")
    return [_text_of(passage, number) for number, passage in enumerate(passages, 1)]


def _text_of(passage: Any, number: int) -> str:
    text = passage.get("text") if isinstance(passage, Mapping) else None
    if not isinstance(text, str):
        raise SchemeError(f'passage {number} of the mask is {shorten(passage)}: give an object with a string "text"')
    letters = count_worth(to_codes(_letters(text)))
    if letters < FEWEST_LETTERS:
        raise SchemeError(
            f"passage {number} of the mask, {shorten(text)}, is worth {int(letters)} letters: give at least "
            f"{FEWEST_LETTERS} (40 characters of Chinese), or remove it"
        )
    return text


def mask_digest(texts: Sequence[str]) -> str:
    """Return the SHA-256 of the passages of a mask as 64 hexadecimal digits: of their letters and digits, sorted."""
    lines = sorted(set(map(_letters, texts)))
    return hashlib.sha256("\n".join([f"{FORMAT} {VERSION}", *lines]).encode()).hexdigest()


def _letters(text: str) -> str:
    return normalise_text(text).replace(chr(SEPARATOR), "")


# A long text is cut into pieces at one of so many last characters of a piece: no script combines as many.
_TAIL = 256


class Cutter:
    """Leaves the passages of one mask out of texts; longer texts are normalised *piece* by *piece*."""

    def __init__(self, passages: Sequence[str], *, piece: int = PIECE) -> None:
        self._piece = piece
        codes, lengths = normalise_batch(passages)
        self._grams = Grams(np.concatenate([gram_hashes(each) for each in np.split(codes, np.cumsum(lengths)[:-1])]))

    def cut(self, texts: Sequence[str]) -> list[str]:
        """
        Return each of *texts* with a space in place of each masked run, from its first letter or digit to its last.
        Characters that are normalised together are left out together, or not at all.
        """
        found = list(texts)
        for part in text_parts(texts):
            places = (part.start + self._suspects(texts[part])).tolist()
            suspects = [texts[place] for place in places]
            for place, text, spans in zip(places, suspects, self._spans(suspects), strict=True):
                found[place] = _without(text, spans)
        return found

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return where the masked runs of *text* begin and end, in characters; memory is some 15 bytes a character."""
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

    def _suspects(self, texts: Sequence[str]) -> Places:
        """Return the places of the texts that may have a masked run: of its grams every 16th is looked at."""
        if sum(map(len, texts)) > self._piece:
            return np.arange(len(texts))
        codes, lengths = normalise_batch(texts)
        ends = run_ends(worth_sums(codes), LETTER * GRAM, step=STRIDE)
        ends = ends[: np.searchsorted(ends, codes.size, side="right")]
        hits = np.flatnonzero(self._grams.contain(run_hashes(codes, ends, step=STRIDE))) * STRIDE
        return np.unique(np.searchsorted(np.cumsum(lengths), hits, side="right"))

    def _covered(self, codes: Codes, stops: Places | None = None) -> Flags:
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


def _covered_spans(covered: Flags, starts: Places, ends: Places, stops: Places | None = None) -> list[tuple[int, int]]:
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
