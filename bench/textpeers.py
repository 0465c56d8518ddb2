"""
Near-duplicates of texts by what OpenSearch itself offers, and by ours, on the same server in the same run.

    python bench/textpeers.py DATA_FOLDER/reuters21578 [--queries 300]

Ways: ``more_like_this`` (at its defaults; asking for 80 % of the terms; and for half of the document's own score as
well), the ``min_hash`` token filter (512 buckets over shingles of three words, or of three of the characters that
``cjk_bigram`` makes) with the ``match`` query of its documentation, and with ``more_like_this`` for 30, 50 or 70 % of
the hashes; and our preset ``similar``.
Prints JSON: recall and precision among the documents looked up, at Jaccard 0.8; median time over an empty search; bytes
a document that the way's fields add to an index of the texts. Needs a full JDK.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness import EMPTY, ONE_SHARD, store_bytes
from opensearchpy import OpenSearch, helpers
from quality import Result, timed
from sets import POSITIVE, Truth, is_chinese, read_set, score

from es_simhash import SimHashClient
from es_simhash.servers import embedded_server

SHINGLES = {"type": "shingle", "min_shingle_size": 3, "max_shingle_size": 3, "output_unigrams": False}
MIN_HASH = {"type": "min_hash", "bucket_count": 512}
MOST = 100  # hits of a query that ranks

Way = Callable[[int], set[int]]


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--queries", type=int, default=300)
    options = parser.parse_args()
    truth = read_set(options.data)
    chosen = choose(truth, options.queries)
    with embedded_server("opensearch", jvm="system", heap="1g") as server:
        client = OpenSearch(server.url, timeout=300)
        sizes = fill(client, truth)
        rows = []
        for name, way in ways(client, truth).items():
            row = {"set": options.data.name, "way": name, **measure(client, truth, chosen, way)}
            row["bytes_a_document"] = sizes[name.split()[0]]
            rows.append(row)
            print(json.dumps(row), file=sys.stderr, flush=True)
    print(json.dumps(rows, indent=1))


def choose(truth: Truth, queries: int) -> list[int]:
    """Return the documents to look up: half of them have a near-duplicate, which in some sets are few."""
    chance = random.Random(1)
    known = truth.jaccard >= POSITIVE
    paired = sorted({*truth.left[known].tolist(), *truth.right[known].tolist()})
    chosen = chance.sample(paired, min(queries // 2, len(paired)))
    return sorted({*chosen, *chance.sample(range(len(truth.ids)), min(queries // 2, len(truth.ids)))})


def fill(client: OpenSearch, truth: Truth) -> dict[str, int]:
    """Index the texts three times; return the bytes a document that each way adds to the texts alone."""
    chinese = is_chinese(truth)
    words = "cjk" if chinese else "standard"
    filters = ["cjk_width", "lowercase", *(["cjk_bigram"] if chinese else []), "three", "hashes"]
    analysis = {
        "filter": {"three": SHINGLES, "hashes": MIN_HASH},
        "analyzer": {"min_hash": {"tokenizer": "standard", "filter": filters}},
    }
    text = {"type": "text", "analyzer": words}
    hashed = {**text, "fields": {"hash": {"type": "text", "analyzer": "min_hash", "similarity": "boolean"}}}
    for name, field in (("texts", text), ("hashed", hashed)):
        settings = {**ONE_SHARD, "analysis": analysis}
        client.indices.create(index=name, body={"settings": settings, "mappings": {"properties": {"text": field}}})
        actions = ({"_id": str(place), "text": each} for place, each in enumerate(truth.texts))
        helpers.bulk(client, actions, index=name, request_timeout=300)
    ours = SimHashClient(client)
    ours.create_index("ours", text_field="text", settings=ONE_SHARD, mappings={"properties": {"text": text}})
    documents = ({"_id": str(place), "text": each} for place, each in enumerate(truth.texts))
    refused = [each for each in ours.ingest("ours", documents, on_duplicate=None) if each.action == "refused"]
    assert not refused, refused[:3]
    sizes = {}
    for name in ("texts", "hashed", "ours"):
        client.indices.refresh(index=name)
        sizes[name] = round(store_bytes(client, name, len(truth.ids)))
    plain = sizes["texts"]
    return {"more_like_this": 0, "min_hash": sizes["hashed"] - plain, "similar": sizes["ours"] - plain}


def ways(client: OpenSearch, truth: Truth) -> dict[str, Way]:
    """Return the ways to look a document up, by name."""
    ours = SimHashClient(client)

    def similar(place: int) -> set[int]:
        return {int(each.id) for each in ours.find_near_dups("ours", truth.texts[place], preset="similar")}

    def like(match: str, share: float) -> Way:
        def look(place: int) -> set[int]:
            like = {"fields": ["text"], "like": [{"_index": "texts", "_id": str(place)}], "include": True}
            query = {"more_like_this": {**like, "minimum_should_match": match}}
            answer = client.search(index="texts", body={"size": MOST, "query": query, "_source": False})
            hits = answer["hits"]["hits"]
            own = max((hit["_score"] for hit in hits if hit["_id"] == str(place)), default=0.0)
            return {int(hit["_id"]) for hit in hits if hit["_score"] >= share * own}

        return look

    def found(query: dict[str, Any]) -> set[int]:
        answer = client.search(index="hashed", body={"size": MOST, "query": query, "_source": False})
        return {int(hit["_id"]) for hit in answer["hits"]["hits"]}

    def match(place: int) -> set[int]:
        # The hashes stand at one place of the text, so the query takes them for synonyms: any one of them will do.
        return found({"match": {"text.hash": truth.texts[place]}})

    def hashes(share: str) -> Way:
        # Hashes are not text that a query could hold, but more_like_this takes them from the text on the server.
        rest = {"min_term_freq": 1, "min_doc_freq": 1, "max_query_terms": 512, "minimum_should_match": share}

        def look(place: int) -> set[int]:
            return found({"more_like_this": {"fields": ["text.hash"], "like": truth.texts[place], **rest}})

        return look

    return {
        "similar": similar,
        "more_like_this 80%": like("80%", 0),
        "min_hash match": match,
        "min_hash 70%": hashes("70%"),
    }


def measure(client: OpenSearch, truth: Truth, chosen: list[int], way: Way) -> Result:
    """Return what *way* finds for the *chosen* documents, and its time over an empty search."""
    for place in chosen:
        way(place)  # the server compiles what it runs often
    pairs: list[tuple[int, int]] = []
    times: list[float] = []
    empty: list[float] = []

    def nothing() -> Any:
        return client.search(index="texts", body=EMPTY)

    for place in chosen:
        empty.append(timed(nothing)[1])
        found, took = timed(lambda place=place: way(place))
        times.append(took)
        pairs += [(place, other) for other in found]
    median = statistics.median(times)
    return {
        **score(truth, pairs, among=set(chosen)),
        "queries": len(chosen),
        "median_ms": round(1000 * median, 1),
        "over_empty": round(median / statistics.median(empty), 1),
    }


if __name__ == "__main__":
    main()
