"""
Recall and precision on sets with exact truth, next to peers on the same texts in the same run.

    pip install -r bench/requirements.txt
    python bench/quality.py DATA_FOLDER [--sets xwlb_zh,...] [--methods similar,minhash,...]

A set is a folder with ``docs.jsonl.gz`` and ``pairs.tsv.gz``. Methods: our presets (all pairs
compared, then verified); ``minhash`` (datasketch's MinHashLSH, 128 permutations, 0.8, over the truth's own shingles);
``simhash3`` (1e0ng/simhash at its defaults, k = 3). What the servers themselves offer is in ``textpeers.py``.

Prints JSON: recall and precision at Jaccard 0.8, the precision that forgives down to 0.7, documents a second to make
signatures (and insert them, where the peer does), and bytes a document.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sets import Truth, place_pairs, read_set, score, shingler

from es_simhash.hashing import fingerprint_array
from es_simhash.texts.measures import PRESETS, Preset, compare_pairs

SETS = ("xwlb_zh", "laws_tw", "reuters21578", "licenses")
METHODS = ("similar", "near", "identical", "edited", "noisy", "minhash", "simhash3")

Result = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("data", type=Path)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--methods", default=",".join(METHODS))
    options = parser.parse_args()
    results = []
    for name in options.sets.split(","):
        truth = read_set(options.data / name)
        for method in options.methods.split(","):
            row = {"set": name, "method": method, **measure(method, truth)}
            results.append(row)
            print(json.dumps(row), file=sys.stderr, flush=True)
    print(json.dumps(results, indent=1))


def measure(method: str, truth: Truth) -> Result:
    if method in PRESETS:
        return measure_preset(method, truth)
    if method == "minhash":
        return measure_minhash(truth)
    return measure_simhash(truth, int(method[-1]))


def measure_preset(name: str, truth: Truth) -> Result:
    preset = PRESETS[name]
    (values, known), seconds = timed(lambda: fingerprint_array(truth.texts, scheme=preset.scheme))
    (near, kept), whole = timed(lambda: verified_pairs(truth, values, known, preset))
    return {
        **score(truth, kept),
        "before_verification": score(truth, near),
        "scheme": preset.scheme,
        "max_distance": preset.max_distance,
        "similarity": preset.similarity,
        **speed(truth, seconds, 8),
        "pairs_seconds": round(whole, 2),
    }


def verified_pairs(
    truth: Truth, values: NDArray[np.uint64], known: NDArray[np.bool_], preset: Preset
) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Return the pairs within the distance of *preset*, and those of them whose texts it takes for the same."""
    left, right = place_pairs(values, known, preset.max_distance)
    scores = compare_pairs(truth.texts, left, right, measure=preset.text_measure(), bound=preset.similarity)
    near = list(zip(left.tolist(), right.tolist(), strict=True))
    return near, [pair for pair, score in zip(near, scores, strict=True) if score >= preset.similarity]


def measure_minhash(truth: Truth) -> Result:
    from datasketch import MinHash, MinHashLSH

    cut = shingler(truth)
    index = MinHashLSH(threshold=0.8, num_perm=128)
    started = time.perf_counter()
    sketches = []
    for place, text in enumerate(truth.texts):
        sketch = MinHash(num_perm=128)
        sketch.update_batch([each.encode() for each in cut(text)])
        index.insert(place, sketch)
        sketches.append(sketch)
    seconds = time.perf_counter() - started
    pairs = (
        (place, other)
        for place, (text, sketch) in enumerate(zip(truth.texts, sketches, strict=True))
        if cut(text)  # all empty sketches are alike
        for other in index.query(sketch)
    )
    return {**score(truth, pairs), **speed(truth, seconds, 128 * 8)}


def measure_simhash(truth: Truth, distance: int) -> Result:
    from simhash import Simhash

    # Above its cutoff a weight multiplies an array of bytes, which NumPy 2 refuses for 256 and more (2.1.2, the latest
    # release); below it the feature is repeated, to the same sum.
    Simhash.large_weight_cutoff = 1 << 40
    values, seconds = timed(lambda: np.array([Simhash(text).value for text in truth.texts], np.uint64))
    # Its index looks up exactly what is within k bits, as this join does.
    pairs = place_pairs(values, np.ones(len(values), np.bool_), distance).T.tolist()
    return {**score(truth, pairs), **speed(truth, seconds, 8)}


def speed(truth: Truth, seconds: float, size: int) -> Result:
    return {
        "documents_a_second": round(len(truth.ids) / seconds),
        "characters_a_second": round(sum(map(len, truth.texts)) / seconds),
        "bytes_a_document": size,
    }


def timed(function: Callable[[], Any]) -> tuple[Any, float]:
    started = time.perf_counter()
    return function(), time.perf_counter() - started


if __name__ == "__main__":
    main()
