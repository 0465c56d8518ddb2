"""
One checkout of this project against another, interleaved in one run: what a change costs.

    python bench/against.py --base ../old --product opensearch DOCS.jsonl.gz

Each checkout runs in a process of its own, with an index of its own on one server. The two take turns, round by round,
at: lookups at distance 3 and 10, one after another and with pauses of 50 ms between them, an ingest with tags and one
without, ``fingerprints``, importing the package, and ``es-simhash --help``. Prints JSON: the median ratio of the new
time to the old one, and the 95 % interval of that median (bootstrap over the rounds).
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import random
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from corpora import read_documents

HERE = Path(__file__).resolve().parents[1]
LOOKUPS = 40
INGESTED = 1_500
HASHED = 1_000
PAUSE_SECONDS = 0.05
PAUSED_LOOKUPS = 20
STARTED = {
    "import": ["-c", "import es_simhash; es_simhash.SimHashClient"],
    "help": ["-m", "es_simhash", "--help"],
}
SERVED = ("lookup_3", "lookup_10", "paused_lookup_3", "paused_lookup_10", "ingest_tags", "ingest_plain", "fingerprints")
OPERATIONS = (*SERVED, *STARTED)


class Checkout:
    """A process that works with the package of one checkout, an operation at a time."""

    def __init__(self, folder: Path, arguments: list[str]) -> None:
        self.folder = folder.resolve()
        environment = {**os.environ, "PYTHONPATH": str(self.folder)}
        command = [sys.executable, __file__, *arguments, "--child"]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=self.folder
        )

    def seconds(self, operation: str) -> float:
        """Return how long *operation* takes there, or in a new process."""
        if operation in STARTED:
            return self._start_seconds(STARTED[operation])
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(operation + "\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())

    def _start_seconds(self, arguments: list[str]) -> float:
        environment = {**os.environ, "PYTHONPATH": str(self.folder)}
        start = time.perf_counter()
        subprocess.run([sys.executable, *arguments], env=environment, check=True, stdout=subprocess.DEVNULL)
        return time.perf_counter() - start


def work(options: argparse.Namespace) -> None:
    """Carry out the operations named on stdin, and print the seconds of each."""
    from es_simhash import SimHashClient, fingerprints

    documents = list(read_documents(options.docs, most=options.documents))
    texts = [each["text"] for each in documents]
    library = importlib.import_module("opensearchpy" if options.product == "opensearch" else "elasticsearch")
    client = (library.OpenSearch if options.product == "opensearch" else library.Elasticsearch)([options.url])
    ours = SimHashClient(client)
    index, target = f"against-{os.getpid()}", f"against-{os.getpid()}-ingest"
    shards = {"number_of_shards": 1}
    ours.create_index(index, text_field="text", settings=shards)
    assert all(each.action == "written" for each in ours.ingest(index, documents, on_duplicate=None))
    client.indices.refresh(index=index)
    picks = random.Random(5)

    def look_up(distance: int) -> None:
        for text in picks.sample(texts, LOOKUPS):
            ours.find_near_dups(index, text, max_distance=distance)

    def look_up_with_pauses(distance: int) -> float:
        seconds = 0.0
        for text in picks.sample(texts, PAUSED_LOOKUPS):
            time.sleep(PAUSE_SECONDS)
            start = time.perf_counter()
            ours.find_near_dups(index, text, max_distance=distance)
            seconds += time.perf_counter() - start
        return seconds

    def ingest(**policy: Any) -> None:
        client.indices.delete(index=target, ignore_unavailable=True)
        ours.create_index(target, text_field="text", settings=shards)
        start = picks.randrange(len(documents) - INGESTED)
        for _ in ours.ingest(target, documents[start : start + INGESTED], **policy):
            pass

    def hash_texts() -> None:
        fingerprints(picks.sample(texts, HASHED))

    operations: dict[str, Any] = {
        "lookup_3": lambda: look_up(3),
        "lookup_10": lambda: look_up(10),
        "paused_lookup_3": lambda: look_up_with_pauses(3),
        "paused_lookup_10": lambda: look_up_with_pauses(10),
        "ingest_tags": lambda: ingest(max_distance=3),
        "ingest_plain": lambda: ingest(on_duplicate=None),
        "fingerprints": hash_texts,
    }
    try:
        for line in sys.stdin:
            start = time.perf_counter()
            seconds = operations[line.strip()]()  # an operation with pauses says how long it worked
            print(time.perf_counter() - start if seconds is None else seconds, flush=True)
    finally:
        client.indices.delete(index=f"{index},{target}", ignore_unavailable=True)


def interval(ratios: list[float]) -> list[float]:
    """Return the 95 % interval of the median of *ratios*."""
    picks = random.Random(1)
    medians = sorted(statistics.median(picks.choices(ratios, k=len(ratios))) for _ in range(2_000))
    return [round(medians[50], 3), round(medians[-51], 3)]


def compare(options: argparse.Namespace, url: str) -> dict[str, Any]:
    """Return the ratios of all operations."""
    arguments = [str(options.docs), "--product", options.product, "--documents", str(options.documents), "--url", url]
    old, new = Checkout(options.base, arguments), Checkout(HERE, arguments)
    rows: dict[str, Any] = {}
    try:
        for operation in options.operations:
            ratios = []
            for number in range(options.rounds + 1):
                times = {}
                # Whoever goes first may pay for both, so they take turns at that too.
                for each in (old, new) if number % 2 else (new, old):
                    times[each] = each.seconds(operation)
                if number:  # the first round warms both up
                    ratios.append(times[new] / times[old])
            rows[operation] = {"new_over_old": round(statistics.median(ratios), 3), "interval_95": interval(ratios)}
    finally:
        for each in (old, new):
            each.process.communicate()
    return rows


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("docs", type=Path)
    parser.add_argument("--base", type=Path, default=HERE, help="the other checkout; by default this one: pure noise")
    parser.add_argument("--product", choices=["opensearch", "elasticsearch"], required=True)
    parser.add_argument("--documents", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--operations", nargs="+", choices=OPERATIONS, default=OPERATIONS, metavar="NAME")
    parser.add_argument("--url", help="a running server; by default one is started")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.docs = options.docs.resolve()
    if options.child:
        work(options)
        return
    result = {"command": " ".join(sys.argv), "documents": options.documents, "rounds": options.rounds}
    if options.url:
        result |= compare(options, options.url)
    else:
        from es_simhash.servers import embedded_server

        with embedded_server(options.product, heap="1g") as server:
            result |= compare(options, server.url)
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
