"""
Which ways find the documents that contain a text, against exact truth: passages, a preset, LSH Ensemble, the server.

    pip install -r bench/requirements.txt
    python bench/containment.py DATA_FOLDER [--sets reuters21578,laws_tw,licenses,replies] [--product opensearch]

A document contains a text if it has .8 or more of the text's shingles (three words, or five Chinese characters). The
truth counts the shared shingles of every text and every document by inverted lists; nothing is estimated or sampled.
Texts asked for are, for each length: *documents* of the set that stand in another one, and as many others; *excerpts*
of documents, of which half have words replaced; for ``replies``, *mails* that stand quoted, with "> " before each line,
under a reply of another text, half of them with comments between the lines. Replies and mails are made of reuters21578.

Ways: ``find_passages`` (documents with contained of .8 or more; ``or a run``: all that it returns by default, against
the truth "contained or contains of .8, or a shared run of 200 letters"; ``by the container``: lookups by a document
that contains the text, which must return the text), the preset ``similar`` of ``find_near_dups``, datasketch's MinHash
LSH Ensemble (128 permutations, 16 partitions, over the same shingles), and ``more_like_this`` (the 25 best terms of the
text, minimum_should_match 80 %, at most 100 hits). Prints JSON: recall and precision by letters of the text.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from corpora import read_documents
from numpy.typing import NDArray
from passages import create, found_passages, ingest
from plans import EMPTY
from quality import timed
from vectors import connect

from es_simhash.hashing.characters import hashed_letters
from es_simhash.hashing.winnowing import GUARANTEE, LETTER, run_ends, run_hashes, worth_sums
from es_simhash.servers import embedded_server
from es_simhash.texts.shingle_sets import run_shingles

SETS = ("reuters21578", "laws_tw", "licenses", "replies")
# Letters of the texts asked for, from and below; the last is open.
LENGTHS = ((30, 100), (100, 200), (200, 1_000), (1_000, 3_000))
INDEX = "containment"
CONTAINED, RUN, MOST = 0.8, 200, 100

Hashes = NDArray[np.uint64]
Way = Callable[[int], set[int]]


@dataclass
class Corpus:
    """
    The texts of an index, and the texts asked for.

    Attributes:
        documents:
            The texts; their places are their ids.
        asked:
            The texts asked for.
        kinds:
            What each text asked for is: a document, an excerpt, or a mail.
        own:
            The place of each text asked for among the documents; -1 if it is none of them.
    """

    documents: list[str]
    asked: list[str] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    own: list[int] = field(default_factory=list)

    def add(self, kind: str, text: str, own: int = -1) -> None:
        """Add a text to ask for."""
        self.asked.append(text)
        self.kinds.append(kind)
        self.own.append(own)


class Lists:
    """Inverted lists: which documents have a hash."""

    def __init__(self, sets: Sequence[Hashes]) -> None:
        self.sizes = np.array([each.size for each in sets])
        hashes = np.concatenate(sets)
        order = np.argsort(hashes, kind="stable")
        self.hashes, starts = np.unique(hashes[order], return_index=True)
        self.ends = np.append(starts[1:], hashes.size)
        self.starts = starts
        self.owners = np.repeat(np.arange(len(sets), dtype=np.int32), self.sizes)[order]

    def count(self, wanted: Hashes) -> NDArray[np.intp]:
        """Return how many of the *wanted* hashes each document has."""
        place = np.searchsorted(self.hashes, wanted[is_among(wanted, self.hashes)])
        lists = [self.owners[self.starts[each] : self.ends[each]] for each in place.tolist()]
        return np.bincount(np.concatenate([np.empty(0, np.int32), *lists]), minlength=self.sizes.size)


@dataclass(frozen=True)
class Truth:
    """For each text asked for: the documents that contain it, and those that share as much in any direction or run."""

    contain: list[set[int]]
    overlap: list[set[int]]


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--product", choices=["opensearch", "elasticsearch"], default="opensearch")
    parser.add_argument("--documents", type=int, default=4_000, help="of a set")
    parser.add_argument("--texts", type=int, default=40, help="asked for, of each kind and length")
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    with embedded_server(options.product, heap="1g") as server:
        client = connect(server)
        for name in options.sets.split(","):
            corpus, truth = make(options.data, name, options)
            for way, (look, wanted) in ways(client, corpus, truth).items():
                for row in measure(name, way, corpus, look, wanted):
                    rows.append(row)
                    print(json.dumps(row), file=sys.stderr, flush=True)
    print(json.dumps({"command": " ".join(sys.argv), "rows": rows}, indent=1))


def make(data: Path, name: str, options: argparse.Namespace) -> tuple[Corpus, Truth]:
    """Return the texts of a set, those to ask for, and what is to be found."""
    chance = Random(3)
    folder = data / ("reuters21578" if name == "replies" else name)
    texts = [each["text"] for each in read_documents(folder / "docs.jsonl.gz")]
    chance.shuffle(texts)
    corpus = Corpus(texts[: options.documents])
    if name == "replies":
        add_replies(corpus, options.texts, chance)
        return corpus, find_truth(corpus, shingle_lists(corpus.documents))
    add_excerpts(corpus, options.texts, chance)
    lists = shingle_lists(corpus.documents)
    add_documents(corpus, lists, options.texts, chance)
    return corpus, find_truth(corpus, lists)


def shingle_lists(texts: Sequence[str]) -> Lists:
    """Return the inverted lists of the shingles of *texts*."""
    return Lists(run_shingles(texts))


def letters(text: str) -> int:
    """Return the letters of *text*, as lengths of passages are counted."""
    return int(worth_sums(hashed_letters([text])[0], in_letters=True)[-1]) // LETTER


def length_class(text: str) -> int:
    """Return the place in LENGTHS of the length of *text*."""
    count = letters(text)
    return max((place for place, (low, _) in enumerate(LENGTHS) if count >= low), default=0)


def units(text: str) -> list[str]:
    """Return the words of *text* with what follows each, and single characters of Chinese."""
    return re.findall(r"[\u3400-\u9fff]\W*|[^\s\u3400-\u9fff]+\s*", text)


def excerpt(documents: Sequence[str], length: tuple[int, int], chance: Random) -> str:
    """Return a run of whole words of one of *documents*, of about as many letters as *length* allows."""
    while True:
        text, wanted = chance.choice(documents), chance.randrange(*length)
        begin = chance.randrange(len(text))
        # The first word may have lost its beginning.
        parts = units(text[begin : begin + 2 * wanted])[1:]
        sums = np.cumsum([sum(map(str.isalnum, each)) * (2.5 if is_han(each) else 1) for each in parts] or [0])
        if sums[-1] >= wanted:
            return "".join(parts[: int(np.searchsorted(sums, wanted))])


def is_han(text: str) -> bool:
    """Return whether *text* begins with a Chinese character."""
    return "\u3400" <= text[:1] <= "\u9fff"


def add_excerpts(corpus: Corpus, count: int, chance: Random) -> None:
    """Ask for excerpts; in each second one words are replaced, as far as .8 of the shingles may stay."""
    for length in LENGTHS:
        for number in range(count):
            parts = units(excerpt(corpus.documents, length, chance))
            if number % 2:
                others = units(chance.choice(corpus.documents)) or [""]
                a_shingle = 5 if is_han(parts[0]) else 3
                for place in chance.sample(range(len(parts)), int(0.2 * len(parts) / a_shingle)):
                    parts[place] = chance.choice(others)
            corpus.add("excerpts", "".join(parts))


def add_documents(corpus: Corpus, lists: Lists, count: int, chance: Random) -> None:
    """Ask for documents: for each length as many as stand in another one, and half as many drawn at random."""
    sets = run_shingles(corpus.documents)
    contained: dict[int, list[int]] = {place: [] for place in range(len(LENGTHS))}
    others: dict[int, list[int]] = {place: [] for place in range(len(LENGTHS))}
    for place, text in enumerate(corpus.documents):
        shared = lists.count(sets[place])
        kept = (shared >= CONTAINED * sets[place].size).sum() > 1
        (contained if kept else others)[length_class(text)].append(place)
    for length in range(len(LENGTHS)):
        for places, most in ((contained[length], count), (others[length], count // 2)):
            for place in chance.sample(places, min(most, len(places))):
                corpus.add("documents", corpus.documents[place], place)


def add_replies(corpus: Corpus, count: int, chance: Random) -> None:
    """Add replies to the documents, with a mail quoted in each, and ask for the mails."""
    sources, replies = list(corpus.documents), []
    for length in LENGTHS:
        for number in range(count):
            mail = excerpt(sources, length, chance)
            quoted = textwrap.wrap(mail, 72, break_long_words=False)
            if number % 2:
                quoted = list(with_comments(quoted, sources, chance))
            reply = chance.choice(sources)[: chance.randrange(100, 600)]
            lines = "\n".join(each if each.startswith("\n") else f"> {each}" for each in quoted)
            replies.append(f"{reply}\n\nOn Monday they wrote:\n{lines}\n")
            corpus.add("mails", mail)
    corpus.documents += replies


def with_comments(lines: Sequence[str], sources: Sequence[str], chance: Random) -> Iterator[str]:
    """Yield *lines*, with a comment after every two to six of them."""
    left = chance.randrange(2, 7)
    for number, line in enumerate(lines, 1):
        yield line
        left -= 1
        if not left and number < len(lines):
            yield f"\n{chance.choice(sources)[: chance.randrange(30, 150)]}\n"
            left = chance.randrange(2, 7)


def find_truth(corpus: Corpus, lists: Lists) -> Truth:
    """Return the documents that each text asked for is to find."""
    runs = run_lists(corpus)
    truth = Truth([], [])
    for number, (shingles, text) in enumerate(zip(run_shingles(corpus.asked), corpus.asked, strict=True)):
        shared = lists.count(shingles)
        contain = shared >= CONTAINED * shingles.size - 1e-9
        contained = (shared >= CONTAINED * lists.sizes - 1e-9) & (lists.sizes > 0)
        overlap = contain | contained | (runs.count(np.unique(runs_of(text))) > 0)
        for kept, found in ((truth.contain, contain), (truth.overlap, overlap)):
            kept.append(set(np.flatnonzero(found).tolist()) - {corpus.own[number]})
    return truth


def run_lists(corpus: Corpus) -> Lists:
    """Return the inverted lists of runs of 200 letters, of those runs that a text asked for has."""
    wanted = np.unique(np.concatenate([runs_of(each) for each in corpus.asked]))
    return Lists([np.unique(each[is_among(each, wanted)]) for each in map(runs_of, corpus.documents)])


def is_among(hashes: Hashes, known: Hashes) -> NDArray[np.bool_]:
    """Return which of *hashes* are in *known*, which is sorted."""
    return known[np.minimum(np.searchsorted(known, hashes), known.size - 1)] == hashes


def runs_of(text: str) -> Hashes:
    """Return the hash of the shortest run of 200 letters, and worth the guarantee, from each character."""
    codes, _ = hashed_letters([text])
    ends = run_ends(worth_sums(codes, in_letters=True), LETTER * RUN)
    ends = np.maximum(ends, run_ends(worth_sums(codes), LETTER * GUARANTEE))
    return run_hashes(codes, ends[: np.searchsorted(ends, codes.size, side="right")])


def ways(client: Any, corpus: Corpus, truth: Truth) -> dict[str, tuple[Way, list[set[int]]]]:
    """Fill an index; return the ways to ask for a text by its number, with what each is to find."""
    simhash = create(client, passages=True, name=INDEX)
    ingest(simhash, corpus.documents, name=INDEX)
    client.indices.refresh(index=INDEX)
    asked, own = corpus.asked, corpus.own
    chance = Random(5)
    containers = [
        chance.choice(sorted(found)) if found and place >= 0 else None
        for found, place in zip(truth.contain, own, strict=True)
    ]

    def passages(number: int) -> set[int]:
        found = found_passages(simhash, asked[number], min_run=10**9)
        return {int(each.id) for each in found if each.contained >= CONTAINED}

    def overlaps(number: int) -> set[int]:
        return {int(each.id) for each in found_passages(simhash, asked[number])}

    def by_container(number: int) -> set[int]:
        if (place := containers[number]) is None:
            return set()
        found = simhash.find_passages_of(INDEX, str(place))
        return {int(each.id) for each in found if each.contains >= CONTAINED} & {own[number]}

    def similar(number: int) -> set[int]:
        return {int(each.id) for each in simhash.find_near_dups(INDEX, asked[number], preset="similar")}

    def like(number: int) -> set[int]:
        rest = {"min_term_freq": 1, "min_doc_freq": 1, "max_query_terms": 25, "minimum_should_match": "80%"}
        query = {"more_like_this": {"fields": ["text"], "like": asked[number], **rest}}
        answer = client.search(index=INDEX, body={"size": MOST, "query": query, "_source": False})
        return {int(hit["_id"]) for hit in answer["hits"]["hits"]}

    in_containers = [set() if place is None else {own[number]} for number, place in enumerate(containers)]
    return {
        "empty search": (lambda _: client.search(index=INDEX, body=EMPTY) and set(), truth.contain),
        "find_passages": (passages, truth.contain),
        "find_passages or a run": (overlaps, truth.overlap),
        "find_passages by the container": (by_container, in_containers),
        "similar": (similar, truth.contain),
        "LSH Ensemble": (ensemble(corpus), truth.contain),
        "more_like_this": (like, truth.contain),
    }


def ensemble(corpus: Corpus) -> Way:
    """Return the way of datasketch's MinHash LSH Ensemble."""
    from datasketch import MinHash, MinHashLSHEnsemble

    def sketch(shingles: Hashes) -> Any:
        made = MinHash(num_perm=128, hashfunc=lambda value: value & 0xFFFF_FFFF)
        made.update_batch(shingles.tolist())
        return made

    index = MinHashLSHEnsemble(threshold=CONTAINED, num_perm=128, num_part=16)
    sets = run_shingles(corpus.documents)
    index.index((place, sketch(each), each.size) for place, each in enumerate(sets) if each.size)

    def look(number: int) -> set[int]:
        [shingles] = run_shingles([corpus.asked[number]])
        return set(index.query(sketch(shingles), shingles.size))

    return look


