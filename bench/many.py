"""
Many lookups by asking the server for each, and by its fingerprints in memory; reading these is included.

    python bench/many.py --product opensearch --documents 1000000 --lookups 10000 50000 --distances 3 8

The index has random fingerprints; of those looked up, a tenth are of the index with as many bits flipped as
max_distance. In each round each way looks up. The server is asked for --asked lookups only, and its times are scaled to
the number of lookups: each costs the same. Ratios of elapsed and of processor time, of client and server together, are
from one run. `pays_from`: lookups for which both ways take as long, by processor time.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Sequence
from functools import partial
from statistics import median
from typing import Any

import psutil
from dedup import fill
from memory import connect, measured

from es_simhash import SimHashClient
from es_simhash.servers import embedded_server

INDEX = "bench"


def wanted(documents: int, lookups: int, distance: int, seed: int) -> list[int]:
    """Return fingerprints to look up, a tenth of which have something near them."""
    stored, chance = random.Random(2), random.Random(seed)
    known = [stored.getrandbits(64) for _ in range(min(documents, lookups // 10))]
    found = [each ^ sum(1 << bit for bit in chance.sample(range(64), distance)) for each in known]
    found += [chance.getrandbits(64) for _ in range(lookups - len(found))]
    chance.shuffle(found)
    return found


def summary(memory: Sequence[dict[str, float]], server: Sequence[dict[str, float]], lookups: int) -> dict[str, Any]:
    """Return ratios of the *server* way, given for one lookup, to the way from *memory*."""
    work = [median(each["here"] + each["server"] for each in some) for some in (memory, server)]
    reading = median(each["reading"] for each in memory)
    seconds = [median(each["seconds"] for each in some) for some in (memory, server)]
    return {
        "server_over_memory": {"elapsed": lookups * seconds[1] / seconds[0], "processor": lookups * work[1] / work[0]},
        "milliseconds_per_lookup": {"memory": 1e3 * (work[0] - reading) / lookups, "server": 1e3 * work[1]},
        "reading_seconds": reading,
        "pays_from": reading / (work[1] - (work[0] - reading) / lookups),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--product", choices=["opensearch", "elasticsearch"], default="opensearch")
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--lookups", type=int, nargs="+", default=[10_000, 50_000])
    parser.add_argument("--asked", type=int, default=2_000, help="lookups that the server is asked for")
    parser.add_argument("--distances", type=int, nargs="+", default=[3, 8])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--heap", default="2g")
    options = parser.parse_args()
    with embedded_server(options.product, heap=options.heap) as server:
        client, helpers = connect(options.product, server.url)
        process = psutil.Process(server.pid)
        simhash = SimHashClient(client)
        simhash.create_index(INDEX, settings={"number_of_shards": 1, "number_of_replicas": 0})
        fill(client, helpers, INDEX, options.documents)
        for distance in options.distances:

            def look(values: Sequence[int], way: Any, distance: int = distance) -> dict[str, float]:
                call = partial(simhash.find_near_dups_many, INDEX, max_distance=distance, lookups=way)
                return measured(lambda: call(fingerprints=values), process)

            look(wanted(options.documents, 200, distance, 0), "server")
            look(wanted(options.documents, 200, distance, 0), "memory")
            for lookups in options.lookups:
                runs: dict[str, list[dict[str, float]]] = {"memory": [], "server": []}
                for number in range(options.rounds):
                    values = wanted(options.documents, lookups, distance, 1 + number)
                    reading = look([0], "memory")
                    run = look(values, "memory")
                    runs["memory"].append({**run, "reading": reading["here"] + reading["server"]})
                    asked = values[: options.asked]
                    run = look(asked, "server")
                    runs["server"].append({name: value / len(asked) for name, value in run.items()})
                found = summary(runs["memory"], runs["server"], lookups)
                print(json.dumps({"distance": distance, "lookups": lookups, **found, "runs": runs}), flush=True)
        client.close()


if __name__ == "__main__":
    main()
