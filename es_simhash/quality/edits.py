"""Edits that are common in republished texts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from random import Random

Edit = Callable[[str, Random], str | None]
"""Returns the edited text, or ``None`` if the edit cannot apply."""
_SENTENCE = re.compile(r"[^。！？!?\n]*?(?:[。！？!?]+|\.(?=\s|$)|\n+)|.+$", re.DOTALL)
_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]")
_NUMBER = re.compile(r"\d+")
_SHORTEST = 20

_BEFORE = {
    True: ("本报讯 ", "【转载】来源：网络。", "编者按：以下内容来自合作媒体，不代表本站立场。\n"),
    False: ("UPDATE: ", "Reposted from our partner site. ", "By staff writer. All times local.\n"),
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


EDITS: dict[str, Edit] = {
    "typo": typo,
    "boilerplate before": boilerplate_before,
    "boilerplate after": boilerplate_after,
    "date": date,
    "truncation": truncation,
    "sentence reordering": sentence_reordering,
    "punctuation and width": punctuation_and_width,
}
"""The edits by the name of their kind."""


def edit_texts(texts: Sequence[str], seed: int) -> Iterator[tuple[int, str]]:
    """Yield for each of *texts* and each kind of edit that applies: the place, and the edited copy."""
    chance = Random(seed)
    for place, text in enumerate(texts):
        for edit in EDITS.values():
            changed = edit(text, chance)
            if changed is not None and changed != text:
                yield place, changed
