"""
Time of ``find_near_dups`` over an empty search of the same run, on a real corpus.

    python bench/find.py --product opensearch DOCS.jsonl.gz

Indexes the file, then looks up random documents by text. Prints JSON: median and 95th percentile in milliseconds for
an empty search, for lookups by text at each distance, and by fingerprint, which leaves out computing it.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import time
from pathlib import Path
from typing import Any

from corpora import read_documents
from plans import EMPTY
from vectors import connect

from es_simhash import SimHashClient, fingerprint
from es_simhash.servers import embedded_server

INDEX = "find"


def timed(function: Any, questions: list[Any]) -> tuple[float, float]:
    """Return median and 95th percentile of *function* over *questions*, in milliseconds."""
    times = []
    for question in questions:
        start = time.perf_counter()
        function(question)
        times.append((time.perf_counter() - start) * 1000)
    return statistics.median(times), statistics.quantiles(times, n=20)[-1]


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("docs", type=Path)
    parser.add_argument("--product", choices=["opensearch", "elasticsearch"], required=True)
    parser.add_argument("--scheme", default="shingles")
    parser.add_argument("--lookups", type=int, default=300)
    options = parser.parse_args()
    documents = list(read_documents(options.docs))
    with embedded_server(options.product, heap="1g") as server:
        client = connect(server)
        ours = SimHashClient(client)
        ours.create_index(INDEX, scheme=options.scheme, text_field="text", settings={"number_of_shards": 1})
        refused = [each for each in ours.ingest(INDEX, documents) if each.action == "refused"]
        assert not refused, refused[:3]
        client.indices.refresh(index=INDEX)
        texts = [each["text"] for each in random.Random(5).sample(documents, options.lookups)]
        codes = [code for text in texts if (code := fingerprint(text, scheme=options.scheme)) is not None]

        def empty(_: Any) -> Any:
            return client.search(index=INDEX, body=EMPTY)

        rows = []
        for distance in (0, 3, 8, 12):

            def by_text(text: str, distance: int = distance) -> Any:
                return ours.find_near_dups(INDEX, text, max_distance=distance)

            def by_code(code: int, distance: int = distance) -> Any:
                return ours.find_near_dups(INDEX, fingerprint=code, max_distance=distance)

            timed(by_text, texts)  # warm
            measured = {
                "empty": timed(empty, texts),
                "text": timed(by_text, texts),
                "fingerprint": timed(by_code, codes),
            }
            row: dict[str, Any] = {"max_distance": distance}
            for name, (median, high) in measured.items():
                row |= {f"{name}_ms": round(median, 2), f"{name}_p95_ms": round(high, 2)}
            row["text_over_empty"] = round(measured["text"][0] / measured["empty"][0], 2)
            row["fingerprint_over_empty"] = round(measured["fingerprint"][0] / measured["empty"][0], 2)
            rows.append(row)
    print(json.dumps({"command": " ".join(sys.argv), "documents": len(documents), "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
