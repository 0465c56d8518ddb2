"""Edits that are common in republished texts, and counts of traditional and simplified Chinese (with OpenCC)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from math import ceil
from random import Random
from typing import Any

import numpy as np

from es_simhash.groups.all_pairs import near_pairs
from es_simhash.hashing import Scheme, fingerprint_array
from es_simhash.quality.known_pairs import DUPLICATE
from es_simhash.texts.measures import compare_pairs

Edit = Callable[[str, Random], str | None]
"""Returns the edited text, or ``None`` if the edit cannot apply."""
_SENTENCE = re.compile(r"[^。！？!?\n]*?(?:[。！？!?]+|\.(?=\s|$)|\n+)|.+$", re.DOTALL)
_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]")
_NUMBER = re.compile(r"\d+")
_WORD = r"[\u3400-\u4dbf\u4e00-\u9fff]{2}|[^\W\d_\u3400-\u9fff]+"
_SHORTEST = 20

_BEFORE = {
    True: ("本报讯 ", "【转载】来源：网络。", "编者按：以下内容来自合作媒体，不代表本站立场。\n"),
    False: ("UPDATE: ", "Reposted from our partner site. ", "By staff writer. All times local.\n"),
}

_INTRODUCTION = {
    True: (
        "近日，这条消息在网上引起广泛关注。",
        "编辑部就此联系了多位业内人士。",
        "为方便读者了解来龙去脉，现将全文整理如下。",
        "相关部门表示将持续关注后续进展。",
        "我们也欢迎读者来信补充线索。",
    ),
    False: (
        "Readers have been asking about this story since yesterday. ",
        "We called several people who know the matter well. ",
        "Here is the full account, as it reached our desk. ",
        "Officials say that they will follow what happens next. ",
        "Send us a letter if you know more than we do. ",
    ),
}

_AFTER = {
    True: ("（责任编辑：王芳）", "\n更多精彩内容，请关注我们的公众号。", "\n版权声明：未经许可不得转载。"),
    False: (" Read more on our website.", "\nFollow us for the latest news.", "\nAll rights reserved."),
}

# Half width to full width, and the marks that writers exchange.
_FULL_WIDTH = {code: code + 0xFEE0 for code in range(0x21, 0x7F)}

_MARKS = str.maketrans(
    {"，": ",", "。": ".", "；": ";", "：": ":", "（": "(", "）": ")", '"': "'", ",": " -", "—": "-"}
)


def _is_han(text: str) -> bool:
    return len(_HAN.findall(text)) * 4 > len(text)


def typo(text: str, chance: Random) -> str | None:
    """Exchange two neighbouring characters in one word, or in about one of 300 characters."""
    letters = list(text)
    places = [at for at in range(len(letters) - 1) if letters[at].isalnum() and letters[at + 1].isalnum()]
    places = [at for at in places if letters[at] != letters[at + 1]]
    if not places or len(text) < _SHORTEST:
        return None
    for at in chance.sample(places, min(len(places), 1 + len(text) // 300)):
        letters[at], letters[at + 1] = letters[at + 1], letters[at]
    return "".join(letters)


def boilerplate_before(text: str, chance: Random) -> str | None:
    """Put a line of a publisher's own in front."""
    return chance.choice(_BEFORE[_is_han(text)]) + text if text.strip() else None


def boilerplate_after(text: str, chance: Random) -> str | None:
    """Add a line of a publisher's own at the end."""
    return text + chance.choice(_AFTER[_is_han(text)]) if text.strip() else None


def date(text: str, chance: Random) -> str | None:
    """Change a number, as a date or a count is changed from one edition to the next."""
    found = list(_NUMBER.finditer(text))
    if not found:
        return None
    number = chance.choice(found)
    changed = str((int(number[0][-6:]) + chance.randint(1, 9)) % 10 ** min(6, len(number[0])))
    return text[: number.start()] + changed.rjust(len(number[0]), "1") + text[number.end() :]


