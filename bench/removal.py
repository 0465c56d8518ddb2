"""
A removal, and a plain bulk delete of the same documents, in turns in one run.

    python bench/removal.py --product opensearch --documents 2000 --rounds 3 --texts reuters21578

Each document stands twice in the index, the second time with another punctuation mark, so half of them are removed.
With --url a running server is used, else one is started. Prints JSON: documents a second (medians), and ratios of the
rates within a round (median, least, most).
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from dedup import connect, read_texts

from es_simhash import SimHashClient
from es_simhash.servers import embedded_server


def fill(client: Any, helpers: Any, simhash: SimHashClient, index: str, texts: list[str]) -> None:
    """Make *index* anew, with two documents for each text."""
    client.indices.delete(index=index, ignore_unavailable=True)
    simhash.create_index(index, text_field="body", settings={"number_of_shards": 2, "number_of_replicas": 0})
    halves = (("a", "."), ("b", "!"))
    actions = ({"_id": f"{half}{n}", "body": text + end} for half, end in halves for n, text in enumerate(texts))
    for _ in helpers.parallel_bulk(client, simhash.with_fingerprints(index, actions), index=index, chunk_size=1_000):
        pass
    client.indices.refresh(index=index)


def measure(simhash: SimHashClient, index: str, folder: Path) -> dict[str, float]:
    """Return how many documents a second were planned, and deleted."""
    plan = folder / "removal.db"
    plan.unlink(missing_ok=True)
    started = time.perf_counter()
    made = simhash.plan_removal(index, plan, max_share=1.0)
    planned = time.perf_counter()
    deleted = sum(record.action == "deleted" for record in simhash.apply_removal(plan))
    ended = time.perf_counter()
    assert deleted == made.count > 0
    seconds = {"plan": planned - started, "apply": ended - planned, "both": ended - started}
    return {step: deleted / taken for step, taken in seconds.items()}


def delete_plainly(client: Any, helpers: Any, index: str, texts: list[str]) -> dict[str, float]:
    """Return how many documents a second the bulk helper of the client deletes, with their ids known."""
    started = time.perf_counter()
    actions = ({"_op_type": "delete", "_index": index, "_id": f"b{n}"} for n in range(len(texts)))
    helpers.bulk(client, actions, chunk_size=200)
    client.indices.refresh(index=index)
    return {"delete": len(texts) / (time.perf_counter() - started)}


def ratio(rounds: list[dict[str, dict[str, float]]], one: tuple[str, str], other: tuple[str, str]) -> dict[str, float]:
    """Return the ratio of two rates of a round: median, least and most."""
    found = [each[one[0]][one[1]] / each[other[0]][other[1]] for each in rounds]
    return {"median": round(statistics.median(found), 3), "least": round(min(found), 3), "most": round(max(found), 3)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--product", choices=["opensearch", "elasticsearch"], default="opensearch")
    parser.add_argument("--url")
    parser.add_argument("--documents", type=int, default=2_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--texts", default="reuters21578")
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[2] / "shared" / "data")
    options = parser.parse_args()
    texts = read_texts(options.data, options.texts, options.documents // 2)
    rounds: list[dict[str, dict[str, float]]] = []
    running = nullcontext() if options.url else embedded_server(options.product, heap="1g")
    with running as server, tempfile.TemporaryDirectory() as folder:
        client, helpers = connect(options.product, options.url or server.url)
        simhash = SimHashClient(client)
        try:
            for _ in range(options.rounds):
                fill(client, helpers, simhash, "bench-removal", texts)
                removal = measure(simhash, "bench-removal", Path(folder))
                fill(client, helpers, simhash, "bench-removal", texts)
                plain_delete = delete_plainly(client, helpers, "bench-removal", texts)
                rounds.append({"removal": removal, "plain": plain_delete})
        finally:
            client.indices.delete(index="bench-removal", ignore_unavailable=True)
            client.close()
    report: dict[str, Any] = {"documents": 2 * len(texts), "texts": options.texts, "product": options.product}
    for step in ("plan", "apply", "both"):
        report[f"{step}_per_second"] = round(statistics.median(found["removal"][step] for found in rounds))
    report["plain_delete_per_second"] = round(statistics.median(each["plain"]["delete"] for each in rounds))
    plain = ("plain", "delete")
    report["ratios"] = {
        f"{step} to plain delete": ratio(rounds, ("removal", step), plain) for step in ("plan", "apply")
    }
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
