"""
Grouping in memory: time and peak memory for random fingerprints with planted near-duplicates, next to a peer.

    python bench/grouping.py --documents 1000000 --distance 3 [--peer]

The peer, with --peer, is the index of 1e0ng/simhash (bench/requirements.txt). It holds Python objects: give it fewer.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from typing import Any

import numpy as np

from es_simhash.index.grouping.all_pairs import near_pairs
from es_simhash.index.grouping.assign import group_fingerprints


def planted(documents: int, distance: int) -> np.ndarray:
    """Return random fingerprints, a tenth of which are others with a few bits changed."""
    chance = np.random.default_rng(1)
    values = chance.integers(0, 2**64, documents, dtype=np.uint64)
    count = documents // 10
    values[-count:] = values[:count]
    for _ in range(distance):
        values[-count:] ^= np.uint64(1) << chance.integers(0, 64, count, dtype=np.uint64)
    chance.shuffle(values)
    return values


def measure(function: Any, *arguments: Any, **options: Any) -> tuple[float, Any]:
    """Return the seconds that a call takes, and its result."""
    started = time.perf_counter()
    result = function(*arguments, **options)
    return time.perf_counter() - started, result


def peer_seconds(values: np.ndarray, distance: int) -> dict[str, Any]:
    """Return what the index of 1e0ng/simhash takes to insert all fingerprints and to look each up."""
    from simhash import Simhash, SimhashIndex

    def run() -> int:
        objects = [(str(number), Simhash(value)) for number, value in enumerate(values.tolist())]
        index = SimhashIndex(objects, k=distance)
        return sum(len(index.get_near_dups(each)) - 1 for _, each in objects) // 2

    seconds, found = measure(run)
    return {"peer": "1e0ng/simhash", "seconds": seconds, "pairs": found}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--distance", type=int, default=3)
    parser.add_argument("--peer", action="store_true")
    options = parser.parse_args()
    values = planted(options.documents, options.distance)
    report: dict[str, Any] = {"documents": options.documents, "distance": options.distance}
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    report["pairs_seconds"], report["pairs"] = measure(
        lambda: sum(len(found) for found in near_pairs(np.unique(values), options.distance))
    )
    for rule in ("star", "connected"):
        seconds, canonical = measure(group_fingerprints, values, options.distance, rule=rule)
        report[f"{rule}_seconds"] = seconds
        report[f"{rule}_groups"] = len(np.unique(canonical))
    report["peak_mebibytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    report["mebibytes_before"] = before // 1024
    if options.peer:
        peer = peer_seconds(values, options.distance)
        report["peer"] = peer
        report["times_faster"] = peer["seconds"] / report["pairs_seconds"]
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
