"""
What our fields cost in an index: bytes a document, and the time of lookups, by how they are mapped.

    python bench/fields.py --product opensearch

Fills one index for each way to map the fields with the same random fingerprints and nothing else, merges each to one
segment, and prints JSON: bytes a document on disk, and the median of lookups over an empty search of the same run.
"""

from __future__ import annotations

import argparse
import copy
import json
import statistics
import sys
import time
from typing import Any

from plans import EMPTY, body_of
from vectors import connect, plant, write_documents

from es_simhash import build_mapping
from es_simhash.lookup.near_dups import rescore
from es_simhash.lookup.plan import LookupPlan
from es_simhash.servers import embedded_server

BLOCKS = ("block0", "block1", "block2", "block3")
PLANS = (LookupPlan(3, 8), LookupPlan(8, 12), LookupPlan(10, 16))


def mappings() -> dict[str, dict[str, Any]]:
    """Return the ways to map the fields, by name."""
    full = build_mapping()
    ways: dict[str, dict[str, Any]] = {"value and doc values on blocks": full}

    def changed(name: str, change: Any) -> None:
        copied = copy.deepcopy(full)
        change(copied, copied["properties"]["simhash"]["properties"])
        ways[name] = copied

    def no_block_values(_: Any, fields: Any) -> None:
        for block in BLOCKS:
            fields[block] = {"type": "keyword", "doc_values": False}

    def no_value(_: Any, fields: Any) -> None:
        del fields["value"]

    def no_fingerprint_terms(_: Any, fields: Any) -> None:
        fields["fingerprint"] = {"type": "keyword", "index": False}

    def least(mapping: Any, fields: Any) -> None:
        for change in (no_block_values, no_value, no_fingerprint_terms):
            change(mapping, fields)

    def no_source(mapping: Any, _: Any) -> None:
        mapping["_source"] = {"enabled": False}

    changed("no doc values on blocks", no_block_values)
    changed("no value", no_value)
    changed("fingerprint not indexed", no_fingerprint_terms)
    changed("none of these three", least)
    changed("all, but no _source", no_source)
    return ways


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--product", choices=["opensearch", "elasticsearch"], required=True)
    parser.add_argument("--documents", type=int, default=500_000)
    parser.add_argument("--rounds", type=int, default=6)
    options = parser.parse_args()
    planted = plant(options.documents, 16)
    queries = [int(each) for each in planted.queries]
    rows: dict[str, dict[str, Any]] = {}
    with embedded_server(options.product, heap="2g") as server:
        client = connect(server)
        names = {}
        for number, (name, mapping) in enumerate(mappings().items()):
            names[name] = f"fields{number}"
            settings = {"number_of_shards": 1, "number_of_replicas": 0, "refresh_interval": "-1"}
            client.indices.create(index=names[name], body={"settings": settings, "mappings": mapping})
            write_documents(client, names[name], planted.fingerprints)
            client.indices.forcemerge(index=names[name], max_num_segments=1)
            client.indices.flush(index=names[name])
            store = client.indices.stats(index=names[name])["indices"][names[name]]["primaries"]["store"]
            rows[name] = {"bytes_a_document": round(store["size_in_bytes"] / options.documents, 1)}
        times: dict[tuple[str, str], list[float]] = {}
        for round_ in range(options.rounds + 3):
            for query in queries:
                for name, index in names.items():
                    for plan in (None, *PLANS):
                        start = time.perf_counter()
                        if plan is None:
                            client.search(index=index, body=EMPTY)
                        else:
                            body = body_of(query, plan, 200)
                            hits = client.search(index=index, body=body)["hits"]["hits"]
                            rescore(hits, query, max_distance=plan.max_distance)
                        if round_ >= 3:  # the first rounds warm the server up
                            key = name, "empty" if plan is None else f"distance {plan.max_distance}"
                            times.setdefault(key, []).append(time.perf_counter() - start)
        for (name, what), spent in times.items():
            rows[name][f"{what}_ms"] = round(statistics.median(spent) * 1000, 2)
    result = {"command": " ".join(sys.argv), "product": options.product, "documents": options.documents, "rows": rows}
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
