"""
Pairs of documents near each other that an index really has, and what is known of their texts. No request is made here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from es_simhash.index.measures.measure import WORD_SHINGLES, TextMeasure
from es_simhash.index.measures.verification import measure_of
from es_simhash.index.presets import PRESETS, Preset

__all__ = ["DUPLICATE", "LETTER_EDITS", "SAME_LETTERS", "RealPairs"]

DUPLICATE = 0.8
"""A pair of documents whose texts are at least this similar is right: as verification judges by default."""

LETTER_EDITS = TextMeasure("edit", "characters")
"""The measure by which noise is told from another text."""

SAME_LETTERS = PRESETS["noisy"].similarity
"""The edit similarity from which two texts have nearly the same letters."""


@dataclass(frozen=True, slots=True)
class RealPairs:
    """
    Pairs of documents that an index really has, each of a sampled document and one near it.

    Attributes:
        distance:
            Distance of each pair in bits.
        similarity:
            Shingle Jaccard similarity of its texts.
        weight:
            For how many pairs it stands: more than 1 where only some of the documents near one were compared.
        sampled:
            Position of the sampled document of each pair.
        letters:
            Edit similarity of its letters; 0 where it is below :data:`SAME_LETTERS`.
    """

    distance: NDArray[np.int64]
    similarity: NDArray[np.float64]
    weight: NDArray[np.float64]
    sampled: NDArray[np.int64]
    letters: NDArray[np.float64]

    def scores(self, preset: Preset) -> NDArray[np.float64]:
        """Return the similarity of each pair by the measure of *preset*."""
        return self.similarity if measure_of(preset) == WORD_SHINGLES else self.letters

    def within(self, max_distance: int) -> tuple[float | None, int]:
        """Return which share of the pairs within *max_distance* is right, and how many were compared."""
        near = self.distance <= max_distance
        whole = float(self.weight[near].sum())
        right = float(self.weight[near & (self.similarity >= DUPLICATE)].sum())
        return (right / whole if whole else None), int(near.sum())

    def count_by_letters(self) -> tuple[int, int]:
        """Return how many pairs have the same text by words or by letters, and how many of these only by letters."""
        by_words, by_letters = self.similarity >= DUPLICATE, self.letters >= SAME_LETTERS
        return int((by_words | by_letters).sum()), int((by_letters & ~by_words).sum())
