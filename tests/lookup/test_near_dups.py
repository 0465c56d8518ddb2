"""Candidates to near-duplicates: order, bounds, and what a hit must carry."""

import copy
import random

import pytest

from es_simhash import InvalidInputError, MappingError, NearDup, NearDups, rescore, to_hex


def hit(id_, *fingerprints, index="i", **more):
    return {"_index": index, "_id": id_, "fields": {"simhash.fingerprint": [to_hex(f) for f in fingerprints]}, **more}


def test_nearest_first_then_index_then_id():
    """Whatever the order of the hits."""
    hits = [hit("2", 1), hit("10", 1), hit("1", 1, index="a"), hit("9", 0), hit("3", 7), hit("4", 15)]
    expected = [("i", "9", 0), ("a", "1", 1), ("i", "10", 1), ("i", "2", 1), ("i", "3", 3)]
    for seed in range(5):
        random.Random(seed).shuffle(hits)
        found = rescore(hits, 0, max_distance=3)
        assert [(each.index, each.id, each.distance) for each in found] == expected


def test_max_distance_is_inclusive():
    """From nothing to every bit."""
    hits = [hit("a", 0), hit("b", 2**64 - 1)]
    assert [each.distance for each in rescore(hits, 0, max_distance=64)] == [0, 64]
    assert [each.distance for each in rescore(hits, 0, max_distance=63)] == [0]
    assert [each.fingerprint for each in rescore(hits, 0, max_distance=0)] == [0]


def test_each_document_once():
    """Also where pages overlap; the same id in two indices is two documents."""
    assert len(rescore([hit("a", 1), hit("a", 1), hit("a", 1, index="j")], 0)) == 2


def test_of_several_fingerprints_the_nearest_counts():
    """And is the one reported."""
    [found] = rescore([hit("a", 2**64 - 1, 1, 7)], 0)
    assert (found.distance, found.fingerprint) == (1, 1)


def test_size_keeps_the_nearest():
    """More than there are is all."""
    hits = [hit(str(n), 2**n - 1) for n in range(4)]
    assert [each.distance for each in rescore(hits, 0, size=2)] == [0, 1]
    assert len(rescore(hits, 0, size=99)) == 4


def test_source_comes_with_the_hit_and_nothing_is_changed():
    """Where it was asked for."""
    hits = [hit("a", 0, _source={"title": "t"}), hit("b", 0)]
    before = copy.deepcopy(hits)
    assert [each.source for each in rescore(hits, 0)] == [{"title": "t"}, None]
    assert hits == before


def test_another_prefix():
    """The fingerprint is read from its own field only."""
    other = {"_index": "i", "_id": "1", "fields": {"h.fingerprint": [to_hex(0)]}}
    assert len(rescore([other], 0, prefix="h")) == 1
    with pytest.raises(MappingError, match=r"no simhash\.fingerprint"):
        rescore([other], 0)


@pytest.mark.parametrize("fields", [{}, {"fields": {}}, {"fields": {"simhash.fingerprint": []}}])
def test_a_hit_without_a_fingerprint_is_an_error(fields):
    """It cannot be judged, and must not be lost."""
    with pytest.raises(MappingError, match="docvalue_fields"):
        rescore([{"_index": "i", "_id": "1", **fields}], 0)


@pytest.mark.parametrize(
    ("hits", "arguments", "error"),
    [
        ([hit("a", 0)], {"max_distance": 65}, InvalidInputError),
        ([hit("a", 0)], {"max_distance": "3"}, TypeError),
        ([{"_index": "i", "_id": "1", "fields": {"simhash.fingerprint": ["not hex"]}}], {}, MappingError),
    ],
)
def test_what_cannot_be_used_is_refused(hits, arguments, error):
    """Bounds, and fingerprints that are none."""
    with pytest.raises(error):
        rescore(hits, 0, **arguments)


def test_near_dups_are_a_frozen_sequence():
    """Indexed, sliced, counted, compared; and plain values for JSON."""
    items = (NearDup("a", "i", 0, 1), NearDup("b", "i", 2, 2, {"t": 1}))
    found = NearDups(items)
    assert (found[0], found[-1], found[:1], list(found), len(found)) == (items[0], items[1], items[:1], [*items], 2)
    assert items[1] in found
    assert found == NearDups(items)
    assert not NearDups()
    with pytest.raises(AttributeError):
        found.complete = False
    assert items[0].to_dict() == {"id": "a", "index": "i", "distance": 0, "fingerprint": "0000000000000001"}
    assert items[1].to_dict()["source"] == {"t": 1}
