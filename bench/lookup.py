"""
Measures lookups among millions of fingerprints: time over an empty search, recall, and the plain design.

    python bench/lookup.py --product opensearch --folder DIR --bits 16

Prints JSON: for each distance the median of ``find_near_dups`` over the median of an empty search of the same run,
with scripts and without; the four-block pigeonhole with one page of 10,000 candidates and client rescore ("plain");
one keyword term per bit, the textbook step before blocks ("bits", a sample of the documents); Elasticsearch's
approximate kNN over ``bit`` vectors (a sample of the documents); lookups a second in batches of 100 and with 8
clients at once. Every answer is compared with an exhaustive comparison.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle
from pathlib import Path
from typing import Any

from plans import EMPTY, body_of, median_ms
from vectors import INDEX, serve

from es_simhash import SimHashClient
from es_simhash.lookup.near_dups import rescore
from es_simhash.lookup.plan import LookupPlan

DISTANCES = (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16)


class Bench:
    """A filled index, what is in it, and clients of ours with and without scripts."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.server, self.client, self.planted = serve(
            options.product, Path(options.folder), options.documents, options.bits, merged=options.merged
        )
        if options.product == "opensearch":  # Elasticsearch searches several segments at the same time anyway
            mode = {"search.concurrent_segment_search.mode": "all" if options.slices else None}
            self.client.indices.put_settings(index=INDEX, body={"index": mode})
            self.client.cluster.put_settings(body={"transient": {"search.concurrent.max_slice_count": options.slices}})
        self.common_distances = [distance for distance in (3, 8, 10) if distance in options.distances]
        self.queries = [int(query) for query in self.planted.queries[: options.lookups]]
        self.ours = {"scripts": SimHashClient(self.client), "no scripts": SimHashClient(self.client)}
        self.ours["no scripts"]._context.scriptless.learn(INDEX, value=True)  # noqa: SLF001 -- as if the server had refused one
        if options.product == "elasticsearch":
            del self.ours["scripts"]  # the embedded one has no Painless

    def warm(self, seconds: float) -> None:
        """Ask until the server has compiled what it runs."""
        end = time.monotonic() + seconds
        for query in cycle(self.queries):
            self.empty()
            self.plain(query)
            for ours in self.ours.values():
                for distance in self.common_distances:
                    ours.find_near_dups(INDEX, fingerprint=query, max_distance=distance)
            if time.monotonic() > end:
                return

    def empty(self, _: int = 0) -> Any:
        """Search for nothing: what any search over HTTP costs."""
        return self.client.search(index=INDEX, body=EMPTY)

    def plain(self, query: int) -> set[str]:
        """The plain design: four blocks, one page, rescore."""
        body = body_of(query, LookupPlan(3, 4), 10_000)
        hits = self.client.search(index=INDEX, body=body)["hits"]["hits"]
        return {near_dup.id for near_dup in rescore(hits, query, max_distance=3)}

    def recall(self, look: Any, max_distance: int) -> float:
        """Return the share of all true neighbours that *look* returns."""
        found = wanted = 0
        for query in self.queries:
            truth = self.planted.truth(query, max_distance)
            answer = look(query)
            if answer - truth:
                raise AssertionError(f"{query:016x}: reported but too far: {sorted(answer - truth)[:3]}")
            found += len(answer & truth)
            wanted += len(truth)
        return found / wanted

    def distance(self, max_distance: int) -> dict[str, Any]:
        """Return a row for *max_distance*."""
        row: dict[str, Any] = {"max_distance": max_distance}
        for name, ours in self.ours.items():

            def look(query: int, ours: SimHashClient = ours) -> Any:
                return ours.find_near_dups(INDEX, fingerprint=query, max_distance=max_distance)

            recall = self.recall(lambda query, look=look: {near_dup.id for near_dup in look(query)}, max_distance)
            answer = look(self.queries[0])
            ratio, spent, empty = self.ratio(look)
            postings = self.postings(answer.plan)
            row[name] = {
                "plan": answer.plan.name,
                "recall": recall,
                "ms": round(spent, 2),
                "empty_ms": round(empty, 2),
                "ratio": round(ratio, 2),
                "candidates": answer.candidates,
                "postings": postings,
            }
        print(json.dumps(row), file=sys.stderr)
        return row

    def ratio(self, look: Any) -> tuple[float, float, float]:
        """Return the median of *look* over that of an empty search, both taken in turns, and both medians."""
        spent, empty = [], []
        for query in self.queries:
            empty.append(median_ms(self.empty, [0]))
            spent.append(median_ms(look, [query]))
        both = statistics.median(spent), statistics.median(empty)
        return both[0] / both[1], *both

    def postings(self, plan: Any) -> int:
        """Return how many postings the plan's terms have for the first query, summed over its clauses."""
        body = body_of(self.queries[0], plan, 1_000)
        clause = body["query"]["bool"]["filter"][0].get("bool", {}).get("should", [])
        counts = [self.client.count(index=INDEX, body={"query": query})["count"] for query in clause]
        return sum(counts)

    def throughput(self, max_distance: int) -> dict[str, float]:
        """Return lookups a second: one at a time, in batches of 100, and from 8 threads."""
        ours = next(iter(self.ours.values()))
        queries = (self.queries * 20)[:800]

        def one(query: int) -> Any:
            return ours.find_near_dups(INDEX, fingerprint=query, max_distance=max_distance)

        def rate(work: Any, number: int) -> float:
            start = time.perf_counter()
            work()
            return round(number / (time.perf_counter() - start), 1)

        with ThreadPoolExecutor(8) as threads:
            return {
                "max_distance": max_distance,
                "one_at_a_time": rate(lambda: [one(query) for query in queries[:200]], 200),
                "batches_of_100": rate(
                    lambda: ours.find_near_dups_many(INDEX, fingerprints=queries, max_distance=max_distance),
                    len(queries),
                ),
                "clients_8": rate(lambda: list(threads.map(one, queries)), len(queries)),
            }

    def peers(self, sample: int) -> dict[str, Any]:
        """Return time and recall of other ways at distance 3, over the first *sample* documents."""
        rows: dict[str, Any] = {"sample": sample}
        fingerprints = self.planted.fingerprints[:sample]
        fill_bits(self.client, fingerprints)

        def bits(query: int) -> set[str]:
            should = [{"term": {"bits": term}} for term in bit_terms(query)]
            body = {
                "size": 1000,
                "query": {"bool": {"filter": {"bool": {"should": should, "minimum_should_match": 61}}}},
                "_source": False,
            }
            return {hit["_id"] for hit in self.client.search(index="bits", body=body)["hits"]["hits"]}

        rows["one term per bit"] = self.peer(bits, sample)
        if self.server.product == "elasticsearch":
            fill_vectors(self.client, fingerprints)

            def knn(query: int) -> set[str]:
                body = {
                    "knn": {
                        "field": "vector",
                        "query_vector": signed_bytes(query),
                        "k": 100,
                        "num_candidates": 200,
                        "similarity": 3,
                    },
                    "size": 100,
                    "_source": False,
                }
                return {hit["_id"] for hit in self.client.search(index="vectors", body=body)["hits"]["hits"]}

            rows["approximate kNN, bit vectors"] = self.peer(knn, sample)
        return rows

    def peer(self, look: Any, sample: int) -> dict[str, Any]:
        """Return time over an empty search, and recall at distance 3."""
        found = wanted = 0
        for query in self.queries:
            truth = {id_ for id_ in self.planted.truth(query, 3) if int(id_) < sample}
            found += len(look(query) & truth)
            wanted += len(truth)
        ratio, spent, empty = self.ratio(look)
        return {"recall": found / wanted, "ms": round(spent, 2), "empty_ms": round(empty, 2), "ratio": round(ratio, 2)}


