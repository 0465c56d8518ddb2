"""Types that users rely on; checked by mypy, never run."""

from collections.abc import AsyncIterator, Iterator
from typing import Any, assert_type

from elasticsearch import AsyncElasticsearch, Elasticsearch

from es_simhash import (
    AsyncSimHashClient,
    NearDup,
    NearDups,
    SimHashClient,
    fingerprint,
    fingerprints,
    with_fingerprints,
)


def sync_users(client: Elasticsearch) -> None:
    simhash = SimHashClient(client, scheme="shingles")
    found = simhash.find_near_dups("news", "a text", max_distance=8, filter={"term": {"lang": "en"}})
    assert_type(found, NearDups)
    assert_type(found[0], NearDup)
    assert_type(found[0].distance, int)
    assert_type(simhash.find_near_dups_many("news", ["a", "b"]), list[NearDups | Exception])


async def async_users(client: AsyncElasticsearch) -> None:
    simhash = AsyncSimHashClient(client)
    assert_type(await simhash.find_near_dups_of("news", "1"), NearDups)
    async for answer in simhash.stream_near_dups_many("news", ["a text"]):
        assert_type(answer, NearDups | Exception)


def pure_users(documents: list[dict[str, Any]], arriving: AsyncIterator[dict[str, Any]]) -> None:
    assert_type(fingerprint("a text"), int | None)
    assert_type(fingerprints(["a", "b"]), list[int | None])
    assert_type(with_fingerprints(documents, text_field="body"), Iterator[Any])
    assert_type(with_fingerprints(arriving, text_field="body"), AsyncIterator[Any])
