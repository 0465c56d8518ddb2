"""The texts of the answer book: three data sets beside the checkout, and texts that tests make."""

from __future__ import annotations

import csv
import gzip
import json
import random
from pathlib import Path

import pytest

from tests.servers import support

DATA = Path(__file__).parents[3] / "shared" / "data"
DOCUMENTS = 1_000
# What ingest is told of each source, so that the rules of the books have all parts: measures, order, per, within.
RULES = {
    "reuters21578": {"preset": "similar"},
    "xwlb_zh": {"preset": "edited", "canonical": "src:Y>D>*", "within": ("date", "400d")},
    "laws_tw": {"preset": "near", "canonical": ["-date", "longest"], "per": "cat"},
    "tests": {"preset": "near"},
}
KEPT = {"reuters21578": ("title",), "xwlb_zh": ("title", "src", "date"), "laws_tw": ("title", "cat", "date")}
FIELDS = {
    "body": {"type": "text"},
    "n": {"type": "integer"},
    "title": {"type": "keyword"},
    "src": {"type": "keyword"},
    "cat": {"type": "keyword"},
    "date": {"type": "date", "format": "yyyyMMdd"},
}


def read_documents(source):
    """Return the documents of *source* in a mixed order, which their ids have too, and pairs of ids that are alike."""
    chance = random.Random(1)
    if source == "tests":
        rows = [{"_id": n, "body": text} for n, text in enumerate(support.random_texts(DOCUMENTS, 1))]
        pairs = [(n, chance.randrange(n)) for n in range(1, DOCUMENTS) if n % 5 > 1]
        for n, other in pairs:
            words = rows[other]["body"].split()
            for _ in range(chance.randint(0, 4)):
                words[chance.randrange(len(words))] = "other"
            rows[n]["body"] = " ".join(words)
    else:
        if not (DATA / source).exists():
            pytest.skip(f"the data set {source} is not beside the checkout")
        with gzip.open(DATA / source / "pairs.tsv.gz", "rt", encoding="utf-8") as lines:
            pairs = [(row["id1"], row["id2"]) for row in csv.DictReader(lines, delimiter="\t")]
        pairs = pairs[:: max(1, len(pairs) // (DOCUMENTS // 4))]
        with gzip.open(DATA / source / "docs.jsonl.gz", "rt", encoding="utf-8") as lines:
            given = {row["id"]: row for row in map(json.loads, lines)}
        ids = list(dict.fromkeys([*(id_ for pair in pairs for id_ in pair), *given]))[:DOCUMENTS]
        rows = [
            {"_id": id_, "body": given[id_]["text"], **{name: given[id_][name] for name in KEPT[source]}} for id_ in ids
        ]
    chance.shuffle(rows)
    names = {row["_id"]: f"{n:05d}" for n, row in enumerate(rows)}
    documents = [{**row, "_id": names[row["_id"]], "n": n} for n, row in enumerate(rows)]
    return documents, [(names[one], names[other]) for one, other in pairs if names.keys() >= {one, other}]
