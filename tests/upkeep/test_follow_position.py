"""The position of a follower, by hand: what is refused, and what passes by itself."""

import pytest

from es_simhash import InvalidInputError, WritesRefusedError
from es_simhash.upkeep.follow_options import UnreadableError, find_outage
from es_simhash.upkeep.follow_position import PositionStore
from tests.transport.by_hand import drive, scripted

POSITION = {"places": [1]}


def store():
    return PositionStore("state", "news", "simhash")


def write(*statuses, seconds=0.0):
    """Write once for each of *statuses* that the server answers; return how many bulk requests were made."""
    calls, found = [], store()

    def answer(call):
        calls.append(call)
        status = statuses[len(calls) - 1]
        type_ = "security_exception" if status == 403 else "es_rejected_execution_exception"
        error = {} if status < 300 else {"error": {"type": type_, "reason": "no"}}
        return {"items": [{"index": {"_index": "state", "_id": "x", "status": status, **error}}]}

    for _ in statuses:
        drive(found.write(scripted(), POSITION, seconds=seconds), answer)
    return len(calls)


def test_it_is_written_where_it_changed():
    assert write(201, 200) == 1


def test_a_login_that_may_not_write_ends_it():
    with pytest.raises(InvalidInputError, match="name another state index"):
        write(403)


def test_a_busy_server_is_waited_for():
    with pytest.raises(WritesRefusedError) as refused:
        write(*[429] * 30)
    assert find_outage(refused.value, has_begun=True) == "busy"


@pytest.mark.parametrize(
    ("type_", "error"), [("security_exception", InvalidInputError), ("no_shard_available", UnreadableError)]
)
def test_what_cannot_be_read(type_, error):
    with pytest.raises(error):
        drive(store().read(scripted()), lambda _: {"docs": [{"error": {"type": type_, "reason": "no"}}]})


@pytest.mark.parametrize("document", [{"found": False}, {"found": True}, {"found": True, "_source": {"position": 7}}])
def test_what_is_no_position_is_nothing(document):
    """Then all is read again."""
    assert drive(store().read(scripted()), lambda _: {"docs": [document]})[0] == {}
