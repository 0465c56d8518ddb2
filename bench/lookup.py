"""
Lookups among millions of fingerprints: time over an empty search, recall, the plain design, and lookups by the rule.

    python bench/lookup.py --product opensearch --folder DIR --bits 16
    python bench/lookup.py --product opensearch --rule --documents 1000000

Prints JSON: for each distance the median of ``find_near_dups`` over the median of an empty search of the same run, with
scripts and without; the four-block pigeonhole with one page of 10,000 candidates and client rescore ("plain"); lookups
a second, in batches of 100 and with 8 clients at once; with --merged the bytes of a document that has our fields and
nothing else. Every answer is compared with an exhaustive comparison. With
--rule the index has random texts, a fifth of them edited copies: a lookup by the rule (distance, and texts) over one by
bits alone within the same distance.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from harness import EMPTY, ONE_SHARD, PLANTED, arguments, in_turns, ratios, serve_planted, served, show, store_bytes

from es_simhash import PRESETS, SimHashClient
from es_simhash.lookup.near_dups import rescore
from es_simhash.lookup.plan import LookupPlan
from es_simhash.lookup.query import build_body, candidate_clauses
from es_simhash.mapping.fields import DEFAULT_PREFIX

DISTANCES = (0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 16)
BATCH_DISTANCES = (3, 8)
TEXTS_INDEX = "texts"
_CHANCE = random.Random(0)
WORDS = ["".join(_CHANCE.choices("aeioubcdfghklmnprstvz", k=_CHANCE.randint(3, 10))) for _ in range(50_000)]


def texts(count: int, seed: int = 1) -> Iterator[str]:
    """Yield *count* texts; each fifth is a copy of an earlier one with up to five words changed."""
    chance = random.Random(seed)
    kept: list[list[str]] = []
    for number in range(count):
        if number % 5 == 4:
            words = list(chance.choice(kept))
            for _ in range(chance.randint(0, 5)):
                words[chance.randrange(len(words))] = chance.choice(WORDS)
        else:
            words = chance.choices(WORDS, k=chance.randint(60, 120))
        if len(kept) < 20_000 and number % 5 == 0:
            kept.append(words)
        yield " ".join(words)


def fill_texts(client: Any, simhash: SimHashClient, documents: int) -> None:
    """Index the texts, without deciding about them."""
    body = {"properties": {"body": {"type": "text", "index": False}}}
    settings = {**ONE_SHARD, "refresh_interval": "-1"}
    simhash.create_index(TEXTS_INDEX, text_field="body", settings=settings, mappings=body)
    actions = ({"_id": str(number), "body": text} for number, text in enumerate(texts(documents)))
    for _ in simhash.ingest(TEXTS_INDEX, actions, on_duplicate=None):
        pass
    client.indices.refresh(index=TEXTS_INDEX)
    client.indices.forcemerge(index=TEXTS_INDEX, max_num_segments=5)


def plain(client: Any, query: int) -> set[str]:
    """The plain design: four blocks, one page, rescore."""
    clauses = candidate_clauses([query], LookupPlan(3, 4))
    body = build_body(clauses, None, (), prefix=DEFAULT_PREFIX, size=10_000, source=False)
    hits = client.search(index=PLANTED, body=body)["hits"]["hits"]
    return {near_dup.id for near_dup in rescore(hits, query, max_distance=3)}


def by_bits(options: argparse.Namespace) -> None:
    """Measure lookups by fingerprint at each distance."""
    with serve_planted(options) as (server, client, planted):
        if options.product == "opensearch":  # Elasticsearch searches several segments at the same time anyway
            mode = {"search.concurrent_segment_search.mode": "all" if options.slices else None}
            client.indices.put_settings(index=PLANTED, body={"index": mode})
            client.cluster.put_settings(body={"transient": {"search.concurrent.max_slice_count": options.slices}})
        queries = planted.queries[: options.lookups]
        simhash = {"scripts": SimHashClient(client), "no scripts": SimHashClient(client)}
        simhash["no scripts"]._context.scriptless.learn(PLANTED, value=True)  # noqa: SLF001 -- as if one was refused
        if options.product == "elasticsearch":
            del simhash["scripts"]  # the embedded one has no Painless

        def ids(find: SimHashClient, max_distance: int, query: int) -> set[str]:
            found = find.find_near_dups(PLANTED, fingerprint=query, max_distance=max_distance)
            return {near_dup.id for near_dup in found}

        def empty(_: int) -> Any:
            return client.search(index=PLANTED, body=EMPTY)

        for max_distance in options.distances:
            ways: dict[str, Callable[[int], Any]] = {"empty": empty}
            ways |= {name: partial(ids, find, max_distance) for name, find in simhash.items()}
            if max_distance == 3:
                ways["plain"] = partial(plain, client)
            times = ratios(in_turns(ways, queries, options.warm), "empty")
            for name, look in list(ways.items())[1:]:
                answers = [(look(query), planted.truth(query, max_distance)) for query in queries]
                assert all(found <= truth for found, truth in answers), f"{name}: reported but too far"
                share = sum(len(found) for found, _ in answers) / sum(len(truth) for _, truth in answers)
                times[name]["recall"] = round(share, 3)
            show(max_distance=max_distance, times=times)
        many = (queries * 20)[:800]
        for max_distance in BATCH_DISTANCES:
            show(max_distance=max_distance, a_second=throughput(next(iter(simhash.values())), many, max_distance))
        found = {"bytes_a_document": store_bytes(client, PLANTED, options.documents)} if options.merged else {}
        show(command=" ".join(sys.argv), version=server.version, **found, **vars(options))


def throughput(simhash: SimHashClient, queries: list[int], max_distance: int) -> dict[str, float]:
    """Return lookups a second: one at a time, in batches of 100, and from 8 threads."""
    find = partial(simhash.find_near_dups, PLANTED, max_distance=max_distance)

    def rate(work: Callable[[], Any]) -> float:
        start = time.perf_counter()
        work()
        return round(len(queries) / (time.perf_counter() - start), 1)

    with ThreadPoolExecutor(8) as threads:
        return {
            "one at a time": rate(lambda: [find(fingerprint=query) for query in queries]),
            "batches of 100": rate(
                lambda: simhash.find_near_dups_many(PLANTED, fingerprints=queries, max_distance=max_distance)
            ),
            "8 clients": rate(lambda: list(threads.map(lambda query: find(fingerprint=query), queries))),
        }


def by_rule(options: argparse.Namespace) -> None:
    """Measure lookups of texts and documents by the rule, beside lookups by bits alone."""
    with served(options) as (_, client, _helpers):
        simhash = SimHashClient(client)
        fill_texts(client, simhash, options.documents)
        within = PRESETS["similar"].max_distance
        ids = [str(number) for number in random.Random(7).sample(range(options.documents), options.lookups)]
        bodies = [client.get(index=TEXTS_INDEX, id=id_)["_source"]["body"] for id_ in ids]
        for name, find, items in (
            ("of a text", partial(simhash.find_near_dups, TEXTS_INDEX), bodies),
            ("ten of a text", partial(simhash.find_near_dups, TEXTS_INDEX, size=10), bodies),
            ("of a document", partial(simhash.find_near_dups_of, TEXTS_INDEX), ids),
        ):
            ways = {"bits": partial(find, max_distance=within), "rule": find}
            show(lookup=name, times=ratios(in_turns(ways, items), "bits"))


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--folder", help="where indices of fingerprints are kept between runs")
    parser.add_argument("--documents", type=int, default=4_000_000)
    parser.add_argument("--bits", type=int, default=16)
    parser.add_argument("--merged", action="store_true", help="an index of one segment")
    parser.add_argument("--slices", type=int, help="segments searched at the same time (OpenSearch)")
    parser.add_argument("--lookups", type=int, default=40)
    parser.add_argument("--warm", type=int, default=5, help="rounds of lookups before those that count")
    parser.add_argument("--distances", type=int, nargs="*", default=DISTANCES)
    parser.add_argument("--rule", action="store_true", help="lookups by the rule, instead of by bits")
    options = parser.parse_args()
    (by_rule if options.rule else by_bits)(options)


if __name__ == "__main__":
    main()
