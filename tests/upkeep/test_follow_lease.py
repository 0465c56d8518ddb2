"""The lease of a follower, by hand: lost answers, refusals, and two who want it at once."""

import pytest

from es_simhash import LeaseError, WritesRefusedError
from es_simhash.upkeep.follow_lease import Lease, LeaseLostError
from es_simhash.upkeep.follow_options import UnreadableError, find_outage
from tests.transport.by_hand import ServerError, drive, scripted


class Documents:
    """A server that holds one document, with its version; *trouble* is what the next writes meet."""

    def __init__(self):
        self.source, self.version, self.trouble = None, -1, []

    def __call__(self, call):
        if call.api == "create_index":
            return {}
        if call.api == "mget":
            if self.source is None:
                return {"docs": [{"error": {"type": "index_not_found_exception", "reason": "none"}}]}
            return {"docs": [{"found": True, "_source": self.source, "_seq_no": self.version, "_primary_term": 1}]}
        (action, body) = call.arguments["body"]
        [(kind, header)] = action.items()
        trouble = self.trouble.pop(0) if self.trouble else None
        if isinstance(trouble, int):
            return _answer(kind, trouble, error={"type": "refused", "reason": "no"})
        if kind == "create" if self.source is not None else kind != "create":
            return _answer(kind, 409, error={"type": "conflict", "reason": "no"})
        if header.get("if_seq_no", self.version) != self.version:
            return _answer(kind, 409, error={"type": "conflict", "reason": "no"})
        self.source, self.version = body, self.version + 1
        return trouble or _answer(kind, 200, _seq_no=self.version, _primary_term=1)


def _answer(kind, status, **more):
    return {"items": [{kind: {"_index": "state", "_id": "x", "status": status, **more}}]}


@pytest.fixture
def server():
    return Documents()


@pytest.fixture
def lease():
    return Lease("state", "news", "simhash", 30)


def other():
    return Lease("state", "news", "simhash", 30)


def test_it_is_taken_renewed_and_given_back(server, lease):
    assert drive(lease.take(scripted()), server)[0]
    lease.position = {"places": [1]}
    drive(lease.renew(scripted()), server)
    late = other()
    assert not drive(late.take(scripted()), server)[0]
    drive(lease.release(scripted()), server)
    assert drive(late.take(scripted()), server)[0]
    assert late.position == {"places": [1]}


def test_it_is_given_back_with_one_request(server, lease):
    """Whoever stops a follower of a busy server does not wait for it."""
    drive(lease.take(scripted()), server)
    server.trouble = [503]
    calls = []
    drive(lease.release(scripted()), lambda call: calls.append(call) or server(call))
    assert [each.api for each in calls] == ["bulk"]
    assert not lease.is_held


@pytest.mark.parametrize("seconds", [None, "long", float("nan"), [30]])
def test_a_damaged_document_ends_like_ours(server, lease, monkeypatch, seconds):
    clock = [0.0]
    monkeypatch.setattr("es_simhash.upkeep.follow_lease.time.monotonic", lambda: clock[0])
    server.source, server.version = {"owner": "x", "lease_seconds": seconds, "position": 7}, 0
    taken = []
    for clock[0] in (100.0, 129.0, 131.0):
        taken.append(drive(lease.take(scripted()), server)[0])
    assert (taken, lease.position) == ([False, False, True], {})


@pytest.mark.parametrize("type_", ["no_shard_available_action_exception", "illegal_index_shard_state_exception"])
def test_a_shard_without_a_copy_is_waited_for(server, lease, type_):
    """The state index may have been made a moment ago, by another follower; the lease is not known to be ours then."""

    def away(call):
        error = {"type": type_, "reason": "No shard available for [get ...]"}
        return {"docs": [{"error": error}]} if call.api == "mget" else server(call)

    with pytest.raises(UnreadableError) as refused:
        drive(lease.take(scripted()), away)
    assert find_outage(refused.value, has_begun=False) == "shards"
    assert drive(lease.take(scripted()), server)[0]
    server.trouble = [409]
    with pytest.raises(UnreadableError):
        drive(lease.renew(scripted()), away)
    assert not lease.is_held
    assert drive(lease.take(scripted()), server)[0]


def test_who_may_not_read_the_lease_is_told(lease):
    error = {"type": "security_exception", "reason": "action is unauthorized"}
    with pytest.raises(LeaseError, match="unauthorized"):
        drive(lease.take(scripted()), lambda _: {"docs": [{"error": error}]})


def test_an_index_without_source_holds_no_lease(lease):
    found = {"found": True, "_seq_no": 0, "_primary_term": 1}
    with pytest.raises(LeaseError) as refused:
        drive(lease.take(scripted()), lambda _: {"docs": [found]})
    assert refused.value.kind == "refused"


def test_it_ends_when_its_document_does_not_change(server, lease, monkeypatch):
    """On the clock of the watcher, and not before the time that the document names is over."""
    clock = [0.0]
    monkeypatch.setattr("es_simhash.upkeep.follow_lease.time.monotonic", lambda: clock[0])
    assert drive(lease.take(scripted()), server)[0]
    late = other()
    taken = []
    for clock[0] in (100.0, 125.0, 129.0, 131.0):
        if clock[0] == 125.0:
            drive(lease.renew(scripted()), server)
        taken.append(drive(late.take(scripted()), server)[0])
    assert taken == [False] * 4
    clock[0] = 155.0
    assert drive(late.take(scripted()), server)[0]
    with pytest.raises(LeaseLostError):
        drive(lease.renew(scripted()), server)
    assert not lease.is_held


def test_an_answer_that_was_lost_does_not_lose_the_lease(server, lease):
    """The client has sent the write again, which is a conflict with its own first attempt."""
    assert drive(lease.take(scripted()), server)[0]
    server.trouble = [ServerError(400, "lost")]
    with pytest.raises(ServerError):
        drive(lease.renew(scripted()), server)
    drive(lease.renew(scripted()), server)
    assert lease.is_held


@pytest.mark.parametrize(("status", "error"), [(403, LeaseError), (400, LeaseError)])
def test_a_refusal_is_no_lease(server, lease, status, error):
    server.trouble = [status]
    with pytest.raises(error):
        drive(lease.take(scripted()), server)
    assert not lease.is_held


def test_a_block_passes(server, lease, monkeypatch):
    monkeypatch.setattr("es_simhash.writes.operations._HINDRANCES", {"refused": "blocked"})
    server.trouble = [403]
    with pytest.raises(WritesRefusedError):
        drive(lease.take(scripted()), server)
    assert not lease.is_held
    assert drive(lease.take(scripted()), server)[0]
