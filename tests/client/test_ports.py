"""The two ports: both carry the same operation out, and let it clean up when it is broken off."""

import asyncio
import contextvars
import copy
import gc
import inspect
import sys
import threading
import warnings
import weakref
from contextlib import aclosing, closing

import pytest

from es_simhash import AsyncSimHashClient
from es_simhash.client.async_port import AsyncioServer, Feed
from es_simhash.client.dialects import ELASTICSEARCH, OPENSEARCH, find_dialect, is_async_client
from es_simhash.client.port import BlockingServer, finish, stream
from es_simhash.errors import InvalidInputError
from es_simhash.transport.pages import viewing
from es_simhash.transport.protocol import Call, Compute, Progress, noting
from es_simhash.transport.server import Server
from tests.transport.by_hand import ServerError

NOTHING = {"hits": {"hits": []}}


class Client:
    """Answers a search with its arguments, beside no hits; ``mget`` fails."""

    def __init__(self):
        self.calls = []

    def search(self, **arguments):
        self.calls.append(arguments)
        return NOTHING | {"search": arguments}

    def mget(self, **arguments):
        raise OSError("no")

    def delete_pit(self, **arguments):
        self.calls.append("cleared")
        return {}


class AsyncClient(Client):
    """The same, awaited."""

    async def search(self, **arguments):
        await asyncio.sleep(0)
        return super().search(**arguments)

    async def mget(self, **arguments):
        return super().mget(**arguments)

    async def delete_pit(self, **arguments):
        await asyncio.sleep(0)
        return super().delete_pit(**arguments)


async def everything(server):
    """An operation that asks for each kind of thing."""
    first = await server.search(index="a", body={})
    await server.sleep(0)
    total = await server.compute(sum, [1, 2])
    calls = [*(Call("search", {"index": str(n)}) for n in range(5)), Call("mget"), Compute(len, ("abc",))]
    many = await server.together(calls, concurrency=2)
    try:
        await server.mget(body={})
    except OSError as error:
        return first, total, [each if isinstance(each, (dict, int)) else type(each) for each in many], str(error)


EXPECTED = (
    NOTHING | {"search": {"index": "a", "body": {}}},
    3,
    [*(NOTHING | {"search": {"index": str(n)}} for n in range(5)), OSError, 3],
    "no",
)


def test_sync_and_async_give_the_same():
    """Calls, waits, computations, groups of calls, and failures."""
    assert finish(everything(BlockingServer(Client(), ELASTICSEARCH))) == EXPECTED
    assert asyncio.run(everything(AsyncioServer(AsyncClient(), ELASTICSEARCH))) == EXPECTED


async def holding(server, log):
    """A stream that gives something back at its end, however it ends, around a stream that does too."""
    try:
        async with aclosing(holding_within(server, log)) as parts:
            async for part in parts:
                yield part
    finally:
        await server.close_point_in_time(body={})


async def holding_within(server, log):
    try:
        for n in range(10):
            yield [n]
    except BaseException as error:
        log.append(type(error).__name__)
        raise
    finally:
        await server.close_point_in_time(body={})


BOTH_CLEARED = (["cleared", "cleared"], ["GeneratorExit"])


def test_closing_an_async_stream_early_reaches_the_operation():
    """The same on asyncio."""
    client, log = AsyncClient(), []

    async def main():
        items = holding(AsyncioServer(client, OPENSEARCH), log)
        assert await anext(items) == [0]
        await items.aclose()

    asyncio.run(main())
    assert (client.calls, log) == BOTH_CLEARED


@pytest.mark.parametrize("how", ["closed", "dropped", "failed"])
def test_a_sync_stream_inside_a_running_loop(how):
    """As in a notebook: the loop adopts none of the async generators, and what was opened is closed at once."""
    client, log = Client(), []

    async def main():
        items = stream(holding(BlockingServer(client, OPENSEARCH), log))
        assert next(items) == 0
        if how == "closed":
            items.close()
        elif how == "dropped":
            del items
        else:
            with pytest.raises(ZeroDivisionError), closing(items):
                raise ZeroDivisionError
        assert (client.calls, log) == BOTH_CLEARED
        assert sys.get_asyncgen_hooks().firstiter is not None

    asyncio.run(main())


def test_a_stream_that_an_operation_leaves_is_closed_at_once_in_a_loop():
    client, log = Client(), []

    async def leaving(server):
        async for part in holding_within(server, log):
            yield part

    async def main():
        with closing(stream(leaving(BlockingServer(client, OPENSEARCH)))) as items:
            assert next(items) == 0
        assert log == ["GeneratorExit"]

    asyncio.run(main())


