"""Ingest from sources that break off or never end, on real servers, sync and async."""

import asyncio
import threading
from contextlib import aclosing, closing

import pytest

from es_simhash import AsyncSimHashClient, SimHashClient
from tests.servers.support import ONE_SHARD, numbered, read_all, texts

KINDS = ["sync", "async client", "async source"]


@pytest.fixture
def ingest(kind, index, request):
    """
    Return a function that ingests and calls another with each report; it makes its source from a list and a
    semaphore.
    """
    if kind == "sync":
        simhash = SimHashClient(request.getfixturevalue("sync_client"))
        simhash.create_index(index, text_field="body", settings=ONE_SHARD)

        def run(make, note, **options):
            with closing(simhash.ingest(index, make(), **options)) as reports:
                for each in reports:
                    note(each)

        return run
    runner, client = request.getfixturevalue("runner"), AsyncSimHashClient(request.getfixturevalue("async_client"))
    runner.run(client.create_index(index, text_field="body", settings=ONE_SHARD))

    async def write(make, note, **options):
        async with aclosing(client.ingest(index, make(), **options)) as reports:
            async for each in reports:
                note(each)

    return lambda make, note, **options: runner.run(write(make, note, **options))


def source_of(kind, documents, ended, error=None):
    """Return a function that makes a source of *documents*, which then raises *error*, or never ends."""

    async def source():
        try:
            for document in documents:
                yield document
            if error is not None:
                raise error
            await asyncio.Event().wait()
        finally:
            ended.set()

    def blocking():
        try:
            yield from documents
            if error is not None:
                raise error
        finally:
            ended.set()

    return source if kind == "async source" else blocking


@pytest.mark.parametrize(
    ("kind", "error"),
    [(kind, OSError) for kind in KINDS] + [("async source", asyncio.CancelledError), ("async source", GeneratorExit)],
)
def test_a_source_that_breaks_off(server, index, ingest, kind, error):
    """What came before is written and reported; then its own error comes out."""
    found = []
    with pytest.raises(error):
        ingest(source_of(kind, numbered(texts(130)), threading.Event(), error("disk")), found.append)
    assert [each.position for each in found] == list(range(130))
    assert len(read_all(server, index)) == 130


class EnoughError(Exception):
    """A caller has had enough reports."""


@pytest.mark.parametrize("kind", KINDS)
def test_a_caller_that_stops_early(server, index, ingest, kind):
    """The source ends, wherever it waits, and no task stays."""
    ended = threading.Event()

    def note(report):
        raise EnoughError

    with pytest.raises(EnoughError):
        ingest(source_of(kind, numbered(texts(5)), ended), note, batch=1)
    assert ended.is_set()
    assert len(read_all(server, index)) == 1


def test_a_cancelled_task(server, index, async_client, runner):
    """It ends at once although its source never gives another document, and the source is closed."""
    simhash = AsyncSimHashClient(async_client)
    ended = threading.Event()
    source = source_of("async source", numbered(texts(3)), ended)

    async def main():
        written = asyncio.Event()

        async def write():
            async for _ in simhash.ingest(index, source(), batch=1):
                written.set()

        task = asyncio.create_task(write())
        await asyncio.wait_for(written.wait(), 60)
        task.cancel()
        await asyncio.wait([task], timeout=60)
        assert task.cancelled()
        assert ended.is_set()
        assert len(asyncio.all_tasks()) == 1

    runner.run(simhash.create_index(index, text_field="body", settings=ONE_SHARD))
    runner.run(main())
    assert len(read_all(server, index)) == 1
