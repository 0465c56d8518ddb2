"""
What a decision about each document costs: ``ingest`` against the client's own ``streaming_bulk`` of the same documents.

    python bench/ingest.py --product opensearch --documents 500000 --new 30000 --rounds 3 DOCS.jsonl.gz
    python bench/ingest.py --documents 10000000 --new 1000000 --rounds 1 --warm 0 --ways bulk bits3

The index has so many random fingerprints before, and a hundredth as many of the texts. Without a set the texts are made
up, as those of `bench/repair.py`. Of the new documents three quarters are other texts, and a quarter copies of one of
either, most of them with some characters changed. Each run has a fresh clone of that index; ``bulk``, of chunks of 500
and without anything of ours, has one without our fields, and ``with_fingerprints`` is the same bulk of documents with
their fingerprints. All ways take turns within a round. Prints JSON: of each way the processor time of client and server
for a document, the seconds until the first report, the most memory of the client, the reports of each kind, and its
rate and its processor time as shares of the reference of the same round (median, lowest, highest). What reading the
table of fingerprints takes is included.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from harness import arguments, fill, plant, served, show, spread, working
from repair import make_texts
from sets import read_documents

from es_simhash import SimHashClient

FULL, BULK, RUN = "ingest-full", "ingest-bulk", "ingest-run"
FIELDS = {"properties": {"body": {"type": "text", "index": False}, "n": {"type": "long"}}}
WAYS: dict[str, dict[str, Any]] = {
    "bulk": {},
    "with_fingerprints": {},
    "none": {"on_duplicate": None},
    "bits3": {"max_distance": 3, "verify": False},
    "bits8": {"max_distance": 8, "verify": False},
    "skip3": {"max_distance": 3, "verify": False, "on_duplicate": "skip"},
    "rule": {},
}


def read_texts(path: Path) -> list[str]:
    """Return the different texts of a set, of 12 characters or more, in an order by chance."""
    texts = list(
        dict.fromkeys(text for text in (document["text"] for document in read_documents(path)) if len(text) >= 12)
    )
    random.Random(1).shuffle(texts)
    return texts


def documents(most: int, seed: int, texts: Sequence[str], known: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield documents of *texts*, a quarter of them copies of one of *known* or one of the last thousand."""
    chance = random.Random(seed)
    letters = "".join(texts[:100])
    recent = deque(known[-1_000:], 1_000)
    fresh = iter(texts)
    for number in range(most):
        if recent and chance.random() < 0.25:
            copy = list(chance.choice(known if known and chance.random() < 0.5 else recent))
            for _ in range(chance.choice((0, 0, 1, 2, 3))):
                copy[chance.randrange(len(copy))] = chance.choice(letters)
            text = "".join(copy)
        else:
            text = next(fresh)
        recent.append(text)
        yield {"_id": f"{seed}-{number}", "body": text, "n": number}


class Bench:
    """One server with the index that all runs are clones of."""

    def __init__(self, client: Any, helpers: Any, server: Any, options: argparse.Namespace) -> None:
        self.client, self.helpers, self.options = client, helpers, options
        self.simhash, self.server = SimHashClient(client), server
        first = options.documents // 100
        texts = read_texts(options.docs) if options.docs else make_texts(first + options.new, 1)
        self.known, self.texts = texts[:first], texts[first:]
        one = {"number_of_shards": options.shards, "number_of_replicas": 0}
        self.simhash.create_index(FULL, text_field="body", mappings=FIELDS, settings=one)
        fill(client, helpers, FULL, plant(options.documents, 16).fingerprints, prefix="old")
        known = [{"_id": f"known{n}", "body": text, "n": n} for n, text in enumerate(self.known)]
        for _ in self.simhash.ingest(FULL, known, on_duplicate=None):
            pass
        client.indices.create(index=BULK, body={"mappings": FIELDS, "settings": one})
        helpers.bulk(client, known, index=BULK)
        for index in (FULL, BULK):
            client.indices.forcemerge(index=index, max_num_segments=4)
            client.indices.put_settings(index=index, body={"index.blocks.write": True})

    def run(self, way: str, seed: int) -> dict[str, Any]:
        """Return what one *way* took to write the documents of a seed, and what it reported."""
        self.client.indices.clone(
            index=BULK if way == "bulk" else FULL, target=RUN, body={"settings": {"index.blocks.write": None}}
        )
        self.client.cluster.health(index=RUN, wait_for_status="yellow")
        new = list(documents(self.options.new, seed, self.texts, self.known))
        found: Counter[str] = Counter()
        first = 0.0
        with working(self.server) as work:
            for action in self._actions(way, new):
                first = first or time.perf_counter() - work.seconds
                found[action] += 1
        took = {
            "seconds": work.seconds,
            "client": work.here * 1e6 / len(new),
            "server": work.server * 1e6 / len(new),
            "most_mib": work.most_mib,
            "first_report": first,
        }
        self.client.indices.delete(index=RUN)
        assert sum(found.values()) == len(new), found
        return {**took, "found": dict(found)}

    def _actions(self, way: str, new: list[dict[str, Any]]) -> Iterator[str]:
        if way in ("bulk", "with_fingerprints"):
            actions = new if way == "bulk" else self.simhash.with_fingerprints(RUN, new)
            for _, item in self.helpers.streaming_bulk(self.client, actions, index=RUN, chunk_size=500):
                yield item["index"]["result"]
            return
        arguments = {**WAYS[way], "lookups": self.options.lookups}
        if WAYS[way].get("on_duplicate", "") is None:
            del arguments["lookups"]
        for report in self.simhash.ingest(RUN, new, **arguments):
            yield report.action


def main() -> None:
    """Run and print."""
    parser = arguments(__doc__)
    parser.add_argument("docs", type=Path, nargs="?")
    parser.add_argument("--documents", type=int, default=500_000, help="in the index before")
    parser.add_argument("--new", type=int, default=30_000, help="written in each run")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--warm", type=int, default=4, help="rounds before these: a new server is slow at first")
    parser.add_argument("--shards", type=int, default=1)
    parser.add_argument("--ways", nargs="+", choices=[*WAYS], default=[*WAYS])
    parser.add_argument("--lookups", choices=["auto", "memory", "server"], default="auto")
    options = parser.parse_args()
    with served(options) as (server, client, helpers):
        bench = Bench(client, helpers, server, options)
        runs: dict[str, list[dict[str, Any]]] = {way: [] for way in options.ways}
        for number in range(-options.warm, options.rounds):
            ways = options.ways if number % 2 else options.ways[::-1]
            for way in ways:
                run = bench.run(way, seed=100 + number)
                if number >= 0:
                    runs[way].append(run)
    show(command=" ".join(sys.argv), **summary(runs))


def summary(runs: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """Return the medians of each way, and its shares of the first way."""
    first = next(iter(runs.values()))
    found: dict[str, Any] = {}

    def share(of: Callable[[dict[str, Any]], float], way: str) -> list[float]:
        return spread([of(one) / of(other) for one, other in zip(first, runs[way], strict=True)])

    for way, some in runs.items():
        named = {name: round(median(run[name] for run in some), 2) for name in some[0] if name != "found"}
        rate, work = share(lambda run: run["seconds"], way), share(lambda run: run["client"] + run["server"], way)
        found[way] = {**named, "rate": rate, "processor_time": work, "found": some[-1]["found"]}
    return found


if __name__ == "__main__":
    main()
