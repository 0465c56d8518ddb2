"""
What a removal would delete on sets with exact truth: how much of it is right, and how much of what could go it finds.

    python bench/deletions.py DATA_FOLDER [--sets reuters21578,licenses]

Documents are decided about in the order of the set by the code of ``ingest``, rule ``star``; a document with a
canonical is what a removal deletes. It is deleted rightly if the truth has it at a Jaccard similarity of 0.8 or more to
that canonical. Recall is against the documents that the same rule deletes by the truth alone. Prints JSON.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import time
from pathlib import Path
from typing import Any

from es_simhash import fingerprints
from es_simhash.ingest.decide import DecisionRule, Document, Existing, Known, decide
from es_simhash.lookup.content import Content
from es_simhash.mapping.rule import Grouping
from es_simhash.texts.measures import PRESETS

RIGHT, FORGIVEN = 0.8 - 1e-9, 0.7 - 1e-9
Truth = dict[tuple[str, str], float]

GROUPINGS = {
    **{
        name: Grouping(each.max_distance, similarity=each.similarity, measure=each.text_measure())
        for name, each in PRESETS.items()
    },
    "3 bits, verified": Grouping(3, similarity=0.8),
    "3 bits, not verified": Grouping(3),
    "8 bits, not verified": Grouping(8),
    "12 bits, not verified": Grouping(12),
}


def read_set(folder: Path) -> tuple[dict[str, str], Truth]:
    with gzip.open(folder / "docs.jsonl.gz", "rt", encoding="utf-8") as lines:
        texts = {each["id"]: each["text"] for each in map(json.loads, lines)}
    with gzip.open(folder / "pairs.tsv.gz", "rt", encoding="utf-8") as lines:
        rows = csv.reader(lines, delimiter="\t")
        next(rows)
        pairs = {(one, other): float(jaccard) for one, other, jaccard, *_ in rows}
    return texts, pairs | {(other, one): jaccard for (one, other), jaccard in pairs.items()}


def delete(texts: dict[str, str], prints: list[int | None], grouping: Grouping) -> dict[str, str]:
    """Return the canonical of each document that would be deleted."""
    batch = []
    for place, ((id_, text), value) in enumerate(zip(texts.items(), prints, strict=True)):
        content = None if grouping.similarity is None else Content(text)
        batch.append(Document(id_, value, position=place, content=content))
    decisions = decide(batch, Existing(), Known(grouping.max_distance), DecisionRule(grouping, "skip"))
    pairs = zip(texts, decisions, strict=True)
    return {id_: decision.group for id_, decision in pairs if decision.verdict == "skip"}


def deletable(texts: dict[str, str], truth: Truth) -> int:
    """Return how many documents the rule deletes by the truth alone."""
    near: dict[str, list[str]] = {}
    for (one, other), jaccard in truth.items():
        if jaccard >= RIGHT:
            near.setdefault(one, []).append(other)
    canonicals: set[str] = set()
    for id_ in texts:
        if canonicals.isdisjoint(near.get(id_, ())):
            canonicals.add(id_)
    return len(texts) - len(canonicals)


def measure(texts: dict[str, str], prints: list[int | None], truth: Truth, grouping: Grouping) -> dict[str, Any]:
    started = time.perf_counter()
    deleted = delete(texts, prints, grouping)
    seconds = time.perf_counter() - started
    values = [truth.get(pair, 0.0) for pair in deleted.items()]
    right, could = sum(each >= RIGHT for each in values), deletable(texts, truth)
    return {
        "max_distance": grouping.max_distance,
        "similarity": grouping.similarity,
        "deleted": len(deleted),
        "precision": right / len(deleted) if deleted else None,
        "precision_forgiving": sum(each >= FORGIVEN for each in values) / len(deleted) if deleted else None,
        "deletable": could,
        "recall": right / could,
        "documents_a_second": round(len(texts) / seconds),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--sets", default="reuters21578,licenses")
    options = parser.parse_args()
    results = []
    for name in options.sets.split(","):
        texts, truth = read_set(options.data / name)
        prints = fingerprints(list(texts.values()))
        for label, grouping in GROUPINGS.items():
            results.append({"set": name, "grouping": label, **measure(texts, list(prints), truth, grouping)})
    print(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
