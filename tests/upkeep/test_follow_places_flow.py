"""How far a follower has read: what is recorded and taken over."""

import pytest

from es_simhash.mapping.shards_flow import Position, Shard
from es_simhash.upkeep.follow_changes_flow import Places

SHARDS = {Shard("news", "uuid", number): Position(9, 9) for number in (0, 1)}


def places():
    found = Places()
    found.look(SHARDS, {"uuid": "purpose"})
    for each in found:
        each.advance(5)
    return found


def taken_over(recorded):
    """Return how far each shard is read for a follower that takes *recorded* over."""
    found = Places()
    found.load(recorded)
    found.look(SHARDS, {"uuid": "purpose"})
    return [each.read for each in found]


def test_what_is_recorded_is_taken_over():
    assert taken_over(places().to_dict()) == [5, 5]


@pytest.mark.parametrize("damage", [{}, 7, {"read": "5"}, {"uuid": None}, {"shard": []}])
def test_what_is_damaged_is_read_again(damage):
    first, second = places().to_dict()
    damaged = {**first, **damage} if damage and isinstance(damage, dict) else damage
    assert taken_over([damaged, second]) == [-1, 5]


@pytest.mark.parametrize("recorded", [None, 7, {}, "places"])
def test_what_is_no_list_is_nothing(recorded):
    assert taken_over(recorded) == [-1, -1]
