"""
Pages of search results without near-duplicates, against all hits read at once and folded one by one.

    python bench/search_exactness.py --product opensearch --documents 20000 --searches 500

Random searches (words, filters, orders with missing values, page sizes), to the last page: page by page,
and in one view. Prints how many hits came twice, were lost or stood elsewhere, and how many totals and folded counts
were wrong. A fifth of the documents lack a group, and some a fingerprint.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

from memory import connect

from es_simhash import SimHashClient, fingerprint_fields
from es_simhash.servers import embedded_server

SHARDS = {"number_of_shards": 3, "number_of_replicas": 0}
WORDS = [f"w{number}" for number in range(300)]
SORTS: Sequence[Any] = (
    None,
    None,
    "n",
    [{"x": "desc"}, "_score"],
    [{"k": {"order": "desc"}}],
    [{"n": "asc"}, {"x": "asc"}],
)
GROUP = "simhash.group"


def documents(count: int, chance: random.Random) -> list[dict[str, Any]]:
    found = []
    groups = [(f"g{number}", chance.getrandbits(64)) for number in range(count // 4)]
    for number in range(count):
        source: dict[str, Any] = {
            "body": " ".join(chance.choices(WORDS, k=chance.randint(3, 30))),
            "n": chance.randrange(9),
        }
        source |= {"k": chance.choice("abc")} if chance.random() < 0.7 else {}
        source |= {"x": chance.choice((1.5, 2.25, 7.0))} if chance.random() < 0.7 else {}
        group, fingerprint = chance.choice(groups)
        for bit in chance.sample(range(64), chance.randint(0, 3)):
            fingerprint ^= 1 << bit
        if chance.random() < 0.95:
            own = fingerprint_fields(fingerprint)["simhash"]
            source["simhash"] = own | ({"group": group} if chance.random() < 0.8 else {})
        found.append({"_id": f"{number}", "_source": source})
    return found


def random_search(chance: random.Random) -> dict[str, Any]:
    body: dict[str, Any] = {"query": {"match": {"body": " ".join(chance.sample(WORDS, chance.randint(1, 3)))}}}
    if chance.random() < 0.3:
        body["post_filter"] = {"term": {"k": chance.choice("abc")}}
    if sort := chance.choice(SORTS):
        body["sort"] = sort
    return body


def value(hit: dict[str, Any], name: str) -> Any:
    return (hit.get("fields") or {}).get(name, [None])[0]


def fold(hits: list[dict[str, Any]]) -> list[dict[str, Any]]:
    kept, groups = [], set()
    for hit in hits:
        group = value(hit, GROUP)
        if group is None or group not in groups:
            kept.append(hit)
            groups.add(group)
    return kept


def check(client: Any, simhash: SimHashClient, body: dict[str, Any], chance: random.Random) -> Counter[str]:
    sort = body.get("sort") or [{"_score": "desc"}]
    asked = {
        **body,
        "sort": [*(sort if isinstance(sort, list) else [sort]), {"_seq_no": "asc"}],
        "size": 10_000,
        "_source": ["n"],
    }
    hits = client.search(index="exact", body={**asked, "docvalue_fields": [GROUP]})["hits"]["hits"]
    keys = {hit["_id"]: hit["sort"] for hit in hits}
    size = chance.choice([5, 10, 50, 200])
    wanted = [hit["sort"] for hit in fold(hits)]
    pages = [simhash.search_distinct("exact", body, size=size, total=True)]
    while (after := pages[-1].after) is not None:
        pages.append(simhash.search_distinct("exact", body, size=size, after=after))
    found: Counter[str] = Counter(searches=1, hits=len(hits), pages=len(pages))
    for view in (pages, list(simhash.search_distinct_pages("exact", body, size=size))):
        shown = [hit.id for page in view for hit in page]
        found["twice"] += len(shown) - len(set(shown))
        found["lost"] += len(wanted) - len(shown)
        found["elsewhere"] += sum(keys[one] != key for one, key in zip(shown, wanted, strict=False))
        found["not_full"] += sum(len(page) < size for page in view[:-1])
    members = Counter(value(hit, GROUP) for hit in hits)
    found["wrong_totals"] += pages[0].total != len(wanted)
    found["wrong_folded"] += sum(hit.similar_count != (members[hit.group] or 1) - 1 for hit in pages[0] if hit.group)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--product", choices=["opensearch", "elasticsearch"], default="opensearch")
    parser.add_argument("--documents", type=int, default=20_000)
    parser.add_argument("--searches", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    found: Counter[str] = Counter()
    with embedded_server(options.product) as server:
        client, helpers = connect(options.product, server.url)
        simhash = SimHashClient(client)
        simhash.create_index("exact", text_field="body", settings=SHARDS)
        kinds = {"n": {"type": "integer"}, "k": {"type": "keyword"}, "x": {"type": "double"}}
        client.indices.put_mapping(index="exact", body={"properties": kinds})
        list(simhash.ingest("exact", [{"_id": "first", "body": "records the grouping", "n": 0}], verify=False))
        helpers.bulk(client, ({"_index": "exact", **each} for each in documents(options.documents, chance)))
        client.indices.refresh(index="exact")
        for _ in range(options.searches):
            found += check(client, simhash, random_search(chance), chance)
        client.close()
    counted = ("twice", "lost", "elsewhere", "not_full", "wrong_totals", "wrong_folded")
    print(json.dumps({**vars(options), **found, **{name: found[name] for name in counted}}, indent=2))


if __name__ == "__main__":
    main()
