"""
Backfill against doing it by hand (scroll, fingerprint, bulk update), and ``_update_by_query`` with a no-op.

    python bench/backfill.py --product opensearch --documents 20000 --workers 2 --texts xwlb_zh
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

from dedup import connect, rate, read_texts

from es_simhash import SimHashClient, build_mapping, document_fields
from es_simhash.servers import embedded_server


def by_hand(client: Any, helpers: Any, index: str) -> None:
    """What a user writes: scan, compute, bulk update."""
    actions = (
        {
            "_op_type": "update",
            "_index": index,
            "_id": hit["_id"],
            "doc": document_fields(hit["_source"]["body"]),
        }
        for hit in helpers.scan(client, index=index, query={"_source": ["body"]}, size=1_000)
    )
    helpers.bulk(client, actions)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--product", choices=["opensearch", "elasticsearch"], default="opensearch")
    parser.add_argument("--documents", type=int, default=20_000)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--texts", default="xwlb_zh")
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[2] / "shared" / "data")
    options = parser.parse_args()
    texts = read_texts(options.data, options.texts, options.documents)
    report: dict[str, Any] = {key: str(value) for key, value in vars(options).items() if key != "data"}
    with embedded_server(options.product, heap="2g") as server:
        client, helpers = connect(options.product, server.url)
        simhash = SimHashClient(client)
        shards = {"number_of_shards": 2, "number_of_replicas": 0}
        for name in ("hand", "ours", "script"):
            client.indices.create(index=name, body={"settings": shards, "mappings": build_mapping(text_field="body")})
            helpers.bulk(client, ({"_index": name, "_id": str(n), "body": each} for n, each in enumerate(texts)))
            client.indices.refresh(index=name)
        report["by_hand_per_second"] = rate(len(texts), lambda: by_hand(client, helpers, "hand"))
        report["backfill_per_second"] = rate(
            len(texts), lambda: [None for _ in simhash.backfill("ours", workers=options.workers)]
        )
        report["times_by_hand"] = report["backfill_per_second"] / report["by_hand_per_second"]
        if options.product == "opensearch":
            started = time.perf_counter()
            script = {"script": {"source": "ctx._source.touched = true", "lang": "painless"}}
            client.update_by_query(index="script", body=script, request_timeout=600)
            report["update_by_query_per_second"] = len(texts) / (time.perf_counter() - started)
            report["times_update_by_query"] = report["backfill_per_second"] / report["update_by_query_per_second"]
        client.close()
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
