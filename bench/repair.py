"""
The repair of the groups that some hundred changed documents may have upset, in a large index: requests and seconds.

    python bench/repair.py --product opensearch --documents 1000000 --changed 500 --distance 12

The index has random fingerprints, so as many are near one another as chance makes, and texts of a few words that are
not alike; each hundredth document is a copy of the one before it. A tenth of the changed documents are copies, or their
canonicals, that lost their group.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Iterator
from typing import Any

from dedup import connect

from es_simhash import SimHashClient, fingerprint_fields
from es_simhash.client.port import finish, port_of
from es_simhash.groups.grouping_request import GroupingRequest
from es_simhash.groups.reconcile import reconcile
from es_simhash.mapping.context import Context
from es_simhash.servers import embedded_server

INDEX = "repaired"
PATIENCE_SECONDS = 300


def make_documents(count: int) -> Iterator[dict[str, Any]]:
    """Yield documents as an ingest has written them."""
    chance = random.Random(1)
    fingerprint, text = 0, ""
    for number in range(count):
        group = {"group": str(number), "at": "2026-01-01T00:00:00.000Z"}
        if number % 100 == 99:
            group = {"group": str(number - 1), "duplicate_of": str(number - 1), "distance": 0}
            group["at"] = "2026-01-01T00:00:00.001Z"
        else:
            fingerprint, text = chance.getrandbits(64), " ".join(f"{chance.getrandbits(40):x}" for _ in range(5))
        ours = fingerprint_fields(fingerprint)["simhash"] | group
        yield {"_index": INDEX, "_id": str(number), "body": text, "simhash": ours}


def fill(client: Any, helpers: Any, simhash: SimHashClient, options: argparse.Namespace) -> None:
    """Make an index that is grouped."""
    simhash.create_index(INDEX, text_field="body", settings={"number_of_shards": 1, "number_of_replicas": 0})
    simhash.reconcile(INDEX, max_distance=options.distance, verify=0.8)
    for _ in helpers.parallel_bulk(client, make_documents(options.documents), chunk_size=5_000, thread_count=2):
        pass
    client.indices.refresh(index=INDEX)


def measure(client: Any, helpers: Any, options: argparse.Namespace) -> dict[str, Any]:
    """Change documents, and repair their groups; nothing is left to do for these."""
    chance = random.Random(2)
    changed = chance.sample(range(options.documents), options.changed)
    changed[::10] = [number - number % 100 + 98 + number % 2 for number in changed[::10]]
    lost = {"simhash": {"group": None, "duplicate_of": None, "distance": None}}
    actions = [{"_op_type": "update", "_index": INDEX, "_id": str(number), "doc": lost} for number in changed[::10]]
    helpers.bulk(client, actions, refresh=True)
    sent: list[str] = []
    perform = client.transport.perform_request

    def count(method: str, url: str, *arguments: Any, **given: Any) -> Any:
        sent.append(url)
        return perform(method, url, *arguments, **given)

    client.transport.perform_request = count
    begun = time.perf_counter()
    ids = [str(number) for number in changed]
    done = finish(reconcile(port_of(client, Context()), INDEX, GroupingRequest(), ids=ids, may_lack=False))
    seconds = time.perf_counter() - begun
    client.transport.perform_request = perform
    return {
        "documents": options.documents,
        "changed": len(changed),
        "read": done.documents,
        "rewritten": done.changed,
        "requests": len(sent),
        "seconds": round(seconds, 2),
        "is_settled": done.is_settled,
    }


def main() -> None:
    """Fill an index, and repair some of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--product", choices=("opensearch", "elasticsearch"), default="opensearch")
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--changed", type=int, default=500)
    parser.add_argument("--distance", type=int, default=12)
    options = parser.parse_args()
    with embedded_server(options.product, heap="1g") as server:
        client, helpers = connect(options.product, server.url)
        timeout = "timeout" if options.product == "opensearch" else "request_timeout"
        client = type(client)([server.url], **{timeout: PATIENCE_SECONDS})
        simhash = SimHashClient(client)
        fill(client, helpers, simhash, options)
        print(json.dumps({"product": options.product, **measure(client, helpers, options)}))


if __name__ == "__main__":
    main()
