"""
Ingest with ``tag`` into an index that is full already, against search-before-insert one at a time, and plain bulk.

    python bench/dedup.py --product opensearch --documents 1000000 --new 5000 --distance 3 --texts xwlb_zh

The index is filled with random fingerprints; the new documents are texts of a data set in --data (with edits, so that
some are duplicates). Ratios are of documents a second, from one run.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import resource
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from es_simhash import SimHashClient, fingerdigitsfields, with_fingerprints
from es_simhash.engine.embedded import embedded_server


def connect(product: str, url: str) -> tuple[Any, Any]:
    if product == "opensearch":
        from opensearchpy import OpenSearch as Client, helpers
    else:
        from elasticsearch import Elasticsearch as Client, helpers
    return Client([url]), helpers


def read_texts(folder: Path, name: str, count: int) -> list[str]:
    chance = random.Random(1)
    found: list[str] = []
    with gzip.open(folder / name / "docs.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            found.append(json.loads(line)["text"])
            if chance.random() < 0.2:
                found.append(found[-1].replace("。", "！", 1))
            if len(found) >= count:
                break
    return found[:count]


def fill(client: Any, helpers: Any, index: str, count: int) -> None:
    chance = random.Random(2)
    actions = ({"_index": index, "_id": f"old{n}", **fingerdigitsfields(chance.getrandbits(64))} for n in range(count))
    for _ in helpers.parallel_bulk(client, actions, chunk_size=5_000, thread_count=2):
        pass
    client.indices.refresh(index=index)


def rate(count: int, function: Callable[[], object]) -> float:
    started = time.perf_counter()
    function()
    return count / (time.perf_counter() - started)


def one_at_a_time(simhash: SimHashClient, client: Any, index: str, documents: Iterable[Any], distance: int) -> None:
    """What users do today: search, then insert, and refresh so that the next one is seen."""
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

        def documents(kind: str, count: int) -> Iterator[dict[str, Any]]:
            return ({"_id": f"{kind}{n}", "body": text} for n, text in enumerate(texts[:count]))

        for _ in simhash.ingest("bench", documents("warm", 500), max_distance=options.distance):
            pass
        report["tag_per_second"] = rate(
            len(texts),
            lambda: [
                None for _ in simhash.ingest("bench", documents("tag", len(texts)), max_distance=options.distance)
            ],
        )
        report["single_per_second"] = rate(
            min(options.single, len(texts)),
            lambda: one_at_a_time(simhash, client, "bench", documents("one", options.single), options.distance),
        )
        report["bulk_per_second"] = rate(
            len(texts),
            lambda: helpers.bulk(client, ({"_index": "bench", **each} for each in documents("bulk", len(texts)))),
        )
        report["times_single"] = report["tag_per_second"] / report["single_per_second"]
        report["share_of_bulk"] = report["tag_per_second"] / report["bulk_per_second"]
        report["peak_mebibytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        client.close()
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
