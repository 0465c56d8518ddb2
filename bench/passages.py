"""
Passages: the guarantee on planted runs, what they cost in bytes and in the time of an ingest, and lookups.

    python bench/passages.py guarantee DOCS.jsonl.gz ...
    python bench/passages.py short DOCS.jsonl.gz ...
    python bench/passages.py index --product opensearch DOCS.jsonl.gz ...
    python bench/passages.py lookup --product opensearch --documents 100000 DOCS.jsonl.gz ...
    python bench/passages.py common --product opensearch --documents 1000000 --folder DIR DOCS.jsonl.gz ...

``guarantee`` plants runs of 100 to 2,000 letters (Chinese: 80 to 800 characters) of one text in two others, and
counts the pairs that share a term and whose run is then found. ``short`` takes excerpts of fewer letters, and counts
those that are candidates for their text, and the reverse. Both need no server. ``index`` writes the documents with and
without passages, in turns, and compares the seconds and, after a force merge, the bytes. ``lookup`` compares lookups
by texts of the index with an empty search, and asks for planted runs. ``common`` compares lookups by documents of which
a part, a notice of 500 letters, stands in 0.01, 0.1, 1 or 10 % of all documents; beyond those of the files, documents
are made of runs of four real words. It gives processor time too, of the client and the server together, which other
work on the machine changes less. The folder keeps the index for another run. Each prints JSON.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from corpora import read_documents
from find import timed
from plans import EMPTY
from vectors import connect

from es_simhash import IncompleteSearchError, SimHashClient
from es_simhash.hashing.batches import passage_term_list
from es_simhash.hashing.characters import hashed_letters
from es_simhash.hashing.winnowing import GUARANTEE, LETTER, question_terms, worth_sums
from es_simhash.passages.compare import PreparedText, compare_passages
from es_simhash.passages.found import Overlaps
from es_simhash.servers import embedded_server

INDEX = "passages"
# Shares of the documents that have a notice, and its letters.
SHARES = (0.0001, 0.001, 0.01, 0.1)
NOTICE = 500
ONE_SHARD = {"number_of_shards": 1, "number_of_replicas": 0}


def read_texts(paths: Sequence[Path], most: int) -> list[str]:
    """Return the texts of the files, one file after another."""
    texts: list[str] = []
    for path in paths:
        texts += [each["text"] for each in read_documents(path, most=most - len(texts))]
    return texts


def plant(texts: list[str], chance: random.Random) -> tuple[str, str, int]:
    """Return two texts that share a run and nothing else by design, and the worth of the run in letters."""
    while True:
        source, first, second = chance.sample(texts, 3)
        is_han = sum("\u4e00" <= each <= "\u9fff" for each in source[:200]) > 50
        length = chance.randint(*((80, 800) if is_han else (100, 2_000)))
        begin = chance.randrange(max(1, len(source) - length))
        run = source[begin:]
        sums = worth_sums(hashed_letters([run])[0])
        worth = (length if not is_han else length * 5 / 4) * LETTER
        if sums[-1] < worth:
            continue
        # The fewest characters of the original that are worth so much.
        low, high = 0, len(run)
        while low < high:
            middle = (low + high) // 2
            enough = worth_sums(hashed_letters([run[:middle]])[0])[-1] >= worth
            low, high = (low, middle) if enough else (middle + 1, high)
        run = run[:low]
        places = chance.randrange(len(first) + 1), chance.randrange(len(second) + 1)
        one, other = (
            f"{text[:place]} {run} {text[place:]}" for text, place in zip((first, second), places, strict=True)
        )
        return one, other, int(worth / LETTER)


def measure_guarantee(options: argparse.Namespace) -> dict[str, Any]:
    """Return how many planted runs share a term, and how many are found as passages."""
    texts = read_texts(options.docs, options.documents)
    chance = random.Random(options.seed)
    candidates = found = 0
    shortest = 10_000
    for _ in range(options.runs):
        one, other, worth = plant(texts, chance)
        shortest = min(shortest, worth)
        first, second = passage_term_list([one, other])
        candidates += bool(set(first) & set(second))
        [compared] = compare_passages(PreparedText(one, min_run=GUARANTEE), [other], min_contained=1.1)
        found += compared is not None and compared.has_run
    return {"runs": options.runs, "shortest": shortest, "share_a_term": candidates, "found": found}


def measure_short(options: argparse.Namespace) -> dict[str, Any]:
    """Return the share of excerpts of each length that are candidates for their texts, and the reverse."""
    texts = [text for text in read_texts(options.docs, options.documents) if len(text) > 4 * GUARANTEE]
    chance = random.Random(options.seed)
    found = {}
    for characters in (30, 50, 75, 100, 125):
        counts = [0, 0]
        for _ in range(options.runs):
            text = chance.choice(texts)
            begin = chance.randrange(len(text) - characters)
            excerpt = text[begin : begin + characters]
            kept_of_text, kept_of_excerpt = passage_term_list([text, excerpt])
            counts[0] += not set(kept_of_text).isdisjoint(question_terms(excerpt))
            counts[1] += not set(kept_of_excerpt).isdisjoint(question_terms(text))
        found[characters] = [round(count / options.runs, 3) for count in counts]
    return {"runs": options.runs, "excerpt_finds_text_and_text_finds_excerpt": found}


def create(client: Any, *, passages: bool, name: str = INDEX) -> SimHashClient:
    client.indices.delete(index=name, ignore_unavailable=True)
    simhash = SimHashClient(client)
    mappings = {"properties": {"text": {"type": "text"}}}
    simhash.create_index(name, text_field="text", passages=passages, mappings=mappings, settings=ONE_SHARD)
    return simhash


def ingest(simhash: SimHashClient, texts: Iterable[str], name: str = INDEX) -> tuple[float, float]:
    """Return the seconds, and the seconds of this process's processor, that an ingest of *texts* takes."""
    documents = ({"_id": f"{n}", "text": text} for n, text in enumerate(texts))
    start, begin = time.perf_counter(), time.process_time()
    for each in simhash.ingest(name, documents, on_duplicate=None):
        assert each.action == "written", each
    return time.perf_counter() - start, time.process_time() - begin


