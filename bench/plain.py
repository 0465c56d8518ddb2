"""
What each accelerator gains: the same calls with it and without, in turns.

    python bench/plain.py --product opensearch --documents 200000

The index has random texts, a fifth of them edited copies. ``ES_SIMHASH_PLAIN=1`` makes the client that has no
accelerators; of each kind of call only one of them is of use, and both find the same. Prints JSON: the medians of both
ways in microseconds an item, elapsed and of processors (client and server), and how many times as long the plain way
takes. With --away the server is so many milliseconds away, there and back.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from statistics import median
from typing import Any

import psutil
from memory import connect, measured
from rule import INDEX, fill, texts

from es_simhash import SimHashClient, fingerprints
from es_simhash.arguments import PLAIN
from es_simhash.mapping.resolve import distrust_marker
from es_simhash.servers import embedded_server

Call = Callable[[SimHashClient, str], object]


def calls(items: int) -> Iterator[tuple[str, int, dict[str, Call]]]:
    """Yield the name of an accelerator, how many items its calls have, and the calls with it and without."""
    asked = list(islice(texts(10 * items, seed=1), 0, None, 10))  # of the index, and so near something
    values = list(fingerprints(asked))

    def many(lookups: str) -> Call:
        return lambda simhash, _: simhash.find_near_dups_many(
            INDEX, fingerprints=values, max_distance=3, lookups=lookups
        )

    yield "table of fingerprints", items, {"with": many("memory"), "without": many("server")}
    shared = many("server")
    yield "several lookups in one search", items, {"with": shared, "plain": shared}
    few = asked[: items // 10]

    def rule(simhash: SimHashClient, _: str) -> None:
        for text in few:
            simhash.find_near_dups(INDEX, text)

    yield "texts with hits", len(few), {"with": rule, "plain": rule}

    def one(simhash: SimHashClient, way: str, threads: int = 1) -> None:
        simhash.find_near_dups(INDEX, fingerprint=0)
        context = simhash._context  # noqa: SLF001 -- as if the server did not show the marker to searches
        if way == "without" and (known := context.known.recall(INDEX)):
            distrust_marker(context, INDEX, known[1])
        with ThreadPoolExecutor(threads) as pool:
            deque(pool.map(lambda value: simhash.find_near_dups(INDEX, fingerprint=value), values[: items // 10]), 0)

    yield "marker of settings", items // 10, {"with": one, "without": one}
    at_once = partial(one, threads=8)
    yield "marker of settings, 8 lookups at once", items // 10, {"with": at_once, "without": at_once}


def put_away(transport: Any, seconds: float) -> None:
    """Make each request of *transport* take so many *seconds* longer."""
    send = transport.perform_request

    def perform_request(*arguments: Any, **options: Any) -> Any:
        time.sleep(seconds)
        return send(*arguments, **options)

    transport.perform_request = perform_request


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--product", choices=["opensearch", "elasticsearch"], default="opensearch")
    parser.add_argument("--documents", type=int, default=200_000)
    parser.add_argument("--items", type=int, default=5_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--away", type=float, default=0.0)
    options = parser.parse_args()
    with embedded_server(options.product, heap="1g") as server:
        client, _ = connect(options.product, server.url)
        process = psutil.Process(server.pid)
        put_away(client.transport, options.away / 1_000)
        made = {}
        for way in ("with", "without", "plain"):
            os.environ[PLAIN] = str(int(way == "plain"))
            made[way] = SimHashClient(client)
        fill(client, made["with"], options.documents)
        found: dict[str, dict[str, list[dict[str, float]]]] = {}
        items: dict[str, int] = {}
        for number in range(-1, options.rounds):
            for name, count, ways in calls(options.items):
                items[name] = count
                for way in list(ways)[:: 1 if number % 2 else -1]:
                    run = measured(lambda: ways[way](made[way], way), process)
                    if number >= 0:
                        found.setdefault(name, {}).setdefault(way, []).append(run)
        client.close()
    for name, ways in found.items():
        print(json.dumps({"accelerator": name, **summary(ways, items[name])}))


def summary(ways: dict[str, list[dict[str, float]]], items: int) -> dict[str, Any]:
    """Return what an item takes by each of two ways, and the ratios of the second to the first."""
    elapsed = {way: 1e6 * median(run["seconds"] for run in runs) / items for way, runs in ways.items()}
    worked = {way: 1e6 * median(run["here"] + run["server"] for run in runs) / items for way, runs in ways.items()}
    other = next(way for way in ways if way != "with")
    return {
        "elapsed": {way: round(time, 1) for way, time in elapsed.items()},
        "processor": {way: round(time, 1) for way, time in worked.items()},
        "gain": {
            name: round(times[other] / times["with"], 2)
            for name, times in (("elapsed", elapsed), ("processor", worked))
        },
    }


if __name__ == "__main__":
    main()
