"""``size`` on real servers: what it reads of an index is what the index has."""

from __future__ import annotations

from tests.servers.support import fill, put

THREE_SHARDS = {"number_of_shards": 3, "number_of_replicas": 0}


def test_the_real_size_is_read(server, simhash, index):
    """Documents, shards, segments and bytes, and how uneven the fingerprints are; also with more documents."""
    simhash.create_index(index, settings=THREE_SHARDS)
    fill(server, index, [7] * 40)
    put(server, index, [{"_id": "without", "n": 1}])
    size = simhash.size(index, documents=1_000_000)
    measured = size.measured
    assert (measured.documents, measured.fingerprinted) == (41, 40)
    assert (measured.shards, measured.replicas) == (3, 0)
    assert measured.bytes > 0
    assert measured.segments >= 3
    assert measured.density == 40  # each posting list has all of them, and chance would put one there
    assert (size.documents, size.shards) == (1_000_000, 3)


def test_an_index_without_our_fields_has_a_size(server, simhash, index):
    """It says what fingerprints would add, before they are added."""
    put(server, index, [{"_id": "1", "n": 1}])
    size = simhash.size(index)
    assert (size.measured.documents, size.measured.fingerprinted) == (1, 0)
    assert size.figure("disk_fingerprints").high > 0
