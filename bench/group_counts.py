"""
What counting groups by ranges of their names costs the server, compared with pages that look at all duplicates.

    python bench/group_counts.py --product opensearch --documents 300000 1000000

Fills an index of each size, in which every third document is a duplicate, most of them the only one of their canonical.
Runs ``stats`` both ways in turn, which must return the same. Prints a JSON line for each run: seconds of the processor
that the server used, and seconds that passed. Linux only, because it reads ``/proc``.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import time
from pathlib import Path
from typing import Any

from vectors import connect

from es_simhash import SimHashClient
from es_simhash.servers import embedded_server
from es_simhash.transport import buckets

CHUNK = 20_000
WAYS = {"all duplicates a page": 10**9, "ranges": buckets.CUT_AFTER}


def fill(client: Any, index: str, documents: int) -> None:
    """Index *documents* that have groups, and nothing else; their ids come in no order."""
    settings = {"number_of_replicas": 0, "number_of_shards": 1, "refresh_interval": "-1"}
    SimHashClient(client).create_index(index, settings=settings)
    chance = random.Random(5)
    canonicals: list[str] = []
    for start in range(0, documents, CHUNK):
        lines = []
        for n in range(start, min(documents, start + CHUNK)):
            name = f"{n * 2_654_435_761 % 2**32:08x}-{n:012d}"
            own: dict[str, Any] = {"group": name}
            if n % 3 == 1:
                group = chance.choice(canonicals) if chance.random() < 0.1 else canonicals[-1]
                own = {"group": group, "duplicate_of": group, "distance": n % 4}
            elif n % 3 == 0:
                canonicals.append(name)
            lines += [json.dumps({"index": {"_id": name}}), json.dumps({"simhash": own})]
        answer = client.bulk(index=index, body="\n".join(lines) + "\n")
        if answer["errors"]:
            raise RuntimeError(json.dumps(answer["items"][0]))
    client.indices.refresh(index=index)


def processor_seconds(pid: int) -> float:
    """Return the seconds of the processor that the process *pid* has used."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--product", choices=["opensearch", "elasticsearch"], required=True)
    parser.add_argument("--documents", type=int, nargs="+", default=[300_000, 1_000_000])
    parser.add_argument("--rounds", type=int, default=2)
    arguments = parser.parse_args()
    with embedded_server(arguments.product, heap="1g") as server:
        client = connect(server)
        simhash = SimHashClient(client)
        for documents in arguments.documents:
            index = f"bench-{documents}"
            fill(client, index, documents)
            found = []
            for way in [*WAYS] * arguments.rounds:
                buckets.CUT_AFTER = WAYS[way]
                began, used = time.perf_counter(), processor_seconds(server.pid)
                found.append(simhash.stats(index))
                used, taken = processor_seconds(server.pid) - used, time.perf_counter() - began
                if found[-1] != found[0]:
                    raise RuntimeError("the two ways differ")
                groups = found[0].groups.number
                row = {"documents": documents, "groups": groups, "way": way, "server": round(used, 1)}
                print(json.dumps({"product": arguments.product, **row, "seconds": round(taken, 1)}), flush=True)


if __name__ == "__main__":
    main()
