"""Conditional rewrites: who is slower reads again, and nobody's change is lost."""

import pytest

from es_simhash.transport.protocol import Key
from es_simhash.writes.bulk import rewrite
from tests.transport.by_hand import ServerError, carry_out, scripted
from tests.transport.fake_server import INDEX, FakeServer

IDS = ["0", "1", "2", "3"]


def filled():
    return FakeServer({each: {"body": f"text {each}", "mine": True} for each in IDS})


def copy_text(place, found):
    """Let ``copy`` say what ``body`` says."""
    source = found["_source"]
    return None if source.get("copy") == source["body"] else ("update", {"doc": {"copy": source["body"]}})


def run_rewrite(store, ids=IDS, **trouble):
    return carry_out(rewrite(scripted(), [Key(INDEX, each) for each in ids], copy_text, source=True), store, **trouble)


def is_right(store, id_):
    return store.source(id_)["copy"] == store.source(id_)["body"]


def change_text(store):
    store.put("2", {**store.source("2"), "body": "changed by another"})


def test_what_others_change_meanwhile_is_read_again():
    """Before any call: their change is kept, and what is written follows from it; only that document is read again."""
    for number in range(len(run_rewrite(filled()).calls)):
        store = filled()
        run = run_rewrite(store, meddle_at=number, meddle=change_text)
        assert store.source("2") == {"body": "changed by another", "mine": True, "copy": "changed by another"}
        assert all(is_right(store, each) for each in IDS)
        assert [outcome.status for outcome in run.result] == [200] * 4
        if number:
            assert run.apis == ["mget", "bulk"] * 2
            assert [each["_id"] for each in run.calls[2].arguments["body"]["docs"]] == ["2"]


def test_what_is_gone_is_told():
    """With status 404, whether it went before it was read or before it was written."""
    for number in range(2):
        store = filled()
        run = run_rewrite(store, meddle_at=number, meddle=lambda store: store.docs.pop("2"))
        assert [outcome.status for outcome in run.result] == [200, 200, 404, 200]
        assert "2" not in store.docs


def test_what_others_keep_changing_is_told():
    """After 8 tries, with status 409; the others are written once."""
    store = filled()
    store.refuse = lambda header: 409 if header["_id"] == "1" else None
    run = run_rewrite(store)
    assert [outcome.status for outcome in run.result] == [200, 409, 200, 200]
    assert run.apis == ["mget", "bulk"] * 8
    assert len(run.waits) == 7


def test_what_an_attempt_wrote_whose_answer_was_lost_needs_nothing():
    """It is read again, and is no conflict."""
    store = filled()
    before = store.sequence
    run = run_rewrite(store, fail_at=1, failure=ServerError(503), is_late=True)
    assert (run.result, store.sequence - before) == ([None] * 4, 4)


def test_a_server_that_stays_busy_is_given_up():
    """The last refusal comes out of a multi-get."""

    class Busy(FakeServer):
        def mget(self, body):
            return ServerError(429)

    with pytest.raises(ServerError):
        run_rewrite(Busy({"0": {}}), ["0"])


def test_a_copy_that_cannot_be_read_now_is_not_gone():
    """It is asked for again."""
    store = filled()
    store.broken = {"1"}
    run = run_rewrite(store, meddle_at=2, meddle=lambda store: store.broken.clear())
    assert [outcome.status for outcome in run.result] == [200] * 4
    assert all(is_right(store, each) for each in IDS)