def measure_index(client: Any, texts: list[str], options: argparse.Namespace) -> dict[str, Any]:
    """Return the times and bytes of an index with passages beside those of one without."""
    seconds: dict[bool, list[float]] = {False: [], True: []}
    processor: dict[bool, list[float]] = {False: [], True: []}
    size = {}
    for turn in range(options.rounds + 1):
        for passages in (False, True):
            simhash = create(client, passages=passages)
            taken = ingest(simhash, texts)
            if turn == 0:  # the first turn warms the server
                client.indices.refresh(index=INDEX)
                client.indices.forcemerge(index=INDEX, max_num_segments=1)
                client.indices.flush(index=INDEX, force=True)
                client.indices.refresh(index=INDEX)
                size[passages] = client.indices.stats(index=INDEX)["_all"]["primaries"]["store"]["size_in_bytes"]
            else:
                seconds[passages].append(taken[0])
                processor[passages].append(taken[1])
    terms = sum(map(len, passage_term_list(texts)))
    added = size[True] - size[False]
    ratios = [second / first for first, second in zip(seconds[False], seconds[True], strict=True)]
    return {
        "characters": sum(map(len, texts)),
        "terms_per_1000_characters": round(1000 * terms / sum(map(len, texts)), 1),
        "documents_per_second": {name: round(len(texts) / statistics.median(seconds[kind])) for name, kind in _KINDS},
        "processor_seconds": {name: round(statistics.median(processor[kind]), 2) for name, kind in _KINDS},
        "time_with_over_without": [round(ratio, 3) for ratio in ratios],
        "bytes_per_document": {name: round(size[kind] / len(texts)) for name, kind in _KINDS},
        "bytes_added_per_document": round(added / len(texts)),
        "bytes_per_term": round(added / terms, 1),
        "added_over_without": round(added / size[False], 3),
    }


_KINDS = (("without", False), ("with", True))


def found_passages(simhash: SimHashClient, text: str, **options: Any) -> Overlaps:
    """Return what a lookup finds, also where passages are too common to compare all."""
    try:
        return simhash.find_passages(INDEX, text, **options)
    except IncompleteSearchError as error:
        return error.results