def test_a_failure_passes_through_unchanged():
    """The very exception of the client, and a traceback that shows the operation."""

    async def operation(server):
        await server.mget(body={})

    for start in (
        lambda: finish(operation(BlockingServer(Client(), ELASTICSEARCH))),
        lambda: asyncio.run(operation(AsyncioServer(AsyncClient(), ELASTICSEARCH))),
    ):
        with pytest.raises(OSError, match="no") as raised:
            start()
        assert "operation" in [each.name for each in raised.traceback]


def test_an_operation_of_a_blocking_client_does_not_wait():
    async def main():
        with pytest.raises(RuntimeError, match="event loop"):
            finish(asyncio.sleep(1))

    asyncio.run(main())


@pytest.mark.parametrize("where", ["compute", "tell"])
def test_a_stop_iteration_of_a_caller_leaves_no_operation(where):
    """Nor does anybody wait for it for ever: it is an error."""

    def stop(*_):
        raise StopIteration

    async def operation(server):
        if where == "compute":
            await server.compute(stop)
        else:
            server.tell(Progress(1, 2, "reading"))

    with pytest.raises(RuntimeError, match="StopIteration"):
        finish(operation(BlockingServer(Client(), ELASTICSEARCH, stop)))
    with pytest.raises(RuntimeError, match="StopIteration"):
        asyncio.run(operation(AsyncioServer(AsyncClient(), ELASTICSEARCH, stop)))


def test_the_dialect_is_told_by_the_class():
    """Also of a subclass, and of the package's other names; a name overrides; nothing known is refused."""
    elastic = type("Elasticsearch", (), {"__module__": "elasticsearch8._sync.client"})
    mine = type("Mine", (elastic,), {"__module__": "mine"})
    opensearch = type("AsyncOpenSearch", (), {"__module__": "opensearchpy._async.client"})
    assert find_dialect(mine()) is ELASTICSEARCH
    assert find_dialect(opensearch()) is OPENSEARCH
    assert find_dialect(Client(), "opensearch") is OPENSEARCH
    assert (is_async_client(mine()), is_async_client(opensearch())) == (False, True)
    with pytest.raises(TypeError, match="pass dialect="):
        find_dialect(Client())
    with pytest.raises(InvalidInputError, match="solr"):
        find_dialect(Client(), "solr")


class Slow:
    """An async client that opens, or closes, points in time at leisure, and counts those that are open."""

    def __init__(self, slow, *, refuses=False):
        self.slow, self.refuses, self.open = slow, refuses, 0
        self.asked, self.answered = asyncio.Event(), asyncio.Event()

    async def _wait(self, what):
        if what == self.slow:
            self.asked.set()
            await self.answered.wait()

    async def open_point_in_time(self, **_):
        self.open += not self.refuses  # the server has done it, and its answer is on the way
        await self._wait("open")
        if self.refuses:
            raise OSError("no")
        return {"id": "held"}

    async def close_point_in_time(self, **_):
        await self._wait("close")
        self.open -= 1
        return {}


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize(("slow", "refuses"), [("open", False), ("open", True), ("close", False)])
def test_a_view_is_closed_however_often_the_task_is_cancelled(slow, refuses, times):
    """While it is being opened, or closed: the answer is waited for, nothing more is sent but what closes."""

    async def main():
        client, opened = Slow(slow, refuses=refuses), asyncio.Event()

        async def hold():
            async with viewing(AsyncioServer(client, ELASTICSEARCH), "a", 60):
                opened.set()
                await asyncio.sleep(60)

        task = asyncio.create_task(hold())
        await (opened if slow == "close" else client.asked).wait()
        for _ in range(times):
            task.cancel()
            await client.asked.wait()
            await asyncio.sleep(0)
        client.answered.set()
        await asyncio.wait([task])
        return task.cancelled(), client.open, opened.is_set()

    assert asyncio.run(main()) == (True, 0, slow == "close")


class OldServer:
    """An OpenSearch server before 2.18 behind its client: it refuses options of a search that it does not know."""

    def __init__(self):
        self.bodies = []

    def search(self, body):
        self.bodies.append(bodies := body[1::2] if isinstance(body, list) else [body])
        if any("search_pipeline" in each for each in bodies):
            raise ServerError(400, "Unknown key for a VALUE_STRING in [search_pipeline].")
        return NOTHING | {"responses": [NOTHING] * len(bodies)}

    msearch = search


