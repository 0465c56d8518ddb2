"""
The grams of template passages, and the runs of a text that consist of them.

A gram is that of ``winnowing.py``: the fewest characters worth 25 letters, from every character on. A run is *masked*
if it is worth at least 50 letters and each gram inside it stands in a passage. What surrounds the run makes no
difference, and a passage that was cut or changed is still found in its parts. Time is linear in the text. numpy only;
callers import this module lazily.

The mask: a JSON file that lists passages of template text, which people may read and edit.

Only the texts of its passages count; what stands beside a text says where it comes from. Masks are the same if their
passages are the same after normalisation, in any order: the digest is made of these.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from es_simhash.errors import SchemeError, shorten
from es_simhash.hashing.characters import SEPARATOR, normalise_text, to_codes
from es_simhash.hashing.winnowing import GRAM, LETTER, run_ends, run_hashes, worth_sums

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Codes = NDArray[np.uint32]
    Flags = NDArray[np.bool_]
    Hashes = NDArray[np.uint64]
    Runs = tuple[NDArray[np.intp], NDArray[np.intp]]


FEWEST_LETTERS = 50
"""Letters of the shortest passage, and of the shortest run that is left out; a logograph is worth 5/4, kana 4/3."""


STRIDE = 16
"""Among so many neighbouring grams of a masked run at least one is the first of its stride: it has 18 or more."""


# Grams whose hashes are made at once: the table of powers is no longer.
_BLOCK = 1 << 16


_BITS = 20


class Grams:
    """
    A set of grams, which arrays of hashes are compared with.
    """

    def __init__(self, hashes: Hashes) -> None:
        self._hashes = np.unique(hashes)
        # Most grams of most texts are in no passage: a small table says so without a search.
        self._table = np.zeros(1 << _BITS, np.bool_)
        self._table[self._hashes >> np.uint64(64 - _BITS)] = True

    def contain(self, hashes: Hashes) -> Flags:
        """Return for each of *hashes* whether it is in the set."""
        found: Flags = self._table.take(hashes >> np.uint64(64 - _BITS))
        places = np.flatnonzero(found)
        if places.size:
            at = np.minimum(np.searchsorted(self._hashes, hashes[places]), self._hashes.size - 1)
            found[places] = self._hashes[at] == hashes[places]
        return found


def count_worth(codes: Codes) -> float:
    """Return what *codes* are worth in letters."""
    return int(worth_sums(codes)[-1]) / LETTER


def gram_hashes(codes: Codes) -> Hashes:
    """Return the hashes of all grams of *codes*, normalised code points without separators; none of a shorter text."""
    ends = run_ends(worth_sums(codes), LETTER * GRAM)
    return run_hashes(codes, ends[: np.searchsorted(ends, codes.size, side="right")])


def runs_of(codes: Codes, contain: Callable[[Hashes], Flags], stops: NDArray[np.intp] | None = None) -> Runs:
    """
    Return where the runs of *codes* begin and end that are worth 50 letters, each of whose grams is contained.

    Runs are as long as possible. Two of them may overlap by less than a gram.

    Args:
        codes:
            Normalised code points without separators.
        contain:
            Says which of some hashes of grams are contained.
        stops:
            Where each text ends, if *codes* are several texts; by default they are one.
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
class MaskPassage:
    """
    A passage of template text.

    Attributes:
        text:
            The text.
        documents:
            In how many of the documents that were counted it stands; ``None`` if nobody counted.
        share:
            This number as a share of the documents that were counted.
        source:
            The source within which it was counted; ``None`` for all documents.
    """

    text: str
    documents: int | None = None
    share: float | None = None
    source: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the values that are known, as plain JSON."""
        values = {"text": self.text, "documents": self.documents, "share": self.share, "source": self.source}
        return {name: value for name, value in values.items() if value is not None}


def mask_json(passages: Iterable[MaskPassage]) -> str:
    """Return the content of the mask file of *passages*."""
    content = {"format": FORMAT, "version": VERSION, "passages": [each.to_dict() for each in passages]}
    return json.dumps(content, ensure_ascii=False, indent=2) + "\n"


def read_mask(content: bytes) -> list[str]:
    """
    Return the texts of the passages of a mask file; nothing else in it is looked at.

    Raises:
        SchemeError: If *content* is too large, is not such a file, or a passage cannot be used.
    """
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
