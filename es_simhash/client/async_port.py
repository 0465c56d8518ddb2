"""The port of an asyncio client, and a queue for documents that come from an async iterable."""

from __future__ import annotations

import asyncio
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Callable,
    Coroutine,
    Iterable,
    Iterator,
    Sequence,
)
from functools import partial
from typing import Any, Generic, ParamSpec, TypeVar

from es_simhash.client.port import ClientPort, note_unanswered
from es_simhash.ingest.actions import as_given, weigh
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


# As much as one batch has by default: after a slow request, the next batch is there whole.
MOST_ITEMS, MOST_CHARACTERS = 500, 4_000_000


class Feed(Generic[_T]):
    """
    What the event loop reads from *items*, some in advance, for an operation that reads it in another thread.
    Reading begins when the operation first wants an item. What *items* raises is raised after its last item.
    """

    def __init__(self, items: AsyncIterable[_T], *, most: int = MOST_ITEMS, characters: int = MOST_CHARACTERS) -> None:
        self._items = items
        self._most, self._most_characters = most, characters
        self._loop = asyncio.get_running_loop()
        self._reading: asyncio.Task[None] | None = None
        self._found: list[_T] = []
        self._has_some, self._has_room = asyncio.Event(), asyncio.Event()
        self._is_ended = False
        self._failure: BaseException | None = None

    def __iter__(self) -> Iterator[_T]:
        while not self._is_ended or self._found:
            yield from asyncio.run_coroutine_threadsafe(self._take(), self._loop).result()
        if self._failure is not None:
            raise self._failure

    async def _take(self) -> list[_T]:
        """Return what was read; wait for the first item, or the end."""
        if self._reading is None and not self._is_ended:
            self._reading = asyncio.create_task(self._read())
        await self._has_some.wait()
        found, self._found = self._found, []
        self._has_room.set()
        if not self._is_ended:
            self._has_some.clear()
        return found

    async def _read(self) -> None:
        characters = 0
        try:
            async for item in self._items:
                characters = characters + weigh(item) if self._found else weigh(item)
                self._found.append(as_given(item))
                self._has_some.set()
                if len(self._found) >= self._most or characters >= self._most_characters:
                    self._has_room.clear()
                    await self._has_room.wait()
        except (Exception, asyncio.CancelledError, GeneratorExit) as error:  # noqa: BLE001 -- raised by the reader
            # A source may pass on that a task of its own was cancelled.
            self._failure = error
        finally:
            self._end()

    def _end(self) -> None:
        self._is_ended = True
        self._has_some.set()

    async def aclose(self) -> None:
        """Let go of a reader that waits, cancel *items* where it waits, and close it if it is an async generator."""
        self._end()
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait([self._reading])
        self._found, self._failure = [], None
        if isinstance(self._items, AsyncGenerator):
            await self._items.aclose()


async def as_async(items: Iterable[_T]) -> AsyncIterator[_T]:
    for item in items:
        yield item