@pytest.mark.parametrize(
    ("call", "asked"),
    [
        (Call("search", {"body": {"size": 1}}), 1),
        (Call("msearch", {"body": [{"index": "a"}, {"size": 1}, {"index": "b"}, {"size": 2}]}), 2),
    ],
)
def test_every_search_goes_without_the_default_pipeline(call, asked):
    """Where the server knows pipelines by name; an older one is asked once more, and then remembered for its client."""
    client = OldServer()
    before = copy.deepcopy(call)
    for _ in range(3):
        assert finish(OPENSEARCH.call(client, call))
    assert [[each.get("search_pipeline") for each in bodies] for bodies in client.bodies] == [
        ["_none"] * asked,
        *[[None] * asked] * 3,
    ]
    remembered = weakref.ref(client)
    client = OldServer()
    assert remembered() is None
    assert finish(ELASTICSEARCH.call(client, call))
    assert len(client.bodies) == 1
    assert call == before


@pytest.mark.parametrize("concurrency", [1, 2, 3, 9])
def test_groups_of_calls(concurrency):
    """In order, never more under way than asked for, and no thread is left; the caller's own computes."""
    under_way, most, lock, before = [0], [0], threading.Lock(), threading.active_count()

    class Slow(Client):
        def search(self, **arguments):
            with lock:
                under_way[0] += 1
                most[0] = max(most[0], under_way[0])
            try:
                return super().search(**arguments)
            finally:
                with lock:
                    under_way[0] -= 1

    calls = [Call("search", {"index": str(n)}) for n in range(6)]

    def group(computed):
        return finish(BlockingServer(Slow(), ELASTICSEARCH).together([*calls, *computed], concurrency=concurrency))

    expected = [NOTHING | {"search": {"index": str(n)}} for n in range(6)]
    assert group([]) == expected
    assert group([Compute(threading.get_ident)]) == [*expected, threading.get_ident()]
    assert most[0] <= concurrency
    assert threading.active_count() == before


@pytest.mark.parametrize("is_computed", [False, True])
def test_an_interrupt_in_a_group_reaches_the_caller(is_computed):
    """On whichever thread it comes; calls that were not sent are dropped."""

    def interrupt(**_):
        raise KeyboardInterrupt

    client = Client()
    if not is_computed:
        client.search = interrupt
    calls = [*(Call("search", {"index": str(n)}) for n in range(9)), *([Compute(interrupt)] if is_computed else [])]
    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        finish(BlockingServer(client, ELASTICSEARCH).together(calls, concurrency=2))
    assert threading.active_count() == before


CALLER = contextvars.ContextVar("CALLER")


def test_threads_have_the_context_of_the_caller():
    """Each a copy of it, so that what a client's hook reads there is the caller's."""
    meeting = threading.Barrier(3)

    class Reads(Client):
        def search(self, **arguments):
            meeting.wait(30)  # so that each thread has a call
            return NOTHING | {"caller": CALLER.get(None)}

    CALLER.set("mine")
    calls = [Call("search", {"index": str(n)}) for n in range(3)]
    assert finish(BlockingServer(Reads(), ELASTICSEARCH).together(calls)) == [NOTHING | {"caller": "mine"}] * 3


def test_every_request_is_in_every_dialect():
    """A dialect names a method for each API of the port."""
    plain = {"send", "together", "compute", "sleep", "to_the_end", "tell"}
    apis = {name for name, _ in inspect.getmembers(Server, inspect.isfunction) if not name.startswith("_")} - plain
    assert len(apis) > 20
    for dialect in (ELASTICSEARCH, OPENSEARCH):
        assert apis == set(dialect.methods)


async def telling(server):
    """A stream that tells how far it is, asks the server for something, and gives back what it opened."""
    try:
        server.tell(Progress(1, 2, "reading"))
        await server.search(index="a", body={})
        yield ["item"]
        server.tell(Progress(2, 2, "reading"))
    finally:
        await server.close_point_in_time(body={})


async def read_all(parts):
    async with aclosing(parts) as every:
        return [item async for part in every for item in part]


def test_progress_reaches_who_asked_for_it():
    """In order, from both ports; without a listener it is dropped."""
    told = []
    assert list(stream(telling(BlockingServer(Client(), OPENSEARCH, told.append)))) == ["item"]
    assert asyncio.run(read_all(telling(AsyncioServer(AsyncClient(), OPENSEARCH, told.append)))) == ["item"]
    assert told == [Progress(1, 2, "reading"), Progress(2, 2, "reading")] * 2
    assert list(stream(telling(BlockingServer(Client(), OPENSEARCH)))) == ["item"]


