"""
Measures a lookup by the rule that an index records against one by bits alone within the same distance.

    es-simhash serve --product opensearch --port 9200
    python bench/rule.py --url http://localhost:9200 --documents 1000000

Fills an index with random texts of 60 to 120 words, a fifth of them edited copies of others, or uses the one that an
earlier run filled. Asks for the same texts in both ways, in turns, after as many to warm up. Prints JSON: median and
95th percentile of each in milliseconds, and the ratio of these; also for documents of the index.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Callable, Iterator
from typing import Any

from es_simhash import PRESETS, SimHashClient
from es_simhash.connection import Server, open_client

INDEX = "bench-rule"
_CHANCE = random.Random(0)
WORDS = ["".join(_CHANCE.choices("aeioubcdfghklmnprstvz", k=_CHANCE.randint(3, 10))) for _ in range(50_000)]


def texts(count: int, seed: int = 1) -> Iterator[str]:
    """Yield *count* texts; each fifth is a copy of an earlier one with up to five words changed."""
    chance = random.Random(seed)
    kept: list[list[str]] = []
    for number in range(count):
        if number % 5 == 4:
            words = list(chance.choice(kept))
            for _ in range(chance.randint(0, 5)):
                words[chance.randrange(len(words))] = chance.choice(WORDS)
        else:
            words = chance.choices(WORDS, k=chance.randint(60, 120))
        if len(kept) < 20_000 and number % 5 == 0:
            kept.append(words)
        yield " ".join(words)


def fill(client: Any, simhash: SimHashClient, documents: int) -> None:
    """Index the texts, unless they are there."""
    if client.indices.exists(index=INDEX):
        if client.count(index=INDEX)["count"] == documents:
            return
        client.indices.delete(index=INDEX)
    settings = {"number_of_shards": 1, "number_of_replicas": 0, "refresh_interval": "-1"}
    simhash.create_index(
        INDEX, text_field="body", settings=settings, mappings={"properties": {"body": {"type": "text", "index": False}}}
    )
    actions = ({"_id": str(number), "body": text} for number, text in enumerate(texts(documents)))
    for _ in simhash.ingest(INDEX, actions, on_duplicate=None):
        pass
    client.indices.refresh(index=INDEX)
    client.indices.forcemerge(index=INDEX, max_num_segments=5, request_timeout=900)


def compared(asked: list[Any], ways: dict[str, Callable[[Any], Any]]) -> dict[str, Any]:
    """Return the times of *ways*, asked in turns, and the ratio of the first two."""
    spent: dict[str, list[float]] = {name: [] for name in ways}
    for is_warm in (False, True):
        for number, each in enumerate(asked):
            for name, look in list(ways.items())[:: 1 if number % 2 else -1]:
                began = time.perf_counter()
                look(each)
                if is_warm:
                    spent[name].append(1000 * (time.perf_counter() - began))
    rows = {name: (sorted(each)[len(each) // 2], sorted(each)[int(0.95 * len(each))]) for name, each in spent.items()}
    (rule, bits), found = rows.values(), {}
    for name, row in rows.items():
        found[name] = {"median_ms": round(row[0], 2), "p95_ms": round(row[1], 2)}
    return found | {"ratio": {"median": round(rule[0] / bits[0], 2), "p95": round(rule[1] / bits[1], 2)}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", required=True)
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--lookups", type=int, default=300)
    options = parser.parse_args()
    client, product = open_client(Server(options.url, "auto"), {}, INDEX)
    simhash = SimHashClient(client)
    fill(client, simhash, options.documents)
    within = PRESETS["similar"].max_distance
    chance = random.Random(7)
    ids = [str(chance.randrange(options.documents)) for _ in range(options.lookups)]
    bodies = [client.get(index=INDEX, id=each)["_source"]["body"] for each in ids]
    result = {
        "product": product,
        "documents": options.documents,
        "of_a_text": compared(
            bodies,
            {
                "rule": lambda text: simhash.find_near_dups(INDEX, text),
                "bits": lambda text: simhash.find_near_dups(INDEX, text, max_distance=within),
            },
        ),
        "of_a_document": compared(
            ids,
            {
                "rule": lambda each: simhash.find_near_dups_of(INDEX, each),
                "bits": lambda each: simhash.find_near_dups_of(INDEX, each, max_distance=within),
            },
        ),
        "ten_of_a_text": compared(
            bodies,
            {
                "rule": lambda text: simhash.find_near_dups(INDEX, text, size=10),
                "bits": lambda text: simhash.find_near_dups(INDEX, text, size=10, max_distance=within),
            },
        ),
    }
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
