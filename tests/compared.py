"""Two texts compared as where no measure is named."""

from typing import NamedTuple

from es_simhash.texts.measures import WORD_SHINGLES


class Compared(NamedTuple):
    jaccard: float
    containment: float


def compare_texts(first, second, *, scheme=None):
    """Jaccard similarity and containment of the shingles of words, as *scheme* sees the texts."""
    measure = WORD_SHINGLES if scheme is None else WORD_SHINGLES.after(scheme)
    score = measure.compare(*measure.prepare([first, second]))
    return Compared(score.similarity, score.containment)
