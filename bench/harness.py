"""Servers, random fingerprints in an index, times of ways that take turns, and their ratios."""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from es_simhash import SimHashClient
from es_simhash.mapping.fields import to_signed
from es_simhash.servers import EmbeddedServer, embedded_server

PRODUCTS = ("opensearch", "elasticsearch")
EMPTY: dict[str, Any] = {"size": 0, "query": {"match_none": {}}, "track_total_hits": False}
ONE_SHARD = {"number_of_shards": 1, "number_of_replicas": 0}
PLANTED = "fingerprints"
PLANTED_QUERIES, LARGEST_DISTANCE = 60, 16


def arguments(doc: str, *, product: bool = True) -> argparse.ArgumentParser:
    """Return a parser that shows the docstring of a script, with ``--product`` and ``--heap``."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    if product:
        parser.add_argument("--product", choices=PRODUCTS, default=PRODUCTS[0])
        parser.add_argument("--heap", default="2g")
    return parser


def connect(server: EmbeddedServer) -> tuple[Any, Any]:
    """Return a client of the server's own kind, and its bulk helpers."""
    if server.product == "opensearch":
        from opensearchpy import OpenSearch, helpers

        return OpenSearch([server.url], timeout=600, pool_maxsize=8), helpers
    from elasticsearch import Elasticsearch, helpers as elastic_helpers

    return Elasticsearch([server.url], request_timeout=600), elastic_helpers


@contextmanager
def served(options: argparse.Namespace, **given: Any) -> Iterator[tuple[EmbeddedServer, Any, Any]]:
    """Give a running server of ``--product``, its client, and the helpers of that."""
    with embedded_server(options.product, heap=options.heap, **given) as server:
        client, helpers = connect(server)
        yield server, client, helpers
        client.close()


def seconds(work: Callable[[], Any]) -> float:
    """Return how long *work* takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def processor_seconds(server: EmbeddedServer) -> float:
    """Return what the server's process has run so far."""
    process = psutil.Process(server.pid)
    return float(sum(sum(part.cpu_times()[:2]) for part in (process, *process.children(recursive=True))))


def in_turns(ways: dict[Any, Callable[[Any], Any]], items: Sequence[Any], warm: int = 1) -> dict[Any, list[float]]:
    """Return the milliseconds of each way for each item; the ways take turns, and *warm* rounds do not count."""
    spent: dict[Any, list[float]] = {name: [] for name in ways}
    for number in range(-warm, 1):
        for place, item in enumerate(items):
            for name in list(ways)[:: 1 if place % 2 else -1]:
                took = seconds(partial(ways[name], item))
                if number == 0:
                    spent[name].append(1000 * took)
    return spent


def ratios(spent: dict[str, list[float]], reference: str) -> dict[str, dict[str, float]]:
    """Return of each way the median, the 95th percentile, and the ratio of its median to that of the reference."""
    base = statistics.median(spent[reference])
    return {
        name: {
            "median": round(statistics.median(times), 2),
            "at_95_percent": round(float(np.quantile(times, 0.95)), 2),
            "ratio": round(statistics.median(times) / base, 2),
        }
        for name, times in spent.items()
    }


@dataclass
class Work:
    """What some work took: seconds, those of processors, here and in the server, and the most memory here, in MiB."""

    seconds: float = 0.0
    here: float = 0.0
    server: float = 0.0
    most_mib: float = 0.0


@contextmanager
def working(server: EmbeddedServer) -> Iterator[Work]:
    """Give what the work within takes, complete at its end; what Linux counts as the most memory begins anew."""
    Path("/proc/self/clear_refs").write_text("5")
    work = Work(time.perf_counter(), time.process_time(), processor_seconds(server))
    yield work
    work.seconds = time.perf_counter() - work.seconds
    work.here = time.process_time() - work.here
    work.server = processor_seconds(server) - work.server
    [most] = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")]
    work.most_mib = int(most.split()[1]) / 1024


def spread(values: Sequence[float]) -> list[float]:
    """Return the median, the least and the most."""
    return [round(choose(values), 2) for choose in (statistics.median, min, max)]


