"""
What presets find of copies that editors, scanners and agencies changed, by kind of change, and what they wrongly merge.

    python bench/edited.py DATA_FOLDER [--sets laws_tw,reuters21578,xwlb_zh] [--copies 1000] [--named 5]

A set is a folder with ``docs.jsonl.gz`` and ``pairs.tsv.gz``. Of documents drawn at random one copy each is made, the
kinds of change in turn; every copy is looked up among all documents. Recall: the share of copies whose original is
reported. "Other numbers" is another edition and no copy: its share is what a rule merges wrongly, and is in no total.

The hard negatives are the set's own: sister laws, weekly series, forms, all near in bits. Pairs of documents that a
way reports are counted by their known Jaccard similarity; those that are not known to be .5 similar are wrong, and
named. A pair whose texts differ in their numbers alone is counted as well. Prints JSON.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from noise import Way, find_candidates, known_similarity
from numpy.typing import NDArray
from quality import Truth, read_set

from es_simhash.groups.all_pairs import near_pairs
from es_simhash.hashing import fingerprint_array
from es_simhash.quality.edits import EDITS, Edit, date, typo
from es_simhash.texts.measures import PRESETS, compare_pairs

SETS = ("laws_tw", "reuters21578", "xwlb_zh")
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

WAYS = tuple(Way(each.name, each.max_distance, each.similarity, each.text_measure()) for each in PRESETS.values())


@dataclass(frozen=True)
class Copies:
    texts: list[str]
    kinds: list[str]
    originals: NDArray[np.int64]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("data", type=Path)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--copies", type=int, default=1_000)
    parser.add_argument("--named", type=int, default=5, help="wrong pairs named for each way")
    options = parser.parse_args()
    results = []
    for name in options.sets.split(","):
        truth = read_set(options.data / name)
        values, known = fingerprint_array(truth.texts)
        copies = make_copies(truth.texts, options.copies)
        candidates = find_candidates(copies.texts, values, known)
        own = own_pairs(values, known)
        for way in WAYS:
            found = {**recall(truth, copies, candidates, way), "pairs": judge_pairs(truth, own, way, options.named)}
            results.append({"set": name, "way": way.name, **found})
            print(json.dumps(results[-1], ensure_ascii=False), file=sys.stderr, flush=True)
    print(json.dumps(results, indent=1, ensure_ascii=False))


def make_copies(texts: Sequence[str], number: int) -> Copies:
    """Return copies of documents drawn at random, the kinds of change in turn; a text that none applies to is left."""
    able = [place for place, text in enumerate(texts) if len(text) >= SHORTEST]
    chance = Random(3)
    found: list[tuple[str, str, int]] = []
    for place in chance.sample(able, len(able)):
        if len(found) == number:
            break
        kind = list(KINDS)[len(found) % len(KINDS)]
        changed = KINDS[kind](texts[place], chance)
        if changed is not None and changed != texts[place]:
            found.append((changed, kind, place))
    changed_texts, kinds, places = zip(*found, strict=True)
    return Copies(list(changed_texts), list(kinds), np.array(places, np.int64))


def own_pairs(values: NDArray[np.uint64], known: NDArray[np.bool_]) -> tuple[NDArray[np.int64], ...]:
    """Return left, right and distance of the set's own pairs within the largest distance."""
    places = np.flatnonzero(known)
    found = [
        np.array([places[each.left], places[each.right], each.distance], np.int64)
        for each in near_pairs(values[places], max(way.max_distance for way in WAYS))
    ]
    left, right, distance = np.concatenate(found, axis=1)
    return np.minimum(left, right), np.maximum(left, right), distance


def recall(truth: Truth, copies: Copies, candidates: tuple[NDArray[np.int64], ...], way: Way) -> dict[str, Any]:
    near = candidates[2] <= way.max_distance
    left, right = candidates[0][near], candidates[1][near]
    scores, _ = compare_pairs(
        [*copies.texts, *truth.texts], left, len(copies.texts) + right, measure=way.measure, bound=way.similarity
    )
    kept = scores >= way.similarity
    is_found = np.zeros(len(copies.texts), np.bool_)
    is_found[left[kept & (copies.originals[left] == right)]] = True
    kinds = np.array(copies.kinds)
    wrong = known_similarity(truth, copies.originals[left[kept]], right[kept]) < 0.5
    return {
        "copies": round(float(is_found[kinds != NUMBERS].mean()), 3),
        "by_kind": {kind: round(float(is_found[kinds == kind].mean()), 3) for kind in KINDS},
        "wrong_of_lookups": int(wrong.sum()),
        "candidates": round(int(near.sum()) / len(copies.texts), 2),
    }


def judge_pairs(truth: Truth, own: tuple[NDArray[np.int64], ...], way: Way, named: int) -> dict[str, Any]:
    near = own[2] <= way.max_distance
    left, right, distance = (each[near] for each in own)
    scores, _ = compare_pairs(truth.texts, left, right, measure=way.measure, bound=way.similarity)
    kept = scores >= way.similarity
    left, right, distance, scores = (each[kept] for each in (left, right, distance, scores))
    known = known_similarity(truth, left, right)
    wrong = np.flatnonzero(known < 0.5)
    shown = Random(4).sample(wrong.tolist(), min(named, wrong.size))
    return {
        "reported": int(known.size),
        "from_0.8": int((known >= 0.8).sum()),
        "from_0.5": int(((known >= 0.5) & (known < 0.8)).sum()),
        "wrong": int(wrong.size),
        "named": [
            f"{truth.ids[left[at]]} {truth.ids[right[at]]}: {distance[at]} bits, {scores[at]:.2f}" for at in shown
        ],
    }


if __name__ == "__main__":
    main()
