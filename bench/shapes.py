"""
Measures other shapes of a lookup's search, and other settings of its index, against those in use.

    python bench/shapes.py --product opensearch --folder DIR

Fills an index in eight segments and merges a copy of it into one; with ``--sorted``, also fills an index sorted by
fingerprint. Prints JSON: for each distance, with and without a script, and for a script that checks every fingerprint,
the processor time of the server for each shape over that for the search in use, as the median of the rounds and the
smallest and largest of them; the shapes take turns in each round. Threads that compile or free memory do not count.
Every shape must find every near-duplicate. Runs on Linux only.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
from collections.abc import Callable
from itertools import product as combinations_of
from pathlib import Path
from typing import Any

from plans import EMPTY, body_of
from vectors import Planted, connect, plant, write_documents

from es_simhash import SimHashClient
from es_simhash.lookup.plan import LookupPlan, neighbour_count, plan_lookup
from es_simhash.mapping.context import IndexStats
from es_simhash.servers import EmbeddedServer, embedded_server

Body = dict[str, Any]

SEGMENTS = 8
HEX = "0123456789abcdef"
RADIUS_OF = {neighbour_count(radius): radius for radius in range(5)}
NOT_OURS = ("C1 ", "C2 ", "G1 ", "GC ", "VM ")
OLD_SCRIPT = "doc[params.field].size() != 1 || Long.bitCount(doc[params.field].value ^ params.wanted) <= params.most"
CONCURRENT = {"search.concurrent_segment_search.mode": "all", "search.concurrent.max_slice_count": 2}


def should_of(body: Body) -> list[Any]:
    """Return the ``terms`` clauses of a search."""
    clauses: list[Any] = body["query"]["bool"]["filter"][0]["bool"]["should"]
    return clauses


def sort_terms(body: Body) -> None:
    """Give the terms in order: the query sorts them itself."""
    for clause in should_of(body):
        field, terms = next(iter(clause["terms"].items()))
        clause["terms"][field] = sorted(terms)


def use_regexp(body: Body) -> None:
    """Look up neighbours from radius 2 on by a regular expression, which reads the terms in order of the dictionary."""
    clauses = should_of(body)
    for number, clause in enumerate(clauses):
        field, terms = next(iter(clause["terms"].items()))
        if len(terms) >= neighbour_count(2):
            clauses[number] = {"regexp": {field: {"value": pattern(terms[0], RADIUS_OF[len(terms)])}}}


def pattern(block: str, radius: int) -> str:
    """Return an expression for the blocks within *radius* bits: the bits are divided among the four digits."""
    divisions = (each for each in combinations_of(range(5), repeat=4) if sum(each) == radius)
    return "|".join("".join(map(near_digits, block, each)) for each in divisions)


def near_digits(digit: str, bits: int) -> str:
    """Return an expression for the hex digits within so many *bits* of one."""
    return "[" + "".join(each for each in HEX if (int(each, 16) ^ int(digit, 16)).bit_count() <= bits) + "]"


def sum_scores(body: Body) -> None:
    """Look up each neighbour once, with its number of radii as a score, and require the sum with ``min_score``."""
    clauses = body["query"]["bool"]
    needed = clauses["filter"].pop(0)["bool"]
    lists: dict[str, list[list[str]]] = {}
    for clause in needed["should"]:
        field, terms = next(iter(clause["terms"].items()))
        lists.setdefault(field, []).append(terms)
    should = []
    for field, nested in lists.items():
        starts = [0, *map(len, nested[:-1])]
        for place, (start, terms) in enumerate(zip(starts, nested, strict=True)):
            query = {"filter": {"terms": {field: terms[start:]}}, "boost": float(len(nested) - place)}
            should.append({"constant_score": query})
    clauses["must"] = [{"bool": {"should": should}}]
    body["min_score"] = float(needed["minimum_should_match"])


def use_old_script(body: Body) -> None:
    """Read the field twice for each document, and leave the types of numbers open."""
    script = body["query"]["bool"]["filter"][1]["script"]["script"]
    script["source"] = OLD_SCRIPT
    script["params"]["field"] = "simhash.value"


def use_constant_score(body: Body) -> None:
    """Put the query into ``constant_score``."""
    body["query"] = {"constant_score": {"filter": body["query"]}}


def shorten_page(body: Body) -> None:
    """Ask for 100 hits at most."""
    body["size"] = 100


Shape = Callable[[Body], None]
SHAPES: dict[str, Shape] = {
    "terms in order": sort_terms,
    "regexp": use_regexp,
    "constant_score": use_constant_score,
    "a page of 100": shorten_page,
}
WITH_SCRIPT: dict[str, Shape] = {"the script before": use_old_script}
WITHOUT_SCRIPT: dict[str, Shape] = {"sums of scores": sum_scores}


class Bench:
    """A server with the indices, and what they hold."""

    def __init__(self, server: EmbeddedServer, planted: Planted, lookups: int) -> None:
        self.server = server
        self.client = connect(server)
        self.planted = planted
        self.queries = [int(each) for each in planted.queries[:lookups]]
        self.fill_ratio: float | None = None

    def fill(self, *, also_sorted: bool) -> None:
        """Fill the indices, one segment after another, and merge a copy."""
        spent: dict[str, list[float]] = {"written": []} | ({"sorted": []} if also_sorted else {})
        for index in spent:
            settings: dict[str, Any] = {"number_of_shards": 1, "number_of_replicas": 0, "refresh_interval": "-1"}
            # Benchmarks ask the same questions again and again, users do not: no answer may come from a cache.
            settings["queries.cache.enabled"] = False
            settings["translog.durability"] = "async"
            if index == "sorted":
                settings["sort.field"] = "simhash.fingerprint"
            SimHashClient(self.client).create_index(index, settings=settings)
        size = len(self.planted.fingerprints) // SEGMENTS
        for segment in range(SEGMENTS):
            part = self.planted.fingerprints[segment * size : (segment + 1) * size]
            for index, seconds in spent.items():
                before = self.processor_seconds()
                write_documents(self.client, index, part, first=segment * size)
                self.client.indices.flush(index=index)
                seconds.append(self.processor_seconds() - before)
        if also_sorted:
            self.fill_ratio = round(sum(spent["sorted"][1:]) / sum(spent["written"][1:]), 2)  # the first warms up
            self.client.indices.forcemerge(index="sorted", max_num_segments=1)
        self.client.indices.put_settings(index="written", body={"index": {"blocks.write": True}})
        copied = {"settings": {"number_of_replicas": 0}}  # a copy has a replica by default, which no node would hold
        self.client.indices.clone(index="written", target="merged", body=copied)
        self.client.cluster.health(index="merged", wait_for_status="green")
        self.client.indices.forcemerge(index="merged", max_num_segments=1)

    def processor_seconds(self) -> float:
        """Return the processor time of the server's threads so far, without compiler and garbage collector."""
        nanoseconds = 0
        for task in Path(f"/proc/{self.server.pid}/task").iterdir():
            try:
                if not (task / "comm").read_text().startswith(NOT_OURS):
                    nanoseconds += int((task / "schedstat").read_text().split()[0])
            except OSError:
                continue  # the thread has ended
        return nanoseconds / 1e9

    def compare(self, plan: LookupPlan, rounds: int) -> dict[str, Any]:
        """Return the ratios of all shapes and settings of the lookups by *plan*."""
        bodies = [body_of(each, plan, 2_000) for each in self.queries]
        shapes = ({} if plan.is_scan else SHAPES) | (WITH_SCRIPT if plan.script else WITHOUT_SCRIPT)
        ways: dict[str, tuple[str, list[Body]]] = {"in use": ("written", bodies)}
        for name, shape in shapes.items():
            ways[name] = ("written", [shaped(body, shape) for body in bodies])
            self.check(ways[name][1], plan.max_distance)
        ways["one segment"] = ("merged", bodies)
        if self.client.indices.exists(index="sorted"):
            ways["one segment, sorted by fingerprint"] = ("sorted", bodies)
        if self.server.product == "opensearch":
            ways["two segments at once"] = ("written", bodies)
        ways["empty search"] = ("written", [EMPTY] * len(bodies))
        row = {"max_distance": plan.max_distance, "plan": plan.name, **self.race(ways, rounds)}
        print(json.dumps(row), file=sys.stderr)
        return row

    def check(self, bodies: list[Body], distance: int) -> None:
        """Fail if a shape loses a near-duplicate."""
        for query, body in zip(self.queries, bodies, strict=True):
            hits = self.client.search(index="written", body={**body, "size": 10_000})["hits"]["hits"]
            if lost := self.planted.truth(query, distance) - {hit["_id"] for hit in hits}:
                raise AssertionError(f"{query:016x}: not found: {sorted(lost)[:3]}")

    def race(self, ways: dict[str, tuple[str, list[Body]]], rounds: int) -> dict[str, Any]:
        """Return for each of *ways* its processor time over that of the first, round by round, in random order."""
        spent: dict[str, list[float]] = {name: [] for name in ways}
        order, chance = list(ways), random.Random(1)
        for number in range(rounds + 2):
            chance.shuffle(order)
            for name in order:
                index, bodies = ways[name]
                concurrent = name == "two segments at once"
                if concurrent:
                    self.client.indices.put_settings(index=index, body={"index": CONCURRENT})
                before = self.processor_seconds()
                for body in bodies:
                    self.client.search(index=index, body=body)
                seconds = self.processor_seconds() - before
                if concurrent:
                    self.client.indices.put_settings(index=index, body={"index": dict.fromkeys(CONCURRENT)})
                if number >= 2:  # the first rounds warm up
                    spent[name].append(seconds)
        base = spent["in use"]
        ratios = {name: [each / of for each, of in zip(times, base, strict=True)] for name, times in spent.items()}
        return {
            name: [round(each, 2) for each in (statistics.median(found), min(found), max(found))]
            for name, found in ratios.items()
        } | {"milliseconds in use": round(statistics.median(base) / len(self.queries) * 1000, 1)}