def bit_terms(value: int) -> list[str]:
    """Return a term for each bit, which names its place and whether it is set."""
    return [f"{place}{value >> place & 1}" for place in range(64)]


def signed_bytes(value: int) -> list[int]:
    """Return the eight bytes as a bit vector wants them."""
    return [byte - 256 if byte > 127 else byte for byte in value.to_bytes(8, "big")]


def fill_bits(client: Any, fingerprints: Any) -> None:
    """Index one keyword term for each bit."""
    _fill(client, "bits", {"bits": {"type": "keyword"}}, lambda value: {"bits": bit_terms(value)}, fingerprints)


def fill_vectors(client: Any, fingerprints: Any) -> None:
    """Index bit vectors in an HNSW graph, with the product's defaults."""
    vector = {"vector": {"type": "dense_vector", "element_type": "bit", "dims": 64, "index": True}}
    _fill(client, "vectors", vector, lambda value: {"vector": signed_bytes(value)}, fingerprints)


def _fill(client: Any, index: str, properties: Any, document: Any, fingerprints: Any) -> None:
    client.indices.delete(index=index, ignore_unavailable=True)
    settings = {"number_of_shards": 1, "number_of_replicas": 0, "refresh_interval": "-1"}
    client.indices.create(index=index, body={"settings": settings, "mappings": {"properties": properties}})
    for start in range(0, len(fingerprints), 5_000):
        lines: list[Any] = []
        for position in range(start, min(start + 5_000, len(fingerprints))):
            lines += [{"index": {"_id": str(position)}}, document(int(fingerprints[position]))]
        client.bulk(index=index, body=lines)
    client.indices.refresh(index=index)


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--product", choices=["opensearch", "elasticsearch"], required=True)
    parser.add_argument("--folder", required=True, help="where indices are kept between runs")
    parser.add_argument("--documents", type=int, default=4_000_000)
    parser.add_argument("--bits", type=int, default=16)
    parser.add_argument("--merged", action="store_true", help="an index of one segment")
    parser.add_argument("--slices", type=int, help="segments searched at the same time (OpenSearch)")
    parser.add_argument("--lookups", type=int, default=40)
    parser.add_argument("--warm", type=float, default=30, help="seconds of lookups before the first measurement")
    parser.add_argument("--distances", type=int, nargs="*", default=DISTANCES)
    parser.add_argument("--peers", type=int, default=0, metavar="DOCUMENTS", help="measure other ways, on this many")
    options = parser.parse_args()
    bench = Bench(options)
    try:
        bench.warm(options.warm)
        result: dict[str, Any] = {"command": " ".join(sys.argv), "version": bench.server.version, **vars(options)}
        ratio, spent, empty = bench.ratio(bench.plain)
        result["plain"] = {
            "recall": bench.recall(bench.plain, 3),
            "ms": round(spent, 2),
            "empty_ms": round(empty, 2),
            "ratio": round(ratio, 2),
        }
        result["distances"] = [bench.distance(distance) for distance in options.distances]
        at_3 = next(row for row in result["distances"] if row["max_distance"] == 3)
        ours_at_3 = {name: row["ms"] for name, row in at_3.items() if name != "max_distance"}
        result["plain_over_ours_at_3"] = {name: round(spent / ms, 1) for name, ms in ours_at_3.items()}
        result["throughput"] = [bench.throughput(distance) for distance in bench.common_distances[:2]]
        segments = bench.client.indices.segments(index=INDEX)["indices"][INDEX]["shards"]["0"][0]["segments"]
        result["segments"] = len(segments)
        stats = bench.client.indices.stats(index=INDEX)["indices"][INDEX]["primaries"]
        result["store_bytes_a_document"] = round(stats["store"]["size_in_bytes"] / options.documents, 1)
        if options.peers:
            result["peers"] = bench.peers(options.peers)
        print(json.dumps(result, indent=1, default=str))
    finally:
        bench.server.stop()


if __name__ == "__main__":
    main()