def store_bytes(client: Any, index: str, documents: int) -> float:
    """Return the bytes on disk for each document of an index, merged to one segment."""
    client.indices.forcemerge(index=index, max_num_segments=1)
    client.indices.flush(index=index)
    primaries = client.indices.stats(index=index)["indices"][index]["primaries"]
    return float(round(primaries["store"]["size_in_bytes"] / documents, 1))


@dataclass(frozen=True)
class Planted:
    """Fingerprints (the id of a document is its position), and those that have neighbours at each distance."""

    fingerprints: np.ndarray
    queries: list[int]

    def truth(self, query: int, max_distance: int) -> set[str]:
        """Return the ids within *max_distance* of *query*, by exhaustive comparison."""
        distances = np.bitwise_count(self.fingerprints ^ np.uint64(query))
        return {str(position) for position in np.flatnonzero(distances <= max_distance).tolist()}


def plant(documents: int, bits: int) -> Planted:
    """
    Return fingerprints of which each block's upper *bits* are random, neighbours planted among them.

    With fewer random bits posting lists are as long as in a larger index: 12 bits stand for 16 times the documents, 8
    for 256 times. Only random bits are flipped, so that a neighbour's blocks stay among the values there are.
    """
    chance = np.random.default_rng(7)
    mask = sum(((0xFFFF << (16 - bits)) & 0xFFFF) << (16 * block) for block in range(4))
    found = chance.integers(0, 2**64, documents, dtype=np.uint64) & np.uint64(mask)
    free = [bit for bit in range(64) if mask >> bit & 1]
    queries = found[:PLANTED_QUERIES].copy()
    place = PLANTED_QUERIES
    for query in queries:
        for distance in range(LARGEST_DISTANCE + 1):
            flips = sum(1 << int(bit) for bit in chance.choice(free, distance, replace=False))
            found[place] = query ^ np.uint64(flips)
            place += 1
    return Planted(found, queries.tolist())


def fill(client: Any, helpers: Any, index: str, fingerprints: np.ndarray, *, prefix: str = "") -> None:
    """Write a document that holds our fields and nothing else for each fingerprint, and refresh."""

    def actions() -> Iterator[dict[str, Any]]:
        for position, value in enumerate(fingerprints.tolist()):
            digits = f"{value:016x}"
            ours = {f"block{block}": digits[4 * block : 4 * block + 4] for block in range(4)}
            ours |= {"fingerprint": digits, "value": to_signed(value)}
            yield {"_index": index, "_id": f"{prefix}{position}", "_source": {"simhash": ours}}

    for _ in helpers.parallel_bulk(client, actions(), chunk_size=5_000, thread_count=2):
        pass
    client.indices.refresh(index=index)


@contextmanager
def serve_planted(options: argparse.Namespace) -> Iterator[tuple[EmbeddedServer, Any, Planted]]:
    """Give a server whose index holds what :func:`plant` gives; the folder keeps it between runs."""
    planted = plant(options.documents, options.bits)
    name = f"{options.product}-{options.documents}-{options.bits}{'-merged' if options.merged else ''}"
    data = Path(options.folder) / name
    data.mkdir(parents=True, exist_ok=True)
    with served(options, data=data) as (server, client, helpers):
        if not (data / "filled").exists():
            client.indices.delete(index=PLANTED, ignore_unavailable=True)
            SimHashClient(client).create_index(PLANTED, settings={**ONE_SHARD, "refresh_interval": "-1"})
            fill(client, helpers, PLANTED, planted.fingerprints)
            client.indices.put_settings(index=PLANTED, body={"index": {"refresh_interval": "1s"}})
            if options.merged:
                client.indices.forcemerge(index=PLANTED, max_num_segments=1)
            client.indices.flush(index=PLANTED)
            (data / "filled").touch()
        # Benchmarks ask the same questions again and again, users do not: no answer may come from the cache of filters.
        client.indices.close(index=PLANTED)
        client.indices.put_settings(index=PLANTED, body={"index": {"queries.cache.enabled": False}})
        client.indices.open(index=PLANTED)
        client.cluster.health(index=PLANTED, wait_for_status="green")
        yield server, client, planted


def show(**report: Any) -> None:
    """Print a report as JSON."""
    print(json.dumps(report, indent=1, ensure_ascii=False, default=str), flush=True)