def test_a_listener_that_fails_ends_the_call():
    """With its own exception, after what was opened is closed: so a button can stop the work."""

    def stop(progress):
        raise KeyboardInterrupt

    client = Client()
    with pytest.raises(KeyboardInterrupt):
        list(stream(telling(BlockingServer(client, OPENSEARCH, stop))))
    assert client.calls == ["cleared"]
    client = AsyncClient()
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(read_all(telling(AsyncioServer(client, OPENSEARCH, stop))))
    assert client.calls == ["cleared"]


DELETIONS = Call("bulk", {"body": [{"delete": {"_id": "1"}}, {"delete": {"_id": "2"}}]})
UPDATE = Call("bulk", {"body": [{"update": {"_id": "1"}}, {"doc": {"a": 1}}]})


class Ending:
    """A client that ends with *error* while a bulk request is on its way: by Ctrl-C, or with its task."""

    def __init__(self, error):
        self.error = error

    def bulk(self, **_):
        raise self.error


@pytest.mark.parametrize(("calls", "number"), [([DELETIONS], 2), ([UPDATE], 1), ([DELETIONS, UPDATE], 3)])
def test_an_interrupt_says_what_was_not_answered(calls, number):
    """Beside what the operation has counted."""

    async def notes(server):
        try:
            with noting(lambda: "3 documents were deleted"):
                await (server.send(*calls) if len(calls) == 1 else server.together(calls, concurrency=1))
        except (KeyboardInterrupt, asyncio.CancelledError) as error:
            return error.__notes__

    said = [f"up to {number} more operations were sent, and their answer was not read", "3 documents were deleted"]
    assert finish(notes(BlockingServer(Ending(KeyboardInterrupt()), OPENSEARCH))) == said
    assert asyncio.run(notes(AsyncioServer(Ending(asyncio.CancelledError()), OPENSEARCH))) == said


@pytest.mark.parametrize(("sizes", "most"), [({}, 9), ({"most": 2}, 4), ({"characters": 30}, 6)])
def test_documents_of_a_loop_are_read_in_advance(sizes, most):
    """In order, and no more at once than there is room for."""
    read = []

    async def documents():
        for number in range(9):
            read.append({"body": "x" * number})
            yield read[-1]

    async def work():
        async with aclosing(Feed(documents(), **sizes)) as feed:
            items = iter(feed)
            first = await asyncio.to_thread(next, items)
            await asyncio.sleep(0)
            assert len(read) == most
            return [first, *await asyncio.to_thread(list, items)]

    assert asyncio.run(work()) == read


@pytest.mark.parametrize("error", [OSError("disk"), GeneratorExit(), asyncio.CancelledError()], ids=repr)
def test_what_a_source_raises_follows_its_items(error):
    """Also where a task of its own was cancelled, and where it is no exception."""
    taken = []

    async def documents():
        yield 1
        raise error

    async def work():
        async with aclosing(Feed(documents())) as feed:
            await asyncio.to_thread(taken.extend, feed)

    with pytest.raises(type(error)):
        asyncio.run(work())
    assert taken == [1]


def test_a_reader_that_is_cancelled_waits_for_no_document():
    """Its thread ends, and so does the source."""
    taken = []

    async def documents():
        try:
            yield 1
            await asyncio.Event().wait()
        finally:
            taken.append("closed")

    async def work():
        async with aclosing(Feed(documents())) as feed:
            items = iter(feed)
            taken.append(await asyncio.to_thread(next, items))
            asyncio.current_task().cancel()
            await asyncio.to_thread(next, items, None)

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(work())
    assert taken == [1, "closed"]


def test_a_conversion_that_nobody_reads_asks_nothing():
    """No operation is left behind that nobody awaits, which Python warns of."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        AsyncSimHashClient(AsyncClient(), dialect="opensearch").with_fingerprints("i", [{}])
        gc.collect()
    assert not said


def test_a_request_that_is_too_large_has_a_note():
    """Of a read too: which limits there are, and what to do."""

    class Refusing:
        def search(self, **_):
            raise ServerError(413)

    with pytest.raises(ServerError) as failure:
        finish(OPENSEARCH.call(Refusing(), Call("search", {"body": {}})))
    assert "http.max_content_length" in failure.value.__notes__[0]
