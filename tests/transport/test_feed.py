"""The queue between a source of documents and an ingest: order, room, time, errors, and an early end."""

import sqlite3

import pytest

from es_simhash.errors import InvalidInputError
from es_simhash.ingest.ingest import ingest
from es_simhash.ingest.ingest_options import IngestOptions
from es_simhash.transport.feed import Feed
from tests.transport.by_hand import ServerError, carry_out, scripted
from tests.transport.fake_server import INDEX, FakeServer

TEXTS = [f"text number {n}, which has some words of its own: {n * 7919} and {n * 104729}" for n in range(9)]
DOCUMENTS = [{"_id": str(n), "body": text} for n, text in enumerate(TEXTS)]


def start(documents, **options):
    options = {"on_duplicate": None, "batch": 2, **options}
    return ingest(scripted(), INDEX, documents, IngestOptions(**options))


def test_items_keep_their_order_and_room_is_limited():
    feed = Feed(most=2)
    assert [feed.offer(item) for item in "ab"] == [True, False]
    assert feed.take() == ["a", "b"]
    assert feed.offer("c")
    feed.end()
    assert feed.take() == ["c"]
    assert feed.take() is None


def test_characters_fill_it_too():
    """A queue of large documents has few of them."""
    feed = Feed(most=100, characters=40)
    assert feed.offer({"body": "tiny"})
    assert not feed.offer({"body": "x" * 40})
    assert len(feed.take()) == 2
    assert feed.offer({"body": ""})


def test_an_error_of_the_source_follows_its_items():
    feed = Feed()
    feed.offer(1)
    feed.end(OSError("disk"))
    assert feed.take() == [1]
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


def test_closing_drops_what_is_there():
    feed = Feed()
    feed.offer(1)
    feed.close()
    assert feed.take() is None
    assert not feed.offer(2)


def test_a_source_that_breaks_is_raised_after_the_reports():
    def source():
        yield from DOCUMENTS[:5]
        raise OSError("disk")

    store = FakeServer()
    run = carry_out(start(source()), store, failure=ServerError(500))
    assert [each.id for each in run.emitted] == list("01234")
    assert isinstance(run.error, OSError)
    assert len(store.docs) == 5


def test_the_caller_reads_its_own_source():
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
    [({"batch": 0}, InvalidInputError), ({"batch": 10_001}, InvalidInputError), ({"batch": "5"}, TypeError)],
)
def test_sizes_that_cannot_be_used(options, error):
    with pytest.raises(error, match="batch"):
        start([], **options)
