"""
Ingest with tags that compares texts, against ingest that goes by the distance alone, in turns.

    python bench/verified.py --product opensearch --texts xwlb_zh --documents 20000 --new 1000 --rounds 6 --distance 3

Two indices of one server hold the same texts of a data set. In each round both get the same new documents, a fifth of
them edited copies; which goes first alternates. Ratios are of documents a second. Also measured: the memory that 20,000
documents in flight take for their texts, or for the shingles of those that were compared. Prints JSON.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import Any

from dedup import connect, read_texts

from es_simhash import SimHashClient
from es_simhash.lookup.content import Content
from es_simhash.servers import embedded_server
from es_simhash.texts.measures import WORD_SHINGLES

WAYS = {"by_distance": False, "verified": True}


def run(simhash: SimHashClient, index: str, texts: list[str], kind: str) -> tuple[float, int]:
    """Return documents a second, and how many were tagged."""
    documents = ({"_id": f"{kind}-{n}", "body": text} for n, text in enumerate(texts))
    started = time.perf_counter()
    tagged = sum(each.action == "tagged" for each in simhash.ingest(index, documents))
    return len(texts) / (time.perf_counter() - started), tagged


def memory(texts: list[str], *, compared: bool) -> float:
    """Return the MiB that the texts, or the shingles, of 20,000 documents take; 1,000 are measured."""
    contents = [Content(text) for text in texts[:1_000]]
    size = sum(each.prepared(WORD_SHINGLES).nbytes if compared else each.size for each in contents)
    return round(size / len(contents) * 20_000 / 2**20, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--product", choices=["opensearch", "elasticsearch"], default="opensearch")
    parser.add_argument("--documents", type=int, default=20_000, help="in each index before")
    parser.add_argument("--new", type=int, default=1_000, help="ingested in each round")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--distance", type=int, default=3)
    parser.add_argument("--texts", default="xwlb_zh")
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[2] / "shared" / "data")
    options = parser.parse_args()
    most = options.documents + options.new * (options.rounds + 1)
    texts = read_texts(options.data, options.texts, most)
    report: dict[str, Any] = {key: str(value) for key, value in vars(options).items() if key != "data"}
    report["mebibytes_in_flight"] = {name: memory(texts, compared=name == "compared") for name in ("kept", "compared")}
    with embedded_server(options.product, heap="1g") as server:
        client, helpers = connect(options.product, server.url)
        simhash = SimHashClient(client)
        for way, verify in WAYS.items():
            simhash.create_index(way, text_field="body", settings={"number_of_shards": 1, "number_of_replicas": 0})
            old = [{"_id": f"old-{n}", "body": text} for n, text in enumerate(texts[: options.documents])]
            helpers.bulk(client, simhash.with_fingerprints(way, old), index=way, refresh=True)
            for _ in simhash.ingest(way, old[:500], max_distance=options.distance, verify=verify):
                pass
        rates: dict[str, list[float]] = {way: [] for way in WAYS}
        report["tagged"] = dict.fromkeys(WAYS, 0)
        for number in range(options.rounds + 1):
            begin = options.documents + number * options.new
            for way in list(WAYS) if number % 2 else list(WAYS)[::-1]:
                rate, tagged = run(simhash, way, texts[begin : begin + options.new], str(number))
                if number:  # the first round warms both
                    rates[way].append(rate)
                    report["tagged"][way] += tagged
        client.close()
    report["documents_a_second"] = {way: [round(each) for each in found] for way, found in rates.items()}
    ratios = [one / other for one, other in zip(rates["verified"], rates["by_distance"], strict=True)]
    report["ratio"] = {"median": statistics.median(ratios), "least": min(ratios), "most": max(ratios)}
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
