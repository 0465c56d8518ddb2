"""Reading in slices: every hit once, a busy server is waited for, and what was opened is given back."""

from contextlib import aclosing

import pytest

from es_simhash.transport.answers import Gap
from es_simhash.transport.pages import Reading
from tests.transport.by_hand import (
    CLOSES,
    Cancelled,
    ServerError,
    carry_out,
    closed_all,
    failures,
    is_passing,
    scripted,
)
from tests.transport.fake_server import INDEX, FakeServer

EVERYTHING = {"query": {"bool": {"filter": []}}}
KINDS = [{}, {"is_opensearch": True}, {"is_opensearch": True, "has_shard_doc": False}]


def filled(count=9, **options):
    return FakeServer({f"{n:02}": {"n": n} for n in range(count)}, **options)


def read(store, *, page=2, slices=2, reads_ahead=True, **trouble):
    """Read all of *store*; return what became of it, and the ids in the order of reading."""
    seen = []

    async def work():
        port = scripted().patient
        reading = Reading(port, INDEX, EVERYTHING, page=page, slices=slices)
        async with aclosing(reading.steps()) as steps:
            async for step in steps:
                seen.extend(hit["_id"] for hit in step.hits)
                if reads_ahead and step.calls:
                    step.answers = await port.together(step.calls)
        return reading.gaps

    return carry_out(work(), store, **trouble), seen


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("page", "slices"), [(1, 1), (2, 2), (3, 4), (50, 2)])
@pytest.mark.parametrize("reads_ahead", [True, False])
def test_every_hit_is_handed_on_once(kind, page, slices, reads_ahead):
    """Whatever the page, the slices and the server, and nothing stays open."""
    for count in (0, 1, 9):
        store = filled(count, **kind)
        run, seen = read(store, page=page, slices=slices, reads_ahead=reads_ahead)
        assert (sorted(seen), run.result, store.open) == (sorted(store.docs), [], {})


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("failure", failures(), ids=repr)
def test_a_failure_at_any_call(kind, failure):
    """A page, or a view, refused for load is asked for again after a pause; all else comes out, nothing stays open."""
    for number in range(len(read(filled(**kind))[0].calls)):
        store = filled(**kind)
        run, seen = read(store, fail_at=number, failure=failure)
        is_retried = run.hit in ("open_point_in_time", "search") and is_passing(failure)
        if is_retried or run.hit in CLOSES:
            assert (run.error, sorted(seen), len(run.waits)) == (None, sorted(store.docs), is_retried)
        else:
            assert run.error is failure
            assert len(seen) == len(set(seen))
        assert closed_all(run, store)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [0, 9])
def test_a_cancellation_at_any_request(kind, count):
    """It comes out, and nothing stays open, not even what was being opened."""
    for step in range(read(filled(count, **kind))[0].steps):
        store = filled(count, **kind)
        run, _ = read(store, cancel_at=step)
        assert isinstance(run.error, Cancelled)
        assert closed_all(run, store), step


def test_shards_that_fail_are_told():
    """Each reason once."""

    class Failing(FakeServer):
        def search(self, body, **rest):
            return super().search(body, **rest) | {"_shards": {"total": 2, "failed": 1}}

    run, _ = read(Failing({"0": {}, "1": {}}))
    assert run.result == [Gap("shards_failed", 1, 2)]


class SourceLess(FakeServer):
    """Has documents without a ``_source`` among the later ones: parts of it are refused where they are on the page."""

    def search(self, body, index=None):
        if isinstance(body["_source"], list) and body.get("search_after", [0])[0] > 3:
            return ServerError(400, "unable to fetch fields from _source field: _source is disabled")
        return super().search(body, index)


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_whose_source_is_refused_is_asked_for_whole(kind):
    """The pages before it are not read again."""
    store = SourceLess({f"{n:02}": {"n": n} for n in range(30)}, **kind)

    async def work():
        reading = Reading(scripted(), INDEX, {**EVERYTHING, "_source": ["n"]}, page=5)
        async with aclosing(reading.pages()) as pages:
            return [hit["_id"] async for hits in pages for hit in hits]

    run = carry_out(work(), store)
    assert run.result == sorted(store.docs)
    assert sum(call.api == "search" for call in run.calls) <= 12


def test_a_view_that_no_server_opens():
    """Where a shard is missing, what could be read is a gap; any other refusal comes out."""
    gone = ServerError(503, "no_shard_available_action_exception")
    store = filled()
    store.open_point_in_time = lambda **_: gone
    run, seen = read(store)
    assert (run.result, seen) == ([Gap("shards_missing")], [])
    with pytest.raises(ServerError, match="no such endpoint"):
        read(filled(has_pit=False))
