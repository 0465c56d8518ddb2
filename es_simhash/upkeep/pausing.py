"""
Work that reports while it is carried out, as the stream of its reports.

An ``await`` cannot yield an item of the stream around it, so the work is stepped by hand: what an event loop waits for
is handed on to it.
"""

from __future__ import annotations

import types
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator, Sequence
from functools import partial
from typing import Any, TypeVar

from es_simhash.mapping.port import Port
from es_simhash.transport.protocol import Call, Compute
from es_simhash.transport.server import Answer

_T = TypeVar("_T")


class _Report:
    """What tells a report from what an event loop waits for."""

    def __init__(self, content: Any) -> None:
        self.content = content


@types.coroutine
def _suspend(signal: Any) -> Generator[Any, Any, Any]:
    return (yield signal)


async def report(content: Any) -> None:
    """Make *content* an item of the :func:`stream_reports` around; never in a task of its own."""
    await _suspend(_Report(content))


async def stream_reports(work: Coroutine[Any, Any, None]) -> AsyncGenerator[Any, None]:
    """Carry *work* out, and yield its reports; closed early, the work is closed, and may make requests for that."""
    step: Callable[[], Any] = partial(work.send, None)
    is_closing = False
    while True:
        try:
            signal = step()
        except StopIteration:
            return
        step = partial(work.send, None)
        try:
            if not isinstance(signal, _Report):
                step = partial(work.send, await _suspend(signal))
            elif not is_closing:
                yield signal.content
        except BaseException as error:  # noqa: BLE001 -- the work decides, also on a cancellation
            is_closing = is_closing or isinstance(error, GeneratorExit)
            step = partial(work.throw, error)


class Pausing(Port):
    """A port that awaits *before* before each request, as who reports there must: the caller may then want no more."""

    def __init__(self, inner: Port, before: Callable[[], Awaitable[None]]) -> None:
        super().__init__(inner, inner.context)
        self._before = before
        self._is_within = False

    async def _pause(self) -> None:
        if not self._is_within:
            await self._before()

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
        self._is_within = True  # it may run in a task of its own, where nobody knows of reports
        try:
            return await self._inner.to_the_end(work)
        finally:
            self._is_within = False
