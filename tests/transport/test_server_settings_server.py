"""Settings of a server, or of an index, that shorten answers: left out where that is possible, else noticed."""

import asyncio
import uuid

import pytest
from opensearchpy import AsyncOpenSearch, OpenSearch

from es_simhash import AsyncSimHashClient, SimHashClient

TEXTS = [f"the council votes on the harbour bridge on day {number}" for number in range(8)]
PIPELINES = {
    "cuts": {"response_processors": [{"truncate_hits": {"target_size": 1}}]},
    "filters": {"request_processors": [{"filter_query": {"query": {"ids": {"values": ["0"]}}}}]},
}


@pytest.fixture(params=PIPELINES)
def piped(request, pipelines):
    """A server, and the name of an index of this test's own that may have the same name's search pipeline."""
    name = f"test-{uuid.uuid4().hex}"
    pipelines.request("PUT", f"/_search/pipeline/{name}", PIPELINES[request.param])
    yield pipelines, name
    pipelines.remove(name)
    pipelines.request("DELETE", f"/_search/pipeline/{name}")


def test_a_default_search_pipeline_is_left_out(piped):
    """Of every search, also of many in one request, of pages and of counts."""
    server, index = piped
    with OpenSearch(server.url) as client:
        simhash = SimHashClient(client)
        settings = {"index.search.default_pipeline": index, "number_of_replicas": 0}
        simhash.create_index(index, text_field="body", settings=settings)
        documents = [{"_id": str(n), "body": text} for n, text in enumerate(TEXTS)]
        assert {each.action for each in simhash.ingest(index, documents)} <= {"written", "tagged"}
        server.request("POST", f"/{index}/_refresh")
        found = simhash.find_near_dups(index, TEXTS[0], max_distance=64)
        assert (len(found), found.complete) == (len(TEXTS), True)
        many = simhash.find_near_dups_many(index, TEXTS, max_distance=64)
        assert [len(each) for each in many] == [len(TEXTS)] * len(TEXTS)
        assert len(list(simhash.pairs(index, max_distance=64))) == len(TEXTS) * (len(TEXTS) - 1) / 2
        [check] = simhash.check(index)
        assert (check.documents, check.fingerprinted) == (len(TEXTS), len(TEXTS))
        last = list(simhash.backfill(index))[-1]
        assert (last.total, last.seen, last.changed) == (len(TEXTS), len(TEXTS), 0)

    async def lookup():
        async with AsyncOpenSearch(server.url) as client:
            return await AsyncSimHashClient(client).find_near_dups(index, TEXTS[0], max_distance=64)

    assert len(asyncio.run(lookup())) == len(TEXTS)


def test_the_request_cache_shows_each_refresh(server, index, sync_client):
    """Counts and statistics are searches without hits, which servers keep the answers of: until the next refresh."""
    simhash = SimHashClient(sync_client)
    cached = {"index.requests.cache.enable": True, "refresh_interval": "-1", "number_of_replicas": 0}
    simhash.create_index(index, text_field="body", settings=cached)
    for written in range(1, 4):
        list(simhash.ingest(index, [{"_id": str(written), "body": TEXTS[0]}]))
        server.request("POST", f"/{index}/_refresh")
        for _ in range(3):
            [check] = simhash.check(index)
            assert (check.documents, check.fingerprinted) == (written, written)
            assert len(SimHashClient(sync_client).find_near_dups(index, TEXTS[0])) == written
    server.request("DELETE", f"/{index}/_doc/1?refresh=true")
    assert simhash.check(index)[0].documents == 2
    cache = server.request("GET", f"/{index}/_stats/request_cache")["_all"]["primaries"]["request_cache"]
    assert cache["hit_count"] > 0
