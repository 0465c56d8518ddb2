"""
A removal and its restore beside the client's plain bulks of the same documents, in turns in one run.

    python bench/removal.py --product opensearch --documents 2000 --rounds 3 DOCS.jsonl.gz

Each document stands twice in the index, the second time with another mark at its end, so about half of them are
removed, and then restored. Prints JSON: documents a second (medians), and ratios of the rates within a round (median,
least, most).
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness import ONE_SHARD, arguments, seconds, served, show, spread
from sets import read_documents

from es_simhash import SimHashClient

INDEX, PLAIN_INDEX = "bench-removal", "bench-plain"


def documents(texts: list[str], half: str, end: str) -> Iterator[dict[str, Any]]:
    """Yield a document for each text."""
    return ({"_id": f"{half}{number}", "body": text + end} for number, text in enumerate(texts))


def fill(client: Any, simhash: SimHashClient, index: str, texts: list[str]) -> None:
    """Make *index* anew, with two documents for each text, grouped."""
    client.indices.delete(index=index, ignore_unavailable=True)
    simhash.create_index(index, text_field="body", settings=ONE_SHARD)
    for half, end in (("a", "."), ("b", "!")):
        for _ in simhash.ingest(index, documents(texts, half, end)):
            pass
    client.indices.refresh(index=index)


def measure(client: Any, helpers: Any, texts: list[str], plan: Path) -> dict[str, float]:
    """Return the documents a second of each step of a round."""
    simhash = SimHashClient(client)
    for index in (INDEX, PLAIN_INDEX):
        fill(client, simhash, index, texts)
    plan.unlink(missing_ok=True)
    count = 0

    def make_plan() -> None:
        nonlocal count
        count = simhash.plan_removal(INDEX, plan, max_share=1.0).count

    def apply() -> None:
        assert sum(record.action == "deleted" for record in simhash.apply_removal(plan)) == count

    def restore() -> None:
        assert sum(record.action == "restored" for record in simhash.restore(plan)) == count

    def bulk(*, deletes: bool) -> None:
        fingerprinted = simhash.with_fingerprints(PLAIN_INDEX, documents(texts, "b", "!"))
        actions = (
            [{"_op_type": "delete", "_id": f"b{number}"} for number in range(len(texts))] if deletes else fingerprinted
        )
        helpers.bulk(client, actions, index=PLAIN_INDEX, chunk_size=500)
        client.indices.refresh(index=PLAIN_INDEX)

    steps = {"plan": make_plan, "apply": apply, "delete": lambda: bulk(deletes=True)}
    steps |= {"restore": restore, "index": lambda: bulk(deletes=False)}
    took = {step: seconds(work) for step, work in steps.items()}
    return {step: (len(texts) if step in ("delete", "index") else count) / spent for step, spent in took.items()}


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("docs", type=Path)
    parser.add_argument("--documents", type=int, default=2_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    texts = [document["text"] for document in read_documents(options.docs) if len(document["text"]) >= 40]
    texts = list(dict.fromkeys(texts))[: options.documents // 2]
    with served(options) as (_, client, helpers), tempfile.TemporaryDirectory() as folder:
        rounds = [measure(client, helpers, texts, Path(folder) / "removal.db") for _ in range(options.rounds)]
    rates = {step: round(statistics.median(found[step] for found in rounds)) for step in rounds[0]}
    pairs = (("plan", "delete"), ("apply", "delete"), ("restore", "index"))
    shares = {
        f"{one} to plain {other}": spread([found[one] / found[other] for found in rounds]) for one, other in pairs
    }
    show(**vars(options), a_second=rates, rate=shares)


if __name__ == "__main__":
    main()
