"""Ingest from sources that pause, break off or never end, on real servers, sync and async."""

import asyncio
import threading
from contextlib import aclosing, closing

import pytest

from es_simhash import AsyncSimHashClient, SimHashClient
from tests.servers.support import ONE_SHARD, expected_groups, numbered, read_all, stored_groups, texts

FOREVER = 3600.0
kinds = pytest.mark.parametrize("kind", ["sync", "async client", "async source"])


def sources():
    return [each for each in threading.enumerate() if each.name == "es_simhash_source"]


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


def one_by_one(kind, documents, failure=None):
    """Return a source that gives a document only after the report on the one before, and what a report is told to."""
    if kind == "async source":
        told = asyncio.Semaphore(0)

        async def source():
            for document in documents:
                yield document
                await asyncio.wait_for(told.acquire(), 60)
            if failure:
                raise failure

    else:
        told = threading.Semaphore(0)

        def source():
            for document in documents:
                yield document
                assert told.acquire(timeout=60), "no report came"
            if failure:
                raise failure

    return source, told.release


@kinds
def test_reports_come_while_the_source_waits(server, index, ingest, kind):
    """Each document is written, and its report is there, before the next one is given; groups are right."""
    documents = numbered(texts(12, seed=3))
    source, release = one_by_one(kind, documents)
    found = []

    def note(report):
        found.append(report.id)
        release()

    ingest(source, note, max_delay=0.02, max_distance=8, verify=False)
    assert found == [each["_id"] for each in documents]
    written = read_all(server, index)
    assert stored_groups(written) == expected_groups(written, 8)
    assert not sources()


@kinds
def test_a_source_that_breaks_off(server, index, ingest, kind):
    """What came before is written and reported; then its own error comes out."""
    source, release = one_by_one(kind, numbered(texts(3)), OSError("disk"))
    found = []

    def note(report):
        found.append(report.action)
        release()

    with pytest.raises(OSError, match="disk"):
        ingest(source, note, max_delay=0.02)
    assert len(found) == len(read_all(server, index)) == 3
    assert not sources()


@kinds
@pytest.mark.parametrize("batch", [20, 500])
def test_a_fast_source(server, index, ingest, kind, batch):
    """Nothing is held back, nothing is lost, and no batch is larger than it may be."""
    documents = numbered(texts(100, seed=5))

    def make():
        if kind != "async source":
            return iter(documents)

        async def source():
            for document in documents:
                yield document

        return source()

    found = []
    ingest(make, found.append, max_delay=FOREVER, batch=batch, max_distance=3, verify=False)
    assert [each.position for each in found] == list(range(100))
    written = read_all(server, index)
    assert len(written) == 100
    assert stored_groups(written) == expected_groups(written, 3)


@kinds
def test_a_caller_that_stops_early(server, index, ingest, kind):
    """The source ends, wherever it waits; no thread and no task stays."""
    documents = numbered(texts(5))
    ended = threading.Event()
    never = threading.Event()

    if kind == "async source":

        async def source():
            try:
                for document in documents:
                    yield document
                await asyncio.Event().wait()
            finally:
                ended.set()

    else:

        def source():
            try:
                yield from documents
                never.wait(60)
                yield documents[0]
            finally:
                ended.set()

    class EnoughError(Exception):
        pass

    def note(report):
        raise EnoughError

    with pytest.raises(EnoughError):
        ingest(source, note, max_delay=0.02)
    held_up = sources()
    never.set()
    for each in held_up:
        each.join(60)
    assert ended.is_set()
    assert not sources()
    assert len(read_all(server, index)) == 5


def test_a_cancelled_task(server, index, async_client, runner):
    """It ends at once although its source never gives another document, and the source is closed."""
    simhash = AsyncSimHashClient(async_client)
    ended = []

    async def source():
        try:
            yield {"_id": "a", "body": texts(1)[0]}
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    async def main():
        written = asyncio.Event()

        async def write():
            async for _ in simhash.ingest(index, source(), max_delay=0.02):
                written.set()

        task = asyncio.create_task(write())
        await asyncio.wait_for(written.wait(), 60)
        task.cancel()
        await asyncio.wait([task], timeout=60)
        assert task.cancelled()
        assert ended == [True]
        assert len(asyncio.all_tasks()) == 1

    runner.run(simhash.create_index(index, text_field="body", settings=ONE_SHARD))
    runner.run(main())
    assert len(read_all(server, index)) == 1
