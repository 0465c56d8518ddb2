"""
Texts as their letters, without anything between them, and as shingles of these.

An error changes one word of a text, and with it three shingles of words; it changes five shingles of characters out of
five times as many. A letter counts 3, a kana 4, a logograph 6, and a shingle is the shortest run that reaches 15: five
letters, four kana or three logographs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from es_simhash.hashing.characters import PIECE, SEPARATOR, normalise_batch, split_long
from es_simhash.hashing.scripts import letter_counts
from es_simhash.index.similarity import cut_units, text_batches

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from es_simhash.index.similarity import Shingles

__all__ = ["letter_shingles", "letters_of"]


def letters_of(texts: Sequence[str]) -> list[Shingles]:
    """
    Return the letters of each text in their order, normalised: one number for each code point.

    Raises:
        TypeError: If one of *texts* is not a string.
    """
    return [part for codes, ends in map(_normalise, text_batches(texts)) for part in np.split(codes, ends[:-1])]


def letter_shingles(texts: Sequence[str]) -> list[Shingles]:
    """
    Return the distinct shingles of the letters of each text, as sorted 64-bit hashes.

    Raises:
        TypeError: If one of *texts* is not a string.
    """
    return [
        part
        for codes, ends in map(_normalise, text_batches(texts))
        for part in cut_units(codes, letter_counts(codes.astype(np.uint32)).astype(np.intp), ends)
    ]


def _normalise(texts: Sequence[str]) -> tuple[Shingles, NDArray[np.intp]]:
    """Return the letters of several texts, one after the other, and where each text has ended."""
    if len(texts) == 1 and len(texts[0]) > PIECE:
        # Memory: a long text is normalised piece by piece.
        codes = np.concatenate([piece[piece > SEPARATOR] for piece in split_long(texts[0])])
        return codes.astype(np.uint64), np.array([codes.size])
    codes, lengths = normalise_batch(texts, separators=False)
    return codes.astype(np.uint64), np.cumsum(lengths)
