"""
All pairs within a distance, and groups, in memory: time, processor time and peak memory, next to other ways.

    python bench/pairs.py                              1 and 10 million within 3 bits, 1 and 10 million within 8
    python bench/pairs.py --documents 1e6 --distance 3 --peers
    python bench/pairs.py --documents 3e6 --index

The fingerprints are random, and a tenth of them are others with a few bits changed. Each measurement has a process of
its own, whose peak memory is reported; the fingerprints themselves are 8 bytes each of it. --peers measures faiss and
1e0ng/simhash (bench/requirements.txt) with at most 1 million and 200,000 fingerprints, and this library with as many.
--index measures what pairs, reconcile, and reconcile with texts keep of an index of so many documents, without a
server. --way large_group measures a group of so many different fingerprints, --way lookups the table that lookups in
memory use: filling it, its bytes, and 100,000 lookups, of which a fifth are near one.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from es_simhash.lookup.fingerprint_table import FingerprintTable
from es_simhash.lookup.index_table import PAGE

OURS = ("pairs", "star")
INDEX = ("index_pairs", "index_groups", "index_candidates")
# Fingerprints, distance, and what is measured.
DEFAULT = [(10**6, 3, OURS), (10**7, 3, OURS), (10**6, 8, OURS), (10**7, 8, ("pairs",))]
# Most fingerprints that a peer is given: the index of 1e0ng/simhash holds Python objects.
PEERS = {"faiss": 10**6, "simhash": 200_000}


def planted(documents: int, distance: int) -> np.ndarray:
    """Return random fingerprints, a tenth of which are others with a few bits changed."""
    chance = np.random.default_rng(1)
    values = chance.integers(0, 2**64, documents, dtype=np.uint64)
    count = documents // 10
    values[-count:] = values[:count]
    for _ in range(distance):
        values[-count:] ^= np.uint64(1) << chance.integers(0, 64, count, dtype=np.uint64)
    # So that those that belong together are not at the same distance in the array.
    values[-count:] = values[-count:][chance.permutation(count)]
    return values


def pairs(values: np.ndarray, distance: int) -> int:
    from es_simhash.groups.all_pairs import distinct_pairs

    return sum(len(left) for left, _ in distinct_pairs(np.unique(values), distance))


def star(values: np.ndarray, distance: int) -> int:
    from es_simhash.groups.assign import Documents, group_documents

    return int((group_documents(Documents(values), distance) == np.arange(len(values))).sum())


def table(values: np.ndarray, distance: int) -> Any:
    """Return what is kept of the documents of an index with these fingerprints."""
    from es_simhash.groups.table import Table
    from es_simhash.mapping.rule import Grouping

    found = Table("simhash", Grouping(max_distance=distance))
    for first in range(0, len(values), 5_000):
        digits = [f"{value:016x}" for value in values[first : first + 5_000].tolist()]
        found.add(
            [
                {
                    "_id": f"d{place:09}",
                    "_index": "news",
                    "fields": {"simhash.fingerprint": [each], "simhash.group": [f"d{place:09}"]},
                }
                for place, each in enumerate(digits, first)
            ]
        )
    return found


def index_pairs(values: np.ndarray, distance: int) -> int:
    return sum(len(left) for left, _, _ in table(values, distance).pairs())


def index_groups(values: np.ndarray, distance: int) -> int:
    return len(values) - len(table(values, distance).group().duplicates)


def index_candidates(values: np.ndarray, distance: int) -> int:
    """What comes before texts are read: which documents may have a neighbour."""
    return len(table(values, distance).with_candidates())


def large_group(values: np.ndarray, distance: int) -> int:
    """Return how many groups as many different fingerprints near one are; up to 5 bits of each are changed."""
    chance = np.random.default_rng(2)
    members = np.full(len(values), values[0])
    for _ in range(5):
        members ^= np.uint64(1) << chance.integers(0, 64, len(members), dtype=np.uint64)
    return star(members, distance)


def lookups(values: np.ndarray, distance: int) -> dict[str, float]:
    """Return what filling the table of lookups takes, its bytes, and what a lookup takes."""
    chance, started, filled = np.random.default_rng(distance), time.perf_counter(), FingerprintTable(distance)
    for first in range(0, len(values), PAGE):
        filled.add(values[first : first + PAGE])
    filling = time.perf_counter() - started
    asked = chance.integers(0, 2**64, 100_000, dtype=np.uint64)
    asked[::5] = chance.choice(values, len(asked[::5])) ^ np.uint64(5)
    filled.near(asked[:1])
    started = time.perf_counter()
    for first in range(0, len(asked), 1_000):
        filled.near(asked[first : first + 1_000])
    micros = (time.perf_counter() - started) / len(asked) * 1e6
    return {"filling_seconds": filling, "bytes_each": filled.nbytes / len(values), "microseconds_a_lookup": micros}


def faiss(values: np.ndarray, distance: int) -> int:
    """Multi-index hashing over distance + 1 blocks, which is exact where at most distance bits differ."""
    import faiss

    rows = values.view(np.uint8).reshape(-1, 8)
    index = faiss.IndexBinaryMultiHash(64, distance + 1, 64 // (distance + 1))
    index.add(rows)
    found = 0
    for begin in range(0, len(rows), 100_000):
        # Its range is exclusive; each fingerprint finds itself.
        limits, _, _ = index.range_search(rows[begin : begin + 100_000], distance + 1)
        found += int(limits[-1])
    return (found - len(rows)) // 2


def simhash(values: np.ndarray, distance: int) -> int:
    """The index of 1e0ng/simhash: all fingerprints are inserted, then each is looked up."""
    from simhash import Simhash, SimhashIndex

    objects = [(str(number), Simhash(value)) for number, value in enumerate(values.tolist())]
    index = SimhashIndex(objects, k=distance)
    return sum(len(index.get_near_dups(each)) - 1 for _, each in objects) // 2


WAYS: dict[str, Callable[[np.ndarray, int], Any]] = {
    "pairs": pairs,
    "star": star,
    "index_pairs": index_pairs,
    "index_groups": index_groups,
    "index_candidates": index_candidates,
    "large_group": large_group,
    "lookups": lookups,
    "faiss": faiss,
    "simhash": simhash,
}


def measure(way: str, documents: int, distance: int) -> dict[str, Any]:
    """Measure in this process."""
    import resource

    values = planted(documents, distance)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    started, processor = time.perf_counter(), time.process_time()
    found = WAYS[way](values, distance)
    return {
        "seconds": round(time.perf_counter() - started, 2),
        "processor_seconds": round(time.process_time() - processor, 2),
        "found": found,
        "peak_mebibytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "mebibytes_before": before,
    }


def measure_apart(way: str, documents: int, distance: int) -> dict[str, Any]:
    """Measure in a process of its own."""
    command = [sys.executable, __file__, "--way", way, "--documents", str(documents), "--distance", str(distance)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def compare(documents: int, distance: int, ways: Iterable[str], *, with_peers: bool) -> dict[str, Any]:
    """Return all measurements of so many fingerprints, and the ratios of others to ours."""
    report: dict[str, Any] = {"documents": documents, "distance": distance}
    for way in ways:
        report[way] = measure_apart(way, documents, distance)
    for peer, most in PEERS.items() if with_peers else ():
        size = min(documents, most)
        own = report["pairs"] if size == documents else measure_apart("pairs", size, distance)
        report[peer] = measure_apart(peer, size, distance) | {"documents": size}
        report[peer]["times_as_long"] = round(report[peer]["seconds"] / own["seconds"], 1)
        report[peer]["finds_the_same"] = report[peer]["found"] == own["found"]
    return report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=float, help="by default a list of sizes and distances")
    parser.add_argument("--distance", type=int, default=3)
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--index", action="store_true", help="measure what is kept of an index of so many documents")
    parser.add_argument("--way", choices=WAYS, help="measure this in this process")
    options = parser.parse_args()
    if options.way:
        print(json.dumps(measure(options.way, int(options.documents), options.distance)))
        return
    ways = INDEX if options.index else OURS
    sizes = DEFAULT if options.documents is None else [(int(options.documents), options.distance, ways)]
    for documents, distance, own in sizes:
        report = compare(documents, distance, own, with_peers=options.peers)
        print(json.dumps(report, indent=2), flush=True)


if __name__ == "__main__":
    main()
