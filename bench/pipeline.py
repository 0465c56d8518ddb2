"""
The ingest pipeline of an OpenSearch against plain bulk and ``with_fingerprints``, by length of the text.

    python bench/pipeline.py en=DOCS.jsonl.gz zh=DOCS.jsonl.gz

The texts of a data set are joined, and cut into texts of each length. They go into an index of one shard, by the
client's own ``bulk``, in turns: plain; through a pipeline that sets one field, which any pipeline costs; with
``with_fingerprints`` in Python; and through our pipeline. Prints JSON: the medians over that of plain bulk, and what
the server computes for a character beyond the pipeline that sets one field, in nanoseconds of its processors.
"""

from __future__ import annotations

import argparse
import importlib
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

from corpora import read_documents
from vectors import connect

from es_simhash import SimHashClient, with_fingerprints
from es_simhash.servers import embedded_server

INDEX, SETTING = "pipeline", "pipeline-that-sets-one-field"
LENGTHS = (500, 5_000, 50_000, 200_000)
MAPPINGS = {"properties": {"text": {"type": "text"}}}
WAYS = ("plain", "set", "with_fingerprints", "pipeline")


def cut(path: Path, length: int, characters: int) -> list[dict[str, Any]]:
    """Return documents of *length* characters each, *characters* in all."""
    joined, missing = [], characters
    for each in read_documents(path):
        if missing <= 0:
            break
        joined.append(each["text"])
        missing -= len(each["text"]) + 1
    text = "\n".join(joined)[:characters]
    return [{"text": text[start : start + length]} for start in range(0, len(text), length)]


def cpu_seconds(pid: int) -> float:
    """Return what a process has computed so far. Linux counts in hundredths of a second."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("docs", nargs="+", metavar="NAME=DOCS")
    parser.add_argument("--characters", type=int, default=2_000_000, help="of all texts of one length")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--warm-up", type=int, default=3, help="rounds before those that count")
    options = parser.parse_args()
    result: dict[str, Any] = {"command": " ".join(sys.argv)}
    with embedded_server("opensearch", heap="1g") as server:
        client = connect(server)
        [node] = client.nodes.info(metric="process")["nodes"].values()
        client.ingest.put_pipeline(id=SETTING, body={"processors": [{"set": {"field": "a", "value": 1}}]})
        helpers: Any = importlib.import_module("opensearchpy.helpers")

        def write(documents: list[dict[str, Any]], way: str) -> tuple[float, float]:
            client.indices.delete(index=INDEX, ignore_unavailable=True)
            simhash = SimHashClient(client)
            simhash.create_index(INDEX, text_field="text", mappings=MAPPINGS)
            if way == "set":
                client.indices.put_settings(index=INDEX, body={"index.final_pipeline": SETTING})
            if way == "pipeline":
                simhash.put_pipeline(INDEX, use_as="final")
            start, computed = time.perf_counter(), cpu_seconds(node["process"]["id"])
            given = with_fingerprints(documents, text_field="text") if way == "with_fingerprints" else iter(documents)
            helpers.bulk(client, given, index=INDEX, max_chunk_bytes=5_000_000)
            return time.perf_counter() - start, cpu_seconds(node["process"]["id"]) - computed

        for name, _, path in (each.partition("=") for each in options.docs):
            for length in LENGTHS:
                documents = cut(Path(path), length, options.characters)
                spent: dict[str, list[tuple[float, float]]] = {way: [] for way in WAYS}
                for number in range(options.warm_up + options.rounds):
                    for way, times in spent.items():
                        measured = write(documents, way)
                        if number >= options.warm_up:
                            times.append(measured)
                wall = {way: statistics.median(each for each, _ in times) for way, times in spent.items()}
                computed = {way: statistics.median(each for _, each in times) for way, times in spent.items()}
                nanoseconds = (
                    (computed["pipeline"] - computed["set"]) * 1e9 / sum(len(each["text"]) for each in documents)
                )
                result[f"{name} {length}"] = {
                    "documents": len(documents),
                    "over_plain": {way: round(each / wall["plain"], 2) for way, each in wall.items()},
                    "pipeline_over_with_fingerprints": round(wall["pipeline"] / wall["with_fingerprints"], 2),
                    "server_nanoseconds_a_character": round(nanoseconds),
                }
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
