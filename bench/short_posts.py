"""
What finds edited copies of short posts: presets, shorter shingles, edits, and posts of the same time only.

    python bench/short_posts.py DATA_FOLDER/weibo_ced [--copies 1000]

Copies of posts of 10 to 49 characters are edited: one or two characters replaced, two characters left out, or four
added. Each is looked up among all posts. Recall: the share of copies whose original is reported. Alike: of the other
posts reported, the share that the truth calls similar to the original, from 0.6. Candidates: posts within the distance.
The set has no dates; posts about one event (``ev``) stand for those of one window of time. Prints JSON.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from noise import known_similarity
from quality import read_set

from es_simhash.hashing import Scheme, fingerprint_array, get_scheme
from es_simhash.texts.measures import WORD_SHINGLES, TextMeasure, compare_pairs

LETTERS, RUNS = TextMeasure("edit", "characters"), TextMeasure("jaccard", "characters")
USUAL, SHORTER = get_scheme("shingles"), get_scheme("shingles", size=2)


@dataclass(frozen=True)
class Way:
    """A scheme, a distance and a verification; perhaps only among posts of the same time."""

    name: str
    scheme: Scheme
    max_distance: int
    similarity: float
    measure: TextMeasure
    is_windowed: bool = False


WAYS = (
    Way("similar", USUAL, 12, 0.8, WORD_SHINGLES),
    Way("words .5, 16 bits", USUAL, 16, 0.5, WORD_SHINGLES),
    Way("characters jaccard .7, 12 bits", USUAL, 12, 0.7, RUNS),
    Way("characters jaccard .6, 16 bits", USUAL, 16, 0.6, RUNS),
    Way("noisy", USUAL, 16, 0.9, LETTERS),
    Way("edit .8, 12 bits", USUAL, 12, 0.8, LETTERS),
    Way("edit .8, 16 bits", USUAL, 16, 0.8, LETTERS),
    Way("edit .8, 16 bits, same time", USUAL, 16, 0.8, LETTERS, is_windowed=True),
    Way("edit .8, 12 bits, shorter shingle", SHORTER, 12, 0.8, LETTERS),
    Way("edit .8, 16 bits, shorter shingle", SHORTER, 16, 0.8, LETTERS),
)


def replaced(number: int) -> Callable[[str, Random], str]:
    def edit(text: str, chance: Random) -> str:
        letters = list(text)
        for at in chance.sample([at for at, letter in enumerate(text) if letter.isalnum()], number):
            letters[at] = chance.choice("的一是了我不在人有他")
        return "".join(letters)

    return edit


def shortened(text: str, chance: Random) -> str:
    at = chance.randrange(len(text) - 2)
    return text[:at] + text[at + 2 :]


EDITS: dict[str, Callable[[str, Random], str]] = {
    "one replaced": replaced(1),
    "two replaced": replaced(2),
    "two left out": shortened,
    "four added": lambda text, _: text + "转发微博",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("data", type=Path)
    parser.add_argument("--copies", type=int, default=1_000)
    options = parser.parse_args()
    truth = read_set(options.data)
    with gzip.open(options.data / "docs.jsonl.gz", "rt", encoding="utf-8") as lines:
        events = [json.loads(line).get("ev", "") for line in lines]
    times = np.unique(events, return_inverse=True)[1]
    able = [n for n, text in enumerate(truth.texts) if 10 <= len(text) < 50 and sum(map(str.isalnum, text)) >= 8]
    able = [n for n in able if events[n]]
    originals = np.array(Random(1).sample(able, options.copies), np.int64)
    values = {scheme: fingerprint_array(truth.texts, scheme=scheme) for scheme in (USUAL, SHORTER)}
    results = []
    for kind, edit in EDITS.items():
        chance = Random(2)
        copies = [edit(truth.texts[place], chance) for place in originals]
        for way in WAYS:
            stored, known = values[way.scheme]
            asked, _ = fingerprint_array(copies, scheme=way.scheme)
            pairs = []
            for number, value in enumerate(asked):
                near = known & (np.bitwise_count(stored ^ value) <= way.max_distance)
                if way.is_windowed:
                    near &= times == times[originals[number]]
                found = np.flatnonzero(near)
                pairs.append(np.stack([np.full(found.size, number), found]))
            left, right = np.concatenate(pairs, axis=1)
            results.append({"edit": kind, "way": way.name, "candidates": round(left.size / len(copies), 1)})
            scores, _ = compare_pairs(
                [*copies, *truth.texts], left, len(copies) + right, measure=way.measure, bound=way.similarity
            )
            kept = scores >= way.similarity
            results[-1] |= judge(truth, originals[left[kept]], right[kept], len(copies))
            print(json.dumps(results[-1]), flush=True)


def judge(truth: Any, originals: Any, reported: Any, count: int) -> dict[str, Any]:
    is_own = originals == reported
    others = known_similarity(truth, originals[~is_own], reported[~is_own])
    return {
        "recall": round(int(is_own.sum()) / count, 4),
        "others": int(others.size),
        "alike": round(float((others >= 0.6).mean()), 4) if others.size else None,
    }


if __name__ == "__main__":
    main()
