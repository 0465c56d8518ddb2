"""
How cost grows with documents, shards, replicas and nodes, and what settings change, on one product.

    python bench/sizing.py --product opensearch --documents 250000 1000000 --shards 1 3
    python bench/sizing.py --product opensearch --documents 250000 --shards 3 --replicas 1 --nodes 3
    python bench/sizing.py --product opensearch --bytes 200000 --refresh 100000

Prints JSON. For each number of documents and shards: lookups, lookups in batches, reading, grouping and writing groups
back, and ingest with tags, each measured in turns with an empty search, or with what the client's own helpers do;
first with the segments as written, then lookups again with one segment a shard. The indices are full of random
fingerprints, a twentieth of which are others with one to three bits changed, each with a short text and its group.
Every lookup is compared with an exhaustive comparison. --bytes measures what the fields take on disk, --refresh an
ingest and its segments with several values of refresh_interval. Every measurement is a pair: of elapsed time, and of
processor time of client and servers together, which other work on the machine hardly changes. Compare ratios.
"""

from __future__ import annotations

import argparse
import importlib
import json
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
from plans import EMPTY
from vectors import Corpus

from es_simhash import SimHashClient
from es_simhash.servers import EmbeddedServer, embedded_server
from es_simhash.transport.protocol import Progress

DISTANCES = (3, 8, 12)
CHUNK = 5_000
# Documents of the index that have no group yet, which reconcile then writes.
UNGROUPED = 10_000
INTERVALS = ("1s", "30s", "-1")


Spent = np.ndarray
"""Elapsed milliseconds, and milliseconds of processors."""


def rounded(value: Any) -> Any:
    """Return a number, or each of several, with three digits."""
    return list(map(rounded, value)) if isinstance(value, np.ndarray) else float(f"{value:.3g}")


def processor_seconds(pid: int) -> float:
    """Return the time that the threads of a process have run, to the nanosecond (Linux)."""
    total = 0
    for thread in Path(f"/proc/{pid}/task").iterdir():
        try:
            total += int((thread / "schedstat").read_text().split()[0])
        except OSError:  # it has just ended
            continue
    return total / 1e9


