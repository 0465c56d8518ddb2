"""
Documents that add nothing: what a plan of removal by containment finds, held against all pairs, and what it costs.

    python bench/contained.py --product opensearch --documents 6000 DOCS.jsonl.gz

Excerpts of one document in ten are added to the documents of the file: 15 to 200 words, or Chinese characters, in a
row. Plans by containment and by groups are made in turns. Every document is then compared with every other one that has
enough of its shingles, without passages. Prints JSON.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from corpora import read_documents
from vectors import connect

from es_simhash import SimHashClient
from es_simhash.passages.contained import ContainmentMeasure
from es_simhash.removal.removal_file import RemovalFile
from es_simhash.servers import embedded_server
from es_simhash.texts.shingle_sets import run_shingles

INDEX = "contained"
BOUND = 0.95
WAYS: dict[str, dict[str, Any]] = {"contained": {"contained": BOUND}, "groups": {"max_distance": 12, "verify": 0.8}}


def cut_excerpts(texts: list[str], chance: random.Random) -> list[str]:
    """Return parts of some of *texts*."""
    found = []
    for text in chance.sample(texts, len(texts) // 10):
        parts, between = (text.split(), " ") if " " in text else (list(text), "")
        begin = chance.randrange(len(parts) // 2 + 1)
        found.append(between.join(parts[begin : begin + chance.randint(15, 200)]))
    return found


def find_by_all_pairs(texts: list[str]) -> set[int]:
    """Return which of *texts* add nothing; the shingles of all are in memory."""
    measure, sets = ContainmentMeasure(), run_shingles(texts)
    having: defaultdict[int, list[int]] = defaultdict(list)
    gone: set[int] = set()
    for place in sorted(range(len(texts)), key=lambda each: (-sets[each].size, -len(texts[each]), each)):
        shingles = sets[place].tolist()
        shared = Counter(other for each in shingles for other in having[each])
        wanted = [other for other, number in shared.items() if number >= BOUND * len(shingles) and other not in gone]
        pairs = (measure.prepare([texts[place], texts[other]]) for other in wanted)
        if any(measure.compare(*pair, bound=BOUND).similarity >= BOUND for pair in pairs):
            gone.add(place)
        for each in shingles:
            having[each].append(place)
    return gone


def measure_plans(client: Any, texts: list[str], rounds: int) -> dict[str, Any]:
    """Return what the plans find, and the seconds they take, of all and of the processor of this program."""
    simhash = SimHashClient(client)
    simhash.create_index(
        INDEX, text_field="body", passages=True, settings={"number_of_shards": 1, "number_of_replicas": 0}
    )
    documents = ({"_id": f"{number:07d}", "body": text} for number, text in enumerate(texts))
    for written in simhash.ingest(INDEX, documents, on_duplicate=None):
        assert written.action == "written", written
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "plan"
        times: dict[str, list[tuple[float, float]]] = {name: [] for name in WAYS}
        for _ in range(rounds):
            for name, options in WAYS.items():
                path.unlink(missing_ok=True)
                begin, own = time.perf_counter(), time.process_time()
                made = simhash.plan_removal(INDEX, path, max_share=1.0, **options)
                times[name].append((time.perf_counter() - begin, time.process_time() - own))
                found[name] = {"removals": made.count, "left_out": dict(made.left_out)}
                if name == "contained":
                    with RemovalFile(path) as removal:
                        planned = {int(each.document.id) for each in removal.removals()}
    for name, each in times.items():
        found[name] |= {
            "seconds": [round(took, 2) for took, _ in each],
            "processor": [round(own, 2) for _, own in each],
        }
    over = (mine[0] / other[0] for mine, other in zip(times["contained"], times["groups"], strict=True))
    wanted = find_by_all_pairs(texts)
    against = {"all_pairs": len(wanted), "missed": len(wanted - planned), "wrong": len(planned - wanted)}
    return found | against | {"contained_over_groups": round(statistics.median(over), 2)}


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("docs", type=Path)
    parser.add_argument("--product", choices=["opensearch", "elasticsearch"], default="opensearch")
    parser.add_argument("--documents", type=int, default=6_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    texts = [each["text"] for each in read_documents(options.docs, most=options.documents)]
    texts += cut_excerpts(texts, random.Random(options.seed))
    with embedded_server(options.product, heap="1g") as server:
        result = measure_plans(connect(server), texts, options.rounds)
    print(json.dumps({"command": " ".join(sys.argv), "documents": len(texts), **result}, indent=1))


if __name__ == "__main__":
    main()
