"""The drivers: both carry out the same flow, and let it clean up when it is broken off."""

import asyncio
import copy
import inspect
import re
import threading
from pathlib import Path

import pytest

import es_simhash
from es_simhash import AsyncSimHashClient, SimHashClient
from es_simhash.client.dialects import ELASTICSEARCH, OPENSEARCH, find_dialect, is_async_client
from es_simhash.client.drivers import run, run_async, stream, stream_async
from es_simhash.errors import InvalidInputError
from es_simhash.transport.protocol import Call, Compute, Emit, Progress, Tell, Together, Wait, noting
from tests.transport.by_hand import ServerError


class Client:
    """Answers every method with its name and arguments; ``mget`` fails."""

    def __init__(self):
        self.calls = []

    def search(self, **arguments):
        self.calls.append(arguments)
        return {"search": arguments}

    def mget(self, **arguments):
        raise OSError("no")

    def clear_scroll(self, **arguments):
        self.calls.append("cleared")
        return {}


class AsyncClient(Client):
    """The same, awaited."""

    async def search(self, **arguments):
        await asyncio.sleep(0)
        return super().search(**arguments)

    async def mget(self, **arguments):
        return super().mget(**arguments)

    async def clear_scroll(self, **arguments):
        await asyncio.sleep(0)
        return super().clear_scroll(**arguments)


def everything():
    """A flow that yields each kind of request."""
    first = yield Call("search", {"index": "a"})
    yield Wait(0)
    total = yield Compute(sum, ([1, 2],))
    many = yield Together([Call("search", {"index": str(n)}) for n in range(5)] + [Call("mget")], concurrency=2)
    yield Emit("item")
    try:
        yield Call("mget")
    except OSError as error:
        return first, total, [each if isinstance(each, dict) else type(each) for each in many], str(error)


EXPECTED = ({"search": {"index": "a"}}, 3, [{"search": {"index": str(n)}} for n in range(5)] + [OSError], "no")


def test_sync_and_async_give_the_same():
    """Calls, waits, computations, groups of calls, and failures thrown in."""
    assert run(everything(), Client(), ELASTICSEARCH) == EXPECTED
    assert asyncio.run(run_async(everything(), AsyncClient(), ELASTICSEARCH)) == EXPECTED


def holding(log):
    """A flow that gives something back at its end, however it ends, within a flow that does too."""
    try:
        yield from holding_within(log)
    finally:
        yield Emit("nobody reads this any more")
        yield Call("clear_scroll")


def holding_within(log):
    try:
        for n in range(10):
            yield Emit(n)
    except BaseException as error:
        log.append(type(error).__name__)
        raise
    finally:
        yield Call("clear_scroll")


def test_closing_a_stream_early_reaches_the_flow():
    """Its ``finally`` still makes its call."""
    client, log = Client(), []
    items = stream(holding(log), client, OPENSEARCH)
    assert next(items) == 0
    items.close()
    assert (client.calls, log) == (["cleared", "cleared"], ["StreamClosed"])


def test_closing_an_async_stream_early_reaches_the_flow():
    """The same on asyncio."""
    client, log = AsyncClient(), []

    async def main():
        items = stream_async(holding(log), client, OPENSEARCH, result=[])
        assert await anext(items) == 0
        await items.aclose()

    asyncio.run(main())
    assert (client.calls, log) == (["cleared", "cleared"], ["StreamClosed"])


def test_a_cancelled_task_still_gives_back():
    """The cancellation goes on afterwards."""
    client = AsyncClient()

    def flow():
        try:
            yield Wait(60)
        finally:
            yield Call("clear_scroll")

    async def main():
        task = asyncio.create_task(run_async(flow(), client, OPENSEARCH))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert client.calls == ["cleared"]


def test_a_failure_passes_through_unchanged():
    """The very exception of the client."""

    def flow():
        yield Call("mget")

    with pytest.raises(OSError, match="no"):
        run(flow(), Client(), ELASTICSEARCH)
    with pytest.raises(OSError, match="no"):
        asyncio.run(run_async(flow(), AsyncClient(), ELASTICSEARCH))


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


class SlowToOpen:
    """An async client that opens points in time at leisure, and counts those that are open."""

    def __init__(self, *, refuses=False):
        self.asked = asyncio.Event()
        self.answered = asyncio.Event()
        self.open = 0
        self.searches = 0
        self.refuses = refuses

    async def open_point_in_time(self, **arguments):
        self.open += not self.refuses  # the server has done it, and its answer is on the way
        self.asked.set()
        await self.answered.wait()
        if self.refuses:
            raise OSError("no")
        return {"id": "held"}

    async def close_point_in_time(self, **arguments):
        self.open -= 1
        return {}

    async def search(self, **arguments):
        self.searches += 1
        return {"hits": {"hits": []}}


