"""How far a follower has read: what is left and taken over, and what makes it begin anew."""

import elastic_transport
import opensearchpy
import pytest

from es_simhash import IncompleteSearchError, InvalidInputError, WritesRefusedError
from es_simhash.mapping.shards import NOTHING, Position, PositionsError, Shard
from es_simhash.upkeep.follow_changes import Places, PositionStore
from es_simhash.upkeep.follow_options import find_outage
from tests.transport.by_hand import ServerError, drive, scripted

FIRST, SECOND = Shard("news-1", "a", 0), Shard("news-1", "a", 1)
NEW = Shard("news-1", "b", 0)


def looked(positions, *, purposes=None, places=None):
    """Return places that have looked at *positions*."""
    places = places or Places()
    places.look(positions, purposes or {"a": "shingles", "b": "shingles"})
    return places


def read_all(places):
    """Read what is left."""
    for place in places.behind:
        place.read = place.position.checkpoint


def test_only_what_every_copy_has_is_read():
    places = looked({FIRST: Position(4, 9), SECOND: Position(NOTHING, NOTHING)})
    assert [place.shard for place in places.behind] == [FIRST]
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


@pytest.mark.parametrize(
    ("positions", "is_less"),
    [
        ({FIRST: Position(9, 9, 2)}, False),
        ({FIRST: Position(9, 9, 3)}, True),
        ({FIRST: Position(9, 9)}, True),
        ({FIRST: Position(9, 9, 2), SECOND: Position(0, 0, 7)}, False),
        ({}, True),
    ],
    ids=["texts changed", "a document deleted", "a node that began to count anew", "a new shard", "an index removed"],
)
def test_what_may_have_lost_documents(positions, is_less):
    """Also where the position that a follower takes over has the count."""
    places = looked({FIRST: Position(4, 4, 2)})
    for before in (places, Places(places.to_list())):
        assert before.look(positions, {"a": "shingles"}) is is_less


def test_a_shard_without_a_purpose_is_left_out():
    assert list(looked({FIRST: Position(4, 4)}, purposes={"b": "shingles"})) == []


NINE = {FIRST: Position(9, 9), SECOND: Position(9, 9)}


def taken_over(recorded):
    """Return how far each shard is read for a follower that takes *recorded* over."""
    return [place.read for place in looked(NINE, places=Places(recorded))]


@pytest.mark.parametrize("damage", [7, {"read": "5"}, {"uuid": None}, {"number": []}], ids=repr)
def test_what_is_damaged_is_read_again(damage):
    places = looked(NINE)
    for place in places:
        place.read = 5
    first, second = places.to_list()
    assert taken_over([first, second]) == [5, 5]
    assert taken_over([{**first, **damage} if isinstance(damage, dict) else damage, second]) == [NOTHING, 5]


@pytest.mark.parametrize("recorded", [None, 7, {}, "places"])
def test_what_is_no_list_is_nothing(recorded):
    assert taken_over(recorded) == [NOTHING, NOTHING]


POSITION = {"places": [1]}


STORE = "state", "news", "simhash"


def write(*statuses):
    """Write once for each of *statuses* that the server answers; return how many bulk requests were made."""
    calls, found = [], PositionStore(*STORE)

    def answer(call):
        calls.append(call)
        status = statuses[len(calls) - 1]
        type_ = "security_exception" if status == 403 else "es_rejected_execution_exception"
        error = {} if status < 300 else {"error": {"type": type_, "reason": "no"}}
        return {"items": [{"index": {"_index": "state", "_id": "x", "status": status, **error}}]}

    for _ in statuses:
        drive(found.write(scripted(), POSITION), answer)
    return len(calls)


def test_it_is_written_where_it_changed():
    assert write(201, 200) == 1


def test_what_cannot_be_written_is_told():
    """For a login that may not write that is the end; a busy server is waited for."""
    with pytest.raises(InvalidInputError, match="name another state index"):
        write(403)
    with pytest.raises(WritesRefusedError) as refused:
        write(*[429] * 30)
    assert find_outage(refused.value, has_begun=True) == "busy"


@pytest.mark.parametrize(
    ("error", "kind", "before"),
    [
        (elastic_transport.ConnectionError("refused"), "unreachable", "unreachable"),
        (opensearchpy.ConnectionError("N/A", "refused", OSError()), "unreachable", "unreachable"),
        (ServerError(429), "busy", "busy"),
        (ServerError(500), "busy", "busy"),
        (PositionsError("a shard without a primary"), "shards", "shards"),
        (IncompleteSearchError("1 of 2 shards", reasons=()), "shards", "shards"),
        (ServerError(404), "missing", None),
        (ServerError(403, "cluster_block_exception"), "blocked", "blocked"),
        (ServerError(403, "security_exception"), None, None),
        (ValueError("a fault of ours"), None, None),
    ],
    ids=repr,
)
def test_outages(error, kind, before):
    """What is waited for; *before* the index could be followed a missing one ends it."""
    assert (find_outage(error, has_begun=True), find_outage(error, has_begun=False)) == (kind, before)


@pytest.mark.parametrize(
    ("type_", "error"), [("security_exception", InvalidInputError), ("no_shard_available", IncompleteSearchError)]
)
def test_what_cannot_be_read(type_, error):
    with pytest.raises(error):
        drive(PositionStore(*STORE).read(scripted()), lambda _: {"docs": [{"error": {"type": type_, "reason": "no"}}]})


@pytest.mark.parametrize("document", [{"found": False}, {"found": True}, {"found": True, "_source": {"position": 7}}])
def test_what_is_no_position_is_nothing(document):
    """Then all is read again."""
    assert drive(PositionStore(*STORE).read(scripted()), lambda _: {"docs": [document]})[0] == {}
