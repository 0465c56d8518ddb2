"""
Pieces of a short text, about as long as a shingle, by which the server finds what contains it.

A short text in a long one may share none of the hashes that are kept, so most of its pieces must be in the
document as phrases. A piece is a part of the original text, so that the server cuts it into words in its
usual way.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from es_simhash.hashing.characters import UNSPACED

# What a word counts, what a character of a script without spaces counts, and a shingle, as in `texts.shingles`.
_WORD, _UNSPACED, _SHINGLE = 5, 3, 15
_RANGES = "".join(f"{chr(first)}-{chr(last)}" for first, last in UNSPACED)
_UNIT = re.compile(rf"(?P<unspaced>[{_RANGES}])|[^\s{_RANGES}]+")
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

    ``None`` for a text of more than 48 words or 80 Chinese characters, which nearly always shares a hash with
    what contains it, and for one shorter than a shingle, which no longer text contains.
    """
    if len(text) > _CHARACTERS:
        return None
    units = [each for each in _UNIT.finditer(text) if any(map(str.isalnum, each.group()))]
    counts = [_UNSPACED if each["unspaced"] else _WORD for each in units]
    ends = _run_ends(counts)
    if not ends or sum(counts) > _SHORT:
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


def _run_ends(counts: Sequence[int]) -> list[int]:
    """Return where the shortest run of at least a shingle ends that begins with each unit; nothing where none does."""
    sums = [0, *accumulate(counts)]
    ends: list[int] = []
    end = 0
    for before in sums:
        while end < len(sums) and sums[end] < before + _SHINGLE:
            end += 1
        if end == len(sums):
            break
        ends.append(end)
    return ends
