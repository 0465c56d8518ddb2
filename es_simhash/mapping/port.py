"""The port of a client's operations: requests to a server, and what the client knows of its indices."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, ParamSpec, TypeVar

from es_simhash.mapping.context import Context
from es_simhash.transport.conversation import Patience, attempt, is_repeatable, until
from es_simhash.transport.protocol import Call, Compute, Progress
from es_simhash.transport.refusals import ATTEMPTS, is_passing
from es_simhash.transport.server import Answer, Server

_T = TypeVar("_T")
_P = ParamSpec("_P")


class Port(Server):
    """
    A port with the *context* that all operations of one client object share.
    *attempts*: how often a request is sent while the server is busy. *waited*: what was waited for in vain.
    """

    def __init__(self, context: Context, *, attempts: int = 1, waited: Patience | None = None) -> None:
        self.context = context
        self.prefix = context.prefix
        self.attempts = attempts
        self.waited = waited or Patience()

    @property
    def patient(self) -> Port:
        return Around(self, attempts=ATTEMPTS)

    async def until(
        self, work: Callable[[], Awaitable[_T]], is_done: Callable[[_T], bool], *, attempts: int = ATTEMPTS
    ) -> _T:
        """
        Return what *work* returns, which begins anew while the server is busy or *is_done* says no; the last is
        returned even so. What was waited for in vain is not waited for again before something is done.
        """
        self.waited.attempts = attempts
        return await until(self, work, is_done=is_done, patience=self.waited)


class Around(Port):
    """
    A port around *inner*.
    A class of it changes requests on their way, by :meth:`change` or as it likes; all else goes through.
    """

    def __init__(self, inner: Port, context: Context | None = None, *, attempts: int = 1) -> None:
        super().__init__(context or inner.context, attempts=attempts, waited=inner.waited)
        self._inner = inner

    def change(self, call: Call) -> Call:
        return call

    async def send(self, call: Call) -> Answer:
        call = self.change(call)
        if self.attempts > 1 and is_repeatable(call):
            return await self._repeat(call)
        return await self._inner.send(call)

    async def _repeat(self, call: Any, patience: Patience | None = None) -> Answer:
        return await until(self._inner, lambda: self._inner.send(call), patience=patience)

    async def together(self, calls: Sequence[Call | Compute], *, concurrency: int = 4) -> list[Any]:
        changed = [self.change(call) if isinstance(call, Call) else call for call in calls]
        answers = await self._inner.together(changed, concurrency=concurrency)
        for place, call in enumerate(changed if self.attempts > 1 else ()):
            refused = isinstance(answers[place], Exception) and is_passing(answers[place])
            if refused and isinstance(call, Call) and is_repeatable(call):
                patience = Patience()
                await patience.wait(self._inner)
                answers[place] = await attempt(self._repeat(call, patience))
        return answers

    async def compute(self, function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        return await self._inner.compute(function, *args, **kwargs)

    async def sleep(self, seconds: float) -> None:
        await self._inner.sleep(seconds)

    async def to_the_end(self, work: Coroutine[Any, Any, _T]) -> tuple[_T, BaseException | None]:
        return await self._inner.to_the_end(work)

    def tell(self, progress: Progress) -> None:
        self._inner.tell(progress)
