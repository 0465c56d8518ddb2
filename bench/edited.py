"""
What presets find of copies that editors, scanners and agencies changed, by kind of change.

    python bench/edited.py DATA_FOLDER [--sets laws_tw,reuters21578,xwlb_zh] [--copies 100]

Of documents drawn at random one copy each is made, so many of each kind. Recall: the share of copies that the preset
takes for near-duplicates of their original. "Other numbers" is another edition and no copy: its share is what a preset
merges wrongly, and is in no total. Prints JSON.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from math import ceil
from pathlib import Path
from random import Random

import numpy as np
from harness import arguments, show
from numpy.typing import NDArray
from sets import read_set

from es_simhash.hashing import fingerprint_array
from es_simhash.quality.edits import EDITS, Edit, date, typo
from es_simhash.texts.measures import PRESETS, Numbers, Preset, compare_pairs

SHORTEST = 200
_SHORTEST = 20
_SENTENCE = re.compile(r"[^。！？!?\n]*?(?:[。！？!?]+|\.(?=\s|$)|\n+)|.+$", re.DOTALL)
_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]")
_NUMBER = re.compile(r"\d+")
_WORD = r"[\u3400-\u4dbf\u4e00-\u9fff]{2}|[^\W\d_\u3400-\u9fff]+"
NUMBERS = "other numbers"


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


def _is_han(text: str) -> bool:
    return len(_HAN.findall(text)) * 4 > len(text)


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


REVISIONS: dict[str, Edit] = {
    "15 % cut": partial(passage_cut, share=0.15),
    "25 % cut": partial(passage_cut, share=0.25),
    "introduction": introduction,
    "sentences rewritten": rewriting,
}
"""What editors change in a text that stays the same text for them."""


def several(text: str, chance: Random) -> str | None:
    """An agency's line, a typing error, another date, and a passage cut: what really happens to one text."""
    for edit in (REVISIONS["15 % cut"], typo, date, EDITS["boilerplate before"]):
        text = edit(text, chance) or text
    return text


KINDS: dict[str, Edit] = {
    "agency line": EDITS["boilerplate before"],
    "line added": EDITS["boilerplate after"],
    "typing error": typo,
    "one number": date,
    "sentences exchanged": EDITS["sentence reordering"],
    **REVISIONS,
    "OCR 2 %": wrong_letters,
    "OCR 5 %": partial(wrong_letters, share=0.05),
    "several": several,
    NUMBERS: other_numbers,
}

Pair = tuple[str, str]


def is_reported(pairs: Sequence[Pair], preset: Preset, numbers: Numbers = "any") -> NDArray[np.bool_]:
    """Return which pairs the preset takes for near-duplicates: near in bits, and alike by their texts."""
    texts = [text for pair in pairs for text in pair]
    values, known = fingerprint_array(texts)
    left = np.arange(0, len(texts), 2)
    near = known[left] & known[left + 1] & (np.bitwise_count(values[left] ^ values[left + 1]) <= preset.max_distance)
    scores = compare_pairs(texts, left, left + 1, measure=preset.text_measure(numbers), bound=preset.similarity)
    found: NDArray[np.bool_] = near & (scores >= preset.similarity)
    return found


def make_copies(texts: Sequence[str], kind: str, number: int) -> list[Pair]:
    """Return texts drawn at random, each with a copy changed in one way; those that it cannot change are left out."""
    chance = Random(3)
    able = [text for text in texts if len(text) >= SHORTEST]
    found: list[Pair] = []
    for text in chance.sample(able, len(able)):
        changed = KINDS[kind](text, chance)
        if changed is not None and changed != text:
            found.append((text, changed))
        if len(found) == number:
            break
    return found


def main() -> None:
    parser = arguments(__doc__, product=False)
    parser.add_argument("data", type=Path)
    parser.add_argument("--sets", default="laws_tw,reuters21578,xwlb_zh")
    parser.add_argument("--copies", type=int, default=100, help="of each kind")
    options = parser.parse_args()
    for name in options.sets.split(","):
        truth = read_set(options.data / name)
        copies = {kind: make_copies(truth.texts, kind, options.copies) for kind in KINDS}
        for preset in PRESETS.values():
            found = {kind: is_reported(pairs, preset) for kind, pairs in copies.items()}
            total = np.concatenate([reported for kind, reported in found.items() if kind != NUMBERS])
            by_kind = {kind: round(float(reported.mean()), 3) for kind, reported in found.items()}
            show(set=name, preset=preset.name, copies=round(float(total.mean()), 3), by_kind=by_kind)


if __name__ == "__main__":
    main()
