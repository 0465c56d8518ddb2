"""
How long ``stats`` and ``report`` take, and how much memory, by the number of documents.

    python bench/report.py --product opensearch --documents 1000000
    python bench/report.py --product opensearch --documents 200000 --one-group

Fills an index as ``dashboards.py`` does: half of the documents are canonicals, and the sizes of groups fall off as one
over their rank. With ``--one-group`` all documents are copies of one text with 997 edits, in one group, and whatever
reads groups is measured. Each operation runs in a process of its own. Prints JSON: seconds, those of its processor, the
time divided by that of one search that counts all documents in the same run, and the most memory that the process held,
in megabytes, beside that of a process that only connects.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import sys
import tempfile
import time
from typing import Any

from dashboards import CHUNK, INDEX, START, fill
from vectors import connect

from es_simhash import SimHashClient, fingerprint, fingerprint_fields
from es_simhash.removal.review import Review
from es_simhash.servers import embedded_server

FIELDS = {"time_field": "published", "source_field": "source", "text_field": "body"}
EDITS = 997
WORDS = ["".join("aeiou"[(n >> i) % 5] + "klmnrst"[(n * 3 + i) % 7] for i in range(4)) for n in range(120)]


def fill_one_group(client: Any, documents: int) -> None:
    """Index *documents*, all in one group: copies of one text with a word changed."""
    simhash = SimHashClient(client)
    settings = {"number_of_replicas": 0, "refresh_interval": "-1"}
    properties = {"source": {"type": "keyword"}, "published": {"type": "date"}}
    simhash.create_index(INDEX, text_field="body", mappings={"properties": properties}, settings=settings)
    simhash.reconcile(INDEX, max_distance=20, verify=0.5)
    texts = [" ".join([*WORDS[: n % 120], f"w{n}", *WORDS[n % 120 + 1 :]]) for n in range(EDITS)]
    prints = [fingerprint(each) or 0 for each in texts]
    for start in range(0, documents, CHUNK):
        lines = []
        for n in range(start, min(start + CHUNK, documents)):
            own = fingerprint_fields(prints[n % EDITS])
            own["simhash"] |= {"group": "000000", "at": "2026-01-01T00:00:00Z"}
            if n:
                own["simhash"] |= {"duplicate_of": "000000", "distance": (prints[0] ^ prints[n % EDITS]).bit_count()}
            own |= {"source": f"source {n % 40}", "body": texts[n % EDITS], "published": START + n * 60_000}
            lines += [f'{{"index":{{"_id":"{n:06}"}}}}', json.dumps(own)]
        if client.bulk(index=INDEX, body="\n".join(lines) + "\n")["errors"]:
            raise RuntimeError("not everything was indexed")
    client.indices.refresh(index=INDEX)


def measure(product: str, url: str, operation: str, plan: str) -> dict[str, Any]:
    """Return seconds and megabytes of one operation, in this process."""
    client = _client(product, url)
    simhash = SimHashClient(client)
    more: dict[str, Any] = {}
    began, worked = time.perf_counter(), time.process_time()
    if operation == "count":
        client.search(
            index=INDEX, body={"size": 0, "aggs": {"all": {"filter": {"match_all": {}}}}}, request_cache=False
        )
    elif operation == "stats":
        found = simhash.stats(INDEX, **FIELDS)
        more = {"groups": found.groups.number, "duplicates": found.duplicates}
    elif operation == "check_sample":
        more = {"findings": len(simhash.check_sample(INDEX).findings)}
    elif operation == "groups":
        more = {"members": [len(each.members) for each in simhash.groups(INDEX)]}
    elif operation == "search_distinct":
        found = simhash.search_distinct(INDEX, {"query": {"match": {"body": WORDS[3]}}})
        more = {"hits": len(found)}
    elif operation == "plan":
        more = {"removals": simhash.plan_removal(INDEX, plan, max_share=1.0).count}
    elif operation == "review page":
        with Review(plan) as review:
            more = {"page_kilobytes": round(sum(len(each.encode()) for each in review.html()) / 1000)}
    elif operation == "review":
        with Review(plan) as review:
            more = {"lines": len(list(review.text(limit=20)))}
    else:
        page = simhash.report(INDEX, **FIELDS).html()
        more = {"page_kilobytes": round(len(page.encode()) / 1000)}
    seconds, more["cpu_seconds"] = time.perf_counter() - began, round(time.process_time() - worked, 2)
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"seconds": round(seconds, 2), "megabytes": round(megabytes), **more}


def _client(product: str, url: str) -> Any:
    if product == "opensearch":
        from opensearchpy import OpenSearch

        return OpenSearch([url], timeout=600)
    from elasticsearch import Elasticsearch

    return Elasticsearch([url], request_timeout=600)


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--product", choices=["opensearch", "elasticsearch"], required=True)
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--one-group", action="store_true")
    arguments = parser.parse_args()
    found: dict[str, Any] = {}
    with embedded_server(arguments.product, heap="1g") as server, tempfile.TemporaryDirectory() as folder:
        client = connect(server)
        (fill_one_group if arguments.one_group else fill)(client, arguments.documents)
        client.close()
        more = (
            ("check_sample", "groups", "search_distinct", "plan", "review", "review page")
            if arguments.one_group
            else ()
        )
        for operation in ("count", "stats", "report", *more):
            # A new process each: what one has held says nothing of another.
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                found[operation] = pool.apply(measure, (arguments.product, server.url, operation, f"{folder}/plan"))
            print(operation, found[operation], file=sys.stderr)
    for each in found.values():
        each["ratio"] = round(each["seconds"] / max(found["count"]["seconds"], 0.01), 1)
    print(json.dumps({"product": arguments.product, "documents": arguments.documents, **found}, indent=1))


if __name__ == "__main__":
    main()
