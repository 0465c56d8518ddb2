"""
Pages of search results without near-duplicates, against the same search without folding.

    python bench/search.py --product opensearch --documents 1000000

A third of the documents are in groups of two to nine. Texts have 30 words, drawn as words are (Zipf). The queries are
one to three words of different frequency, some by date, and all documents by date; each is asked plain, as a first
page, and as page 50, in turns. Ratios of one run: of the first page to the plain search, and of page 50 to page 1. The
price of totals is in seconds.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import accumulate
from statistics import median
from typing import Any

from memory import connect

from es_simhash import SimHashClient, fingerprint_fields
from es_simhash.servers import embedded_server

SHARDS = {"number_of_shards": 1, "number_of_replicas": 0, "refresh_interval": "-1"}
RANKS = range(1, 50_001)
WEIGHTS = list(accumulate(1 / rank for rank in RANKS))


def documents(count: int, index: str) -> Iterator[dict[str, Any]]:
    """Yield bulk actions: two thirds of the documents alone, the others copies of one before, with its words."""
    chance = random.Random(1)
    group, left, body = "", 0, ""
    for number in range(count):
        if left:
            left -= 1
        else:
            body = " ".join(f"w{rank}" for rank in chance.choices(RANKS, cum_weights=WEIGHTS, k=30))
            group, left = f"{number}", chance.randint(1, 8) if chance.random() < 0.09 else 0
        own = fingerprint_fields(chance.getrandbits(64))["simhash"] | {"group": group}
        if group != f"{number}":
            own |= {"duplicate_of": group, "distance": 1}
        source = {"body": body, "day": 1_700_000_000_000 + 1_000 * chance.randrange(10**7), "simhash": own}
        yield {"_index": index, "_id": f"{number}", "_source": source}


def searches(count: int) -> list[dict[str, Any]]:
    chance = random.Random(2)
    found: list[dict[str, Any]] = [{"sort": [{"day": "desc"}]}]
    for number in range(count - 1):
        words = " ".join(f"w{chance.choice((3, 30, 300, 3_000)) + number % 7}" for _ in range(1 + number % 3))
        found.append({"query": {"match": {"body": words}}} | ({"sort": [{"day": "desc"}]} if number % 5 == 4 else {}))
    return found


def seconds(work: Callable[[], Any]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def ratios(these: list[float], others: list[float], limit: float) -> dict[str, float]:
    found = sorted(this / other for this, other in zip(these, others, strict=True))
    return {
        "median": median(found),
        f"within_{limit}": sum(each <= limit for each in found) / len(found),
        "at_95_percent": found[int(0.95 * len(found))],
        "most": found[-1],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--product", choices=["opensearch", "elasticsearch"], default="opensearch")
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--searches", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--heap", default="2g")
    options = parser.parse_args()
    with embedded_server(options.product, heap=options.heap) as server:
        client, helpers = connect(options.product, server.url)
        simhash = SimHashClient(client)
        index = "bench"
        simhash.create_index(index, text_field="body", settings=SHARDS)
        client.indices.put_mapping(index=index, body={"properties": {"day": {"type": "date"}}})
        list(simhash.ingest(index, [{"_id": "first", "body": "records the grouping"}], verify=False))
        for _ in helpers.parallel_bulk(client, documents(options.documents, index), chunk_size=2_000):
            pass
        client.indices.refresh(index=index)
        client.indices.forcemerge(index=index, max_num_segments=5)
        times: dict[str, list[float]] = {"plain": [], "first": [], "fiftieth": []}
        for body in searches(options.searches):
            place = simhash.search_distinct(index, body)
            for _ in range(49):
                if place.after is None:
                    break
                last, place = place.after, simhash.search_distinct(index, body, after=place.after)
            ways: dict[str, Callable[[], Any]] = {
                "plain": partial(client.search, index=index, body={**body, "size": 10}),
                "first": partial(simhash.search_distinct, index, body),
                "fiftieth": partial(simhash.search_distinct, index, body, after=last),
            }
            rounds = [{name: seconds(way) for name, way in ways.items()} for _ in range(options.rounds)]
            for name, each in times.items():
                each.append(median(one[name] for one in rounds))
        report = {
            **vars(options),
            "plain_ms": 1_000 * median(times["plain"]),
            "first_page": ratios(times["first"], times["plain"], 1.5),
            "page_50_to_page_1": ratios(times["fiftieth"], times["first"], 3),
            "total_seconds": seconds(lambda: simhash.search_distinct(index, {}, total=True)),
        }
        client.close()
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
