"""Reading all values of a field: none is lost or counted twice, however the server cuts and the pages fall."""

import random
from collections import Counter

import pytest

from es_simhash import IncompleteSearchError
from es_simhash.transport import buckets
from es_simhash.transport.buckets import BucketReader
from tests.transport.by_hand import SCRIPTED, ServerError, drive


def holding(documents, *, silent=0):
    """Return a server with documents, each the list of its values; it knows composites."""
    counts = Counter(each for values in documents for each in {*values})

    def answer(call):
        composite = call.arguments["body"]["aggs"]["every"]["composite"]
        keys = sorted(each for each in counts if each > composite.get("after", {"value": ""})["value"])
        found = [{"key": {"value": each}, "doc_count": counts[each]} for each in keys[: composite["size"]]]
        shards = {"total": 2, "successful": 2 - silent, "failed": 0}
        return {"_shards": shards, "aggregations": {"every": {"buckets": found}}}

    return answer


def read(server, *, step=4):
    """Return every (value, number) in the order in which they come, and the number of searches."""
    reader = BucketReader("index", [], "value", page=step)

    async def work():
        found = []
        while part := await reader.read(SCRIPTED):
            assert len(part) <= step
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


@pytest.mark.parametrize("step", [3, 5, 100])
@pytest.mark.parametrize("kind", ["one value", "several values", "one heavy"])
def test_every_value_once_and_in_order(kind, step, monkeypatch):
    """Whether the buckets of an answer are handed on in parts, or whole; one search for each answer."""
    monkeypatch.setattr(buckets, "READ", 5)
    for seed in range(3):
        documents = make(kind, seed)
        expected = Counter(value for values in documents for value in {*values})
        found, searches = read(holding(documents), step=step)
        assert found == sorted(expected.items())
        assert searches == len(found) // 5 + 1


def test_a_missing_shard_and_a_refusal_come_out():
    with pytest.raises(IncompleteSearchError):
        read(holding([["a"]], silent=1))
    with pytest.raises(ServerError, match="not allowed"):
        read(lambda _: ServerError(403, "not allowed"))
