"""Two texts compared as where no measure is named."""

from es_simhash.texts.measures import WORD_SHINGLES, Similarity


def compare_texts(first, second, *, scheme=None):
    """Jaccard similarity and containment of the shingles of words, as *scheme* sees the texts."""
    measure = WORD_SHINGLES if scheme is None else WORD_SHINGLES.after(scheme)
    score = measure.compare(*measure.prepare([first, second]))
    return Similarity(score.similarity, score.containment)
