"""
Says which preset ``setup`` would choose for real texts, and what each preset finds of edited copies of them.

    es-simhash serve --product opensearch --port 9200
    python bench/tune.py DATA_FOLDER --url http://localhost:9200

A set is a folder with ``docs.jsonl.gz``. The first documents of each go into an index without our fields; ``setup``
runs dry, so it samples 500 texts and decides, and nothing is written. Prints a row of a Markdown table for each set.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from corpora import read_documents
from opensearchpy import OpenSearch

from es_simhash import SimHashClient

SETS = ("xwlb_zh", "laws_tw", "reuters21578", "licenses", "weibo_ced")
INDEX = "bench-tune"


def main() -> None:
    """Run, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--url", required=True)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--documents", type=int, default=3_000)
    options = parser.parse_args()
    client = OpenSearch([options.url], timeout=300)
    simhash = SimHashClient(client)
    for name in options.sets.split(","):
        client.indices.delete(index=INDEX, ignore_unavailable=True)
        client.indices.create(
            index=INDEX, body={"mappings": {"properties": {"text": {"type": "text", "index": False}}}}
        )
        documents = read_documents(options.data / name / "docs.jsonl.gz", most=options.documents)
        rows = [row for found in documents for row in ({"index": {"_id": found["_id"]}}, {"text": found["text"]})]
        for start in range(0, len(rows), 500):
            client.bulk(index=INDEX, body=rows[start : start + 500])
        client.indices.refresh(index=INDEX)
        found = simhash.setup(INDEX, text_field="text", dry_run=True)
        shares = {figures.preset: f"{figures.recall:.3f} / {figures.recall_similar:.3f}" for figures in found.presets}
        print("|", " | ".join([name, str(found.preset), *shares.values()]), "|", flush=True)
    client.indices.delete(index=INDEX, ignore_unavailable=True)


if __name__ == "__main__":
    main()
