"""
The repair of the groups that some hundred changed documents may have upset, in a large index: requests and seconds.

    python bench/repair.py --product opensearch --documents 5000000 --changed 500 --distance 12

The texts are words as frequent as those of a language, so their fingerprints are spread like those of real texts: more
are near one another than chance makes. Each hundredth document is a copy of the one before it. First `reconcile` is
given documents of which a tenth are copies, or their canonicals, that lost their group; then `follow` finds documents
that got another text, a tenth of them the text of another document. Last, `reconcile` reads the whole index.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from harness import ONE_SHARD, arguments, served, show, working

from es_simhash import SimHashClient, fingerprint_fields, fingerprints
from es_simhash.client.port import finish, port_of
from es_simhash.groups.grouping_request import GroupingRequest
from es_simhash.groups.reconcile import reconcile
from es_simhash.mapping.context import Context
from es_simhash.mapping.port import Port
from es_simhash.mapping.rule import Grouping
from es_simhash.upkeep.follow_changes import FollowedIndices, Places, PositionStore
from es_simhash.upkeep.follow_options import FollowOptions

INDEX = "repaired"
WORDS = 65_536
TEXT_WORDS = 12
BLOCK_DOCUMENTS = 10_000


def make_texts(count: int, seed: int) -> list[str]:
    """Return texts of which the word of rank *n* is about as frequent as 1 / *n*."""
    ranks = (WORDS ** np.random.default_rng(seed).random((count, TEXT_WORDS))).astype(int)
    return [" ".join(f"{rank * 2_654_435_761 % 2**32:x}" for rank in row) for row in ranks.tolist()]


def make_documents(count: int) -> Iterator[dict[str, Any]]:
    """Yield documents as an ingest has written them."""
    for begin in range(0, count, BLOCK_DOCUMENTS):
        texts = make_texts(BLOCK_DOCUMENTS, begin)
        texts[99::100] = texts[98::100]
        for number, (text, fingerprint) in enumerate(zip(texts, fingerprints(texts), strict=True), begin):
            group = {"group": str(number), "at": "2026-01-01T00:00:00.000Z"}
            if number % 100 == 99:
                group = {"group": str(number - 1), "duplicate_of": str(number - 1), "distance": 0}
                group["at"] = "2026-01-01T00:00:00.001Z"
            yield {"_index": INDEX, "_id": str(number), "body": text, **_fields(fingerprint, group)}


def _fields(fingerprint: int | None, group: dict[str, Any]) -> dict[str, Any]:
    return {"simhash": fingerprint_fields(fingerprint or 0)["simhash"] | group}


def fill(client: Any, helpers: Any, simhash: SimHashClient, options: argparse.Namespace) -> None:
    """Make an index that is grouped."""
    simhash.create_index(INDEX, text_field="body", settings=ONE_SHARD)
    simhash.reconcile(INDEX, max_distance=options.distance, verify=0.8)
    for _ in helpers.parallel_bulk(client, make_documents(options.documents), chunk_size=5_000, thread_count=2):
        pass
    client.indices.refresh(index=INDEX)


@contextmanager
def counted(client: Any, done: dict[str, Any]) -> Iterator[None]:
    """Put the number of requests, and the seconds, into *done*."""
    sent: list[str] = []
    perform = client.transport.perform_request

    def count(method: str, url: str, *arguments: Any, **given: Any) -> Any:
        sent.append(url)
        return perform(method, url, *arguments, **given)

    client.transport.perform_request = count
    begun = time.perf_counter()
    yield
    done |= {"requests": len(sent), "seconds": round(time.perf_counter() - begun, 2)}
    client.transport.perform_request = perform


def measure_reconcile(client: Any, helpers: Any, options: argparse.Namespace, seed: int) -> dict[str, Any]:
    """Change groups of documents, and repair them; nothing is left to do for these."""
    changed = np.random.default_rng(seed).choice(options.documents, options.changed, replace=False).tolist()
    changed[::10] = [number - number % 100 + 98 + number % 2 for number in changed[::10]]
    lost = {"simhash": {"group": None, "duplicate_of": None, "distance": None}}
    actions = [{"_op_type": "update", "_index": INDEX, "_id": str(number), "doc": lost} for number in changed[::10]]
    helpers.bulk(client, actions, refresh=True)
    done: dict[str, Any] = {"verb": "reconcile"}
    with counted(client, done):
        ids = [str(number) for number in changed]
        made = finish(reconcile(port_of(client, Context()), INDEX, GroupingRequest(), ids=ids, may_lack=False))
    return done | {"read": made.documents, "rewritten": made.changed, "is_settled": made.is_settled}


async def note_position(server: Port) -> None:
    """Write the position of a follower that has read everything."""
    options = FollowOptions()
    indices, places = FollowedIndices(INDEX, options), Places()
    places.look(await indices.look(server, 0), indices.purposes)
    for place in places:
        place.read = place.position.checkpoint
    [target] = indices.judge.targets.values()
    grouping = Grouping.read(target.settings)
    store = PositionStore(options.state_index, INDEX, server.prefix)
    await store.read(server)
    await store.write(server, {"places": places.to_list(), "decided_by": grouping and grouping.to_dict()})


def measure_follow(
    client: Any, helpers: Any, simhash: SimHashClient, options: argparse.Namespace, seed: int
) -> dict[str, Any]:
    """Give documents another text, and follow the index once from where it was before."""
    finish(note_position(port_of(client, Context())))
    changed = np.random.default_rng(seed).choice(options.documents, options.changed, replace=False).tolist()
    texts = make_texts(options.changed, seed)
    others = client.mget(index=INDEX, body={"ids": [str(number) for number in changed[1::10]]})["docs"]
    texts[::10] = [document["_source"]["body"] for document in others]
    pairs = zip(changed, texts, strict=True)
    actions = [
        {"_op_type": "update", "_index": INDEX, "_id": str(number), "doc": {"body": text}} for number, text in pairs
    ]
    helpers.bulk(client, actions, refresh=True)
    done: dict[str, Any] = {"verb": "follow"}
    with counted(client, done):
        *_, report = simhash.follow(INDEX, once=True)
    return done | {"read": report.read, "written": report.written, "rewritten": report.regrouped}


def measure_whole(server: Any, simhash: SimHashClient) -> dict[str, Any]:
    """Reconcile the whole index."""
    with working(server) as work:
        made = simhash.reconcile(INDEX)
    return {"verb": "reconcile all", **vars(work), "read": made.documents, "rewritten": made.changed}


def main() -> None:
    """Fill an index, and repair some of it, and all."""
    parser = arguments(__doc__)
    parser.add_argument("--documents", type=int, default=5_000_000)
    parser.add_argument("--changed", type=int, default=500)
    parser.add_argument("--distance", type=int, default=12)
    options = parser.parse_args()
    with served(options) as (server, client, helpers):
        simhash = SimHashClient(client)
        fill(client, helpers, simhash, options)
        for measure in (
            lambda: measure_reconcile(client, helpers, options, 2),
            lambda: measure_follow(client, helpers, simhash, options, 3),
            lambda: measure_whole(server, simhash),
        ):
            show(**vars(options), **measure())


if __name__ == "__main__":
    main()
