"""The port of an asyncio client, and a queue for documents that come from an async iterable."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Coroutine, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, ParamSpec, TypeVar

from es_simhash.client.port import ClientPort, note_unanswered
from es_simhash.transport.feed import Feed
from es_simhash.transport.protocol import Call, Compute

_T = TypeVar("_T")
_P = ParamSpec("_P")


class AsyncioServer(ClientPort):
    """The port of an asyncio client."""

    async def together(self, calls: Sequence[Call | Compute], *, concurrency: int = 4) -> list[Any]:
        gate = asyncio.Semaphore(max(1, concurrency))

        async def outcome(call: Call | Compute) -> Any:
            async with gate:
                return await self.outcome(call)

        try:
            return list(await asyncio.gather(*map(outcome, calls)))
        except BaseException as error:
            note_unanswered(error, calls)
            raise

    async def compute(self, function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        return await asyncio.to_thread(_called, partial(function, *args, **kwargs))

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def to_the_end(self, work: Coroutine[Any, Any, _T]) -> tuple[_T, BaseException | None]:
        running = asyncio.ensure_future(work)
        cancelled: BaseException | None = None
        while True:  # also where the task is cancelled once more
            try:
                return await asyncio.shield(running), cancelled
            except asyncio.CancelledError as error:
                cancelled = error
                if running.cancelled():
                    raise
            except Exception:
                if cancelled is None:
                    raise
                raise cancelled from None  # nothing was opened, so nothing has to be waited for


def _called(function: partial[_T]) -> _T:
    """Return what *function* returns; no future can hold a StopIteration, and its caller would wait for ever."""
    try:
        return function()
    except StopIteration as error:
        raise RuntimeError(f"{function.func} raised StopIteration") from error


@asynccontextmanager
async def feeding(items: AsyncIterable[_T]) -> AsyncIterator[Feed[_T]]:
    """
    Provide a queue that the event loop fills from *items*, for an operation that reads it in another thread.
    Reading begins when the operation first takes an item. At the end the queue is closed, *items* is cancelled if it
    waits, and an async generator is closed.
    """
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


async def _fill(feed: Feed[_T], items: AsyncIterable[_T], room: asyncio.Event) -> None:
    await room.wait()
    try:
        async for item in items:
            room.clear()
            if not feed.offer(item):
                await room.wait()
    except (Exception, asyncio.CancelledError, GeneratorExit) as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        feed.end(error)  # a source may pass on that a task of its own was cancelled
    else:
        feed.end()


async def as_async(items: Iterable[_T]) -> AsyncIterator[_T]:
    for item in items:
        yield item
