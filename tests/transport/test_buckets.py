"""Reading all values of a field: none is lost or counted twice, however the server cuts and the pages fall."""

import random
from collections import Counter

import pytest

from es_simhash import IncompleteSearchError
from es_simhash.transport import buckets, buckets as value_ranges
from es_simhash.transport.buckets import BucketReader
from tests.transport.by_hand import SCRIPTED, ServerError, drive


class Documents:
    """A server with documents, each the list of its values; it knows composites, ranges and random documents."""

    def __init__(self, documents, *, silent=0):
        self.documents, self.silent = documents, silent
        self.looked_at = 0

    def __call__(self, call):
        body = call.arguments["body"]
        query = body["query"]
        scored = query.get("function_score", {"query": query})["query"]["bool"]["filter"]
        ranges = [clause["range"]["value"] for clause in scored if "range" in clause]
        found = [each for each in self.documents if all(is_in(each, one) for one in ranges)]
        self.looked_at += len(found)
        shards = {"total": 2, "successful": 2 - self.silent, "failed": 0}
        if "aggs" in body:
            return {"_shards": shards, "aggregations": {"every": page(found, body["aggs"]["every"]["composite"])}}
        hits = [{"fields": {"value": each}} for each in random.Random(4).sample(found, min(len(found), body["size"]))]
        return {"_shards": shards, "hits": {"hits": hits, "total": {"value": len(found)}}}


def is_in(values, bounds):
    return any(each > bounds["gt"] and ("lte" not in bounds or each <= bounds["lte"]) for each in values)


def page(documents, composite):
    """Return a page of buckets as servers do: every value of a document that matches, the missing one first."""
    has_missing = "missing_bucket" in composite["sources"][0]["value"]["terms"]
    counts = Counter(each for values in documents for each in {*values} or ({None} if has_missing else set()))
    keys = sorted(counts, key=lambda each: (each is not None, each or ""))
    if "after" in composite and composite["after"]["value"] is not None:
        keys = [each for each in keys if each is not None and each > composite["after"]["value"]]
    elif "after" in composite:
        keys = [each for each in keys if each is not None]
    return {"buckets": [{"key": {"value": each}, "doc_count": counts[each]} for each in keys[: composite["size"]]]}


def read(server, **options):
    """Return every (value, number) in the order in which they come, and the number of searches."""
    reader = BucketReader("index", [], "value", page=5, **options)

    async def work():
        found = []
        while part := await reader.read(SCRIPTED):
            found += [(value, bucket["doc_count"]) for value, bucket in part]
        return found

    found, calls, _ = drive(work(), server)
    return found, len(calls)


def make(kind, seed):
    chance = random.Random(seed)
    names = [f"{chance.choice('äb😀z')}{n}" for n in range(90)]
    if kind == "one heavy":
        return [["b7"]] * 300 + [[each] for each in names]
    if kind == "several values":
        return [chance.sample(names, chance.randrange(4)) for _ in range(200)]
    return [[chance.choice(names)] for _ in range(chance.randrange(400))] + [[]] * 3


@pytest.mark.parametrize("drawn", [1, 5, 1_000])
@pytest.mark.parametrize("kind", ["one value", "several values", "one heavy"])
@pytest.mark.parametrize("has_missing", [False, True])
def test_every_value_once_and_in_order(kind, drawn, has_missing, monkeypatch):
    """However few documents say where to cut."""
    monkeypatch.setattr(value_ranges, "_DRAWN", drawn)
    for seed in range(3):
        documents = make(kind, seed)
        expected = Counter(value for values in documents for value in {*values})
        without = documents.count([])
        found, _ = read(Documents(documents), has_missing=has_missing, has_ranges=True)
        named = [each for each in found if each[0] is not None]
        assert named == sorted(expected.items())
        assert found[: len(found) - len(named)] == ([(None, without)] if has_missing and without else [])


def test_the_work_grows_with_the_documents():
    """With ranges each document is looked at a few times, without them once a page."""
    documents = [[f"{n:05}"] for n in range(1_000)]
    with_ranges, without = Documents(documents), Documents(documents)
    _, searches = read(with_ranges, has_ranges=True)
    read(without)
    assert without.looked_at == 201 * 1_000
    assert with_ranges.looked_at < (buckets.CUT_AFTER + 5) * 1_000
    assert searches < 201 * 1.6


def test_few_pages_are_not_cut():
    """The search that cuts would cost more than it saves."""
    assert read(Documents([[f"{n}"] for n in range(19)]), has_ranges=True)[1] == 4


def test_a_refusal_and_a_missing_shard_come_out():
    """At whatever request."""
    documents = [[f"{n:04}"] for n in range(100)]
    with pytest.raises(IncompleteSearchError):
        read(Documents(documents, silent=1), has_ranges=True)
    server = Documents(documents)

    def refuse(call):
        return server(call) if "aggs" in call.arguments["body"] else ServerError(403, "not allowed")

    with pytest.raises(ServerError, match="not allowed"):
        read(refuse, has_ranges=True)