@pytest.mark.parametrize(("refuses", "times"), [(False, 1), (True, 1), (False, 3), (True, 3)])
def test_a_cancellation_while_something_is_opened_closes_it(refuses, times):
    """The answer is waited for, nothing more is sent but the request that closes, and the task is cancelled."""
    from es_simhash.transport.pages_flow import read_pages

    async def main():
        client = SlowToOpen(refuses=refuses)
        flow = read_pages("a", {"query": {"match_all": {}}}, None, page=10)
        task = asyncio.create_task(run_async(flow, client, ELASTICSEARCH))
        await client.asked.wait()
        for _ in range(times):
            task.cancel()
            await asyncio.sleep(0)
        client.answered.set()
        await asyncio.wait([task])
        return task.cancelled(), client.open, client.searches

    assert asyncio.run(main()) == (True, 0, 0)


def test_a_cancelled_flow_that_ends_with_what_it_opened_is_cancelled():
    """A cancellation is not lost where no request follows."""

    def flow():
        return (yield Call("open_point_in_time", opens=True))

    async def main():
        client = SlowToOpen()
        task = asyncio.create_task(run_async(flow(), client, ELASTICSEARCH))
        await client.asked.wait()
        task.cancel()
        client.answered.set()
        await asyncio.wait([task])
        return task.cancelled()

    assert asyncio.run(main())


def _methods(cls):
    return {name: value for name, value in inspect.getmembers(cls, inspect.isfunction) if not name.startswith("_")}


@pytest.mark.parametrize("name", sorted(_methods(SimHashClient) | _methods(AsyncSimHashClient)))
def test_both_clients_have_the_same_methods(name):
    """Name, parameters with their defaults and docstring are equal; a sync result is awaited, an iterator is async."""
    sync, other = getattr(SimHashClient, name), getattr(AsyncSimHashClient, name)
    assert inspect.getdoc(sync) == inspect.getdoc(other) is not None
    ours, theirs = inspect.signature(sync), inspect.signature(other)
    expected = [each.replace(annotation=_async_type(each.annotation)) for each in ours.parameters.values()]
    assert expected == list(theirs.parameters.values())
    returned = ours.return_annotation
    if returned.startswith("Generator["):
        returned = f"Async{returned.removesuffix(', None, None]')}, None]"
    elif returned.startswith("Iterator["):
        returned = f"Async{returned}"
    else:
        assert inspect.iscoroutinefunction(other)
    assert theirs.return_annotation == returned


def _async_type(annotation):
    return "Iterable[Any] | AsyncIterable[Any]" if annotation == "Iterable[Any]" else annotation


class OldServer:
    """An OpenSearch server before 2.18 behind its client: it refuses options of a search that it does not know."""

    def __init__(self):
        self.bodies = []

    def search(self, body):
        return self._answer([body])

    def msearch(self, body):
        return self._answer(body[1::2])

    def _answer(self, bodies):
        self.bodies.append(bodies)
        if any("search_pipeline" in each for each in bodies):
            raise ServerError(400, "Unknown key for a VALUE_STRING in [search_pipeline].")
        return {"answered": len(bodies)}


@pytest.mark.parametrize(
    ("call", "answered"),
    [
        (Call("search", {"body": {"size": 1}}), 1),
        (Call("msearch", {"body": [{"index": "a"}, {"size": 1}, {"index": "b"}, {"size": 2}]}), 2),
    ],
)
def test_every_search_goes_without_the_default_pipeline(call, answered):
    """Where the server knows pipelines by name; an older one is asked once more. The call itself is not changed."""
    client = OldServer()
    before = copy.deepcopy(call)
    assert OPENSEARCH.call(client, call) == {"answered": answered}
    assert [[each.get("search_pipeline") for each in bodies] for bodies in client.bodies] == [
        ["_none"] * answered,
        [None] * answered,
    ]
    client = OldServer()
    assert ELASTICSEARCH.call(client, call) == {"answered": answered}
    assert len(client.bodies) == 1
    assert call == before


