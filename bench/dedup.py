"""
Ingest with ``tag`` into an index that is full already, against search-before-insert one at a time, and plain bulk.

    python bench/dedup.py --product opensearch --documents 1000000 --new 5000 --distance 3 --texts xwlb_zh

The index is filled with random fingerprints; the new documents are texts of a data set in --data (with edits, so that
some are duplicates; where the set is smaller it comes again, each text with a number). Ratios are of documents a
second, from one run; resident memory is that of this process at each tenth of the tagged documents.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import count, cycle, islice
from pathlib import Path
from typing import Any

import psutil

from es_simhash import SimHashClient, fingerprint_fields, with_fingerprints
from es_simhash.servers import embedded_server


def connect(product: str, url: str) -> tuple[Any, Any]:
    if product == "opensearch":
        from opensearchpy import OpenSearch as Client, helpers
    else:
        from elasticsearch import Elasticsearch as Client, helpers
    return Client([url]), helpers


def read_texts(folder: Path, name: str, most: int) -> list[str]:
    chance = random.Random(1)
    found: list[str] = []
    with gzip.open(folder / name / "docs.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            found.append(json.loads(line)["text"])
            if chance.random() < 0.2:
                found.append(found[-1].replace("。", "！", 1))
            if len(found) >= most:
                break
    return found[:most]


def fill(client: Any, helpers: Any, index: str, most: int) -> None:
    chance = random.Random(2)
    actions = ({"_index": index, "_id": f"old{n}", **fingerprint_fields(chance.getrandbits(64))} for n in range(most))
    for _ in helpers.parallel_bulk(client, actions, chunk_size=5_000, thread_count=2):
        pass
    client.indices.refresh(index=index)


def rate(documents: int, function: Callable[[], object]) -> float:
    started = time.perf_counter()
    function()
    return documents / (time.perf_counter() - started)


def resident(reports: Iterator[Any], most: int) -> list[int]:
    """Read all *reports* and return the MiB of this process at each tenth."""
    process, found = psutil.Process(), []
    for n, _ in enumerate(reports, 1):
        if n % (most // 10) == 0:
            found.append(process.memory_info().rss >> 20)
    return found


def one_at_a_time(simhash: SimHashClient, client: Any, index: str, documents: Iterable[Any], distance: int) -> None:
    """What users do today: search, then insert; what is not refreshed yet is not found."""
    for action in with_fingerprints(documents, text_field="body"):
        digits = action.get("simhash", {}).get("fingerprint")
        found = simhash.find_near_dups(index, fingerprint=int(digits, 16), max_distance=distance) if digits else ()
        body = {key: value for key, value in action.items() if key != "_id"}
        body["duplicate"] = bool(found)
        client.index(index=index, id=action["_id"], body=body)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--product", choices=["opensearch", "elasticsearch"], default="opensearch")
    parser.add_argument("--documents", type=int, default=1_000_000, help="in the index before")
    parser.add_argument("--new", type=int, default=5_000, help="ingested")
    parser.add_argument("--single", type=int, default=500, help="searched and inserted one at a time")
    parser.add_argument("--distance", type=int, default=3)
    parser.add_argument("--texts", default="xwlb_zh")
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[2] / "shared" / "data")
    options = parser.parse_args()
    texts = read_texts(options.data, options.texts, options.new)
    report: dict[str, Any] = {key: str(value) for key, value in vars(options).items() if key != "data"}
    with embedded_server(options.product, heap="2g") as server:
        client, helpers = connect(options.product, server.url)
        simhash = SimHashClient(client)
        simhash.create_index("bench", text_field="body", settings={"number_of_shards": 1, "number_of_replicas": 0})
        fill(client, helpers, "bench", options.documents)

        def documents(kind: str, most: int) -> Iterator[dict[str, Any]]:
            numbered = ((n, text if n < len(texts) else f"{n} {text} {n}") for n, text in zip(count(), cycle(texts)))
            return ({"_id": f"{kind}{n}", "body": text} for n, text in islice(numbered, most))

        for _ in simhash.ingest("bench", documents("warm", 500), max_distance=options.distance):
            pass
        one_at_a_time(simhash, client, "bench", documents("warmer", 100), options.distance)
        started = time.perf_counter()
        tagged = simhash.ingest("bench", documents("tag", options.new), max_distance=options.distance)
        report["resident_mebibytes"] = resident(tagged, options.new)
        report["tag_per_second"] = options.new / (time.perf_counter() - started)
        report["single_per_second"] = rate(
            options.single,
            lambda: one_at_a_time(simhash, client, "bench", documents("one", options.single), options.distance),
        )
        report["bulk_per_second"] = rate(
            options.new,
            lambda: helpers.bulk(client, ({"_index": "bench", **each} for each in documents("bulk", options.new))),
        )
        report["times_single"] = report["tag_per_second"] / report["single_per_second"]
        report["share_of_bulk"] = report["tag_per_second"] / report["bulk_per_second"]
        client.close()
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
