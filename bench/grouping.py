"""
Grouping in memory: time and peak memory for random fingerprints with planted near-duplicates, next to a peer.

    python bench/grouping.py --documents 1000000 --distance 3 [--peer]

The peer, with --peer, is the index of 1e0ng/simhash (bench/requirements.txt). It holds Python objects: give it fewer.

    python bench/grouping.py --product opensearch --documents 4000 --distance 12 --rounds 7 --texts reuters21578

With --product, a dry run of reconcile on a server that compares texts, against one that goes by the distance alone: the
seconds of both, in turns, and the median ratio of a round. A sixth of the documents are copies. With --url a running
server is used, else one is started.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
from dedup import connect, read_texts

from es_simhash import SimHashClient
from es_simhash.index.grouping.all_pairs import near_pairs
from es_simhash.index.grouping.assign import group_fingerprints
from es_simhash.servers import embedded_server

WAYS = {"verified": True, "by_distance": False}


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


def compare_reconciles(options: argparse.Namespace) -> dict[str, Any]:
    """Return the seconds of dry runs of reconcile that compare texts, and of those that do not, and the ratio."""
    texts = read_texts(options.data, options.texts, options.documents)
    index, seconds = "bench-reconcile", {way: [] for way in WAYS}
    report: dict[str, Any] = {"product": options.product, "texts": options.texts, "documents": len(texts)}
    running = nullcontext() if options.url else embedded_server(options.product, heap="1g")
    with running as server:
        client, helpers = connect(options.product, options.url or server.url)
        simhash = SimHashClient(client)
        try:
            simhash.create_index(index, text_field="body", settings={"number_of_shards": 1, "number_of_replicas": 0})
            documents = ({"_id": str(n), "body": text} for n, text in enumerate(texts))
            helpers.bulk(client, simhash.with_fingerprints(index, documents), index=index, refresh=True)
            for number in range(options.rounds + 1):
                for way in sorted(WAYS, reverse=bool(number % 2)):
                    taken, found = measure(
                        simhash.reconcile, index, max_distance=options.distance, verify=WAYS[way], dry_run=True
                    )
                    report[f"{way}_duplicates"] = found.duplicates
                    if number:  # the first round warms both
                        seconds[way].append(taken)
        finally:
            client.indices.delete(index=index, ignore_unavailable=True)
            client.close()
    ratios = [one / other for one, other in zip(seconds["verified"], seconds["by_distance"], strict=True)]
    report["seconds"] = {way: round(statistics.median(found), 2) for way, found in seconds.items()}
    report["ratio"] = {"median": statistics.median(ratios), "least": min(ratios), "most": max(ratios)}
    return report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--distance", type=int, default=3)
    parser.add_argument("--peer", action="store_true")
    parser.add_argument("--product", choices=["opensearch", "elasticsearch"])
    parser.add_argument("--url")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--texts", default="reuters21578")
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[2] / "shared" / "data")
    options = parser.parse_args()
    if options.product:
        print(json.dumps(compare_reconciles(options), indent=2))
        return
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