def shaped(body: Body, shape: Shape) -> Body:
    """Return a copy of *body* in another *shape*."""
    copy: Body = json.loads(json.dumps(body))
    shape(copy)
    return copy


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--product", choices=["opensearch", "elasticsearch"], required=True)
    parser.add_argument("--folder", type=Path, required=True, help="where the indices are kept between runs")
    parser.add_argument("--documents", type=int, default=500_000)
    parser.add_argument("--lookups", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--distances", type=int, nargs="*", default=(8, 12))
    parser.add_argument("--sorted", action="store_true", help="measure an index sorted by fingerprint too")
    options = parser.parse_args()
    data = options.folder / f"{options.product}-{options.documents}-shapes"
    data.mkdir(parents=True, exist_ok=True)
    with embedded_server(options.product, data=data, heap="1g") as server:
        bench = Bench(server, plant(options.documents, 16), options.lookups)
        if not (data / "filled").exists():
            bench.fill(also_sorted=options.sorted)
            (data / "filled").touch()
        scripts = (True, False) if options.product == "opensearch" else (False,)  # the other has no Painless here
        stats = IndexStats(options.documents)
        plans = [
            plan_lookup(distance, stats=stats, scripts=script) for distance in options.distances for script in scripts
        ]
        if True in scripts:
            plans.append(LookupPlan(12, script=True))  # the script alone, for every fingerprint
        rows = [bench.compare(plan, options.rounds) for plan in plans]
        result = {"command": " ".join(sys.argv), "version": server.version, "sorted over unsorted": bench.fill_ratio}
        print(json.dumps({**result, "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