class Bench:
    """A running server or cluster, and what is measured on it."""

    def __init__(self, servers: Sequence[EmbeddedServer], options: argparse.Namespace) -> None:
        self.product, self.version, self.options = servers[0].product, servers[0].version, options
        self.pids = [each.pid for each in servers]
        urls = [each.url for each in servers]
        if self.product == "opensearch":
            from opensearchpy import OpenSearch

            self.client: Any = OpenSearch(urls, timeout=600)
        else:
            from elasticsearch import Elasticsearch

            self.client = Elasticsearch(urls, request_timeout=600)
        self.helpers = importlib.import_module(f"{type(self.client).__module__.partition('.')[0]}.helpers")
        self.simhash = SimHashClient(self.client)

    def create(self, index: str, shards: int, *, interval: str = "-1", ours: bool = True) -> None:
        """Create *index* anew, with our fields or without."""
        self.client.indices.delete(index=index, ignore_unavailable=True)
        settings = {
            "number_of_shards": shards,
            "number_of_replicas": self.options.replicas,
            "refresh_interval": interval,
            # The same questions are asked again and again here: no answer may come from the cache of filters.
            "queries.cache.enabled": False,
        }
        if ours:
            self.simhash.create_index(index, text_field="text", settings=settings)
        else:
            self.client.indices.create(index=index, body={"settings": settings})
        self.client.cluster.health(index=index, wait_for_status="green")

    def load(self, index: str, corpus: Corpus, **what: Any) -> float:
        """Write the documents of *corpus* and refresh; return documents a second."""

        def send(first: int) -> None:
            body = corpus.lines(first, min(first + CHUNK, len(corpus.values)), **what)
            answer = self.client.bulk(index=index, body=body)
            assert not answer["errors"], answer["items"][0]

        start = time.perf_counter()
        with ThreadPoolExecutor(2) as threads:
            list(threads.map(send, range(0, len(corpus.values), CHUNK)))
        self.client.indices.refresh(index=index)
        return rounded(len(corpus.values) / (time.perf_counter() - start))

    def segments(self, index: str) -> int:
        """Return how many segments the primaries have."""
        shards = self.client.indices.segments(index=index)["indices"][index]["shards"].values()
        return sum(len(copy["segments"]) for copies in shards for copy in copies if copy["routing"]["primary"])

    def bytes(self, index: str) -> float:
        """Return bytes a document on disk, without replicas."""
        self.client.indices.flush(index=index)
        stats = self.client.indices.stats(index=index)["indices"][index]["primaries"]
        return rounded(stats["store"]["size_in_bytes"] / stats["docs"]["count"])

    def merge(self, index: str) -> None:
        """Leave one segment in each shard."""
        self.client.indices.forcemerge(index=index, max_num_segments=1)
        self.client.indices.refresh(index=index)

    def clock(self) -> Spent:
        """Return what was spent until now."""
        servers = sum(map(processor_seconds, self.pids))
        return 1000 * np.array([time.perf_counter(), time.process_time() + servers])

    def timed(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> tuple[Spent, Any]:
        """Return what a call takes, and its result."""
        servers = sum(map(processor_seconds, self.pids))
        start, own = time.perf_counter(), time.process_time()
        result = function(*arguments, **options)
        end, own = time.perf_counter(), time.process_time() - own
        servers = sum(map(processor_seconds, self.pids)) - servers
        return 1000 * np.array([end - start, own + servers]), result

    def empty(self, index: str) -> Spent:
        """Return what a search takes that finds nothing."""
        return self.timed(self.client.search, index=index, body=EMPTY)[0]

    def warm(self, index: str, corpus: Corpus) -> None:
        """Look up until the server has compiled what it runs."""
        end = time.monotonic() + self.options.warm
        for value in cycle(corpus.values[:200].tolist()):
            self.empty(index)
            for distance in DISTANCES:
                self.simhash.find_near_dups(index, fingerprint=value, max_distance=distance)
            if time.monotonic() > end:
                return

    def lookups(self, index: str, corpus: Corpus) -> dict[str, Any]:
        """Return the medians of an empty search and of lookups, in turns, and in batches of 100."""
        spent: dict[str, list[Spent]] = {"empty": []}
        plans: dict[str, str] = {}
        queries = corpus.values[200 : 200 + self.options.lookups].tolist()
        for value in queries:
            spent["empty"].append(self.empty(index))
            for distance in DISTANCES:
                taken, found = self.timed(self.simhash.find_near_dups, index, fingerprint=value, max_distance=distance)
                # What an ingest added is no part of the truth; by chance such a text has a fingerprint that is near.
                ours = {each.id for each in found if each.id.startswith("d")}
                assert ours == corpus.truth(value, distance), (value, distance, ours ^ corpus.truth(value, distance))
                spent.setdefault(str(distance), []).append(taken)
                plans[str(distance)] = found.plan.name
        for batch in range(self.options.batches):
            values = corpus.values[1_000 + 100 * batch : 1_100 + 100 * batch].tolist()
            for distance in DISTANCES[:2]:
                taken, many = self.timed(
                    self.simhash.find_near_dups_many, index, fingerprints=values, max_distance=distance
                )
                assert len(many) == 100
                spent.setdefault(f"many_{distance}", []).append(taken / 100)
        medians = {name: np.median(times, axis=0) for name, times in spent.items()}
        ratios = {name: rounded(taken / medians["empty"]) for name, taken in medians.items() if name != "empty"}
        return {"empty_ms": rounded(medians["empty"]), "over_empty": ratios, "plans": plans}

    def concurrent(self, index: str, corpus: Corpus) -> dict[str, Any]:
        """Return the lookups with and without concurrent segment search, in turns."""
        rows: dict[str, dict[str, list[Spent]]] = {}
        for begin in range(0, self.options.lookups, 5):
            for mode in ("none", "all"):
                self._set_concurrent(index, mode)
                spent = rows.setdefault(mode, {})
                for value in corpus.values[400 + begin : 405 + begin].tolist():
                    spent.setdefault("empty", []).append(self.empty(index))
                    for distance in DISTANCES:
                        look = self.simhash.find_near_dups
                        taken, _ = self.timed(look, index, fingerprint=value, max_distance=distance)
                        spent.setdefault(str(distance), []).append(taken)
        self._set_concurrent(index, None)
        medians = {mode: {k: np.median(v, axis=0) for k, v in spent.items()} for mode, spent in rows.items()}
        return {name: rounded(medians["all"][name] / medians["none"][name]) for name in medians["all"]}

    def _set_concurrent(self, index: str, mode: str | None) -> None:
        if self.product == "opensearch":
            body = {"index": {"search.concurrent_segment_search.mode": mode}}
            self.client.indices.put_settings(index=index, body=body)
        else:
            value = None if mode is None else mode == "all"
            body = {"persistent": {"search.query_phase_parallel_collection_enabled": value}}
            self.client.cluster.put_settings(body=body)

    def grouping(self, index: str, corpus: Corpus) -> dict[str, Any]:
        """Return the milliseconds a thousand documents of reading, grouping and writing, and of the plain helpers."""
        told: dict[str, list[tuple[Spent, int]]] = {}

        def note(progress: Progress) -> None:
            told.setdefault(progress.step, []).append((self.clock(), progress.done))

        def scan() -> int:
            query = {"query": {"exists": {"field": "simhash.fingerprint"}}, "_source": False}
            query["docvalue_fields"] = ["simhash.fingerprint", "simhash.group"]
            return sum(1 for _ in self.helpers.scan(self.client, index=index, query=query, size=5_000))

        start = self.clock()
        report = self.simhash.reconcile(index, max_distance=Corpus.WITHIN, verify=False, progress=note)
        assert report.is_settled, report.failures[:3]
        assert report.changed == self.ungrouped(corpus), report.changed
        read, written = told["reading documents"], told["rewriting groups"]
        writing_from = written[0][0]
        first_written = written[0][1]
        plain_read, count = self.timed(scan)
        assert count == len(corpus.values)
        actions = (
            {"_op_type": "update", "_id": f"d{place:09}", "doc": {"simhash": corpus.groups(place) | {"at": None}}}
            for place in range(self.ungrouped(corpus))
        )
        plain_write, _ = self.timed(self.helpers.bulk, self.client, actions, index=index, chunk_size=500)
        ours_read = (read[-1][0] - start) * 1000 / len(corpus.values)
        # The first report of writing comes after its first 500 documents; before them everything was grouped.
        ours_write = (written[-1][0] - writing_from) * 1000 / (written[-1][1] - first_written)
        grouped = writing_from - read[-1][0] - ours_write * first_written / 1000
        return {
            "reading_ms_a_thousand": rounded(ours_read),
            "reading_over_scan": rounded(ours_read * len(corpus.values) / 1000 / plain_read),
            "grouping_ms_a_thousand": rounded(np.maximum(grouped, 0.0) * 1000 / len(corpus.values)),
            "writing_ms_a_thousand": rounded(ours_write),
            "writing_over_bulk_update": rounded(ours_write * self.ungrouped(corpus) / 1000 / plain_write),
        }

    def ungrouped(self, corpus: Corpus) -> int:
        """Return how many documents of *corpus* are loaded without a group."""
        return min(UNGROUPED, len(corpus.values) // 5)

    def ingest(self, index: str) -> dict[str, Any]:
        """Return documents a second of an ingest with tags and of one without, in turns."""
        chance = random.Random(index)
        # Words without common parts: their texts are no near-duplicates by chance.
        words = [f"{chance.getrandbits(32):x}" for _ in range(5_000)]
        spent: dict[str, list[Spent]] = {"tag": [], "none": []}
        count = self.options.ingested
        for number in range(self.options.batches + 1):
            for way, on_duplicate in (("tag", "tag"), ("none", None)):
                documents = [
                    {"_id": f"{way}{number}-{place}", "text": " ".join(chance.choices(words, k=40))}
                    for place in range(count)
                ]
                taken, done = self.timed(lambda: list(self.simhash.ingest(index, documents, on_duplicate=on_duplicate)))
                assert all(each.action == "written" for each in done), {each.action for each in done}
                if number:  # the first round warms both
                    spent[way].append(taken)
        medians = {way: np.median(found, axis=0) for way, found in spent.items()}
        return {
            "without_ms_a_thousand": rounded(1000 * medians["none"] / count),
            "tags_over_without": rounded(medians["tag"] / medians["none"]),
        }

    def size(self, documents: int, shards: int) -> dict[str, Any]:
        """Return everything about an index of that size."""
        corpus, index = Corpus(documents), f"size-{documents}-{shards}"
        row: dict[str, Any] = {"documents": documents, "shards": shards, "replicas": self.options.replicas}
        self.create(index, shards)
        row["loaded_a_second"] = self.load(index, corpus, ungrouped_from=documents - self.ungrouped(corpus))
        self.client.indices.put_settings(index=index, body={"index": {"refresh_interval": "1s"}})
        self.warm(index, corpus)
        row["as_written"] = {"segments": self.segments(index), "bytes": self.bytes(index)}
        row["as_written"] |= self.lookups(index, corpus)
        row["as_written"]["concurrent_over_not"] = self.concurrent(index, corpus)
        say(row)
        row["grouping"] = self.grouping(index, corpus)
        row["ingest"] = self.ingest(index)
        say(row)
        self.merge(index)
        self.warm(index, corpus)
        row["merged"] = {"segments": self.segments(index), "bytes": self.bytes(index)} | self.lookups(index, corpus)
        self.client.indices.delete(index=index)
        say(row)
        return row

    def field_bytes(self, documents: int) -> dict[str, Any]:
        """Return bytes a document of indices without our fields, with a fingerprint, and with a group too."""
        corpus = Corpus(documents)
        ways = {"without": {"fields": False}, "fingerprint": {"ungrouped_from": 0}, "grouped": {}}
        found: dict[str, dict[str, float]] = {"as_written": {}, "merged": {}}
        for name, what in ways.items():
            self.create("bytes", 1, ours=name != "without")
            self.load("bytes", corpus, **what)
            found["as_written"][name] = self.bytes("bytes")
            self.merge("bytes")
            found["merged"][name] = self.bytes("bytes")
        self.client.indices.delete(index="bytes")
        return {"documents": documents, **found}

    def refresh(self, documents: int) -> list[dict[str, Any]]:
        """Return a row for each refresh_interval: loading, the segments that it leaves, lookups, and an ingest."""
        corpus = Corpus(documents)
        rows = []
        for interval in (INTERVALS[0], *INTERVALS):
            self.create("refresh", 1, interval=interval)
            row = {"refresh_interval": interval, "loaded_a_second": self.load("refresh", corpus)}
            row["segments"] = self.segments("refresh")
            self.warm("refresh", corpus)
            row |= self.lookups("refresh", corpus) | {"ingest": self.ingest("refresh")}
            rows.append(row)
        self.client.indices.delete(index="refresh")
        return rows[1:]  # the first one warmed the server


def say(row: Any) -> None:
    print(json.dumps(row), file=sys.stderr, flush=True)


@contextmanager
def running(options: argparse.Namespace) -> Iterator[Bench]:
    """Start a server, or a cluster, of the product and version that *options* name."""
    how = {"version": options.version, "heap": options.heap}
    if options.nodes == 1:
        with embedded_server(options.product, **how) as server:
            yield Bench([server], options)
        return
    sys.path.insert(0, str(Path(__file__).parents[1]))  # clusters belong to the tests
    from tests.servers.cluster import embedded_cluster

    with embedded_cluster(options.product, nodes=options.nodes, **how) as cluster:
        yield Bench(cluster.nodes, options)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--product", choices=["opensearch", "elasticsearch"], required=True)
    parser.add_argument("--version", help="by default the newest")
    parser.add_argument("--documents", type=int, nargs="*", default=[])
    parser.add_argument("--shards", type=int, nargs="*", default=[1])
    parser.add_argument("--replicas", type=int, default=0)
    parser.add_argument("--nodes", type=int, default=1)
    parser.add_argument("--heap", default="1g", help="of each node")
    parser.add_argument("--bytes", type=int, help="documents of the indices whose size on disk is measured")
    parser.add_argument("--refresh", type=int, help="documents of the indices with several values of refresh_interval")
    parser.add_argument("--lookups", type=int, default=30)
    parser.add_argument("--batches", type=int, default=3, help="batches of lookups and rounds of ingest")
    parser.add_argument("--ingested", type=int, default=2_000, help="documents of one round of ingest")
    parser.add_argument("--warm", type=float, default=15, help="seconds of lookups before the first measurement")
    options = parser.parse_args()
    result: dict[str, Any] = {"command": " ".join(sys.argv), "product": options.product}
    with running(options) as bench:
        result["version"] = bench.version
        if options.bytes:
            result["bytes"] = bench.field_bytes(options.bytes)
        if options.refresh:
            result["refresh"] = bench.refresh(options.refresh)
        result["sizes"] = [bench.size(number, shards) for number in options.documents for shards in options.shards]
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
