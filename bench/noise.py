"""
What the presets and other verifications find of copies with wrong letters, and how fast each measure compares.

    python bench/noise.py DATA_FOLDER [--sets reuters21578,xwlb_zh] [--copies 2000] [--rates 0.02,0.05]
    python bench/noise.py DATA_FOLDER --speed

A set is a folder with ``docs.jsonl.gz`` and ``pairs.tsv.gz``. Of documents drawn at random copies are made in which
each letter or digit is replaced, with the probability of the row, by one drawn from the texts. Every copy is
looked up among all documents. Recall: the share of copies whose original is reported. Precision: the share of reported
documents that are the original, or similar to it by the truth, from 0.8, or from 0.5. Candidates: documents within the
distance of a copy. The speed is that of preparing and comparing the candidates of copies with 2 % of wrong letters, in
CPU seconds; the ways take turns. Prints JSON.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray
from quality import Truth, read_set

from es_simhash.hashing import fingerprint_array
from es_simhash.texts.measures import PRESETS, TextMeasure, compare_pairs

RATES = (0.0, 0.01, 0.02, 0.05, 0.1)
SHORTEST = 50
MIDDLE, ROUNDS, COMPARED = 0.02, 5, 4_000


@dataclass(frozen=True)
class Way:
    """A distance and a verification."""

    name: str
    max_distance: int
    similarity: float
    measure: TextMeasure


WAYS = (
    *(Way(each.name, each.max_distance, each.similarity, each.text_measure()) for each in PRESETS.values()),
    Way("noisy within 12 bits", 12, 0.9, TextMeasure("edit", "characters")),
    Way("edit of characters .85", 16, 0.85, TextMeasure("edit", "characters")),
    Way("edit of words .8", 16, 0.8, TextMeasure("edit", "words")),
    Way("jaccard of characters .7", 16, 0.7, TextMeasure("jaccard", "characters")),
)

Copies = tuple[list[str], NDArray[np.int64]]
Candidates = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("data", type=Path)
    parser.add_argument("--sets", default="reuters21578,xwlb_zh")
    parser.add_argument("--copies", type=int, default=2_000)
    parser.add_argument("--rates", default=",".join(map(str, RATES)))
    parser.add_argument("--speed", action="store_true", help="how fast each measure is, instead of what is found")
    options = parser.parse_args()
    results = []
    for name in options.sets.split(","):
        truth = read_set(options.data / name)
        values, known = fingerprint_array(truth.texts)
        for rate in [MIDDLE] if options.speed else map(float, options.rates.split(",")):
            copies = make_copies(truth.texts, options.copies, rate)
            candidates = find_candidates(copies[0], values, known)
            if options.speed:
                results += [{"set": name, **each} for each in speeds(truth, copies, candidates)]
                continue
            for way in WAYS:
                row = {"set": name, "wrong": rate, "way": way.name, **judge(truth, copies, candidates, way)}
                results.append(row)
                print(json.dumps(row), file=sys.stderr, flush=True)
    print(json.dumps(results, indent=1))


def make_copies(texts: Sequence[str], number: int, rate: float) -> Copies:
    """Return copies with wrong letters, and the places of their originals; the same documents for every rate."""
    drawn = Random(1).sample([place for place, text in enumerate(texts) if len(text) >= SHORTEST], number)
    chance = Random(2)
    letters = [letter for place in drawn[:200] for letter in texts[place] if letter.isalnum()]

    def misread(text: str) -> str:
        return "".join(
            chance.choice(letters) if letter.isalnum() and chance.random() < rate else letter for letter in text
        )

    return [misread(texts[place]) for place in drawn], np.array(drawn, np.int64)


def find_candidates(copies: Sequence[str], values: NDArray[np.uint64], known: NDArray[np.bool_]) -> Candidates:
    """Return copy, document and distance of all pairs within the largest distance."""
    asked, _ = fingerprint_array(copies)
    found: list[tuple[NDArray[np.int64], ...]] = []
    for number, value in enumerate(asked):
        distance = np.bitwise_count(values ^ value)
        near = np.flatnonzero(known & (distance <= max(way.max_distance for way in WAYS)))
        found.append((np.full(near.size, number), near, distance[near].astype(np.int64)))
    left, right, distances = (np.concatenate(each) for each in zip(*found, strict=True))
    return left, right, distances


def judge(truth: Truth, copies: Copies, candidates: Candidates, way: Way) -> dict[str, Any]:
    texts, originals = copies
    near = candidates[2] <= way.max_distance
    left, right = candidates[0][near], candidates[1][near]
    scores, _ = compare_pairs(
        [*texts, *truth.texts], left, len(texts) + right, measure=way.measure, bound=way.similarity
    )
    left, right = left[scores >= way.similarity], right[scores >= way.similarity]
    known = known_similarity(truth, originals[left], right)
    return {
        "candidates": round(int(near.sum()) / len(texts), 2),
        "recall": round(int((originals[left] == right).sum()) / len(texts), 4),
        "precision": round(float((known >= 0.8).mean()), 4) if known.size else None,
        "precision_from_half": round(float((known >= 0.5).mean()), 4) if known.size else None,
        "reported": int(known.size),
    }


def known_similarity(truth: Truth, left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the known similarity of pairs of documents; 1 for a document and itself, 0 for a pair not listed."""
    listed = {
        (first, second): value
        for first, second, value in zip(truth.left.tolist(), truth.right.tolist(), truth.jaccard.tolist(), strict=True)
    }
    pairs = zip(np.minimum(left, right).tolist(), np.maximum(left, right).tolist(), strict=True)
    return np.array([1.0 if a == b else listed.get((a, b), 0.0) for a, b in pairs])


def speeds(truth: Truth, copies: Copies, candidates: Candidates) -> list[dict[str, Any]]:
    """Return how many documents a second each measure verifies."""
    texts, left, right = copies[0], candidates[0][:COMPARED], candidates[1][:COMPARED]
    ways = {str(way.measure): way for way in WAYS}
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, way in ways.items():
            started = time.process_time()
            compare_pairs([*texts, *truth.texts], left, len(texts) + right, measure=way.measure, bound=way.similarity)
            seconds[name].append(time.process_time() - started)
    pairs, documents = int(left.size), int(np.unique(left).size + np.unique(right).size)
    return [
        {"measure": name, "pairs": pairs, "documents": documents, "documents_a_second": round(documents / median(each))}
        for name, each in seconds.items()
    ]


if __name__ == "__main__":
    main()