def truncation(text: str, chance: Random) -> str | None:
    """Cut a tenth off the end."""
    _ = chance
    return text[: len(text) - len(text) // 10] if len(text) >= _SHORTEST else None


def sentence_reordering(text: str, chance: Random) -> str | None:
    """Exchange two neighbouring sentences."""
    sentences = [part for part in _SENTENCE.findall(text) if part]
    if len(sentences) < 3:
        return None
    at = chance.randrange(len(sentences) - 1)
    sentences[at], sentences[at + 1] = sentences[at + 1], sentences[at]
    changed = "".join(sentences)
    return changed if changed != text else None


def punctuation_and_width(text: str, chance: Random) -> str | None:
    """Write Latin letters and digits in full width, or exchange punctuation marks."""
    changed = text.translate(_FULL_WIDTH if chance.random() < 0.5 else _MARKS)
    return changed if changed != text else None


def traditional_and_simplified(text: str, chance: Random) -> str | None:
    """Convert Chinese to the other way of writing it; needs OpenCC."""
    _ = chance
    if not has_han(text) or not conversion_is_available():
        return None
    for configuration in ("s2t", "t2s"):
        changed = convert(text, configuration)
        if changed != text:
            return changed
    return None


def wrong_letters(text: str, chance: Random, *, share: float = 0.02) -> str | None:
    """Put other letters of the text in place of a *share*, and of one at least, as a scanner misreads them."""
    letters = list(text)
    places = [at for at, letter in enumerate(letters) if letter.isalnum()]
    if len(text) < _SHORTEST or len(set(letters)) < 2 or not places:
        return None
    for at in chance.sample(places, ceil(share * len(places))):
        letters[at] = letters[chance.choice(places)]
    return "".join(letters)


def passage_cut(text: str, chance: Random, *, share: float) -> str | None:
    """Leave out a *share* of the text in one piece, which begins with a sentence."""
    size = round(share * len(text))
    starts = [match.start() for match in _SENTENCE.finditer(text) if match.start() + size <= len(text)]
    if len(text) < _SHORTEST or not starts:
        return None
    start = chance.choice(starts)
    return text[:start] + text[start + size :]


def introduction(text: str, chance: Random) -> str | None:
    """Put an editor's paragraph of three sentences in front."""
    return "".join(chance.sample(_INTRODUCTION[_is_han(text)], 3)) + "\n" + text if text.strip() else None


def other_numbers(text: str, chance: Random) -> str | None:
    """Put another number of as many digits in place of every number, as in next week's report."""
    changed = _NUMBER.sub(lambda found: str(chance.randrange(10 ** (len(found[0]) - 1), 10 ** len(found[0]))), text)
    return changed if changed != text else None


def rewriting(text: str, chance: Random) -> str | None:
    """Say one sentence in five, and one at least, in other words: halves exchanged, and every third word another."""
    sentences = [part for part in _SENTENCE.findall(text) if part]
    words = re.findall(_WORD, text)
    able = [at for at, sentence in enumerate(sentences) if len(re.findall(_WORD, sentence)) >= 6]
    if len(sentences) < 3 or not able:
        return None
    for at in chance.sample(able, max(1, len(able) // 5)):
        ends = [match.end() for match in re.finditer(_WORD, sentences[at])]
        half = ends[len(ends) // 2]
        turned = sentences[at][half:].strip() + " " * (not _is_han(text)) + sentences[at][:half]
        sentences[at] = re.sub(
            _WORD, lambda found: found[0] if chance.random() > 1 / 3 else chance.choice(words), turned
        )
    return "".join(sentences)


EDITS: dict[str, Edit] = {
    "typo": typo,
    "boilerplate before": boilerplate_before,
    "boilerplate after": boilerplate_after,
    "date": date,
    "truncation": truncation,
    "sentence reordering": sentence_reordering,
    "punctuation and width": punctuation_and_width,
    "traditional and simplified": traditional_and_simplified,
}
"""The edits by the name of their kind."""

NOISE: dict[str, Edit] = {"wrong letters": wrong_letters}
"""Errors that only some collections have. They are measured by themselves, so that they decide no recommendation."""

REVISIONS: dict[str, Edit] = {
    "15 % cut": partial(passage_cut, share=0.15),
    "25 % cut": partial(passage_cut, share=0.25),
    "introduction": introduction,
    "sentences rewritten": rewriting,
}
"""What editors change in a text that stays the same text for them."""

# OpenCC takes UTF-8, where NUL may end a text and a lone surrogate cannot be written.
_UNWRITABLE = re.compile("[\0\ud800-\udfff]")

# Farther apart the same text is not found by any preset for words.
_NEAR = 12


@dataclass(frozen=True, slots=True)
class Scripts:
    """
    How many of some texts are in traditional and in simplified Chinese.
    A text counts for a script if it has more characters that only this script has. *pairs*: pairs of one text in each
    script that are near-duplicates once both are simplified.
    """

    traditional: int
    simplified: int
    pairs: int

    @property
    def are_mixed(self) -> bool:
        return bool(self.traditional and self.simplified)


def has_han(text: str) -> bool:
    return _HAN.search(text) is not None


def conversion_is_available() -> bool:
    """Return whether traditional and simplified Chinese can be converted here (extra ``preprocess``)."""
    try:
        import opencc  # noqa: F401, PLC0415 - an extra
    except ImportError:
        return False
    return True


def convert(text: str, configuration: str) -> str:
    converted: str = _converter(configuration).convert(_UNWRITABLE.sub(" ", text))
    return converted


@cache
def _converter(configuration: str) -> Any:
    import opencc  # noqa: PLC0415 - an extra

    return opencc.OpenCC(configuration)


def count_scripts(texts: Sequence[str], scheme: Scheme) -> Scripts | None:
    """
    Return the scripts of *texts*, or ``None`` if *scheme* converts them or OpenCC is missing.
    Also ``None`` if no text has Chinese characters, or *scheme* takes features.
    """
    chinese = [text for text in texts if has_han(text)]
    if scheme.name == "weighted" or "t2s" in scheme.preprocess or not chinese or not conversion_is_available():
        return None
    simplified = [convert(text, "t2s") for text in chinese]
    pairs = zip(chinese, simplified, strict=True)
    # How many more characters of traditional Chinese than of simplified each has.
    scripts = np.array([_changes(text, own) - _changes(text, convert(text, "s2t")) for text, own in pairs])
    return Scripts(int((scripts > 0).sum()), int((scripts < 0).sum()), _count_pairs(simplified, scripts, scheme))


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
