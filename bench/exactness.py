"""
Lookups in an index filled by ``es-simhash ingest``, against an exhaustive comparison of all fingerprints.

    python bench/exactness.py --product opensearch DOCS.jsonl.gz

Ingests the file through the command line, then asks for the near-duplicates of random documents at each distance,
sync and async, and compares ids and distances with those of every fingerprint in the index. Prints JSON; exits 1 if
one answer differs.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from corpora import read_documents
from vectors import connect

from es_simhash import AsyncSimHashClient, SimHashClient, fingerprints
from es_simhash.servers import embedded_server

INDEX = "exactness"


async def look_async(url: str, product: str, questions: list[tuple[str, int]]) -> list[Any]:
    """Return the answers of the async client to each text and distance."""
    if product == "opensearch":
        from opensearchpy import AsyncOpenSearch

        client: Any = AsyncOpenSearch([url])
    else:
        from elasticsearch import AsyncElasticsearch

        client = AsyncElasticsearch(url)
    try:
        ours = AsyncSimHashClient(client)
        return [await ours.find_near_dups(INDEX, text, max_distance=distance) for text, distance in questions]
    finally:
        await client.close()


def main() -> int:
    """Run, print, and tell whether all answers are right."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("docs", type=Path)
    parser.add_argument("--product", choices=["opensearch", "elasticsearch"], required=True)
    parser.add_argument("--scheme", default="shingles")
    parser.add_argument("--lookups", type=int, default=500)
    parser.add_argument("--distances", type=int, nargs="*", default=[0, 1, 2, 3])
    options = parser.parse_args()
    texts = {document["_id"]: document["text"] for document in read_documents(options.docs)}
    found = fingerprints(texts.values(), scheme=options.scheme)
    ids = [id_ for id_, each in zip(texts, found, strict=True) if each is not None]
    array = np.array([each for each in found if each is not None], dtype=np.uint64)
    with embedded_server(options.product, heap="1g") as server:
        client = connect(server)
        command = [sys.executable, "-m", "es_simhash", "ingest", INDEX, str(options.docs), "--json"]
        command += ["--create", "--scheme", options.scheme, "--text-field", "text", "--id-field", "id"]
        start = time.perf_counter()
        subprocess.run(command, check=True, env={**os.environ, "ES_SIMHASH_URL": server.url}, stdout=sys.stderr)
        seconds = time.perf_counter() - start
        client.indices.refresh(index=INDEX)
        ours = SimHashClient(client)
        chosen = random.Random(11).sample(ids, min(options.lookups, len(ids)))
        questions = [(texts[id_], distance) for id_ in chosen for distance in options.distances]
        answers = {
            "sync": [ours.find_near_dups(INDEX, text, max_distance=distance) for text, distance in questions],
            "async": asyncio.run(look_async(server.url, options.product, questions)),
        }
    place = {id_: position for position, id_ in enumerate(ids)}
    wrong, neighbours = [], 0
    for number, (id_, distance) in enumerate((id_, distance) for id_ in chosen for distance in options.distances):
        distances = np.bitwise_count(array ^ array[place[id_]])
        truth = sorted((int(distances[p]), ids[p]) for p in np.nonzero(distances <= distance)[0])
        neighbours += len(truth)
        for mode, given in answers.items():
            if [(each.distance, each.id) for each in given[number]] != truth or not given[number].complete:
                wrong.append([mode, id_, distance])
    report = {
        "command": " ".join(sys.argv),
        "documents": len(texts),
        "fingerprinted": len(ids),
        "ingest_seconds": round(seconds, 1),
        "ingest_documents_a_second": round(len(texts) / seconds),
        "lookups": 2 * len(questions),
        "near_duplicates_in_truth": neighbours,
        "wrong": wrong,
    }
    print(json.dumps(report, indent=1))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
