"""Pairs of documents whose similarity is known: those that a user gives, and those that an index really has. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from es_simhash.record import Record
from es_simhash.texts.measures import PRESETS, WORD_SHINGLES, Preset, TextMeasure

DUPLICATE = 0.8
"""A pair of documents whose texts are at least this similar is right: as verification judges by default."""

LETTER_EDITS = TextMeasure("edit", "characters")
"""The measure by which noise is told from another text."""

LETTER_SHINGLES = TextMeasure("jaccard", "characters")
"""The measure by which an edited text is told from another text."""

SAME_LETTERS = PRESETS["noisy"].similarity
"""The edit similarity from which two texts have nearly the same letters."""


@dataclass(frozen=True, slots=True)
class RealPairs:
    """
    Pairs that an index really has, each of a sampled document and one near it; parallel arrays.
    *distance*: in bits. *similarity*: shingle Jaccard. *weight*: for how many pairs it stands; more than 1 where only
    some of the documents near one were compared. *sampled*: position of the sampled document in the sample. *letters*:
    edit similarity of the letters; may be 0 where it is below :data:`SAME_LETTERS`, or was not asked for. *edited*:
    shingle Jaccard of the letters; 0 where it was not asked for. *looked_up*: how many sampled documents were looked
    up, the first ones.
    """

    distance: NDArray[np.int64]
    similarity: NDArray[np.float64]
    weight: NDArray[np.float64]
    sampled: NDArray[np.int64]
    letters: NDArray[np.float64]
    edited: NDArray[np.float64]
    looked_up: int

    def scores(self, preset: Preset) -> NDArray[np.float64]:
        known = {WORD_SHINGLES: self.similarity, LETTER_SHINGLES: self.edited, LETTER_EDITS: self.letters}
        return known[preset.text_measure()]

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


@dataclass(frozen=True, slots=True)
class Estimate(Record):
    """A share from 0 to 1, estimated from a sample, with its 95 % confidence interval."""

    share: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class PresetSample(Record):
    """
    What a preset would remove, estimated from a sample of documents.
    *removed*: share of all documents that would go, if one document stays for each group. *pairs*: how many pairs
    within the distance were compared. *precision*: share of the pairs within the distance whose texts are similar
    enough for the preset; ``None`` without pairs. It is what the bits alone would get right: the preset compares the
    texts and leaves the other pairs out. *left_out*: how many more documents were drawn and not looked up, because
    those before them have 250,000 documents near them.
    """

    preset: str
    max_distance: int
    similarity: float
    sampled: int
    removed: Estimate
    pairs: int
    precision: Estimate | None
    left_out: int = 0


def sample_presets(pairs: RealPairs, drawn: int, *, seed: int = 0) -> tuple[PresetSample, ...]:
    """
    Return what each preset would remove, from *pairs* of those of the *drawn* documents that were looked up.
    A document that is similar to m - 1 others is removed with probability 1 - 1/m, because one of m stays. Confidence
    intervals: from drawing the sampled documents again (bootstrap); where that has no spread, from the rule of three.
    """
    if not (sampled := pairs.looked_up):
        return ()
    # How often each document is in each of a thousand draws.
    draws = np.random.default_rng(seed).multinomial(sampled, np.full(sampled, 1 / sampled), size=1_000)
    return tuple(replace(_measure(each, pairs, sampled, draws), left_out=drawn - sampled) for each in PRESETS.values())


def _measure(preset: Preset, pairs: RealPairs, sampled: int, drawn: NDArray[np.int64]) -> PresetSample:
    near = pairs.distance <= preset.max_distance
    right = near & (pairs.scores(preset) >= preset.similarity)
    near_each = np.bincount(pairs.sampled[near], pairs.weight[near], sampled)
    right_each = np.bincount(pairs.sampled[right], pairs.weight[right], sampled)
    gone = 1 - 1 / (1 + right_each)
    precision = None
    if near.any():
        whole = drawn @ near_each
        shares = (drawn @ right_each)[whole > 0] / whole[whole > 0]
        precision = _estimate(float(right_each.sum() / near_each.sum()), shares, int((near_each > 0).sum()))
    return PresetSample(
        preset.name,
        preset.max_distance,
        preset.similarity,
        sampled,
        _estimate(float(gone.mean()), drawn @ gone / sampled, sampled),
        int(near.sum()),
        precision,
    )


def _estimate(share: float, shares: NDArray[np.float64], number: int) -> Estimate:
    """Return *share*, with the interval that *shares* of the draws have; *number* independent documents gave it."""
    low, high = (float(each) for each in np.quantile(shares, [0.025, 0.975]))
    if low == high:
        # Of n documents none was seen to be otherwise: at most 3 / n are, with 95 % confidence.
        low, high = (share if share == 0 else low - 3 / number), (share if share == 1 else high + 3 / number)
    return Estimate(share, max(0.0, low), min(1.0, high))
