"""
The fingerprint speed of every scheme beside that of other libraries, with one process and two.

    python -m venv SCRATCH && SCRATCH/bin/pip install -e ".[fast]" -r bench/requirements.txt
    SCRATCH/bin/python bench/fingerprint.py DATA_FOLDER

Prints JSON. Everything runs in turn, on one core unless it says otherwise; the best of some rounds counts, and rounds
of ours and of the peers alternate. A peer that is not installed has null for figures: no ratio is made up. A machine
that does something else meanwhile blurs the ratios: the load before and after is in the report.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sets import read_documents

from es_simhash.hashing import fingerprints, get_scheme, segment
from es_simhash.hashing.pool import FingerprintPool

WORKERS_CHARACTERS = 10_000_000
MINHASH_PERMUTATIONS = 128
SCHEMES = ("shingles-3", "keywords-1")
# As many of the texts as the slow ones get, and a whole part of the batched work.
SOME = 100


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--sets", default="reuters21578,xwlb_zh")
    parser.add_argument("--documents", type=int, default=3_000, help="texts of each set")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    report: dict[str, Any] = {"command": " ".join(sys.argv), "load_before": os.getloadavg()[0]}
    texts = {
        name: [
            document["text"]
            for document in read_documents(options.data / name / "docs.jsonl.gz", most=options.documents)
        ]
        for name in options.sets.split(",")
    }
    report["texts"] = [measure_texts(name, each, options.rounds) for name, each in texts.items()]
    report["keywords"] = [measure_keywords(name, each, options.rounds) for name, each in texts.items()]
    report["workers"] = [measure_workers(name, each) for name, each in texts.items()]
    report["load_after"] = os.getloadavg()[0]
    print(json.dumps(report, indent=1))


def size(texts: list[str]) -> int:
    return sum(map(len, texts))


def best(works: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Return the seconds of the best of *rounds* of each work, taking turns."""
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            started = time.perf_counter()
            work()
            times[name].append(time.perf_counter() - started)
    return {name: min(each) for name, each in times.items()}


def measure_texts(name: str, texts: list[str], rounds: int) -> dict[str, object]:
    some = texts[:SOME]
    works: dict[str, Callable[[], object]] = {}
    for scheme in SCHEMES:
        fingerprints(some[:1], scheme=scheme)  # dictionaries are loaded once a process: no part of a rate
        works[scheme] = lambda scheme=scheme: fingerprints(texts, scheme=scheme)
    makers = {each: peer() for each, peer in PEERS.items()}
    works |= {each: lambda make=make: [make(text) for text in some] for each, make in makers.items() if make}
    speeds = {each: size(some if each in PEERS else texts) / took for each, took in best(works, rounds).items()}
    peer = speeds.get("1e0ng/simhash")
    return {
        "set": name,
        "documents": len(texts),
        "characters": size(texts),
        "characters_per_second": {each: round(speeds[each]) if each in speeds else None for each in (*works, *PEERS)},
        "times_1e0ng": {each: None if peer is None else round(speeds[each] / peer, 1) for each in SCHEMES},
    }


def optional(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        return None


def peer_simhash() -> Callable[[str], object] | None:
    module = optional("simhash")
    return module and (lambda text: module.Simhash(text).value)


def peer_datasketch() -> Callable[[str], object] | None:
    module = optional("datasketch")

    def make(text: str) -> object:
        # The same shingles as ours; datasketch hashes bytes.
        minhash = module.MinHash(num_perm=MINHASH_PERMUTATIONS)
        minhash.update_batch({text[at : at + 4].encode("utf-8", "surrogatepass") for at in range(len(text) - 3)})
        return minhash

    return module and make


def peer_gaoya() -> Callable[[str], object] | None:
    module = optional("gaoya.simhash")
    if module is None:
        return None
    # It offers no fingerprint alone: the figure has the insertion into its index in it.
    index = module.SimHashStringIndex(analyzer="char", ngram_range=(4, 4), lowercase=True)
    numbers = iter(range(sys.maxsize))
    return lambda text: index.insert_document(next(numbers), text)


PEERS: dict[str, Callable[[], Callable[[str], object] | None]] = {
    "1e0ng/simhash": peer_simhash,
    "datasketch MinHash(128)": peer_datasketch,
    "gaoya, inserted": peer_gaoya,
}


def measure_keywords(name: str, texts: list[str], rounds: int) -> dict[str, object]:
    """Compare ``keywords``, with jieba and with rjieba, with extract_tags and 1e0ng/simhash."""
    import jieba.analyse

    some = texts[:SOME]
    jieba.setLogLevel("CRITICAL")
    jieba.analyse.extract_tags(some[0])
    make = optional("simhash")
    loaded = segment.segmenter(get_scheme("keywords"))
    fast = loaded._fast  # noqa: SLF001 -- which segmenter works is nobody's choice but a benchmark's

    def ours(cutter: Any) -> Callable[[], object]:
        def work() -> None:
            loaded._fast = cutter  # noqa: SLF001
            try:
                fingerprints(some, scheme="keywords")
            finally:
                loaded._fast = fast  # noqa: SLF001

        return work

    works: dict[str, Callable[[], object]] = {"with jieba": ours(None)}
    if fast is not None:
        works["with rjieba"] = ours(fast)
    if make:
        works["peer"] = lambda: [
            make.Simhash(jieba.analyse.extract_tags(text, topK=20, withWeight=True)).value for text in some
        ]
    took = best(works, rounds)
    peer = took.get("peer")
    return {
        "set": name,
        "characters_per_second": {each: round(size(some) / seconds) for each, seconds in took.items()},
        "times_extract_tags_and_1e0ng": {
            each: None if peer is None else round(peer / took[each], 2) for each in works if each != "peer"
        },
    }


def measure_workers(name: str, texts: list[str]) -> dict[str, object]:
    """Compare two processes with one, both warm, on ``keywords``."""
    scheme = get_scheme("keywords")
    texts = texts * max(1, WORKERS_CHARACTERS // size(texts))
    parts = [texts[at : at + 100] for at in range(0, len(texts), 100)]
    speeds = {}
    for workers in (1, 2):
        with FingerprintPool(scheme, workers=workers) as pool:
            # One process takes several of these while it waits for none: all have their dictionary afterwards.
            for pending in [pool.submit(texts[:50]) for _ in range(50 * workers)]:
                pending()
            started = time.perf_counter()
            for pending in [pool.submit(part) for part in parts]:
                pending()
            speeds[workers] = size(texts) / (time.perf_counter() - started)
    return {
        "set": name,
        "characters_per_second": {f"{workers} workers": round(speed) for workers, speed in speeds.items()},
        "two_over_one": round(speeds[2] / speeds[1], 2),
    }


if __name__ == "__main__":
    main()
