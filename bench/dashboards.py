"""
How long the charts of a pack for Kibana and Dashboards wait for their searches, by the number of documents.

    python bench/dashboards.py --product opensearch --documents 1000000

Fills an index with random fingerprints and with groups: half of the documents are canonicals, and the sizes of groups
fall off as one over their rank. Prints JSON: for each chart the median time of its search in milliseconds, and that
divided by the time of counting all documents in the same run. The request cache is off.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from typing import Any

import numpy as np
from vectors import connect

from es_simhash import SimHashClient, build_dashboards
from es_simhash.servers import embedded_server

INDEX = "bench"
ROUNDS = 7
# The first document is of this moment, in milliseconds since 1970; each one after it is a minute later.
START = 1_700_000_000_000
CHUNK = 10_000


def fill(client: Any, documents: int) -> None:
    """Index *documents* with fingerprints, groups, a source, a date and a short text."""
    SimHashClient(client).create_index(INDEX, settings={"number_of_replicas": 0, "refresh_interval": "-1"})
    properties = {"source": {"type": "keyword"}, "body": {"type": "text"}, "published": {"type": "date"}}
    client.indices.put_mapping(index=INDEX, body={"properties": properties})
    chance = np.random.default_rng(7)
    prints = chance.integers(0, 2**64, documents, dtype=np.uint64)
    # Every second document is a duplicate of a canonical; canonicals of a low rank have many.
    ranks = np.minimum(documents // 2 - 1, (documents // 2) ** chance.random(documents)).astype(np.int64)
    for start in range(0, documents, CHUNK):
        lines = []
        for n in range(start, min(start + CHUNK, documents)):
            digits = f"{int(prints[n]):016x}"
            fields: dict[str, Any] = {"fingerprint": digits, "group": str(n)}
            fields |= {f"block{i}": digits[4 * i : 4 * i + 4] for i in range(4)}
            if n % 2:
                canonical = str(2 * int(ranks[n]))
                fields |= {"group": canonical, "duplicate_of": canonical, "distance": n % 9}
            lines.append(f'{{"index":{{"_id":"{n}"}}}}')
            own = {"source": f"source {n % 40}", "body": f"text {n}", "published": START + n * 60_000}
            lines.append(json.dumps({**own, "simhash": fields}))
        answer = client.bulk(index=INDEX, body="\n".join(lines) + "\n")
        if answer["errors"]:
            raise RuntimeError(json.dumps(answer["items"][0]))
        if start % 100_000 == 0:
            print(f"{start:,} of {documents:,} indexed", file=sys.stderr)
    client.indices.refresh(index=INDEX)


def median_ms(client: Any, body: dict[str, Any]) -> float:
    """Return the median time of a search in milliseconds."""
    taken = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        client.search(index=INDEX, body=body, request_cache=False)
        taken.append(1_000 * (time.perf_counter() - began))
    return statistics.median(taken)


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--product", choices=["opensearch", "elasticsearch"], required=True)
    parser.add_argument("--documents", type=int, default=1_000_000)
    arguments = parser.parse_args()
    pack = build_dashboards(INDEX, source_field="source", text_field="body")
    states = [json.loads(each["attributes"]["visState"]) for each in pack if each["type"] == "visualization"]
    with embedded_server(arguments.product, heap="1g") as server:
        client = connect(server)
        fill(client, arguments.documents)
        everything = {"match_all": {}}
        count = median_ms(client, {"size": 0, "query": everything, "aggs": {"all": {"filter": everything}}})
        found: dict[str, Any] = {"counting all": {"ms": round(count, 1)}}
        for state in states:
            if state["type"] == "vega":
                body = json.loads(state["params"]["spec"])["data"][0]["url"]["body"]
                # What the products put in place of their placeholders, where no filter is chosen.
                taken = median_ms(client, body | {"query": everything})
                found[state["title"].partition(", ")[2]] = {"ms": round(taken, 1), "ratio": round(taken / count, 1)}
        client.close()
    print(json.dumps({"product": arguments.product, "documents": arguments.documents, "charts": found}, indent=1))


if __name__ == "__main__":
    main()
