"""
What template text does to near-duplicates, and what a learned mask changes: pairs, groups, removal and cost.

    python bench/boilerplate.py generated DATA_FOLDER [--sets reuters21578,xwlb_zh] [--documents 3000]
    python bench/boilerplate.py licenses DATA_FOLDER
    python bench/boilerplate.py mails FILE

``generated`` puts documents of a set, whose near-duplicates are known, into the templates of ten sources: eight have a
header and a footer, of 100 to 1,600 letters together, and a document and its copy stand in different sources. A pair is
right if the set lists it with a similarity of 0.8 or more. ``licenses`` has templates of its own; the similarity
is that of the whole texts. ``mails`` reads JSON Lines with ``text``, such as the public corpus of SpamAssassin; a pair
is right if the texts are 80 % the same after a rule that knows nothing of statistics: lines from a signature mark or a
ruler on are cut off.

For each way (no mask, the learned mask, and for generated texts one that has exactly the templates) it looks for pairs
within 12 bits whose texts are 80 % the same, as the preset ``similar`` does, and groups them. Removed: documents that
are near-duplicates of the canonical of their group. Cost: CPU time of the fingerprint of a document, measured in turns.
Prints JSON.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray
from quality import read_set

from es_simhash import Boilerplate, Scheme, fingerprints, get_scheme, learn_boilerplate
from es_simhash.groups.all_pairs import near_pairs
from es_simhash.groups.assign import group_pairs
from es_simhash.groups.grouping_request import Resources
from es_simhash.hashing import fingerprint_array
from es_simhash.hashing.mask import Cutter, MaskPassage, mask_json
from es_simhash.texts.measures import WORD_SHINGLES, compare_pairs

DISTANCE, SIMILAR, ROUNDS = 12, 0.8, 5
SOURCES, PLAIN = 10, 2
_RULER = re.compile(r"^(-- ?|[-_=~*]{10,}.*|_{5,})$", re.MULTILINE)

Pairs = set[tuple[int, int]]
Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Texts:
    """Texts, and of which pairs it is known that they are near-duplicates."""

    texts: Sequence[str]
    right: Pairs
    templates: Sequence[str] = ()
    sources: Sequence[str | None] | None = None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("kind", choices=["generated", "licenses", "mails"])
    parser.add_argument("data", type=Path)
    parser.add_argument("--sets", default="reuters21578,xwlb_zh")
    parser.add_argument("--documents", type=int, default=3_000)
    options = parser.parse_args()
    if options.kind == "mails":
        results = {"mails": run(read_mails(options.data))}
    elif options.kind == "licenses":
        results = {"licenses": run(read_known(options.data / "licenses"))}
    else:
        results = {name: run(generate(options.data / name, options.documents)) for name in options.sets.split(",")}
    print(json.dumps(results, indent=1, ensure_ascii=False))


def generate(folder: Path, documents: int) -> Texts:
    """Return documents of a set in templates of several sources, listed pairs among them."""
    truth = read_set(folder)
    chance = Random(3)
    listed = [
        (int(a), int(b)) for a, b, same in zip(truth.left, truth.right, truth.jaccard, strict=True) if same >= SIMILAR
    ]
    paired = [place for pair in chance.sample(listed, min(len(listed), documents // 10)) for place in pair]
    others = chance.sample(range(len(truth.texts)), documents)
    places = list(dict.fromkeys([*paired, *others]))[:documents]
    chance.shuffle(places)
    number = {place: at for at, place in enumerate(places)}
    templates = make_templates(truth.texts, set(places), chance)
    source = [chance.randrange(SOURCES) for _ in places]
    for a, b in listed:
        if a in number and b in number:
            source[number[b]] = (source[number[a]] + 1 + chance.randrange(SOURCES - 1)) % SOURCES
    texts = []
    for place, own in zip(places, source, strict=True):
        header, footer = templates[own]
        texts.append("\n".join(filter(None, [header, truth.texts[place], footer])))
    right = {tuple(sorted((number[a], number[b]))) for a, b in listed if a in number and b in number}
    every = [part for both in templates for part in both if part]
    return Texts(texts, right, every, [str(each) for each in source])  # type: ignore[arg-type]


def make_templates(texts: Sequence[str], used: set[int], chance: Random) -> list[tuple[str, str]]:
    """Return header and footer of each source: texts of the same kind that are no documents; two have none."""
    unused = [text for place, text in enumerate(texts) if place not in used and len(text) > 300]
    found = [("", "")] * PLAIN
    for at in range(SOURCES - PLAIN):
        letters = 100 << (at % 5)
        words = " ".join(chance.sample(unused, 4))
        # A Chinese character is worth more than a letter; punctuation and spaces are worth nothing.
        length = letters * 3 // 5 if re.search(r"[\u4e00-\u9fff]", words) else letters * 6 // 5
        begin = chance.randrange(max(1, len(words) - length))
        whole = words[begin : begin + length]
        half = max(len(whole) // 3, 0) if len(whole) > 200 else 0
        found.append((whole[:half], whole[half:]))
    return found


def read_known(folder: Path) -> Texts:
    """Return a set as it is."""
    truth = read_set(folder)
    same = truth.jaccard >= SIMILAR
    pairs = zip(truth.left[same].tolist(), truth.right[same].tolist(), strict=True)
    return Texts(list(truth.texts), {(min(pair), max(pair)) for pair in pairs})


def read_mails(path: Path) -> Texts:
    """Return mails, and the pairs that are 80 % the same without what stands below a ruler or a signature mark."""
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as lines:
        texts = [json.loads(line)["text"] for line in lines]
    bare = [_RULER.split(text, maxsplit=1)[0] for text in texts]
    values, known = fingerprint_array(bare)
    left, right, is_similar = near_texts(bare, values, known, get_scheme(), 16)
    return Texts(texts, set(zip(left[is_similar].tolist(), right[is_similar].tolist(), strict=True)))


def run(given: Texts) -> dict[str, Any]:
    started = time.process_time()
    learned = learn_boilerplate(given.texts)
    seconds = time.process_time() - started
    ways: dict[str, Scheme] = {"no mask": get_scheme("shingles"), "learned mask": with_mask(learned.to_json())}
    if given.templates:
        exact = [MaskPassage(text) for text in given.templates]
        ways["exact mask"] = with_mask(mask_json(exact))
    found = {name: judge(given, scheme) for name, scheme in ways.items()}
    for name, cost in costs(given.texts, ways).items():
        found[name]["microseconds"] = cost
    return {
        "documents": len(given.texts),
        "right pairs": len(given.right),
        "passages": len(learned.passages),
        "masked": round(learned.masked, 4),
        "letters": letters(given, learned) if given.templates else None,
        "learning, seconds": round(seconds, 1),
        **found,
    }


def with_mask(content: str) -> Scheme:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mask.json"
        path.write_text(content, encoding="utf-8")
        scheme = get_scheme("shingles", boilerplate=path)
        fingerprints([""], scheme=scheme)  # it is read here, and remembered
    return scheme


def letters(given: Texts, learned: Boilerplate) -> dict[str, float]:
    """Return the shares of the templates' letters that are left out, and of the contents' letters."""
    truth, cutter = Cutter(given.templates), Cutter([each.text for each in learned.passages])
    template = content = right = wrong = 0
    for text in given.texts:
        flags = np.zeros((2, len(text)), np.bool_)
        for row, one in enumerate((truth, cutter)):
            for start, end in one.spans(text):
                flags[row, start:end] = True
        template, content = template + int(flags[0].sum()), content + int((~flags[0]).sum())
        right, wrong = right + int((flags[0] & flags[1]).sum()), wrong + int((~flags[0] & flags[1]).sum())
    return {"template left out": round(right / template, 4), "content left out": round(wrong / content, 6)}


def judge(given: Texts, scheme: Scheme) -> dict[str, Any]:
    values, known = fingerprint_array(given.texts, scheme=scheme)
    left, right, is_similar = near_texts(given.texts, values, known, scheme, DISTANCE)
    is_right = np.array([pair in given.right for pair in zip(left.tolist(), right.tolist(), strict=True)], np.bool_)
    order = np.lexsort((right[is_similar], left[is_similar]))
    edges = left[is_similar][order], right[is_similar][order]
    canonical = group_pairs(len(values), iter([edges]), "star", Resources())
    members = np.flatnonzero(canonical != np.arange(len(values)))
    sizes = np.bincount(canonical[members], minlength=1)
    correct = sum((int(canonical[each]), int(each)) in given.right for each in members)
    hits = int((is_right & is_similar).sum())
    return {
        "no fingerprint": int((~known).sum()),
        "near pairs": left.size,
        "precision of near pairs": share(int(is_right.sum()), left.size),
        "similar pairs": int(is_similar.sum()),
        "precision": share(hits, int(is_similar.sum())),
        "recall": share(hits, len(given.right)),
        "groups": int((sizes > 0).sum()),
        "largest group": int(sizes.max()) + 1,
        "removed": int(members.size),
        "removed rightly": share(correct, int(members.size)),
    }


def near_texts(
    texts: Sequence[str], values: NDArray[np.uint64], known: NDArray[np.bool_], scheme: Scheme, distance: int
) -> tuple[Indices, Indices, NDArray[np.bool_]]:
    """Return the pairs within a distance, smaller places on the left, and which of them are 80 % the same."""
    places = np.flatnonzero(known)
    found = [(places[each.left], places[each.right]) for each in near_pairs(values[places], distance)]
    none = np.empty(0, np.int64)
    one, other = (np.concatenate([none, *each]) for each in (zip(*found, strict=True) if found else ((), ())))
    left, right = np.minimum(one, other), np.maximum(one, other)
    scores, _ = compare_pairs(texts, left, right, measure=WORD_SHINGLES.after(scheme), bound=SIMILAR)
    return left, right, scores >= SIMILAR


def costs(texts: Sequence[str], ways: dict[str, Scheme]) -> dict[str, float]:
    """Return the median CPU microseconds that each way takes for a document; the ways take turns."""
    taken: dict[str, list[float]] = {name: [] for name in ways}
    some = list(texts[:3_000])
    for _ in range(ROUNDS):
        for name, scheme in ways.items():
            started = time.process_time()
            fingerprints(some, scheme=scheme)
            taken[name].append(1e6 * (time.process_time() - started) / len(some))
    return {name: round(median(each), 1) for name, each in taken.items()}


def share(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None


if __name__ == "__main__":
    main()
