"""Many pairs of texts compared, each text prepared once. Arrays only; numpy is loaded here."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from es_simhash.texts.measures import WORD_SHINGLES, TextMeasure


def compare_pairs(
    texts: Sequence[str],
    left: NDArray[np.int64],
    right: NDArray[np.int64],
    *,
    measure: TextMeasure = WORD_SHINGLES,
    bound: float = 0.0,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """
    Return similarity and containment of the texts at *left* with those at *right*, pair by pair.

    Containment is NaN where *measure* counts edits. A similarity below *bound* may be returned as 0. Memory: 8
    bytes for each distinct shingle, or each unit, of a text that occurs in a pair.
    """
    ends = list(zip(left.tolist(), right.tolist(), strict=True))
    places = sorted({place for pair in ends for place in pair})
    prepared = dict(zip(places, measure.prepare([texts[place] for place in places]), strict=True))
    found = [measure.compare(prepared[first], prepared[second], bound=bound) for first, second in ends]
    containments = [np.nan if each.containment is None else each.containment for each in found]
    return np.array([each.similarity for each in found], np.float64), np.array(containments, np.float64)
