"""Node's client for Elasticsearch reads documents with fingerprints and groups, and writes them again."""

import uuid

import pytest

from es_simhash import SimHashClient
from tests.servers.fixtures import make_client
from tests.servers.support import ONE_SHARD, read_all


def test_what_node_rewrites_stays(node, elasticsearch, documents, near):
    """All fields are the same, numbers too; lookups find every copy, and no group has to be corrected."""
    if not elasticsearch.version.startswith("9."):
        pytest.skip("this version of Node's client speaks with Elasticsearch 9 only")
    index = f"test-{uuid.uuid4().hex}"
    try:
        with make_client(elasticsearch) as client:
            simhash = SimHashClient(client)
            simhash.create_index(index, text_field="body", settings=ONE_SHARD)
            list(simhash.ingest(index, documents, max_distance=8))
            before = read_all(elasticsearch, index)
            assert node("rewrite.mjs", index, ELASTICSEARCH_URL=elasticsearch.url) == [{"written": len(documents)}]
            expected = {id_: {**source, "read_by": "node"} for id_, source in before.items()}
            assert read_all(elasticsearch, index) == expected
            bodies = [each["body"] for each in documents]
            for document, hits in zip(documents, simhash.find_near_dups_many(index, bodies, max_distance=8)):
                assert {hit.id: hit.distance for hit in hits} == near(document, 8)
            assert simhash.check(index)[0].problems == ()
            assert simhash.reconcile(index).changed == 0
    finally:
        elasticsearch.remove(index)
