"""
jieba's segmentation by rjieba, which is many times as fast and cuts the same words; used if it is installed.

rjieba (extra ``fast``) is jieba-rs: the same algorithm on the same model, and here on jieba's own dictionary, the
user's words among it. Texts on which the two are known to differ do not reach it:

- it takes more characters for Chinese ones than jieba does: what jieba passes over is made a space first;
- it keeps ASCII letters and digits with a symbol between them in one piece (``a-b``, ``1.2.3``): such runs go to jieba;
- of two ways to cut unknown words that are equally likely it may choose the other one. Only a run that repeats itself
  (``哈哈哈``, ``啦啦噜啦啦噜啦``) has two such ways that overlap: such runs go to jieba.

docs/speed.md says on how many texts they were compared. When rjieba is loaded, both must agree on a few sentences; if
they do not, jieba does the work.
"""

from __future__ import annotations

import importlib.metadata
import itertools
import logging
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from es_simhash.hashing.characters import to_codes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    Cut = Callable[[str], Iterable[str]]

__all__ = ["FastCutter", "has_other_cut", "make_fast_cutter"]

logger = logging.getLogger("es_simhash")

# A letter or digit, a symbol, another; a decimal point between digits is cut alike, if no letter or point follows.
_JOINED = re.compile(r"[a-zA-Z0-9](?:[+#&_%\-][a-zA-Z0-9]|\.[0-9]*[a-zA-Z]|\.[0-9]+\.)")

# One to three characters, once more, and the first of them a third time.
_REPEATED = re.compile(r"([\u4E00-\u9FD5])(?:\1\1|(.)\1\2\1|(..)\1\3\1)")
_PERIODS = (1, 2, 3)
_FIRST_HAN = 0x4E00

# Not a character that jieba looks at, so a word made of it is never found.
_FILLER = "\ue000"

# Ambiguous words, unknown names, numbers, mixed words, rare characters; single characters beside letters.
_PROBES = (
    "研究生命的起源 南京市长江大桥结婚的和尚未结婚的人民国民",
    "他来到了网易杭研大厦见小明硕士毕业于中国科学院计算所",
    "2018年GDP增长6.7% T恤和AT&T的C++在3.5版本里",
    "龘靐齉爩云计算的我在2019年中年我的abc的我",
)


def has_other_cut(run: str) -> bool:
    """
    Return whether rjieba may cut *run* differently from jieba.
    """
    return _JOINED.search(run) is not None or _REPEATED.search(run) is not None


class FastCutter:
    """
    Cuts runs of characters that jieba knows into jieba's words.
    """

    def __init__(self, fast: Callable[[str], list[str]], slow: Cut) -> None:
        """
        Keep rjieba's function as *fast*, and jieba's as *slow* for the runs on which they may differ.
        """
        self._fast, self._slow = fast, slow

    def cut_all(self, texts: Sequence[str]) -> list[list[str]]:
        """
        Return the tokens of each of *texts*, with spaces between runs; some of these spaces are tokens too.
        """
        repeated = _find_repeated(texts)
        return [
            self._cut_by_run(text) if place in repeated or _JOINED.search(text) else self._fast(text)
            for place, text in enumerate(texts)
        ]

    def _cut_by_run(self, text: str) -> list[str]:
        tokens: list[str] = []
        for is_other, runs in itertools.groupby(text.split(" "), has_other_cut):
            if is_other:
                tokens += itertools.chain.from_iterable(map(self._slow, runs))
            else:
                tokens += self._fast(" ".join(runs))
        return tokens


def _find_repeated(texts: Sequence[str]) -> set[int]:
    """
    Return the positions of the texts in which something is repeated, and perhaps of a few more.
    """
    codes = to_codes(" ".join(texts))
    ends = np.cumsum([len(text) + 1 for text in texts])
    found: set[int] = set()
    for period in _PERIODS:
        same = (codes[period:] == codes[:-period]) & (codes[period:] >= _FIRST_HAN)
        # A run of 2 * period + 1 characters has period + 1 equalities side by side.
        for _ in range(period):
            same = same[1:] & same[:-1]
        found.update(np.searchsorted(ends, np.flatnonzero(same), side="right").tolist())
    return found


def make_fast_cutter(frequencies: Mapping[str, int], total: int, slow: Cut) -> FastCutter | None:
    """
    Return a cutter with jieba's dictionary, or ``None`` if rjieba is not installed or does not agree with jieba.

    Args:
        frequencies:
            Frequency of each word; 0 for a string that only begins words, or that is no longer a word.
        total:
            What jieba divides frequencies by: their sum, and the former frequency of words that got another.
        slow:
            jieba's function.
    """
    try:
        import rjieba  # noqa: PLC0415 - an extra
    except ImportError:
        return None
    cutter: Any = rjieba.Jieba.empty()  # type: ignore[no-untyped-call]
    for word, frequency in frequencies.items():
        if frequency:
            cutter.add_word(word, frequency, "")
    missing = total - sum(frequencies.values())
    if missing:
        # rjieba keeps the sum itself.
        cutter.add_word(_FILLER, missing, "")
    fast = FastCutter(cutter.cut, slow)
    if not all(_is_same(tokens, slow(probe)) for tokens, probe in zip(fast.cut_all(_PROBES), _PROBES, strict=True)):
        version = importlib.metadata.version("rjieba")
        logger.warning("rjieba %s cuts words differently from jieba, so jieba does the work: upgrade rjieba", version)
        return None
    return fast


def _is_same(tokens: Iterable[str], others: Iterable[str]) -> bool:
    return [each for each in tokens if each != " "] == [each for each in others if each != " "]
