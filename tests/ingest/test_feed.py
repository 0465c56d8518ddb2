"""The source of the documents of an ingest: an error, its thread, and sizes that cannot be used."""

import sqlite3

import pytest

from es_simhash.errors import InvalidInputError
from es_simhash.ingest.ingest import ingest
from es_simhash.ingest.ingest_options import IngestOptions
from tests.transport.by_hand import ServerError, carry_out, scripted
from tests.transport.fake_server import INDEX, FakeServer

TEXTS = [f"text number {n}, which has some words of its own: {n * 7919} and {n * 104729}" for n in range(9)]
DOCUMENTS = [{"_id": str(n), "body": text} for n, text in enumerate(TEXTS)]


def start(documents, **options):
    options = {"on_duplicate": None, "batch": 2, **options}
    return ingest(scripted(), INDEX, documents, IngestOptions(**options))


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