def measure(name: str, way: str, corpus: Corpus, look: Way, wanted: Sequence[set[int]]) -> list[dict[str, Any]]:
    """Return recall and precision of a way, means over the texts asked for, and its time, by kind and length."""
    look(0)
    groups: dict[tuple[str, int], list[tuple[set[int], set[int], float]]] = {}
    for number, text in enumerate(corpus.asked):
        found, seconds = timed(lambda number=number: look(number))
        key = corpus.kinds[number], length_class(text)
        found -= {corpus.own[number]} - wanted[number]
        groups.setdefault(key, []).append((found, wanted[number], seconds))
    rows = []
    for (kind, length), answers in sorted(groups.items()):
        recalls = [len(found & known) / len(known) for found, known, _ in answers if known]
        precisions = [len(found & known) / len(found) for found, known, _ in answers if found]
        rows.append(
            {
                "set": name,
                "asked": kind,
                "letters_from": LENGTHS[length][0],
                "way": way,
                "texts": len(answers),
                "with_something_to_find": len(recalls),
                "recall": round(statistics.mean(recalls), 3) if recalls else None,
                "precision": round(statistics.mean(precisions), 3) if precisions else None,
                "milliseconds": round(1000 * statistics.median(each for _, _, each in answers), 1),
            }
        )
    return rows


if __name__ == "__main__":
    main()
