"""
Ingest with tags into an index that is full already: by asking the server, by its fingerprints in memory, and without.

    python bench/memory.py --product opensearch --documents 1000000 --new 100000 --distances 3 8

The index is filled with random fingerprints. The new documents are made of random words, and a fifth of them are copies
of one before with one word changed. In each round, each way ingests as many documents; what "memory" takes includes
reading the fingerprints. Ratios to the first way, from one run: of documents a second, and of processor time.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from statistics import median
from typing import Any

import psutil
from dedup import fill

from es_simhash import SimHashClient
from es_simhash.servers import embedded_server

WAYS: dict[str, dict[str, Any]] = {
    "none": {"on_duplicate": None},
    "server": {"lookups": "server"},
    "memory": {"lookups": "memory"},
    "auto": {"lookups": "auto"},
}


def connect(product: str, url: str) -> tuple[Any, Any]:
    if product == "opensearch":
        import opensearchpy

        return opensearchpy.OpenSearch([url], timeout=120, pool_maxsize=4), opensearchpy.helpers
    import elasticsearch
    import elasticsearch.helpers

    return elasticsearch.Elasticsearch([url], request_timeout=120), elasticsearch.helpers


def texts(most: int, seed: int) -> Iterator[str]:
    chance = random.Random(seed)
    words = [f"{chance.getrandbits(32):x}" for _ in range(20_000)]
    recent: list[list[str]] = []
    for _ in range(most):
        if recent and chance.random() < 0.2:
            text = list(chance.choice(recent))
            text[chance.randrange(len(text))] = chance.choice(words)
        else:
            text = chance.choices(words, k=60)
        recent = [*recent[-500:], text]
        yield " ".join(text)


def measured(work: Callable[[], Any], server: psutil.Process) -> dict[str, float]:
    """Return elapsed seconds, and those of the processor, here and in the server."""

    def spent() -> float:
        return sum(sum(each.cpu_times()[:2]) for each in (server, *server.children(recursive=True)))

    started, here, there = time.perf_counter(), time.process_time(), spent()
    work()
    return {
        "seconds": time.perf_counter() - started,
        "here": time.process_time() - here,
        "server": spent() - there,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--product", choices=["opensearch", "elasticsearch"], default="opensearch")
    parser.add_argument("--documents", type=int, default=1_000_000, help="in the index before")
    parser.add_argument("--new", type=int, default=100_000, help="ingested by each way in each round")
    parser.add_argument("--distances", type=int, nargs="+", default=[3, 8])
    parser.add_argument("--ways", nargs="+", choices=list(WAYS), default=["none", "server", "memory"])
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--verify", action="store_true", help="compare texts too, as an ingest does by default")
    parser.add_argument("--heap", default="2g")
    options = parser.parse_args()
    report: dict[str, Any] = {**vars(options), "found": []}
    with embedded_server(options.product, heap=options.heap) as server:
        client, helpers = connect(options.product, server.url)
        process = psutil.Process(server.pid)
        simhash = SimHashClient(client)
        for distance in options.distances:
            index = f"bench-{distance}"
            simhash.create_index(index, text_field="body", settings={"number_of_shards": 1, "number_of_replicas": 0})
            fill(client, helpers, index, options.documents)
            runs: dict[str, list[dict[str, float]]] = {way: [] for way in options.ways}
            for number in range(-1, options.rounds):
                for place, way in enumerate(options.ways):
                    most = 1_000 if number < 0 else options.new
                    name = f"{way}{number}-"
                    made = enumerate(texts(most, 10 * number + place))
                    documents = [{"_id": f"{name}{n}", "body": text} for n, text in made]
                    arguments = dict(WAYS[way])
                    if way != "none":
                        arguments |= {"max_distance": distance, "verify": options.verify}
                    reports = simhash.ingest(index, documents, **arguments)
                    found = measured(partial(deque, reports, 0), process)
                    if number >= 0:
                        runs[way].append(found)
            report["found"].append({"distance": distance, "runs": runs, "ratios": ratios(runs)})
            client.indices.delete(index=index)
        client.close()
    print(json.dumps(report, indent=2))


def ratios(runs: dict[str, list[dict[str, float]]]) -> dict[str, Any]:
    """Return of each way the rate, and the processor time, as a share or multiple of the first way's."""
    first, *others = runs
    found = {}
    for way in others:
        rates = [one["seconds"] / other["seconds"] for one, other in zip(runs[first], runs[way], strict=True)]
        work = [
            (other["here"] + other["server"]) / (one["here"] + one["server"])
            for one, other in zip(runs[first], runs[way], strict=True)
        ]
        found[way] = {"rate": median(rates), "processor_time": median(work), "rates": rates}
    return found


if __name__ == "__main__":
    main()
