"""Ingest from async sources that break off or never end, on real servers."""

import asyncio
from contextlib import aclosing

import pytest

from es_simhash import AsyncSimHashClient
from tests.servers.support import ONE_SHARD, numbered, read_all, texts


@pytest.fixture
def ingest(index, async_client, runner):
    """Return a function that ingests from a source, and calls another with each report."""
    client = AsyncSimHashClient(async_client)
    runner.run(client.create_index(index, text_field="body", settings=ONE_SHARD))

    async def write(source, note, **options):
        async with aclosing(client.ingest(index, source, **options)) as reports:
            async for each in reports:
                note(each)

    return lambda source, note, **options: runner.run(write(source, note, **options))


def test_a_source_that_breaks_off(server, index, ingest):
    """What came before is written and reported; then its own error comes out."""

    async def source():
        for document in numbered(texts(130)):
            yield document
        raise OSError("disk")

    found = []
    with pytest.raises(OSError, match="disk"):
        ingest(source(), found.append)
    assert [each.position for each in found] == list(range(130))
    assert len(read_all(server, index)) == 130


class EnoughError(Exception):
    """A caller has had enough reports."""


@pytest.mark.parametrize("stop", [EnoughError, asyncio.CancelledError])
def test_a_caller_that_stops_early_or_is_cancelled(server, index, ingest, runner, stop):
    """It ends at once although the source never gives another document; the source is closed, and no task stays."""
    ended = []

    async def source():
        try:
            for document in numbered(texts(5)):
                yield document
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    def note(report):
        if stop is EnoughError:
            raise EnoughError
        asyncio.current_task().cancel()

    with pytest.raises(stop):
        ingest(source(), note, batch=1)
    assert ended == [True]
    assert asyncio.all_tasks(runner.get_loop()) == set()
    assert len(read_all(server, index)) == 1
