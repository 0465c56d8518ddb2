"""What an interrupt says of operations whose answer nobody reads, in Python."""

import asyncio

import pytest

from es_simhash.client.dialects import OPENSEARCH
from es_simhash.client.drivers import run, run_async
from es_simhash.transport.protocol import Call, Together, noting

DELETIONS = Call("bulk", {"body": [{"delete": {"_id": "1"}}, {"delete": {"_id": "2"}}]})
UPDATE = Call("bulk", {"body": [{"update": {"_id": "1"}}, {"doc": {"a": 1}}]})


class Interrupted:
    """A client whose caller presses Ctrl-C while a bulk request is on its way."""

    def bulk(self, **_):
        raise KeyboardInterrupt


class Cancelled:
    """A client whose task is cancelled meanwhile."""

    async def bulk(self, **_):
        raise asyncio.CancelledError


def working(request):
    with noting(lambda: "3 documents were deleted"):
        yield request


@pytest.mark.parametrize(
    ("request_", "number"), [(DELETIONS, 2), (UPDATE, 1), (Together([DELETIONS, UPDATE], concurrency=1), 3)]
)
def test_an_interrupt_says_what_was_not_answered(request_, number):
    """Beside what the flow has counted."""
    said = [f"up to {number} more operations were sent, and their answer was not read", "3 documents were deleted"]
    with pytest.raises(KeyboardInterrupt) as stop:
        run(working(request_), Interrupted(), OPENSEARCH)
    assert stop.value.__notes__ == said

    async def cancelled():
        try:
            await run_async(working(request_), Cancelled(), OPENSEARCH)
        except asyncio.CancelledError as error:
            return error.__notes__

    assert asyncio.run(cancelled()) == said
