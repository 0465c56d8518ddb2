"""
What each accelerator gains: the same calls with it and without, in turns.

    python bench/plain.py --product opensearch --documents 200000

The index has random texts, a fifth of them edited copies. ``ES_SIMHASH_PLAIN=1`` makes the client that has no
accelerators; of each kind of call only one of them is of use, and both find the same. Prints JSON: the medians of both
ways in microseconds an item, elapsed and of processors (client and server), and how many times as long the plain way
takes. With --away the server is so many milliseconds away, there and back.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from itertools import islice
from statistics import median
from typing import Any

from harness import Work, arguments, served, show, working
from lookup import TEXTS_INDEX, fill_texts, texts

from es_simhash import SimHashClient, fingerprints
from es_simhash.arguments import PLAIN

Call = Callable[[SimHashClient], object]


def calls(items: int) -> Iterator[tuple[str, int, dict[str, Call]]]:
    """Yield the name of an accelerator, how many items its calls have, and the calls with it and without."""
    asked = list(islice(texts(10 * items, seed=1), 0, None, 10))  # of the index, and so near something
    values = list(fingerprints(asked))

    def many(lookups: str) -> Call:
        return lambda simhash: simhash.find_near_dups_many(
            TEXTS_INDEX, fingerprints=values, max_distance=3, lookups=lookups
        )

    yield "table of fingerprints", items, {"with": many("memory"), "without": many("server")}
    shared = many("server")
    yield "several lookups in one search", items, {"with": shared, "plain": shared}


def put_away(transport: Any, seconds: float) -> None:
    """Make each request of *transport* take so many *seconds* longer."""
    send = transport.perform_request

    def perform_request(*arguments: Any, **options: Any) -> Any:
        time.sleep(seconds)
        return send(*arguments, **options)

    transport.perform_request = perform_request


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--documents", type=int, default=200_000)
    parser.add_argument("--items", type=int, default=5_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--away", type=float, default=0.0)
    options = parser.parse_args()
    with served(options) as (server, client, _):
        put_away(client.transport, options.away / 1_000)
        made = {}
        for way in ("with", "without", "plain"):
            os.environ[PLAIN] = str(int(way == "plain"))
            made[way] = SimHashClient(client)
        fill_texts(client, made["with"], options.documents)
        runs: dict[str, dict[str, list[Work]]] = {}
        items: dict[str, int] = {}
        for number in range(-1, options.rounds):
            for name, count, ways in calls(options.items):
                items[name] = count
                for way in list(ways)[:: 1 if number % 2 else -1]:
                    with working(server) as work:
                        ways[way](made[way])
                    if number >= 0:
                        runs.setdefault(name, {}).setdefault(way, []).append(work)
    for name, by_way in runs.items():
        show(accelerator=name, **summary(by_way, items[name]))


def summary(ways: dict[str, list[Work]], items: int) -> dict[str, Any]:
    """Return what an item takes by each of two ways, and the ratios of the second to the first."""
    elapsed = {way: 1e6 * median(run.seconds for run in runs) / items for way, runs in ways.items()}
    worked = {way: 1e6 * median(run.here + run.server for run in runs) / items for way, runs in ways.items()}
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
