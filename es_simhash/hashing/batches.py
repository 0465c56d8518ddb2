"""Lists of texts to arrays of fingerprints and terms, in parts of bounded size, for every scheme. Loads numpy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from es_simhash.hashing import kernels, shingles, winnowing
from es_simhash.hashing.characters import Flags, Hashes, text_parts
from es_simhash.hashing.features import keyword_extractor
from es_simhash.hashing.preprocess import preprocessor
from es_simhash.hashing.scheme import HASHES, Scheme

Fingerprints = tuple[Hashes, Flags]

NO_LETTERS = "-"
"""What a document holds in place of the terms of a text without letters and digits; terms have six characters."""


def fold_all(texts: Sequence[str], scheme: Scheme) -> Fingerprints:
    """Return the fingerprints of *texts* and which of them have one."""
    values, known = np.zeros(len(texts), np.uint64), np.zeros(len(texts), np.bool_)
    if not texts:
        return values, known
    prepare = preprocessor(scheme)
    fold = partial(shingles.fold_texts, scheme=scheme) if scheme.name == "shingles" else _fold_keywords(scheme)
    for part in text_parts(texts):
        batch = texts[part] if prepare is None else prepare(texts[part])
        values[part], known[part] = fold(batch)
    return values, known


def fingerprint_list(texts: Sequence[str], scheme: Scheme) -> list[int | None]:
    """Return the fingerprint of each of *texts*; ``None`` for a text without features."""
    values, known = fold_all(texts, scheme)
    return [value if exists else None for value, exists in zip(values.tolist(), known.tolist(), strict=True)]


def passage_term_list(texts: Sequence[str]) -> list[list[str]]:
    """Return the terms of the passages of each of *texts*; none for a text without letters and digits."""
    found: list[list[str]] = []
    for part in text_parts(texts):
        found += winnowing.passage_terms(texts[part])
    return found


def stored_term_list(texts: Sequence[str], fingerprints: Sequence[int | None]) -> list[list[str]]:
    """
    Return the passage terms to store in documents with *texts* and *fingerprints*.
    A text may have a fingerprint and no letter: ``___`` is a word for jieba. Its document gets :data:`NO_LETTERS`, so
    that it does not look like one whose passages were never computed.
    """
    found = zip(passage_term_list(texts), fingerprints, strict=True)
    return [terms if terms or fingerprint is None else [NO_LETTERS] for terms, fingerprint in found]


def _fold_keywords(scheme: Scheme) -> Callable[[Sequence[str]], Fingerprints]:
    """Return the function for keywords, which are made one text at a time and summed in arrays."""
    hash_bytes = HASHES[scheme.parameters["hash"]]
    extract = keyword_extractor(scheme)

    def fold(texts: Sequence[str]) -> Fingerprints:
        features = extract(texts)
        # A word that is in every text has weight 0 by IDF; a text of such words alone has no fingerprint.
        counts = np.array([len(found) if any(found.values()) else 0 for found in features], np.intp)
        known = counts > 0
        values = np.zeros(len(texts), np.uint64)
        if known.any():
            used = [found for found, exists in zip(features, known.tolist(), strict=True) if exists]
            hashes = np.array([hash_bytes(word.encode()) for found in used for word in found], np.uint64)
            weights = np.array([weight for found in used for weight in found.values()], np.uint64)
            starts = np.cumsum(counts[known]) - counts[known]
            values[known] = kernels.fold(hashes, weights, starts)
        return values, known

    return fold
