"""
Reconcile on a server: the time of comparing texts.

    python bench/grouping.py --product opensearch --documents 4000 --distance 12 --rounds 7 --texts reuters21578

A dry run of reconcile that compares texts, against one that goes by the distance alone: the seconds of both, in turns,
and the median ratio of a round. A sixth of the documents are copies. With --url a running server is used, else one is
started. Groups in memory are measured by bench/pairs.py.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from dedup import connect, read_texts

from es_simhash import SimHashClient
from es_simhash.servers import embedded_server

WAYS = {"verified": True, "by_distance": False}


def measure(function: Any, *arguments: Any, **options: Any) -> tuple[float, Any]:
    """Return the seconds that a call takes, and its result."""
    started = time.perf_counter()
    result = function(*arguments, **options)
    return time.perf_counter() - started, result


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
    parser.add_argument("--documents", type=int, default=4_000)
    parser.add_argument("--distance", type=int, default=12)
    parser.add_argument("--product", choices=["opensearch", "elasticsearch"], default="opensearch")
    parser.add_argument("--url")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--texts", default="reuters21578")
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[2] / "shared" / "data")
    options = parser.parse_args()
    print(json.dumps(compare_reconciles(options), indent=2))


if __name__ == "__main__":
    main()
