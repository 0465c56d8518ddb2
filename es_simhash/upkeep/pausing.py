"""
Work that pauses before each request, for a stream whose caller may want no more in the middle of it.

An ``await`` cannot yield an item of the stream around it, so the work is stepped by hand: what an event loop waits for
is handed on to it.
"""

from __future__ import annotations

import types
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator, Sequence
from functools import partial
from typing import Any, Generic, TypeVar

from es_simhash.mapping.port import Port
from es_simhash.transport.protocol import Call, Compute
from es_simhash.transport.server import Answer

_T = TypeVar("_T")
_PAUSE = object()


@types.coroutine
def _suspend(signal: Any) -> Generator[Any, Any, Any]:
    return (yield signal)


class Pausing(Port):
    """A port for the work of one :class:`Paused`; *before* is awaited before each request, and then it pauses."""

    def __init__(self, inner: Port, before: Callable[[], Awaitable[None]]) -> None:
        super().__init__(inner, inner.context)
        self._before = before
        self._is_within = False

    async def _pause(self) -> None:
        if not self._is_within:
            await self._before()
            await _suspend(_PAUSE)

    async def send(self, call: Call) -> Answer:
        await self._pause()
        return await self._inner.send(call)

    async def together(self, calls: Sequence[Call | Compute], *, concurrency: int = 4) -> list[Any]:
        await self._pause()
        return await self._inner.together(calls, concurrency=concurrency)

    async def to_the_end(self, work: Coroutine[Any, Any, _T]) -> tuple[_T, BaseException | None]:
        try:
            await self._pause()
        except BaseException:
            work.close()
            raise
        self._is_within = True  # it may run in a task of its own, where nobody knows of pauses
        try:
            return await self._inner.to_the_end(work)
        finally:
            self._is_within = False


class Paused(Generic[_T]):
    """Carries *work* out, through a :class:`Pausing` port; :attr:`result` is there after the last pause."""

    result: _T

    def __init__(self, work: Coroutine[Any, Any, _T]) -> None:
        self._work = work

    async def pauses(self) -> AsyncGenerator[None, None]:
        """Yield before each request; closed early, the work is closed, and may make requests for that."""
        step: Callable[[], Any] = partial(self._work.send, None)
        is_closing = False
        try:
            while True:
                signal = step()
                step = partial(self._work.send, None)
                try:
                    if signal is not _PAUSE:
                        step = partial(self._work.send, await _suspend(signal))
                    elif not is_closing:
                        yield
                except BaseException as error:  # noqa: BLE001 -- the work decides, also on a cancellation
                    is_closing = is_closing or isinstance(error, GeneratorExit)
                    step = partial(self._work.throw, error)
        except StopIteration as stop:
            self.result = stop.value
