"""Data sets: their documents, and the pairs that are known to be alike."""

from __future__ import annotations

import csv
import gzip
import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from es_simhash.groups.all_pairs import distances_between
from es_simhash.groups.assign import Documents, near_pairs

POSITIVE, FORGIVEN = 0.8 - 1e-9, 0.7 - 1e-9
Pairs = tuple[NDArray[np.int64], ...]


def read_documents(path: Path, *, most: int | None = None) -> Iterator[dict[str, Any]]:
    """Yield the documents of a JSON Lines file, plain or gz, with their ``id`` as ``_id``."""
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as lines:
        for line in islice(lines, most):
            document = json.loads(line)
            yield {"_id": document.pop("id"), **document}


@dataclass(frozen=True)
class Truth:
    """Documents, and pairs of their places (left is the smaller) with their exact similarity; others are less alike."""

    ids: tuple[str, ...]
    texts: tuple[str, ...]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    jaccard: NDArray[np.float64]


def read_set(folder: Path) -> Truth:
    """Read a folder with ``docs.jsonl.gz`` and ``pairs.tsv.gz``."""
    with (
        gzip.open(folder / "docs.jsonl.gz", "rt", encoding="utf-8") as documents,
        gzip.open(folder / "pairs.tsv.gz", "rt", encoding="utf-8") as pairs,
    ):
        texts = {row["id"]: row["text"] or "" for row in map(json.loads, documents)}
        places = {name: place for place, name in enumerate(texts)}
        rows = [
            (*sorted((places[row["id1"]], places[row["id2"]])), float(row["jaccard"]))
            for row in csv.DictReader(pairs, delimiter="\t")
        ]
    left, right, jaccard = zip(*rows, strict=True)
    ends = np.array(left, np.int64), np.array(right, np.int64)
    return Truth(tuple(texts), tuple(texts.values()), *ends, np.array(jaccard))


def score(truth: Truth, reported: Iterable[tuple[int, int]], *, among: set[int] | None = None) -> dict[str, Any]:
    """Return what reported pairs are worth; *among* restricts the known pairs to those of documents looked up."""
    known = dict(zip(zip(truth.left.tolist(), truth.right.tolist(), strict=True), truth.jaccard.tolist(), strict=True))
    if among is not None:
        known = {pair: value for pair, value in known.items() if among & set(pair)}
    pairs = {(min(pair), max(pair)) for pair in reported if pair[0] != pair[1]}
    values = [known.get(pair, 0.0) for pair in pairs]
    found = sum(value >= POSITIVE for value in values)
    positives = sum(value >= POSITIVE for value in known.values())
    return {
        "recall": found / positives if positives else None,
        "precision": found / len(pairs) if pairs else None,
        "precision_forgiving": sum(value >= FORGIVEN for value in values) / len(pairs) if pairs else None,
        "positives": positives,
        "reported": len(pairs),
    }


def known_similarity(truth: Truth, left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the known similarity of pairs of documents; 1 for a document and itself, 0 for a pair not listed."""
    listed = {
        (first, second): value
        for first, second, value in zip(truth.left.tolist(), truth.right.tolist(), truth.jaccard.tolist(), strict=True)
    }
    pairs = zip(np.minimum(left, right).tolist(), np.maximum(left, right).tolist(), strict=True)
    return np.array([1.0 if a == b else listed.get((a, b), 0.0) for a, b in pairs])


def pairs_within(values: NDArray[np.uint64], known: NDArray[np.bool_], bits: int) -> Pairs:
    """Return left, right and distance of all pairs within so many bits."""
    left, right = place_pairs(values, known, bits)
    distance = distances_between(values[left], values[right]).astype(np.int64)
    return np.minimum(left, right), np.maximum(left, right), distance


def place_pairs(values: NDArray[np.uint64], known: NDArray[np.bool_], bits: int) -> NDArray[np.int64]:
    """Return the places, left and right, of all pairs within so many bits."""
    places = np.flatnonzero(known)
    found = map(np.stack, near_pairs(Documents(values[places]), bits))
    return places[np.concatenate([np.empty((2, 0), np.int64), *found], axis=1)]


def is_chinese(truth: Truth) -> bool:
    sample = "".join(truth.texts[:200])
    return len(re.findall(r"[\u4e00-\u9fff]", sample)) * 3 > len(sample)


def shingler(truth: Truth) -> Callable[[str], set[str]]:
    """Return the function that cuts the truth's own shingles: five characters of Chinese, three words of English."""
    if is_chinese(truth):

        def cut(text: str) -> set[str]:
            kept = re.sub(r"\W", "", unicodedata.normalize("NFKC", text).casefold())
            return {kept[at : at + 5] for at in range(max(1, len(kept) - 4))} if kept else set()
    else:

        def cut(text: str) -> set[str]:
            words = re.findall(r"\w+", unicodedata.normalize("NFKC", text).casefold())
            return {" ".join(words[at : at + 3]) for at in range(max(1, len(words) - 2))} if words else set()

    return cut
