"""
Traditional and simplified Chinese among sampled texts: how many of each, and which are one text in two scripts.

Needs OpenCC, of the extra ``preprocess``. No request is made here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from es_simhash.hashing import Scheme, fingerprint_array
from es_simhash.index.grouping.all_pairs import near_pairs
from es_simhash.index.measures.compare_pairs import compare_pairs
from es_simhash.quality.real_pairs import DUPLICATE

__all__ = ["Scripts", "conversion_is_available", "convert", "count_scripts", "has_han"]

_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]")
# OpenCC takes UTF-8, where NUL may end a text and a lone surrogate cannot be written.
_UNWRITABLE = re.compile("[\0\ud800-\udfff]")
# Farther apart the same text is not found by any preset for words.
_NEAR = 12


@dataclass(frozen=True, slots=True)
class Scripts:
    """
    The scripts of texts.

    Attributes:
        traditional:
            Number of texts with more characters that only traditional Chinese has.
        simplified:
            Number of texts with more characters that only simplified Chinese has.
        pairs:
            Number of pairs of one of each whose texts are the same once both are simplified.
    """

    traditional: int
    simplified: int
    pairs: int

    @property
    def are_mixed(self) -> bool:
        """Whether both scripts occur."""
        return bool(self.traditional and self.simplified)


def has_han(text: str) -> bool:
    """Return whether *text* has a Chinese character."""
    return _HAN.search(text) is not None


def conversion_is_available() -> bool:
    """
    Return whether traditional and simplified Chinese can be converted here (extra ``preprocess``).
    """
    try:
        import opencc  # noqa: F401, PLC0415 - an extra
    except ImportError:
        return False
    return True


def convert(text: str, configuration: str) -> str:
    """Return *text* as OpenCC's *configuration*, such as ``"t2s"``, writes it."""
    converted: str = _converter(configuration).convert(_UNWRITABLE.sub(" ", text))
    return converted


@cache
def _converter(configuration: str) -> Any:
    import opencc  # noqa: PLC0415 - an extra

    return opencc.OpenCC(configuration)


def count_scripts(texts: Sequence[str], scheme: Scheme) -> Scripts | None:
    """
    Return the scripts of *texts*; ``None`` where *scheme* converts them, or the extra ``preprocess`` is missing.

    Args:
        texts:
            The texts.
        scheme:
            The scheme of their fingerprints.
    """
    chinese = [text for text in texts if has_han(text)]
    if scheme.name == "weighted" or "t2s" in scheme.preprocess or not chinese or not conversion_is_available():
        return None
    simplified = [convert(text, "t2s") for text in chinese]
    scripts = np.array([_script(text, own) for text, own in zip(chinese, simplified, strict=True)])
    return Scripts(int((scripts > 0).sum()), int((scripts < 0).sum()), _count_pairs(simplified, scripts, scheme))


def _script(text: str, simplified: str) -> int:
    """Return how many more characters of traditional Chinese than of simplified *text* has."""
    return _changes(text, simplified) - _changes(text, convert(text, "s2t"))


def _changes(text: str, converted: str) -> int:
    return sum(one != other for one, other in zip(text, converted, strict=False))


def _count_pairs(simplified: Sequence[str], scripts: Any, scheme: Scheme) -> int:
    """Return how many pairs of texts in different scripts are the same text, once both are simplified."""
    values, known = fingerprint_array(simplified, scheme=scheme)
    places = np.flatnonzero(known)
    count = 0
    for found in near_pairs(values[places], _NEAR):
        left, right = places[found.left], places[found.right]
        differ = scripts[left] * scripts[right] < 0
        similarity, _ = compare_pairs(simplified, left[differ], right[differ])
        count += int((similarity >= DUPLICATE).sum())
    return count
