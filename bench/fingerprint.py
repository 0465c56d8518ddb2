"""
Characters a second of each scheme against 1e0ng/simhash, and fingerprints a second of 20 weighted features.

    python bench/fingerprint.py DATA_FOLDER [--sets reuters21578,xwlb_zh] [--documents 3000] [--rounds 3]

Prints JSON. Everything runs on one core, in turn, in one process; the best round counts. The peer (`pip install
simhash`) is measured when it is installed, and its figures are null when it is not: no ratio is made up.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import xxhash

from es_simhash.hashing import fingerprints, get_scheme, simhash, simhashes

FEATURES = 20
ROWS = 50_000
SCHEMES = ("shingles-1", "words", "keywords")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("data", type=Path)
    parser.add_argument("--sets", default="reuters21578,xwlb_zh")
    parser.add_argument("--documents", type=int, default=3000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    report = {"load_before": os.getloadavg()[0], "texts": [], "features": measure_features(options.rounds)}
    report["texts"] = [
        measure_texts(name, read_texts(options.data / name, options.documents), options.rounds)
        for name in options.sets.split(",")
    ]
    report["load_after"] = os.getloadavg()[0]
    print(json.dumps(report, indent=1))


def read_texts(folder: Path, count: int) -> list[str]:
    with gzip.open(folder / "docs.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line)["text"] for line, _ in zip(lines, range(count), strict=False)]


def measure_texts(name: str, texts: list[str], rounds: int) -> dict[str, object]:
    characters = sum(map(len, texts))
    peer_texts = texts[: max(1, len(texts) // 10)]
    peer = peer_speed(peer_texts, rounds)
    speeds = {}
    for scheme in SCHEMES:
        some = peer_texts if scheme == "keywords" else texts
        resolved = get_scheme(scheme)
        fingerprints(some[:1], scheme=resolved)  # dictionaries are loaded once a process: not part of a rate
        seconds = best(lambda some=some, scheme=resolved: fingerprints(some, scheme=scheme), rounds)
        speed = sum(map(len, some)) / seconds
        speeds[scheme] = {
            "characters_per_second": round(speed),
            "times_1e0ng": None if peer is None else round(speed / peer, 2),
        }
    whole = "".join(texts).encode("utf-32-le", "surrogatepass")
    return {
        "set": name,
        "documents": len(texts),
        "characters": characters,
        "1e0ng_characters_per_second": None if peer is None else round(peer),
        "schemes": speeds,
        "copy_characters_per_second": round(characters / best(lambda: bytearray(whole), rounds)),
        "hash_alone_characters_per_second": round(characters / best(lambda: hash_each(whole), 1)),
    }


def hash_each(data: bytes) -> None:
    """Hash each window of four characters by one library call: what hashing costs without arrays."""
    digest = xxhash.xxh3_64_intdigest
    for at in range(0, len(data) - 12, 4):
        digest(data[at : at + 16])


def measure_features(rounds: int) -> dict[str, object]:
    random = np.random.default_rng(1)
    hashes = random.integers(0, 2**64, (ROWS, FEATURES), dtype=np.uint64)
    weights = random.uniform(0.1, 12.0, (ROWS, FEATURES))
    seconds = best(lambda: simhashes(hashes, weights), rounds)
    single = hashes[:500].tolist(), weights[:500].tolist()
    one_by_one = best(lambda: [simhash(*row) for row in zip(*single, strict=True)], rounds)
    return {
        "features": FEATURES,
        "batched_per_second": round(ROWS / seconds),
        "one_by_one_per_second": round(500 / one_by_one),
    }


def peer_speed(texts: list[str], rounds: int) -> float | None:
    try:
        from simhash import Simhash
    except ImportError:
        return None
    return sum(map(len, texts)) / best(lambda: [Simhash(text).value for text in texts], rounds)


def best(work: Callable[[], object], rounds: int) -> float:
    times = []
    for _ in range(rounds):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return min(times)


if __name__ == "__main__":
    main()
