"""
The features of the scheme ``words``, weights of repeated features, checks of a caller's features.

Nothing is hashed here. ``shingles.py`` and ``keywords.py`` make the features of the other schemes.
"""

from __future__ import annotations

import functools
import math
import re
from collections import Counter, deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from es_simhash.arguments import check_items
from es_simhash.errors import InvalidInputError, WrongTypeError, shorten
from es_simhash.hashing.characters import normalise_text, normalise_texts
from es_simhash.hashing.scheme import Scheme
from es_simhash.hashing.scripts import UNSPACED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence


ONE = 1 << 20
"""The weight 1 as a fixed-point integer."""

_LAST_LOGARITHM = 1 << 16

_UNSPACED = "".join(f"{chr(first)}-{chr(last)}" for first, last in UNSPACED)
_WORD = re.compile(f"[{_UNSPACED}]|[^ {_UNSPACED}]+")


def _words(normal: str) -> Iterator[str]:
    """Yield the words of a normalised text; in scripts without spaces every character is a word."""
    return (match[0] for match in _WORD.finditer(normal))


def word_extractor(scheme: Scheme) -> Callable[[Sequence[str]], list[dict[str, int]]]:
    """Return the function that maps texts to their word shingles, with weights in units of 2**-20."""
    size, weighting = scheme.parameters["size"], scheme.parameters["weighting"]

    def extract(normal: str) -> dict[str, int]:
        counts = Counter(_word_shingles(_words(normal), size))
        return {shingle: repeat_weight(count, weighting) for shingle, count in counts.items()}

    def extract_all(texts: Sequence[str]) -> list[dict[str, int]]:
        # A long text comes alone, and is normalised in pieces to save memory.
        normal = map(normalise_text, texts) if len(texts) == 1 else normalise_texts(texts)
        return list(map(extract, normal))

    return extract_all


def _word_shingles(words: Iterable[str], size: int) -> Iterator[str]:
    last: deque[str] = deque(maxlen=size)
    seen = 0
    for seen, word in enumerate(words, 1):
        last.append(word)
        if seen >= size:
            yield " ".join(last)
    if 0 < seen < size:
        yield " ".join(last)


def repeat_weight(count: int, weighting: str) -> int:
    """Return the weight, in units of 2**-20, of a feature that comes *count* times (1 or more) in a text."""
    if weighting == "linear":
        return count * ONE
    if weighting == "log":
        return logarithms()[min(count, _LAST_LOGARITHM)]
    return ONE


@functools.cache
def logarithms() -> tuple[int, ...]:
    """
    Return 1 + ln n in units of 2**-20 for n from 0 (unused) to 65,536.

    No value lies within 1e-6 units of a rounding boundary, 10,000 times the error of any mathematics library, so
    every machine makes the same integers.
    """
    return (0, *(round(ONE * (1.0 + math.log(count))) for count in range(1, _LAST_LOGARITHM + 1)))


def caller_features(
    features: Iterable[str | bytes] | Mapping[str, float], weights: Iterable[float] | None, *, scheme: Scheme
) -> tuple[list[str | bytes], list[float]]:
    """Return a caller's features and weights as two lists of the same length, checked."""
    if weights is not None:
        check_items("weights", weights, of="numbers")
    if not isinstance(features, Mapping):
        check_items("features", features, of="features")
    else:
        if weights is not None:
            raise InvalidInputError("weights were given twice: in the mapping of features, and as weights")
        weights = list(features.values())
    names = list(features)
    for name in names:
        if not isinstance(name, (str, bytes)):
            raise WrongTypeError(f"features must be str or bytes, not {type(name).__name__} {shorten(name)}")
    values: list[Any] = [1] * len(names) if weights is None else list(weights)
    if len(values) != len(names):
        raise InvalidInputError(f"{len(values)} weights for {len(names)} features: give one for each")
    levels = scheme.parameters["levels"]
    if levels is not None:
        for value in values:
            if isinstance(value, bool) or value not in range(1, levels + 1):
                raise InvalidInputError(
                    f"weight {shorten(value)} is not a level: give whole numbers from 1 to {levels}"
                )
    # numpy would take a boolean among numbers for 0 or 1.
    elif any(isinstance(value, bool) for value in values):
        raise WrongTypeError(f"weights must be numbers, not bool: {shorten(values)}")
    return names, values
