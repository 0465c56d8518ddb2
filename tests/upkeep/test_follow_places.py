"""How far a follower has read: what is left and taken over, and what makes it begin anew."""

import pytest

from es_simhash.mapping.shards import NOTHING, Position, Shard
from es_simhash.upkeep.follow_changes import Places

FIRST, SECOND = Shard("news-1", "a", 0), Shard("news-1", "a", 1)
NEW = Shard("news-1", "b", 0)


def looked(positions, *, purposes=None, places=None):
    """Return places that have looked at *positions*."""
    places = places or Places()
    places.look(positions, purposes or {"a": "shingles", "b": "shingles"})
    return places


def read_all(places):
    """Read what is left."""
    for each in places.behind:
        each.read = each.position.checkpoint


def test_only_what_every_copy_has_is_read():
    places = looked({FIRST: Position(4, 9), SECOND: Position(NOTHING, NOTHING)})
    assert [each.shard for each in places.behind] == [FIRST]
    assert places.lag == 10
    read_all(places)
    assert (places.behind, places.lag) == ([], 5)


@pytest.mark.parametrize(
    ("positions", "purposes"),
    [
        ({NEW: Position(4, 4)}, {"b": "shingles"}),
        ({FIRST: Position(9, 9)}, {"a": "words"}),
        ({FIRST: Position(3, 3)}, {"a": "shingles"}),
    ],
    ids=["made again", "another scheme", "numbers that went back"],
)
def test_what_makes_a_shard_begin_anew(positions, purposes):
    places = looked({FIRST: Position(4, 4)})
    read_all(places)
    [place] = looked(positions, purposes=purposes, places=places)
    assert place.read == NOTHING


def test_a_shard_without_a_purpose_is_left_out():
    assert list(looked({FIRST: Position(4, 4)}, purposes={"b": "shingles"})) == []


def test_places_survive_as_json():
    places = looked({FIRST: Position(4, 4), SECOND: Position(7, 7)})
    read_all(places)
    again = Places()
    again.load(places.to_dict())
    assert again.to_dict() == places.to_dict()
    assert looked({FIRST: Position(4, 4), SECOND: Position(9, 9)}, places=again).lag == 2


NINE = {FIRST: Position(9, 9), SECOND: Position(9, 9)}


def taken_over(recorded):
    """Return how far each shard is read for a follower that takes *recorded* over."""
    found = Places()
    found.load(recorded)
    return [each.read for each in looked(NINE, places=found)]


@pytest.mark.parametrize("damage", [{}, 7, {"read": "5"}, {"uuid": None}, {"shard": []}])
def test_what_is_damaged_is_read_again(damage):
    places = looked(NINE)
    for each in places:
        each.read = 5
    first, second = places.to_dict()
    damaged = {**first, **damage} if damage and isinstance(damage, dict) else damage
    assert taken_over([damaged, second]) == [-1, 5]


@pytest.mark.parametrize("recorded", [None, 7, {}, "places"])
def test_what_is_no_list_is_nothing(recorded):
    assert taken_over(recorded) == [-1, -1]
