"""The queue between a source of documents and an ingest: order, room, time, errors, and an early end."""

import sqlite3
import threading

import pytest

from es_simhash.client.port import BlockingServer, stream
from es_simhash.errors import InvalidInputError
from es_simhash.ingest.ingest import ingest
from es_simhash.ingest.reading import IngestOptions
from es_simhash.mapping.context import Context
from es_simhash.mapping.port import Port
from es_simhash.transport.feed import Feed, read_in_background
from tests.transport.by_hand import Cancelled, ServerError, carry_out, scripted
from tests.transport.fake_server import INDEX, FakeServer

TEXTS = [f"text number {n}, which has some words of its own: {n * 7919} and {n * 104729}" for n in range(9)]
DOCUMENTS = [{"_id": str(n), "body": text} for n, text in enumerate(TEXTS)]
FOREVER = 3600.0


def sources():
    return [each for each in threading.enumerate() if each.name == "es_simhash_source"]


def items_of(found):
    return [item for _, item in found]


def start(documents, **options):
    options = {"on_duplicate": None, "batch": 2, **options}
    return ingest(scripted(), INDEX, documents, IngestOptions(**options))


def test_items_keep_their_order_and_room_is_limited():
    feed = Feed(most=2)
    read_in_background(range(10), feed)
    found = []
    while (some := feed.take()) is not None:
        assert len(some) <= 2
        found += items_of(some)
    assert found == list(range(10))


def test_characters_fill_it_too():
    """A queue of large documents has few of them."""
    feed = Feed(most=100, characters=40)
    assert feed.offer({"body": "tiny"})
    assert not feed.offer({"body": "x" * 40})
    assert len(feed.take()) == 2
    assert feed.offer({"body": ""})


def test_nothing_until_the_moment_is_an_empty_list():
    """By the clock given, so nobody waits here."""
    feed = Feed(clock=lambda: 5.0)
    assert feed.take(5.0) == []
    feed.offer("a")
    assert feed.take(5.0) == [(5.0, "a")]
    feed.end()
    assert feed.take(5.0) is None


def test_an_error_of_the_source_follows_its_items():
    def source():
        yield 1
        raise OSError("disk")

    feed = read_in_background(source(), Feed())
    assert items_of(feed.take()) == [1]
    with pytest.raises(OSError, match="disk"):
        feed.take()


def test_room_is_announced_once_the_consumer_takes():
    told = []
    feed = Feed(most=1)
    feed.on_room = lambda: told.append("room")
    feed.offer(1)
    feed.take()
    assert told == ["room", "room"]  # first it is wanted, then there is room again
    feed.end()
    feed.take()
    assert len(told) == 2


def test_closing_ends_the_thread_and_the_generator():
    """Also while the thread waits for room."""
    ended = threading.Event()

    def source():
        try:
            while True:
                yield 1
        finally:
            ended.set()

    feed = read_in_background(source(), Feed(most=1))
    feed.take()
    feed.close()
    assert ended.wait(30)
    assert feed.take() is None
    assert not feed.put(2)


def test_a_source_that_is_held_up_lets_go_later():
    """Closing does not wait for it; once it gives its item, the generator and the thread end."""
    go_on, ended = threading.Event(), threading.Event()

    def source():
        try:
            yield 1
            go_on.wait(60)
            yield 2
        finally:
            ended.set()

    feed = read_in_background(source(), Feed())
    assert items_of(feed.take()) == [1]
    [thread] = sources()
    feed.close()
    assert not ended.is_set()
    assert thread.daemon
    go_on.set()
    thread.join(30)
    assert not thread.is_alive()
    assert ended.is_set()


@pytest.mark.parametrize("on_duplicate", [None, "tag"])
def test_batches_are_the_same_from_a_fast_source(on_duplicate):
    """With time to spare, every batch is full."""
    runs = []
    for max_delay in (None, FOREVER):
        store = FakeServer()
        run = carry_out(start(iter(DOCUMENTS), max_delay=max_delay, on_duplicate=on_duplicate), store)
        runs.append((run.emitted, run.apis))
        assert len(store.docs) == len(DOCUMENTS)
        assert len([each for each in run.apis if each == "bulk"]) == 5
    assert runs[0] == runs[1]
    assert not sources()


def test_what_waits_goes_on_while_the_source_does_not(monkeypatch):
    """Each document is reported before its source gives the next one; batches could hold all of them."""
    reported = threading.Semaphore(0)
    store = FakeServer()

    def source():
        for document in DOCUMENTS:
            yield document
            assert reported.acquire(timeout=60), "the report did not come"

    class Dialect:
        def call(self, client, call):
            return store(call)

    found = []
    port = Port(BlockingServer(None, Dialect()), Context())
    for each in stream(ingest(port, INDEX, source(), IngestOptions(max_delay=0.01, batch=100))):
        found.append(each.id)
        reported.release()
    assert found == [each["_id"] for each in DOCUMENTS]


def test_a_source_that_breaks_is_raised_after_the_reports():
    def source():
        yield from DOCUMENTS[:5]
        raise OSError("disk")

    store = FakeServer()
    run = carry_out(start(source(), max_delay=FOREVER), store, failure=ServerError(500))
    assert [each.id for each in run.emitted] == list("01234")
    assert isinstance(run.error, OSError)
    assert len(store.docs) == 5
    assert not sources()


def test_a_cancellation_at_any_request_leaves_no_thread():
    for step in range(carry_out(start(iter(DOCUMENTS), max_delay=FOREVER), FakeServer()).steps):
        run = carry_out(start(iter(DOCUMENTS), max_delay=FOREVER), FakeServer(), cancel_at=step)
        assert isinstance(run.error, Cancelled)
        assert not sources()


def test_by_default_the_caller_reads_its_own_source():
    """A cursor of sqlite3 may only be used in its own thread."""
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE news (id TEXT, body TEXT)")
    connection.executemany("INSERT INTO news VALUES (?, ?)", [(each["_id"], each["body"]) for each in DOCUMENTS])
    store = FakeServer()
    rows = ({"_id": id_, "body": body} for id_, body in connection.execute("SELECT id, body FROM news"))
    carry_out(start(rows), store)
    connection.close()
    assert len(store.docs) == len(DOCUMENTS)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"max_delay": 0}, InvalidInputError),
        ({"max_delay": -1}, InvalidInputError),
        ({"max_delay": float("nan")}, InvalidInputError),
        ({"max_delay": float("inf")}, InvalidInputError),
        ({"max_delay": "1"}, TypeError),
        ({"max_delay": True}, TypeError),
        ({"batch": 0}, InvalidInputError),
        ({"batch": 10_001}, InvalidInputError),
        ({"batch": "5"}, TypeError),
    ],
)
def test_sizes_that_cannot_be_used(options, error):
    with pytest.raises(error, match="max_delay|batch"):
        start([], **options)
