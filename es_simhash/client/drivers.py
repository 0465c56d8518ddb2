"""The two drivers: they carry out what a flow yields, on threads or on asyncio, by the methods of a dialect."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Generator, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from threading import Thread
from typing import Any, TypeVar

from es_simhash.client.dialects import Dialect
from es_simhash.transport.feed import Feed
from es_simhash.transport.protocol import (
    Call,
    Compute,
    Emit,
    Flow,
    OnProgress,
    Request,
    StreamClosed,
    Tell,
    Together,
    Wait,
)

_T = TypeVar("_T")


def stream(
    flow: Flow[_T], client: Any, dialect: Dialect, progress: OnProgress | None = None
) -> Generator[Any, None, _T]:
    """
    Carry *flow* out with a sync client; yield what it emits, return its result, tell *progress*.
    If the generator is closed early, the flow gets a StreamClosed, and closes what it has opened on the server.
    """
    answer: Any = None
    failure: BaseException | None = None
    is_closed = False
    while True:
        try:
            request = flow.send(answer) if failure is None else flow.throw(failure)
        except StopIteration as stop:
            return stop.value  # type: ignore[no-any-return]
        except StreamClosed:
            raise GeneratorExit from None
        answer = failure = None
        try:
            if isinstance(request, Tell):
                if progress is not None:
                    progress(request.progress)
            elif not isinstance(request, Emit):
                answer = _perform(request, client, dialect)
            elif not is_closed:
                yield from request.items
        except GeneratorExit:
            # Thrown on as it is, Python would close a flow within the flow, which then could not yield a last call.
            is_closed, failure = True, StreamClosed()
        except BaseException as error:  # noqa: BLE001 -- the flow decides
            failure = _with_unanswered(error, request)


def run(flow: Flow[_T], client: Any, dialect: Dialect, progress: OnProgress | None = None) -> _T:
    """Carry *flow* out with a sync client and return its result; items it emits are dropped."""
    driven = stream(flow, client, dialect, progress)
    while True:
        try:
            next(driven)
        except StopIteration as stop:
            return stop.value  # type: ignore[no-any-return]


def _with_unanswered(error: BaseException, request: Request) -> BaseException:
    """Note on an interrupt or a cancellation how many operations were sent in *request*, whose answer nobody reads."""
    if not isinstance(error, Exception):
        requests = request.calls if isinstance(request, Together) else (request,)
        bodies = [each.arguments["body"] for each in requests if isinstance(each, Call) and each.api == "bulk"]
        # A deletion is one line, any other operation two.
        lines = [line for body in bodies for line in body]
        if lines:
            number = (len(lines) + sum(isinstance(line, dict) and line.keys() == {"delete"} for line in lines)) // 2
            error.add_note(f"up to {number:,} more operations were sent, and their answer was not read")
    return error


def _perform(request: Request, client: Any, dialect: Dialect) -> Any:
    match request:
        case Call():
            return dialect.call(client, request)
        case Together(calls, concurrency):
            return _perform_together(calls, concurrency, client, dialect)
        case Compute(function, arguments):
            return function(*arguments)
        case Wait(seconds):
            time.sleep(seconds)
            return None
        case _:
            raise TypeError(f"a flow yielded {request!r}, which is no request")


def _perform_together(requests: Sequence[Call | Compute], concurrency: int, client: Any, dialect: Dialect) -> list[Any]:
    """
    Carry *requests* out at once, some of them on threads.
    The threads end before this returns: callers share none, a fork copies none, and none is left to be shut down. A new
    thread costs less than a tenth of a millisecond.
    """
    outcomes: list[Any] = [None] * len(requests)

    def settle(number: int) -> None:
        try:
            outcomes[number] = _perform(requests[number], client, dialect)
        except Exception as error:  # noqa: BLE001 -- a failure is a value here
            outcomes[number] = error

    calls = deque(number for number, each in enumerate(requests) if isinstance(each, Call))
    computed = [number for number, each in enumerate(requests) if not isinstance(each, Call)]
    if min(len(requests), concurrency) <= 1 or not calls:
        for number in range(len(requests)):
            settle(number)
    else:
        _settle_on_threads(settle, calls, computed, concurrency)
    return outcomes


def _settle_on_threads(
    settle: Callable[[int], None], calls: deque[int], computed: Sequence[int], concurrency: int
) -> None:
    """*settle* the requests with the numbers *calls* on threads, and those *computed* on the caller's."""
    fatal: list[BaseException] = []

    def work() -> None:
        try:
            while True:
                settle(calls.popleft())
        except IndexError:
            return
        except BaseException as error:  # noqa: BLE001 -- raised on the caller's thread
            fatal.append(error)

    # The caller's thread makes calls too, unless it has something to compute meanwhile.
    wanted = min(len(calls), concurrency) - (0 if computed else 1)
    helpers: list[Thread] = []
    try:
        _start(wanted, work, helpers)
        # What is computed may read the caller's own iterable, and so stays on the caller's thread.
        for number in computed:
            settle(number)
        if not computed or len(helpers) < wanted:
            work()
    finally:
        calls.clear()
        for helper in helpers:
            helper.join()
    if fatal:
        raise fatal[0]


