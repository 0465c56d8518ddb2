"""The port of a client's operations: requests to a server, and what the client knows of its indices."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, ParamSpec, TypeVar

from es_simhash.mapping.context import Context
from es_simhash.transport.protocol import Call, Compute, Progress
from es_simhash.transport.server import Answer, Server

_T = TypeVar("_T")
_P = ParamSpec("_P")


class Port(Server):
    """
    A port around *inner*, with the *context* that all operations of one client object share.
    A class of it changes requests on their way, by :meth:`change` or as it likes; all else goes through.
    """

    def __init__(self, inner: Server, context: Context) -> None:
        self._inner = inner
        self.context = context
        self.prefix = context.prefix
        self.writes_standard_json = inner.writes_standard_json

    def change(self, call: Call) -> Call:
        return call

    async def send(self, call: Call) -> Answer:
        return await self._inner.send(self.change(call))

    async def together(self, calls: Sequence[Call | Compute], *, concurrency: int = 4) -> list[Any]:
        changed = [self.change(each) if isinstance(each, Call) else each for each in calls]
        return await self._inner.together(changed, concurrency=concurrency)

    async def compute(self, function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        return await self._inner.compute(function, *args, **kwargs)

    async def sleep(self, seconds: float) -> None:
        await self._inner.sleep(seconds)

    async def to_the_end(self, work: Coroutine[Any, Any, _T]) -> tuple[_T, BaseException | None]:
        return await self._inner.to_the_end(work)

    def tell(self, progress: Progress) -> None:
        self._inner.tell(progress)
