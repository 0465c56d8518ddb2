"""
Documents a second into a real server: plain bulk, with precomputed fields, and with ``with_fingerprints``.

    python bench/ingest.py --product opensearch DOCS.jsonl.gz

All through the client's own ``streaming_bulk``, into an index of one shard each, in turns. Prints JSON with the
median rates, and the times over plain bulk and over bulk with precomputed fields. With ``--workers``, the fingerprints
are also computed in processes during the bulk. ``pipeline.py`` measures the ingest pipeline.
"""

from __future__ import annotations

import argparse
import importlib
import json
import statistics
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from corpora import read_documents
from vectors import connect

from es_simhash import SimHashClient, with_fingerprints
from es_simhash.servers import embedded_server

INDEX = "ingest"
FIELDS = {"text": {"type": "text"}, "title": {"type": "text"}, "id": {"type": "keyword"}}


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("docs", type=Path)
    parser.add_argument("--product", choices=["opensearch", "elasticsearch"], required=True)
    parser.add_argument("--documents", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--schemes", nargs="*", default=["shingles", "keywords"])
    parser.add_argument("--workers", type=int, help="also measure with_fingerprints with so many processes")
    options = parser.parse_args()
    documents = list(read_documents(options.docs, most=options.documents))
    result: dict[str, Any] = {"command": " ".join(sys.argv), "documents": len(documents)}
    with embedded_server(options.product, heap="1g") as server:
        client = connect(server)
        helpers = importlib.import_module(f"{type(client).__module__.partition('.')[0]}.helpers")

        def seconds(actions: Iterable[Any], scheme: str | None) -> float:
            client.indices.delete(index=INDEX, ignore_unavailable=True)
            if scheme is None:
                client.indices.create(index=INDEX, body={"mappings": {"properties": FIELDS}})
            else:
                simhash = SimHashClient(client)
                simhash.create_index(INDEX, scheme=scheme, text_field="text", mappings={"properties": FIELDS})
            start = time.perf_counter()
            for ok, item in helpers.streaming_bulk(client, actions, index=INDEX):
                assert ok, item
            return time.perf_counter() - start

        def plain() -> Iterable[Any]:
            return iter(documents)

        for scheme in options.schemes:
            precomputed = list(with_fingerprints(documents, text_field="text", scheme=scheme))
            ways = {
                "plain": lambda: seconds(plain(), None),
                "precomputed": lambda: seconds(iter(precomputed), scheme),
                "with_fingerprints": lambda: seconds(
                    with_fingerprints(plain(), text_field="text", scheme=scheme), scheme
                ),
            }
            if options.workers:
                ways["with_fingerprints_workers"] = lambda: seconds(
                    with_fingerprints(plain(), text_field="text", scheme=scheme, workers=options.workers), scheme
                )
            for way in ways.values():
                way()
            times: dict[str, list[float]] = {name: [] for name in ways}
            for _ in range(options.rounds):
                for name, way in ways.items():
                    times[name].append(way())
            medians = {name: statistics.median(each) for name, each in times.items()}
            result[scheme] = {
                "documents_a_second": {name: round(len(documents) / each) for name, each in medians.items()},
                "precomputed_over_plain": round(medians["precomputed"] / medians["plain"], 2),
                "with_fingerprints_over_plain": round(medians["with_fingerprints"] / medians["plain"], 2),
                "with_fingerprints_over_precomputed": round(medians["with_fingerprints"] / medians["precomputed"], 2),
            }
            if options.workers:
                ratio = medians["with_fingerprints_workers"] / medians["precomputed"]
                result[scheme]["with_fingerprints_workers_over_precomputed"] = round(ratio, 2)
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
