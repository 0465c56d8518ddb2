"""
The features of the scheme ``keywords``, and weights by number. Nothing is hashed here.

``keywords`` has the most characteristic words of a Chinese text, with the words and weights of
``jieba.analyse.extract_tags`` (TF-IDF). Two things that jieba leaves open are fixed: weights are fixed-point integers
before they are compared, and words of equal weight are ranked by code points. A word has at least two characters. ASCII
letters and digits make words, without change of case; English stop words are left out; full-width letters, kana, hangul
and all other scripts make none: use ``shingles`` for those.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from es_simhash.errors import SchemeError, shorten
from es_simhash.hashing.kernels import ONE
from es_simhash.hashing.registry import scheme_file
from es_simhash.hashing.scheme import Scheme
from es_simhash.hashing.segment import jieba_file, segmenter

_LAST_LOGARITHM = 1 << 16


@functools.cache
def logarithms() -> tuple[int, ...]:
    """
    Return 1 + ln n in units of 2**-20 for n from 0 (unused) to 65,536.
    No value lies within 1e-6 units of a rounding boundary, 10,000 times the error of any mathematics library, so every
    machine makes the same integers.
    """
    return (0, *(round(ONE * (1.0 + math.log(count))) for count in range(1, _LAST_LOGARITHM + 1)))


# The stop words that jieba 0.42.1 starts with; a user's file adds to them, as in jieba.
# fmt: off
_STOP_WORDS = frozenset((
    "all", "an", "and", "are", "as", "at", "be", "by", "can", "for", "from", "has", "have", "if", "in", "is",
    "it", "not", "of", "on", "one", "or", "that", "the", "then", "this", "to", "we", "which", "with", "you",
))
# fmt: on

AUTO_TOP = (20, 10, 200)
"""``top="auto"``: at least 20; one for every 10 words left after the stop words, repeats counted; at most 200."""

_NO_KEYWORD = 1.0


def keyword_extractor(scheme: Scheme) -> Callable[[Sequence[str]], list[dict[str, int]]]:
    """Return the function that maps texts to their keywords, with weights in units of 2**-20."""
    words = segmenter(scheme)
    stop_words = _stop_words(scheme)
    top = scheme.parameters["top"]
    weights = _idf_weights(scheme_file(scheme, "idf"), stop_words)

    def rank_by_idf(counts: Counter[str]) -> dict[str, int]:
        # jieba divides by the number of words as well; the same for all words of a text, that changes no bit.
        ranked = [(count * weight, word) for word, count in counts.items() if (weight := weights[word]) <= 0]
        return rank_words(ranked, top, sum(counts[word] for _, word in ranked) if top == "auto" else 0)

    return lambda texts: list(map(rank_by_idf, words.count_all(texts)))


def rank_words(words: list[tuple[float, str]], top: int | str, total: int) -> dict[str, int]:
    """
    Return the *top* words by weight, rounded half to even, then by code points, with their weights.
    *words*: weights in units of 2**-20, negated so that the heaviest word sorts first. *total*: counted words, repeats
    included, for :data:`AUTO_TOP`.
    """
    if isinstance(top, str):
        least, share, most = AUTO_TOP
        top = min(max(least, total // share), most)
    if len(words) > top:
        # Numbers alone sort many times as fast as pairs do. Rounding moves a weight by a half at most, so what it
        # could put among the first is no more than one unit behind the last of them.
        last = sorted([weight for weight, _ in words])[top - 1] + 1
        words = [pair for pair in words if pair[0] <= last]
    rounded = sorted([(round(weight), word) for weight, word in words])
    return {word: -weight for weight, word in rounded[:top]}


def _is_keyword(word: str, stop_words: frozenset[str]) -> bool:
    return len(word.strip()) >= 2 and word.lower() not in stop_words


def _stop_words(scheme: Scheme) -> frozenset[str]:
    content = scheme_file(scheme, "stop_words")
    return _STOP_WORDS if content is None else _STOP_WORDS.union(_lines(content, "stop_words"))


class _Weights(dict[str, float]):
    """IDF by word in units of 2**-20, unrounded and negated; 1 for a word that is no keyword."""

    def __init__(self, idf: Mapping[str, float], usual: float, stop_words: frozenset[str]) -> None:
        # Single characters are looked up most often, and none is a keyword.
        super().__init__(dict.fromkeys(map(chr, (*range(0x80), *range(0x4E00, 0xA000))), _NO_KEYWORD))
        # A product with a power of two is exact: rounding after it is rounding the product of the weights.
        self.update((word, -weight * ONE) for word, weight in idf.items() if _is_keyword(word, stop_words))
        self._usual = -usual * ONE
        self._stop_words = stop_words

    def __missing__(self, word: str) -> float:
        return self._usual if _is_keyword(word, self._stop_words) else _NO_KEYWORD


@functools.lru_cache(maxsize=8)
def _idf_weights(content: bytes | None, stop_words: frozenset[str]) -> _Weights:
    """Return the weight of every word; a word that is not listed has the middle IDF, as in jieba."""
    idf: dict[str, float] = {}
    for number, line in enumerate(_lines(jieba_file("analyse/idf.txt") if content is None else content, "idf"), 1):
        try:
            word, value = line.split()
            idf[word] = float(value)
            if not 0 <= idf[word] < math.inf:
                raise ValueError(value)
        except ValueError as error:
            said = f"line {number} of the idf file, {shorten(line)}, is not a word and a number of 0 or more"
            raise SchemeError(said) from error
    if not idf:
        raise SchemeError("the idf file is empty: give a word and its IDF on each line")
    return _Weights(idf, sorted(idf.values())[len(idf) // 2], stop_words)


def _lines(content: bytes, purpose: str) -> list[str]:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SchemeError(
            f"the {purpose} file is not UTF-8 ({error.reason} at byte {error.start}): convert it"
        ) from error
    return [line.strip() for line in text.splitlines() if line.strip()]
