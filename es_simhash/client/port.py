"""
The port of a blocking client: its methods never suspend, so one ``send`` finishes an operation; and the ports of a
client that only reads, and of a dry run.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from typing import Any, ParamSpec, TypeVar

from es_simhash.client.answer_shapes import count_operations
from es_simhash.client.dialects import Dialect, find_dialect
from es_simhash.errors import InvalidInputError
from es_simhash.mapping.context import Context
from es_simhash.mapping.port import Around, Port
from es_simhash.mapping.resolve import begin_anew
from es_simhash.transport.conversation import unless_refused
from es_simhash.transport.protocol import Call, Compute, OnProgress, Progress, index_key
from es_simhash.transport.server import Answer

logger = logging.getLogger("es_simhash")

_T = TypeVar("_T")
_P = ParamSpec("_P")


@contextmanager
def _alone() -> Iterator[None]:
    """
    Step operations that never suspend.
    Where an event loop runs on this thread, it would adopt the async generators that an operation steps, and keep inner
    ones open: so its hooks are taken away meanwhile.
    """
    hooks = sys.get_asyncgen_hooks()
    sys.set_asyncgen_hooks(None, None)
    try:
        yield
    finally:
        sys.set_asyncgen_hooks(*hooks)


def finish(work: Coroutine[Any, Any, _T]) -> _T:
    """Return what *work* returns, which never suspends."""
    with _alone():
        try:
            work.send(None)
        except StopIteration as stop:
            return stop.value  # type: ignore[no-any-return]
    work.close()
    raise RuntimeError("an operation of a blocking client waited for an event loop")


def run(make: Callable[[], Coroutine[Any, Any, _T]]) -> _T:
    """Return what the operation returns that *make* begins: anew where settings turn out to have changed."""
    return finish(begin_anew(make))


def stream(parts: AsyncGenerator[Sequence[_T], None]) -> Generator[_T, None, None]:
    """Yield the items of *parts*; closed early, or failed, what was opened on the server is closed."""
    try:
        while True:
            try:
                part = finish(parts.__anext__())
            except StopAsyncIteration:
                return
            yield from part
    finally:
        finish(parts.aclose())


def note_unanswered(error: BaseException, calls: Sequence[Call | Compute]) -> None:
    """Note on an interrupt or a cancellation how many operations were sent in *calls*, whose answer nobody reads."""
    if not isinstance(error, Exception):
        bodies = [call.arguments["body"] for call in calls if isinstance(call, Call) and call.api == "bulk"]
        if number := sum(map(count_operations, bodies)):
            error.add_note(f"up to {number:,} more operations were sent, and their answer was not read")


class ClientPort(Port):
    """Carries requests out with a *client*; *progress* is called on the caller's thread, or on the event loop."""

    def __init__(
        self, client: Any, dialect: Dialect, progress: OnProgress | None = None, context: Context | None = None
    ) -> None:
        super().__init__(context or Context())
        self._client = client
        self._dialect = dialect
        self._progress = progress

    async def send(self, call: Call) -> Answer:
        try:
            answer: Answer = await self._dialect.call(self._client, call)
        except BaseException as error:
            note_unanswered(error, [call])
            raise
        return answer

    async def outcome(self, call: Call | Compute) -> Any:
        """Return the answer to one of several, or its failure."""
        try:
            if isinstance(call, Call):
                return await self._dialect.call(self._client, call)
            return await self.compute(call.function, *call.arguments)
        except Exception as error:  # noqa: BLE001 -- a failure is a value here
            return error

    def tell(self, progress: Progress) -> None:
        if self._progress is not None:
            self._progress(progress)


class BlockingServer(ClientPort):
    """The port of a blocking client."""

    async def together(self, calls: Sequence[Call | Compute], *, concurrency: int = 4) -> list[Any]:
        try:
            if min(len(calls), concurrency) > 1 and any(isinstance(call, Call) for call in calls):
                return self._on_threads(calls, concurrency)
            outcomes = []
            for call in calls:
                outcomes.append(await self.outcome(call))
        except BaseException as error:
            note_unanswered(error, calls)
            raise
        return outcomes

    def _on_threads(self, calls: Sequence[Call | Compute], concurrency: int) -> list[Any]:
        """
        Carry *calls* out on threads, each with a copy of the caller's context; what is computed, on the caller's own.
        The threads end before this returns: callers share none, a fork copies none, and none is left to be shut down. A
        new thread costs less than a tenth of a millisecond.
        """

        def ask(call: Call | Compute) -> Any:
            return finish(self.outcome(call))

        threads = ThreadPoolExecutor(concurrency, "es_simhash")
        try:
            asked = [threads.submit(copy_context().run, ask, call) for call in calls if isinstance(call, Call)]
            # It may read the caller's own iterable, and so stays on the caller's thread.
            computed = iter([ask(call) for call in calls if not isinstance(call, Call)])
            answers = iter([future.result() for future in asked])
            return [next(answers if isinstance(call, Call) else computed) for call in calls]
        finally:
            threads.shutdown(cancel_futures=True)

    async def compute(self, function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        return function(*args, **kwargs)

    async def sleep(self, seconds: float) -> None:
        time.sleep(seconds)  # noqa: ASYNC251 -- no event loop waits for it

    async def to_the_end(self, work: Coroutine[Any, Any, _T]) -> tuple[_T, BaseException | None]:
        return await work, None


# Each is one method and path of a server. What is not named here, such as an API that comes later, is refused.
READING = frozenset(
    [
        "close_point_in_time",
        "field_caps",
        "get_alias",
        "get_data_stream",
        "get_mapping",
        "get_pipeline",
        "get_settings",
        "index_stats",
        "mget",
        "msearch",
        "open_point_in_time",
        "search",
        "simulate_index",
        "simulate_pipeline",
        "simulate_template",
    ]
)


class ReadOnly(Around):
    """Refuses every request that could write."""

    reason = "this client only reads: leave read_only out to write"

    def change(self, call: Call) -> Call:
        if call.api not in READING:
            raise InvalidInputError(f"{call.api} is refused, because {self.reason}")
        return call


class DryRun(ReadOnly):
    """
    Lets an operation look at all that was written, and change nothing.
    Who *may_refresh* not, and a login that the server lets refresh nothing, sees what searches show.
    """

    reason = "a dry run writes nothing"

    def __init__(self, inner: Port, *, may_refresh: bool) -> None:
        super().__init__(inner)
        self._may_refresh = may_refresh

    async def send(self, call: Call) -> Answer:
        if call.api != "refresh":
            return await super().send(call)
        answer = await unless_refused(self._inner.send(call), 401, 403) if self._may_refresh else None
        if answer is None:
            name = index_key(call.arguments["index"])
            logger.warning("%s was not refreshed, which is not allowed here: what is visible was read", name)
        return answer or {}


def port_of(client: Any, context: Context | None = None) -> Port:
    """Return the port of a blocking *client*, for operations for which the clients have no method."""
    return BlockingServer(client, find_dialect(client), context=context)