def _start(number: int, work: Callable[[], None], started: list[Thread]) -> None:
    """Start *number* threads that *work*, or as many as the system allows."""
    for _ in range(number):
        thread = Thread(target=work, name="es_simhash")
        try:
            thread.start()
        except RuntimeError:  # too many threads, or the interpreter is about to end
            return
        started.append(thread)


async def stream_async(
    flow: Flow[_T], client: Any, dialect: Dialect, progress: OnProgress | None = None, *, result: list[_T]
) -> AsyncGenerator[Any, None]:
    """
    Carry *flow* out with an async client; yield what it emits, and append its result to *result*.
    *progress* is called on the event loop. If the task is cancelled or the generator closed early, the flow gets an
    exception, and closes what it has opened on the server.
    """
    answer: Any = None
    failure: BaseException | None = None
    cancelled: BaseException | None = None
    is_closed = False
    while True:
        try:
            request = flow.send(answer) if failure is None else flow.throw(failure)
        except StopIteration as stop:
            if cancelled is not None:
                raise cancelled from None
            result.append(stop.value)
            return
        except StreamClosed:
            raise GeneratorExit from None
        answer, failure, cancelled = None, cancelled, None
        if failure is not None:  # what was opened is known to the flow now; this request is never sent
            continue
        try:
            if isinstance(request, Tell):
                if progress is not None:
                    progress(request.progress)
            elif isinstance(request, Emit):
                for item in () if is_closed else request.items:
                    yield item
            elif isinstance(request, Call) and request.opens:
                answer, cancelled = await _open_async(request, client, dialect)
            else:
                answer = await _perform_async(request, client, dialect)
        except GeneratorExit:
            is_closed, failure = True, StreamClosed()
        except BaseException as error:  # noqa: BLE001 -- the flow decides, also on CancelledError
            failure = _with_unanswered(error, request)


async def run_async(flow: Flow[_T], client: Any, dialect: Dialect, progress: OnProgress | None = None) -> _T:
    """Carry *flow* out with an async client and return its result; items it emits are dropped."""
    result: list[_T] = []
    async for _ in stream_async(flow, client, dialect, progress, result=result):
        pass
    return result[0]


@asynccontextmanager
async def feeding(items: AsyncIterable[_T]) -> AsyncIterator[Feed[_T]]:
    """
    Provide a queue that the event loop fills from *items*, for a flow that reads it in another thread.
    Reading begins when the flow first takes an item. At the end the queue is closed, *items* is cancelled if it waits,
    and an async generator is closed.
    """
    import asyncio  # noqa: PLC0415 -- sync callers do without its 50 ms

    loop, room, feed = asyncio.get_running_loop(), asyncio.Event(), Feed[_T]()

    def wake() -> None:
        with suppress(RuntimeError):  # the loop is closed already: nobody waits
            loop.call_soon_threadsafe(room.set)

    feed.on_room = wake
    task = asyncio.create_task(_fill(feed, items, room))
    try:
        yield feed
    finally:
        feed.close()
        task.cancel()
        await asyncio.wait([task])
        if isinstance(items, AsyncGenerator):
            await items.aclose()


async def _fill(feed: Feed[_T], items: AsyncIterable[_T], room: Any) -> None:
    await room.wait()
    try:
        async for item in items:
            room.clear()
            if not feed.offer(item):
                await room.wait()
    except Exception as error:  # noqa: BLE001 -- raised where the items are taken, after those before it
        feed.end(error)
    else:
        feed.end()


async def as_async(items: Iterable[_T]) -> AsyncIterator[_T]:
    for item in items:
        yield item


async def _open_async(call: Call, client: Any, dialect: Dialect) -> tuple[Any, BaseException | None]:
    """Return the answer to a call that opens something, and the cancellation that came before it, if one did."""
    import asyncio  # noqa: PLC0415

    sent = asyncio.ensure_future(dialect.call_async(client, call))
    cancelled: BaseException | None = None
    while True:  # also where the task is cancelled once more
        try:
            return await asyncio.shield(sent), cancelled
        except asyncio.CancelledError as error:
            cancelled = error
            if sent.cancelled():
                raise
        except Exception:
            if cancelled is None:
                raise
            raise cancelled from None  # nothing was opened, so nothing has to be waited for


async def _perform_async(request: Request, client: Any, dialect: Dialect) -> Any:
    import asyncio  # noqa: PLC0415 -- sync callers do without its 50 ms

    match request:
        case Call():
            return await dialect.call_async(client, request)
        case Together(calls, concurrency):
            return await _perform_together_async(calls, concurrency, client, dialect)
        case Compute(function, arguments):
            return await asyncio.to_thread(function, *arguments)
        case Wait(seconds):
            return await asyncio.sleep(seconds)
        case _:
            raise TypeError(f"a flow yielded {request!r}, which is no request")


async def _perform_together_async(requests: Any, concurrency: int, client: Any, dialect: Dialect) -> list[Any]:
    import asyncio  # noqa: PLC0415

    gate = asyncio.Semaphore(max(1, concurrency))

    async def outcome(request: Call | Compute) -> Any:
        async with gate:
            try:
                return await _perform_async(request, client, dialect)
            except Exception as error:  # noqa: BLE001 -- a failure is a value here
                return error

    return list(await asyncio.gather(*map(outcome, requests)))
