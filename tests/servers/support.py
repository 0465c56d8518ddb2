"""What tests on real servers share: texts and fingerprints to index, plain writes and reads, and what must come out."""

from __future__ import annotations

import json
import os
import random

import pytest

from es_simhash import fingerprint, fingerprint_fields, hamming_distance
from tests.reference import star
from tests.servers.servers import PRODUCTS

# Rounds of tests that kill and race writers; `make faults` has twenty times as many.
ROUNDS = int(os.environ.get("ES_SIMHASH_FAULT_ROUNDS", "1"))

ON_BOTH = pytest.mark.parametrize("server", PRODUCTS, indirect=True)
"""For a test whose answer the product decides, in a folder whose tests run on one."""
ONE_SHARD = {"number_of_shards": 1, "number_of_replicas": 0}
WORDS = [f"{a}{b}" for a in ("alba", "bren", "cor", "dun", "elm", "fir", "gal", "hin") for b in ("ton", "wick", "ford")]


def texts(count, *, seed=1, edits=3):
    """Return texts of which many are edited copies of one before them."""
    chance = random.Random(seed)
    found = []
    for _ in range(count):
        if found and chance.random() < 0.6:
            words = chance.choice(found).split()
            for _ in range(chance.randint(0, edits)):
                words[chance.randrange(len(words))] = chance.choice(WORDS)
        else:
            words = [chance.choice(WORDS) for _ in range(60)]
        found.append(" ".join(words))
    return found


def numbered(found):
    """Return a document for each text; ids sort as the texts do."""
    return [{"_id": f"{n:05d}", "n": n, "body": text} for n, text in enumerate(found)]


def planted(count, *, seed=1):
    """Return fingerprints of which many are near one another, and some in all four blocks at once."""
    chance = random.Random(seed)
    found = []
    while len(found) < count:
        origin = chance.getrandbits(64)
        found.append(origin)
        for _ in range(6):
            near = origin
            for bit in chance.sample(range(64), chance.randint(0, 20)):
                near ^= 1 << bit
            found.append(near)
    return found[:count]


def truth(fingerprints, wanted, max_distance):
    """Return distance and id of every document within *max_distance* bits, by comparing all."""
    return sorted(
        (hamming_distance(each, wanted), f"{number:05d}")
        for number, each in enumerate(fingerprints)
        if hamming_distance(each, wanted) <= max_distance
    )


def send_lines(server, lines):
    """Send the lines of a bulk request, and refresh; every one must be written."""
    body = "".join(json.dumps(line) + "\n" for line in lines).encode()
    answer = server.request("POST", "/_bulk?refresh=true", body)
    assert not answer["errors"], answer["items"][:1]


def random_texts(count, seed):
    """Return texts that have no more in common than chance makes."""
    chance = random.Random(seed)
    return [" ".join(f"{chance.getrandbits(40):x}" for _ in range(30)) for _ in range(count)]


def document(id_, text, **more):
    return {"_id": id_, "body": text, **fingerprint_fields(fingerprint(text)), **more}


def put(server, index, documents):
    """Index *documents* as another program would, and refresh."""
    lines = []
    for document in documents:
        rest = dict(document)
        lines += [{"index": {"_index": index, "_id": rest.pop("_id")}}, rest]
    send_lines(server, lines)


def fill(server, index, fingerprints, **more):
    """Index a document for each of *fingerprints*, numbered."""
    lines = []
    for number, each in enumerate(fingerprints):
        lines.append({"index": {"_index": index, "_id": f"{number:05d}"}})
        lines.append({"n": number, **fingerprint_fields(each), **more})
    send_lines(server, lines)


def read_all(server, index):
    """Return the ``_source`` of every document, by id."""
    server.request("POST", f"/{index}/_refresh")
    answer = server.request("POST", f"/{index}/_search", {"size": 10_000, "query": {"match_all": {}}})
    return {hit["_id"]: hit["_source"] for hit in answer["hits"]["hits"]}


def open_contexts(server, prefix):
    """Return how many points in time are open on the indices whose names begin with *prefix*."""
    return server.request("GET", f"/{prefix}*/_stats/search")["_all"]["total"]["search"]["open_contexts"]


def assert_all_right(documents):
    """Check that every document has the fingerprint of its present text, or none where that has no features."""
    for source in documents.values():
        wanted = fingerprint_fields(fingerprint(source["body"]))
        stored = source.get("simhash")
        if wanted:
            assert {name: stored[name] for name in wanted["simhash"]} == wanted["simhash"]
        else:
            assert stored is None


def first_grouped(id_, source):
    """Return the key of the default order, by which who has no moment comes last."""
    del id_
    return source["simhash"].get("at", "last")


def expected_groups(documents, max_distance, key=first_grouped):
    """Return id to canonical's id, by the rule ``star``, in the order of *key*."""
    order = sorted(documents, key=lambda id_: (key(id_, documents[id_]), id_))
    prints = [fingerprint(documents[id_]["body"]) for id_ in order]
    return {order[n]: order[c] for n, c in enumerate(star(prints, max_distance))}


def stored_groups(documents):
    """Return id to canonical's id, as the fields of *documents* say."""
    for id_, source in documents.items():
        canonical = source["simhash"].get("duplicate_of")
        assert source["simhash"]["group"] == (canonical or id_)
    return {id_: source["simhash"]["group"] for id_, source in documents.items()}


class ByDistance:
    """A client of ours whose groups go by distance alone: for tests that are about bits, not about texts."""

    def __init__(self, simhash):
        self._simhash = simhash

    def __getattr__(self, name):
        method = getattr(self._simhash, name)
        if name not in ("ingest", "reconcile"):
            return method
        return lambda *args, **options: method(*args, **{"verify": False, **options})


def simulate(server, pipeline, sources):
    """Return the documents that *pipeline* makes of *sources*."""
    answer = server.request(
        "POST", "/_ingest/pipeline/_simulate", {"pipeline": pipeline, "docs": [{"_source": each} for each in sources]}
    )
    return [each["doc"]["_source"] for each in answer["docs"]]


def found_in(documents):
    """Return the fingerprint of each document."""
    return [(each.get("simhash") or {}).get("fingerprint") for each in documents]


def resize(server, source, target, shards, *, kind="shrink"):
    """Make *target* of *source* by the API *kind*, with so many *shards*, and delete *source*."""
    server.request("PUT", f"/{source}/_settings", {"index.blocks.write": True})
    settings = {"index.number_of_shards": shards, "index.number_of_replicas": 0, "index.blocks.write": None}
    server.request("POST", f"/{source}/_{kind}/{target}?wait_for_active_shards=1", {"settings": settings})
    server.request("GET", f"/_cluster/health/{target}?wait_for_status=green&timeout=30s")
    server.request("DELETE", f"/{source}")
