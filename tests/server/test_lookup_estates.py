"""Lookups in indices as people have them: routed, aliased, replaced, behind names of every kind."""

import pytest

from es_simhash import InvalidInputError, Verification, fingerprint_fields
from tests.server.support import send_lines

THREE_SHARDS = {"number_of_shards": 3, "number_of_replicas": 0}


def key_of(each):
    return each.id, each.routing


@pytest.fixture
def routed(server, index, simhash):
    """An index in whose shards one id stands three times, with fingerprints 1, 2 and 4."""
    simhash.create_index(index, text_field="body", settings=THREE_SHARDS)
    # A routing value for each shard; two documents of one id in one shard would replace each other.
    shards = {}
    for routing in "abcdefgh":
        found = server.request("GET", f"/{index}/_search_shards?routing={routing}")
        shards.setdefault(found["shards"][0][0]["shard"], routing)
    values = sorted(shards.values())
    assert len(values) == 3
    send_lines(
        server,
        [
            line
            for bit, routing in enumerate(values)
            for line in (
                {"index": {"_index": index, "_id": "7", "routing": routing}},
                {"body": f"text {bit}", **fingerprint_fields(1 << bit)},
            )
        ],
    )
    return values


def test_one_id_in_several_shards_is_several_documents(index, simhash, routed):
    """Each is found, by every kind of lookup, and told apart by its routing."""
    expected = [("7", routing) for routing in routed]
    for max_distance in (1, 3, 12, 64):
        assert list(map(key_of, simhash.find_near_dups(index, fingerprint=0, max_distance=max_distance))) == expected
    assert sorted(map(key_of, simhash.stream_near_dups(index, fingerprint=0))) == expected
    for found in simhash.find_near_dups_many(index, fingerprints=[0, 0]):
        assert list(map(key_of, found)) == expected
    assert len(simhash.find_near_dups(index, fingerprint=0, size=2)) == 2


def test_a_document_of_an_id_that_others_have_too_is_named_by_its_routing(index, simhash, routed):
    """Without routing nobody can know which is meant, with it the others are near-duplicates."""
    with pytest.raises(InvalidInputError, match="differs between"):
        simhash.find_near_dups_of(index, "7")
    with pytest.raises(InvalidInputError, match="differs between"):
        simhash.get_fingerprint(index, "7")
    for max_distance in (3, 8):  # a search of one shard
        assert len(simhash.find_near_dups_of(index, "7", routing=routed[0], max_distance=max_distance)) == 0


def test_texts_of_one_id_in_several_shards_are_verified_each(index, simhash, routed):
    """And not one text for all of them."""
    found = simhash.find_near_dups(index, "text 1", max_distance=64, verify=Verification(0.0))
    assert {each.routing: each.similarity for each in found} == {routed[0]: 0.0, routed[1]: 1.0, routed[2]: 0.0}