def measure_lookup(client: Any, texts: list[str], options: argparse.Namespace) -> dict[str, Any]:
    """Return the times of lookups over an empty search, and how many planted runs are found."""
    chance = random.Random(options.seed)
    simhash = create(client, passages=True)
    ingest(simhash, texts)
    planted = [plant(texts, chance) for _ in range(options.runs)]
    documents = [{"_id": f"planted{n}", "text": other} for n, (_, other, _) in enumerate(planted)]
    assert all(each.action == "written" for each in simhash.ingest(INDEX, documents, on_duplicate=None))
    client.indices.refresh(index=INDEX)
    found = 0
    for number, (one, _, _) in enumerate(planted):
        answer = found_passages(simhash, one, min_run=GUARANTEE)
        found += f"planted{number}" in {each.id for each in answer}
    questions = chance.sample(texts, options.lookups)
    answers = [found_passages(simhash, text) for text in questions]
    ways: dict[str, Callable[[str], Any]] = {
        "empty search": lambda _: client.search(index=INDEX, body=EMPTY),
        "find_near_dups": lambda text: simhash.find_near_dups(INDEX, text),
        "find_passages": lambda text: found_passages(simhash, text),
    }
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for _ in range(options.rounds):
        for name, way in ways.items():
            times[name].append(timed(way, questions))
    medians = {name: statistics.median(each[0] for each in found) for name, found in times.items()}
    candidates = sorted(each.candidates for each in answers)
    return {
        "planted": {"runs": options.runs, "found": found},
        "milliseconds": {
            name: [round(statistics.median(each[place] for each in found), 2) for place in (0, 1)]
            for name, found in times.items()
        },
        "over_empty_search": {name: round(value / medians["empty search"], 1) for name, value in medians.items()},
        "candidates": {
            "median": candidates[len(candidates) // 2],
            "p95": candidates[len(candidates) * 95 // 100],
            "most": candidates[-1],
        },
        "found": {
            "median": statistics.median(map(len, answers)),
            "incomplete": sum(not each.complete for each in answers),
        },
    }


def recombine(texts: list[str], count: int, chance: random.Random) -> Iterator[str]:
    """Yield *texts*, and then others of as many words, made of runs of four words, until there are *count*."""
    yield from texts[:count]
    words = [text.split() for text in chance.sample(texts, min(20_000, len(texts)))]
    words = [each for each in words if len(each) > 20] or words
    for _ in range(count - len(texts)):
        runs = (chance.choice(words) for _ in range(len(chance.choice(words)) // 4 + 1))
        begun = ((run, chance.randrange(max(1, len(run) - 4))) for run in runs)
        yield " ".join(word for run, begin in begun for word in run[begin : begin + 4])


def share_of(place: int) -> int | None:
    """Return the place in SHARES of the notice that a document has; none for most documents."""
    return next((number for number, share in enumerate(SHARES) if place % round(1 / share) == number), None)


def measure_common(client: Any, texts: list[str], options: argparse.Namespace) -> dict[str, Any]:
    """Return what lookups cost by documents that share a notice with more or fewer documents."""
    chance = random.Random(options.seed)
    pool = [word for text in texts[:5_000] for word in text.split()]
    notices = [" ".join(chance.choices(pool, k=NOTICE // 4)) for _ in SHARES]
    examples: dict[int | None, list[str]] = {}

    def documents() -> Iterator[str]:
        for place, text in enumerate(recombine(texts, options.documents, chance)):
            number = share_of(place)
            full = text if number is None else f"{text}\n\n{notices[number]}"
            known = examples.setdefault(number, [])
            if len(known) < options.lookups:
                known.append(full)
            yield full

    if client.indices.exists(index=INDEX):
        simhash = SimHashClient(client)
        for _ in documents():
            if all(len(examples.get(each, ())) == options.lookups for each in (None, *range(len(SHARES)))):
                break
    else:
        simhash = create(client, passages=True)
        ingest(simhash, documents())
        client.indices.forcemerge(index=INDEX, max_num_segments=1, request_timeout=3_600)
    client.indices.refresh(index=INDEX)

    def empty(_: str) -> Any:
        return client.search(index=INDEX, body=EMPTY)

    def look(text: str) -> Any:
        return found_passages(simhash, text)

    rows = []
    for number, share in ((None, 0.0), *enumerate(SHARES)):
        # A lookup that compares thousands of documents takes seconds.
        questions = examples[number][: None if share * options.documents < 1_000 else 2]
        answers = [look(text) for text in questions]  # warms the server, too
        nothing, whole = (
            [processor_milliseconds(client, way, questions * times) for _ in range(options.rounds)]
            for way, times in ((empty, 20), (look, 1))
        )
        spent, base = (statistics.median(each[0] for each in found) for found in (whole, nothing))
        took, basis = (statistics.median(each[1] for each in found) for found in (whole, nothing))
        rows.append(
            {
                "share": share,
                "lookups": len(questions),
                "candidates": statistics.median(each.candidates for each in answers),
                "found": statistics.median(map(len, answers)),
                "incomplete": sum(not each.complete for each in answers),
                "processor_milliseconds": round(spent, 2),
                "processor_over_empty": round(spent / base, 1),
                "milliseconds": round(took, 2),
                "over_empty": round(took / basis, 1),
            }
        )
        print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    return {"rows": rows}


def processor_milliseconds(client: Any, way: Callable[[str], Any], questions: Sequence[str]) -> tuple[float, float]:
    """Return the milliseconds of processor, of client and server, and those that pass, for one of *questions*."""

    def server() -> float:
        nodes = client.nodes.stats(metric="process")["nodes"].values()
        return sum(each["process"]["cpu"]["total_in_millis"] for each in nodes)

    before, begin, start = server(), time.process_time(), time.perf_counter()
    for text in questions:
        way(text)
    passed, own = time.perf_counter() - start, time.process_time() - begin
    return (1000 * own + server() - before) / len(questions), 1000 * passed / len(questions)


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["guarantee", "short", "index", "lookup", "common"])
    parser.add_argument("docs", type=Path, nargs="+")
    parser.add_argument("--product", choices=["opensearch", "elasticsearch"], default="opensearch")
    parser.add_argument("--documents", type=int, default=20_000)
    parser.add_argument("--runs", type=int, default=20_000, help="planted runs")
    parser.add_argument("--lookups", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, help="where the server keeps its index")
    options = parser.parse_args()
    result: dict[str, Any] = {"command": " ".join(sys.argv)}
    if options.part in ("guarantee", "short"):
        pure = measure_guarantee if options.part == "guarantee" else measure_short
        print(json.dumps(result | pure(options), indent=1))
        return
    texts = read_texts(options.docs, options.documents)
    measure = {"index": measure_index, "lookup": measure_lookup, "common": measure_common}[options.part]
    with embedded_server(options.product, heap="1g", data=options.folder) as server:
        client = connect(server)
        print(json.dumps(result | {"documents": len(texts)} | measure(client, texts, options), indent=1))


if __name__ == "__main__":
    main()
