"""
Pages of search results without near-duplicates, against the same search without folding.

    python bench/search.py --product opensearch --documents 1000000

A third of the documents are in groups of two to nine. Texts have 30 words, drawn as words are (Zipf). The queries are
one to three words of different frequency, some by date, and all documents by date; each is asked plain, as a first
page, and as page 50, in turns. Ratios of one run: of the first page to the plain search, and of page 50 to page 1. The
price of totals is in seconds.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import accumulate
from statistics import median
from typing import Any

from harness import ONE_SHARD, arguments, in_turns, seconds, served, show

from es_simhash import SimHashClient, fingerprint_fields

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
        ours = fingerprint_fields(chance.getrandbits(64))["simhash"] | {"group": group}
        if group != f"{number}":
            ours |= {"duplicate_of": group, "distance": 1}
        source = {"body": body, "day": 1_700_000_000_000 + 1_000 * chance.randrange(10**7), "simhash": ours}
        yield {"_index": index, "_id": f"{number}", "_source": source}


def searches(count: int) -> list[dict[str, Any]]:
    chance = random.Random(2)
    found: list[dict[str, Any]] = [{"sort": [{"day": "desc"}]}]
    for number in range(count - 1):
        words = " ".join(f"w{chance.choice((3, 30, 300, 3_000)) + number % 7}" for _ in range(1 + number % 3))
        found.append({"query": {"match": {"body": words}}} | ({"sort": [{"day": "desc"}]} if number % 5 == 4 else {}))
    return found


def ratios(these: list[float], others: list[float]) -> dict[str, float]:
    found = sorted(this / other for this, other in zip(these, others, strict=True))
    return {"median": median(found), "at_95_percent": found[int(0.95 * len(found))], "most": found[-1]}


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--searches", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    with served(options) as (_, client, helpers):
        simhash = SimHashClient(client)
        index = "bench"
        simhash.create_index(index, text_field="body", settings={**ONE_SHARD, "refresh_interval": "-1"})
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
            ways: dict[str, Callable[[int], Any]] = {
                "plain": lambda _, body=body: client.search(index=index, body={**body, "size": 10}),
                "first": lambda _, body=body: simhash.search_distinct(index, body),
                "fiftieth": lambda _, body=body, last=last: simhash.search_distinct(index, body, after=last),
            }
            for name, spent in in_turns(ways, range(options.rounds)).items():
                times[name].append(median(spent))
        show(
            **vars(options),
            plain_ms=median(times["plain"]),
            first_page=ratios(times["first"], times["plain"]),
            page_50_to_page_1=ratios(times["fiftieth"], times["first"]),
            total_seconds=seconds(lambda: simhash.search_distinct(index, {}, total=True)),
        )


if __name__ == "__main__":
    main()
