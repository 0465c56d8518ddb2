"""
Restore of removed documents against a plain bulk of the same documents, and what regrouping adds.

    python bench/restore.py --product opensearch --documents 10000 --rounds 3

Each round deletes everything and measures all three, one after the other: the bulk helper of the client, a restore into
an index without groups, and a restore into an index that records a grouping. Ratios are of documents a second, within
a round; printed are the median, the least and the most. A first round only warms the server. Texts are made up: some 60
words, and a fifth of them are copies of another.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from es_simhash import SimHashClient, fingerprint_fields
from es_simhash.hashing import fingerprints
from es_simhash.removal.plan_options import PlanHeader
from es_simhash.removal.records import Archived, PlannedDocument, PlannedRemoval
from es_simhash.removal.removal_file import PlanWriter, RemovalFile
from es_simhash.servers import embedded_server


def make_documents(count: int) -> dict[str, dict[str, Any]]:
    chance = random.Random(1)
    words = [f"word{n}" for n in range(5_000)]
    texts: list[str] = []
    for _ in range(count):
        is_copy = bool(texts) and chance.random() < 0.2
        texts.append(chance.choice(texts) if is_copy else " ".join(chance.choices(words, k=60)))
    found = fingerprints(texts)
    return {
        f"d{n:07d}": {"body": text, "n": n, **fingerprint_fields(int(value))}
        for n, (text, value) in enumerate(zip(texts, found, strict=True))
    }


def write_archive(path: Path, index: str, documents: dict[str, dict[str, Any]]) -> None:
    header = PlanHeader({index: "u"}, "simhash", {}, len(documents), decided_by={index: ()})
    canonical = PlannedDocument("d", index, None, 1, 1, "")
    with PlanWriter(path) as writer:
        for id_ in documents:
            writer.add(PlannedRemoval(PlannedDocument(id_, index, None, 1, 1, ""), canonical, 0, 1.0, "same"))
        writer.finish(header)
    lines = [
        Archived(index, id_, None, json.dumps(source), canonical.key, n)
        for n, (id_, source) in enumerate(documents.items())
    ]
    with RemovalFile(path, writes=True) as removal:
        for begin in range(0, len(lines), 500):
            part = lines[begin : begin + 500]
            removal.append(part, [each.line for each in part], "2100-01-01T00:00:00.000Z")


def timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--product", choices=["elasticsearch", "opensearch"], default="opensearch")
    parser.add_argument("--url", help="a running server; by default one is started")
    parser.add_argument("--documents", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with ExitStack() as stack:
        url = options.url or stack.enter_context(embedded_server(options.product)).url
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        if options.product == "opensearch":
            from opensearchpy import OpenSearch as Client, helpers
        else:
            from elasticsearch import Elasticsearch as Client, helpers
        client = (
            Client([url], request_timeout=300) if options.product == "elasticsearch" else Client([url], timeout=300)
        )
        stack.callback(client.close)
        print(json.dumps(measure(client, helpers, folder, options), indent=2))


def measure(client: Any, helpers: Any, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    simhash = SimHashClient(client)
    documents = make_documents(options.documents)
    seconds: dict[str, list[float]] = {"bulk": [], "restore": [], "restore and regroup": []}
    indices = {name: f"bench-restore-{name.replace(' ', '-')}" for name in seconds}

    def bulk(index: str) -> None:
        actions = ({"_index": index, "_id": id_, "_source": source} for id_, source in documents.items())
        helpers.bulk(client, actions, chunk_size=500)
        client.indices.refresh(index=index)

    def restore(index: str) -> None:
        if any(each.action != "restored" for each in simhash.restore(folder / f"{index}.db")):
            raise SystemExit("a document was not restored")
        client.indices.refresh(index=index)

    try:
        for number in range(options.rounds + 1):
            for name, index in indices.items():
                client.indices.delete(index=index, ignore_unavailable=True)
                simhash.create_index(index, text_field="body", settings={"number_of_shards": 1})
                if name == "restore and regroup":
                    simhash.reconcile(index)
                if name != "bulk" and not number:
                    write_archive(folder / f"{index}.db", index, documents)
                work = bulk if name == "bulk" else restore
                taken = timed(lambda work=work, index=index: work(index))  # type: ignore[misc]
                if number:
                    seconds[name].append(taken)
    finally:
        for index in indices.values():
            client.indices.delete(index=index, ignore_unavailable=True)
    return {
        "product": options.product,
        "documents": len(documents),
        "documents_per_second": {
            name: round(len(documents) / statistics.median(each)) for name, each in seconds.items()
        },
        "share_of_bulk": {name: share(seconds["bulk"], seconds[name]) for name in seconds if name != "bulk"},
    }


def share(bulk: list[float], other: list[float]) -> dict[str, float]:
    """Return how fast the other way was in comparison, over the rounds."""
    found = [one / two for one, two in zip(bulk, other, strict=True)]
    return {"median": round(statistics.median(found), 2), "least": round(min(found), 2), "most": round(max(found), 2)}


if __name__ == "__main__":
    main()
