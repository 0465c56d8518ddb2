"""
Measure recall and precision of schemes by max_distance on the development sets; the default scheme was chosen by them.

    python bench/schemes.py DATA_FOLDER [--sets xwlb_zh,reuters21578] [--schemes shingles,shingles:size=3] [--limit N]

Prints JSON. Recall: the share of the pairs with shingle Jaccard >= 0.8 whose distance is at most max_distance.
Precision: the share of all pairs of the set within max_distance that have Jaccard >= 0.5. Every pair of documents is
compared, so both are exact; the truth is `pairs.tsv.gz` of each set.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
import time
from pathlib import Path

import numpy as np

from es_simhash.hashing import Scheme, fingerprint_array, get_scheme

SETS = ("xwlb_zh", "laws_tw", "reuters21578", "licenses")
SCHEMES = (
    "shingles",
    "shingles:size=3",
    "shingles:size=5",
    "shingles:size=6",
    "shingles:weighting=set",
    "shingles:weighting=linear",
    "keywords",
)
DISTANCES = (3, 5, 8, 10, 12)
ROWS = 128


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("data", type=Path)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--schemes", default=",".join(SCHEMES))
    parser.add_argument("--limit", type=int, default=None, help="documents of each set")
    options = parser.parse_args()
    results = []
    for name in options.sets.split(","):
        ids, texts = read_documents(options.data / name, options.limit)
        truth = read_pairs(options.data / name, {identifier: place for place, identifier in enumerate(ids)})
        for spelling in options.schemes.split(","):
            started = time.perf_counter()
            values, known = fingerprint_array(texts, scheme=parse_scheme(spelling))
            seconds = time.perf_counter() - started
            result = {"set": name, "scheme": spelling, "documents": len(ids), "without": int((~known).sum())}
            result |= {"characters_per_second": round(sum(map(len, texts)) / seconds)}
            result |= measure(values, known, truth)
            results.append(result)
            print(json.dumps(result), file=sys.stderr)
    print(json.dumps(results, indent=1))


def parse_scheme(spelling: str) -> Scheme:
    name, *settings = spelling.split(":")
    pairs = (setting.split("=") for setting in settings)
    return get_scheme(name, **{key: int(value) if value.isdigit() else value for key, value in pairs})


def read_documents(folder: Path, limit: int | None) -> tuple[list[str], list[str]]:
    ids, texts = [], []
    with gzip.open(folder / "docs.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            document = json.loads(line)
            ids.append(document["id"])
            texts.append(document["text"])
            if len(ids) == limit:
                break
    return ids, texts


def read_pairs(folder: Path, places: dict[str, int]) -> list[tuple[int, int, float]]:
    with gzip.open(folder / "pairs.tsv.gz", "rt", encoding="utf-8") as lines:
        next(lines)
        rows = (line.split("\t") for line in lines)
        return [
            (*sorted((places[first], places[second])), float(jaccard))
            for first, second, jaccard, *_ in rows
            if first in places and second in places
        ]


def measure(values: np.ndarray, known: np.ndarray, truth: list[tuple[int, int, float]]) -> dict[str, dict[str, float]]:
    left, right = (np.array([pair[side] for pair in truth], np.int64) for side in (0, 1))
    jaccard = np.array([pair[2] for pair in truth])
    distances = np.bitwise_count(values[left] ^ values[right])
    distances[~(known[left] & known[right])] = 255
    positive, right_at_all = jaccard >= 0.8, jaccard >= 0.5
    reported = count_pairs(values[known])
    return {
        "recall": {str(k): round(float((distances[positive] <= k).mean()), 4) for k in DISTANCES},
        "precision": {
            str(k): round(int((distances[right_at_all] <= k).sum()) / max(1, int(reported[: k + 1].sum())), 4)
            for k in DISTANCES
        },
    }


def count_pairs(values: np.ndarray) -> np.ndarray:
    counts = np.zeros(256, np.int64)
    for row in range(0, values.size, ROWS):
        block = values[row : row + ROWS]
        table = np.bitwise_count(block[:, None] ^ values[None, row:])
        inside = table[:, : block.size]
        counts += np.bincount(table[:, block.size :].ravel(), minlength=256)
        counts += np.bincount(inside[np.triu_indices(block.size, 1)], minlength=256)
    return counts


if __name__ == "__main__":
    main()