@pytest.mark.parametrize("most_threads", [0, 1, 4])
@pytest.mark.parametrize("concurrency", [1, 2, 3, 9])
def test_groups_of_calls_whatever_threads_there_are(monkeypatch, most_threads, concurrency):
    """In order, never more under way than asked for, and no thread is left; a system may refuse new ones."""
    under_way, most, lock, started = [0], [0], threading.Lock(), []
    start = threading.Thread.start

    def start_some(thread):
        if len(started) == most_threads:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

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
        return (yield Together([*calls, *computed], concurrency=concurrency))

    monkeypatch.setattr(threading.Thread, "start", start_some)
    expected = [{"search": {"index": str(n)}} for n in range(6)]
    assert run(group([]), Slow(), ELASTICSEARCH) == expected
    started.clear()
    assert run(group([Compute(threading.get_ident)]), Slow(), ELASTICSEARCH) == [*expected, threading.get_ident()]
    assert most[0] <= concurrency
    assert not any(thread.is_alive() for thread in started)


@pytest.mark.parametrize("on_helper", [False, True])
def test_an_interrupt_in_a_group_reaches_the_caller(on_helper):
    """On whichever thread it comes; calls that were not sent are dropped."""
    main = threading.get_ident()
    passed = threading.Event()

    class Interrupted(Client):
        def search(self, **arguments):
            if (threading.get_ident() != main) == on_helper:
                passed.set()
                raise KeyboardInterrupt
            assert passed.wait(30)  # so that each thread has a call
            return super().search(**arguments)

    def group():
        yield Together([Call("search", {"index": str(n)}) for n in range(2)], concurrency=2)

    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        run(group(), Interrupted(), ELASTICSEARCH)
    assert threading.active_count() == before


def test_every_request_of_a_flow_is_in_every_dialect():
    """A dialect names a method for each API that a flow calls."""
    folder = Path(es_simhash.__file__).parent
    called = {
        name for path in folder.rglob("*.py") for name in re.findall(r'\bCall\(\s*"(\w+)"', path.read_text("utf-8"))
    }
    assert len(called) > 10
    for dialect in (ELASTICSEARCH, OPENSEARCH):
        assert called <= set(dialect.methods)


def telling():
    """A flow that tells how far it is, asks the server for something, and gives back what it opened."""
    try:
        yield Tell(Progress(1, 2, "reading"))
        yield Call("search", {"index": "a"})
        yield Emit("item")
        yield Tell(Progress(2, 2, "reading"))
    finally:
        yield Call("clear_scroll", {"scroll_id": "x"})


def test_progress_reaches_who_asked_for_it():
    """In order, from both drivers; without a listener it is dropped."""
    told = []
    assert list(stream(telling(), Client(), ELASTICSEARCH, told.append)) == ["item"]
    asyncio.run(run_async(telling(), AsyncClient(), ELASTICSEARCH, told.append))
    assert told == [Progress(1, 2, "reading"), Progress(2, 2, "reading")] * 2
    assert run(telling(), Client(), ELASTICSEARCH) is None


def test_a_listener_that_fails_ends_the_call():
    """With its own exception, after what was opened is closed: so a button can stop the work."""

    def stop(progress):
        raise KeyboardInterrupt

    for make, drive in ((Client, run), (AsyncClient, lambda *args: asyncio.run(run_async(*args)))):
        client = make()
        with pytest.raises(KeyboardInterrupt):
            drive(telling(), client, ELASTICSEARCH, stop)
        assert client.calls == ["cleared"]


DELETIONS = Call("bulk", {"body": [{"delete": {"_id": "1"}}, {"delete": {"_id": "2"}}]})
UPDATE = Call("bulk", {"body": [{"update": {"_id": "1"}}, {"doc": {"a": 1}}]})


class Interrupting:
    """A client whose caller presses Ctrl-C while a bulk request is on its way."""

    def bulk(self, **_):
        raise KeyboardInterrupt


class Cancelling:
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
        run(working(request_), Interrupting(), OPENSEARCH)
    assert stop.value.__notes__ == said

    async def cancelled():
        try:
            await run_async(working(request_), Cancelling(), OPENSEARCH)
        except asyncio.CancelledError as error:
            return error.__notes__

    assert asyncio.run(cancelled()) == said


def test_a_request_that_is_too_large_has_a_note():
    """Of a read too: which limits there are, and what to do."""

    class Refusing:
        def search(self, **_):
            raise ServerError(413)

    with pytest.raises(ServerError) as failure:
        OPENSEARCH.call(Refusing(), Call("search", {"body": {}}))
    assert "http.max_content_length" in failure.value.__notes__[0]
