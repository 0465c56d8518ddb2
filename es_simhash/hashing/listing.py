"""
The features of a text by name, with their weights: they show people why two fingerprints differ.

Fingerprints are made from hashed arrays (``shingles.py``); here the same features are strings, one text at a time.
"""

from __future__ import annotations

from collections import Counter

from es_simhash.errors import InvalidInputError
from es_simhash.hashing.features import ONE, repeat_weight, word_extractor
from es_simhash.hashing.preprocess import preprocessor
from es_simhash.hashing.scheme import Scheme

__all__ = ["list_features"]


def list_features(text: str, scheme: Scheme) -> dict[str, float]:
    """
    Return the features of *text* under *scheme* with their weights, in order of first appearance.

    Memory: some 150 bytes for each character of the text.

    Raises:
        InvalidInputError: If the scheme takes features and not text.

    Examples:
        >>> from es_simhash.hashing import get_scheme
        >>> list_features("北京 abcd", get_scheme("shingles"))
        {'北京': 1.0, '京ab': 1.0, 'abcd': 1.0}
    """
    if scheme.name == "weighted":
        raise InvalidInputError(f"scheme {scheme.id} takes features, not text: list your own features")
    prepare = preprocessor(scheme)
    prepared = text if prepare is None else prepare([text])[0]
    if scheme.name == "shingles":
        counts = _count_shingles(prepared, scheme)
        weighting = scheme.parameters["weighting"]
        return {shingle: repeat_weight(count, weighting) / ONE for shingle, count in counts.items()}
    if scheme.name == "keywords":
        from es_simhash.hashing.keywords import keyword_extractor  # noqa: PLC0415 - loads jieba

        found = keyword_extractor(scheme)([prepared])[0]
    else:
        found = word_extractor(scheme)([prepared])[0]
    return {name: weight / ONE for name, weight in found.items()}


def _count_shingles(text: str, scheme: Scheme) -> Counter[str]:
    from es_simhash.hashing.characters import normalise_text, to_codes  # noqa: PLC0415 - numpy is slow to load
    from es_simhash.hashing.scripts import shingle_lengths  # noqa: PLC0415

    stripped = normalise_text(text).replace(" ", "")
    size = scheme.parameters["size"]
    lengths = [size] * len(stripped) if scheme.version == 1 else shingle_lengths(to_codes(stripped), size).tolist()
    shingles = (
        stripped[start : start + length] for start, length in enumerate(lengths) if start + length <= len(stripped)
    )
    return Counter(shingles) or Counter([stripped] if stripped else [])
