"""
What a removal would lose on real sets: the lines of a plan by class, and whether those that lose nothing do so.

    python bench/losses.py DATA_FOLDER [--sets reuters21578,xwlb_zh] [--read 500]

Lines are what a removal by the preset ``similar`` would delete, decided by the code of ``ingest`` in the order of the
set. A checker that shares no code with the classes reads lines of ``same`` and ``contained``: it looks for a run of
five words, or of nine characters, within a sentence and a line, and for a number, that what goes has and what stays has
not. Prints JSON.
"""

from __future__ import annotations

import random
import re
import time
import unicodedata
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness import arguments, show
from sets import read_documents

from es_simhash import fingerprints
from es_simhash.ingest.decide import DecisionRule, Document as Item, Existing, Unshown, decide
from es_simhash.lookup.content import Content
from es_simhash.mapping.rule import Grouping
from es_simhash.removal.classes import Document, find_loss, is_kept_shorter
from es_simhash.removal.losses import LOSSLESS, RISKY_FIRST
from es_simhash.texts.measures import PRESETS

SETS = "reuters21578,licenses,laws_tw,xwlb_zh,weibo_ced"
_HAN = re.compile(r"[\u3400-\u9fff\u3040-\u30ff]")


def remove(texts: dict[str, str]) -> dict[str, str]:
    """Return the canonical of each document that a removal by the preset ``similar`` would delete."""
    preset = PRESETS["similar"]
    rule = Grouping(preset.max_distance, similarity=preset.similarity, measure=preset.text_measure())
    pairs = zip(texts.items(), fingerprints(list(texts.values())), strict=True)
    batch = [
        Item(id_, value, position=place, content=Content(text)) for place, ((id_, text), value) in enumerate(pairs)
    ]
    decisions = decide(batch, Existing(), Unshown(rule.max_distance), DecisionRule(rule, "skip"))
    pairs_decided = zip(texts, decisions, strict=True)
    return {id_: decision.group for id_, decision in pairs_decided if decision.verdict == "skip"}


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


def _runs(text: str) -> Iterator[str]:
    for part in re.split(r"[!?…。;\n]|\.(?=\W|$)", _plain(text)):
        words = re.findall(r"[^\W_]+", part)
        letters = "".join(words)
        if _HAN.search(part):
            yield from (letters[n : n + 9] for n in range(len(letters) - 8))
        else:
            yield from (" ".join(words[n : n + 5]) for n in range(len(words) - 4))


def find_lost(goes: str, stays: str) -> list[str]:
    """Return runs and numbers that stand in *goes* and not in *stays*."""
    whole = _plain(stays)
    spaced, letters = " ".join(re.findall(r"[^\W_]+", whole)), "".join(re.findall(r"[^\W_]+", whole))
    lost = [run for run in _runs(goes) if run not in spaced and run.replace(" ", "") not in letters]
    numbers = [Counter(re.findall(r"\d+", _plain(text).replace(",", ""))) for text in (goes, stays)]
    return lost + list(numbers[0] - numbers[1])


def measure(name: str, texts: dict[str, str], titles: dict[str, str], read: int) -> dict[str, Any]:
    removed = remove(texts)
    started = time.perf_counter()
    lines: dict[str, list[tuple[str, str]]] = {loss: [] for loss in RISKY_FIRST}
    shorter = 0
    for id_, canonical in removed.items():
        goes, stays = (Document.of(texts[one], titles[one]) for one in (id_, canonical))
        loss = find_loss(goes, stays)
        lines[loss].append((id_, canonical))
        shorter += is_kept_shorter(goes, stays, loss)
    seconds = time.perf_counter() - started
    chance = random.Random(1)
    found = {}
    for loss in LOSSLESS:
        some = chance.sample(lines[loss], min(read, len(lines[loss])))
        lost = {one: what for one, other in some if (what := find_lost(texts[one], texts[other]))}
        found[loss] = {"read": len(some), "lost": len(lost), "examples": dict(list(lost.items())[:3])}
    by_class = {loss: len(pairs) for loss, pairs in lines.items()}
    return {
        "set": name,
        "similar removes": len(removed),
        **by_class,
        "kept is shorter": shorter,
        "still removed": round(sum(by_class[loss] for loss in LOSSLESS) / max(1, len(removed)), 3),
        "checked": found,
        "pairs_a_second": round(len(removed) / seconds),
    }


def main() -> None:
    parser = arguments(__doc__, product=False)
    parser.add_argument("data", type=Path)
    parser.add_argument("--sets", default=SETS)
    parser.add_argument("--read", type=int, default=500)
    parser.add_argument("--documents", type=int, help="the first ones of each set alone")
    options = parser.parse_args()
    for name in options.sets.split(","):
        documents = list(read_documents(options.data / name / "docs.jsonl.gz", most=options.documents))
        texts = {document["_id"]: document["text"] for document in documents}
        titles = {document["_id"]: document.get("title") or "" for document in documents}
        show(**measure(name, texts, titles, options.read))


if __name__ == "__main__":
    main()
