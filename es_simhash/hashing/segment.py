"""
Chinese segmentation by a private copy of jieba, or by rjieba, which cuts the same words faster.

``jieba.add_word``, ``del_word`` and ``suggest_freq`` change state that all tokenizers of a process share, so
a user's calls would change bits. So jieba 0.42.1, checked by digest, is loaded again for each user
dictionary; its shared cache file is never used. rjieba (extra ``fast``) gets the same dictionary. It takes
more characters for Chinese, so what jieba passes over becomes a space. Where else it differs, jieba cuts:
joined ASCII (``a-b``, ``1.2.3``), and repeats of unknown words (``哈哈哈``), which have two equally likely cuts.
Both must agree on a few sentences, or jieba does all the work. docs/speed.md has the comparison.
"""

from __future__ import annotations

import hashlib
import importlib.util
import io
import itertools
import logging
import re
import sys
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from es_simhash.errors import MissingDependencyError, SchemeError
from es_simhash.hashing.characters import to_codes
from es_simhash.hashing.registry import KNOWN, find_file, scheme_file
from es_simhash.hashing.scheme import Scheme, library_version

Cut = Callable[[str], Iterable[str]]

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
    return _JOINED.search(run) is not None or _REPEATED.search(run) is not None


class FastCutter:
    """Cuts runs of characters that jieba knows into jieba's words, by rjieba, or by jieba where they may differ."""

    def __init__(self, fast: Callable[[str], list[str]], slow: Cut) -> None:
        self._fast, self._slow = fast, slow

    def cut_all(self, texts: Sequence[str]) -> list[list[str]]:
        """Return the tokens of each of *texts*, with spaces between runs; some of these spaces are tokens too."""
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
    """Return the positions of the texts in which something is repeated, and perhaps of a few more."""
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
    Return a cutter with jieba's dictionary, or ``None`` if rjieba is missing or disagrees with jieba.
    *frequencies*: 0 for a string that only begins words, or is no longer a word. *total*: what jieba divides by, their
    sum and the former frequency of words that got another. *slow*: jieba's function.
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
        version = library_version("rjieba")
        logger.warning("rjieba %s cuts words differently from jieba, so jieba does the work: upgrade rjieba", version)
        return None
    return fast


def _is_same(tokens: Iterable[str], others: Iterable[str]) -> bool:
    return [word for word in tokens if word != " "] == [word for word in others if word != " "]


_DICTIONARY, _CUTTER_FILE = "dict.txt", "finalseg/prob_emit.py"

_DIGESTS = {
    _DICTIONARY: "7197c3211ddd98962b036cdf40324d1ea2bfaa12bd028e68faa70111a88e12a8",
    "analyse/idf.txt": "501b70ec56c34d90f3f590f1918ca4b1bd617d5b46cd99bd6d17c7de6e4f80ed",
    _CUTTER_FILE: "27d46b1c9efe4dd148fde8be042a21be40e3562d0c7f1273f9de7abae12ebb8d",
}


# jieba's search through unknown characters takes time and memory that grow with the square of a run without any
# punctuation; longer runs than this are cut, so that no text can stall a process.
_LONGEST_RUN = 1024

_RUN = re.compile(f"[^ ]{{1,{_LONGEST_RUN}}}")
_BETWEEN = re.compile(f"[^{KNOWN}]+")

_lock = threading.RLock()
_segmenters: dict[str, Segmenter] = {}


class Segmenter:
    """A private jieba tokenizer, loaded as module *name*, with one user dictionary, or none."""

    def __init__(self, user_dictionary: bytes | None, *, name: str) -> None:
        started = time.perf_counter()
        self._jieba = _load_private_jieba(name)
        self._tokenizer = self._jieba.dt
        frequencies, total = self._tokenizer.gen_pfdict(io.BytesIO(jieba_file(_DICTIONARY)))
        self._tokenizer.FREQ, self._tokenizer.total = frequencies, total
        self._tokenizer.initialized = True
        if user_dictionary is not None:
            self._tokenizer.load_userdict(io.BytesIO(user_dictionary))
        # jieba splits forbidden words after it has cut the text; rjieba cannot do that.
        forbidden = self._jieba.finalseg.Force_Split_Words
        slow = self._tokenizer.cut
        self._fast = None if forbidden else make_fast_cutter(self._tokenizer.FREQ, self._tokenizer.total, slow)
        logger.info(
            "loaded jieba's dictionary in %.1f seconds%s",
            time.perf_counter() - started,
            "" if self._fast is None else ", for rjieba",
        )

    def count_all(self, texts: Sequence[str]) -> list[Counter[str]]:
        """Return how often each word occurs in each of *texts*; spaces may be among the words."""
        return list(map(Counter, self._cut_all(list(map(_join_runs, texts)))))

    def _cut_all(self, texts: Sequence[str]) -> list[list[str]]:
        return [list(self._tokenizer.cut(text)) for text in texts] if self._fast is None else self._fast.cut_all(texts)


def _join_runs(text: str) -> str:
    """Return the runs of characters that jieba looks at, separated by spaces; runs that are too long are cut."""
    joined = _BETWEEN.sub(" ", text)
    if len(joined) > _LONGEST_RUN and max(map(len, joined.split(" "))) > _LONGEST_RUN:
        return " ".join(_RUN.findall(joined))
    return joined


def segmenter(scheme: Scheme) -> Segmenter:
    """Return a scheme's segmenter, shared by the process; the first use takes about a second."""
    find_file(scheme, "dictionary")  # who lacks it is refused, also where another one has loaded it
    key = scheme.digests.get("dictionary", "")
    found = _segmenters.get(key)
    if found is None:
        with _lock:
            found = _segmenters.get(key)
            if found is None:
                name = f"_es_simhash_jieba_{key[:16] or 'plain'}"
                found = _segmenters[key] = Segmenter(scheme_file(scheme, "dictionary"), name=name)
    return found


def jieba_file(name: str) -> bytes:
    """Return one of jieba's data files; raise if it is not that of 0.42.1, on which the bits depend."""
    content = (_jieba_folder() / name).read_bytes()
    if hashlib.sha256(content).hexdigest() != _DIGESTS[name]:
        raise SchemeError(f"jieba's {name} is not that of jieba 0.42.1: pip install --force-reinstall jieba==0.42.1")
    return content


def _jieba_folder() -> Path:
    spec = importlib.util.find_spec("jieba")
    if spec is None or spec.origin is None:
        raise MissingDependencyError("jieba is not installed: pip install jieba==0.42.1")
    return Path(spec.origin).parent


def _load_private_jieba(name: str) -> ModuleType:
    """Load jieba once more, as module *name*."""
    folder = _jieba_folder()
    jieba_file(_CUTTER_FILE)
    spec = importlib.util.spec_from_file_location(
        name, folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    assert spec is not None  # noqa: S101 -- for the checker of types: None is for other endings of a file
    assert spec.loader is not None  # noqa: S101
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    with warnings.catch_warnings():
        # jieba 0.42.1 is older than the warnings about its escape sequences and about pkg_resources.
        warnings.simplefilter("ignore")
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
    # jieba prints what it loads to stderr at level DEBUG; our own log line says it.
    module.default_logger.handlers.clear()
    module.default_logger.setLevel(logging.WARNING)
    return module
