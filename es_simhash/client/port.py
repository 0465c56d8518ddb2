"""The port of a blocking client: its methods never suspend, so one ``send`` finishes an operation."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from typing import Any, ParamSpec, TypeVar

from es_simhash.client.answer_shapes import count_operations
from es_simhash.client.dialects import Dialect, find_dialect, writes_standard_json
from es_simhash.mapping.context import Context
from es_simhash.mapping.port import Port
from es_simhash.mapping.resolve import ATTEMPTS, SettingsChanged
from es_simhash.transport.protocol import Call, Compute, OnProgress, Progress
from es_simhash.transport.server import Answer

_T = TypeVar("_T")
_P = ParamSpec("_P")


def finish(work: Coroutine[Any, Any, _T]) -> _T:
    """
    Return what *work* returns, which never suspends.
    Where an event loop runs on this thread, it would adopt the async generators that *work* steps, and keep inner ones
    open: so its hooks are taken away meanwhile.
    """
    hooks = sys.get_asyncgen_hooks()
    sys.set_asyncgen_hooks(None, None)
    try:
        work.send(None)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]
    finally:
        sys.set_asyncgen_hooks(*hooks)
    work.close()
    raise RuntimeError("an operation of a blocking client waited for an event loop")


def run(make: Callable[[], Coroutine[Any, Any, _T]]) -> _T:
    """Return what the operation returns that *make* begins: anew where settings turn out to have changed."""
    hooks = sys.get_asyncgen_hooks()
    sys.set_asyncgen_hooks(None, None)
    try:
        for left in reversed(range(ATTEMPTS)):
            work = make()
            try:
                work.send(None)
            except StopIteration as stop:
                return stop.value  # type: ignore[no-any-return]
            except SettingsChanged as change:
                if not left:
                    raise change.at_last() from None
            else:
                break
    finally:
        sys.set_asyncgen_hooks(*hooks)
    work.close()
    raise RuntimeError("an operation of a blocking client waited for an event loop")


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


class BlockingServer(Port):
    """Carries requests out with a blocking *client*; *progress* is called on the caller's thread."""

    def __init__(
        self, client: Any, dialect: Dialect, progress: OnProgress | None = None, context: Context | None = None
    ) -> None:
        super().__init__(context or Context())
        self._client = client
        self._dialect = dialect
        self._progress = progress
        self.writes_standard_json = writes_standard_json(client)

    async def send(self, call: Call) -> Answer:
        try:
            answer: Answer = self._dialect.call(self._client, call)
        except BaseException as error:
            note_unanswered(error, [call])
            raise
        return answer

    async def together(self, calls: Sequence[Call | Compute], *, concurrency: int = 4) -> list[Any]:
        """
        Carry *calls* out at once, some of them on threads, each in a copy of the caller's context.
        The threads end before this returns: callers share none, a fork copies none, and none is left to be shut down. A
        new thread costs less than a tenth of a millisecond.
        """
        outcomes: list[Any] = [None] * len(calls)

        def settle(number: int) -> None:
            call = calls[number]
            try:
                if isinstance(call, Call):
                    outcomes[number] = self._dialect.call(self._client, call)
                else:
                    outcomes[number] = call.function(*call.arguments)
            except Exception as error:  # noqa: BLE001 -- a failure is a value here
                outcomes[number] = error

        sent = deque(number for number, call in enumerate(calls) if isinstance(call, Call))
        computed = [number for number, call in enumerate(calls) if not isinstance(call, Call)]
        try:
            if min(len(calls), concurrency) <= 1 or not sent:
                for number in range(len(calls)):
                    settle(number)
            else:
                _settle_on_threads(settle, sent, computed, concurrency)
        except BaseException as error:
            note_unanswered(error, calls)
            raise
        return outcomes

    async def compute(self, function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        return function(*args, **kwargs)

    async def sleep(self, seconds: float) -> None:
        time.sleep(seconds)  # noqa: ASYNC251 -- no event loop waits for it

    async def to_the_end(self, work: Coroutine[Any, Any, _T]) -> tuple[_T, BaseException | None]:
        return await work, None

    def tell(self, progress: Progress) -> None:
        if self._progress is not None:
            self._progress(progress)


def _settle_on_threads(
    settle: Callable[[int], None], calls: deque[int], computed: Sequence[int], concurrency: int
) -> None:
    """*settle* the requests with the numbers *calls* on threads, and those *computed* on the caller's."""

    def work() -> None:
        with suppress(IndexError):  # another thread took the last one
            settle(calls.popleft())

    # The caller's thread makes calls too, unless it has something to compute meanwhile.
    threads = ThreadPoolExecutor(min(len(calls), concurrency) - (0 if computed else 1), "es_simhash")
    started: list[Future[None]] = []
    wanted = len(calls)
    try:
        with suppress(RuntimeError):  # too many threads, or the interpreter is about to end
            for _ in range(wanted):
                started.append(threads.submit(copy_context().run, work))
        # What is computed may read the caller's own iterable, and so stays on the caller's thread.
        for number in computed:
            settle(number)
        while calls and (not computed or len(started) < wanted):
            work()
        for future in started:
            future.result()
    finally:
        calls.clear()
        threads.shutdown(cancel_futures=True)


def port_of(client: Any, context: Context | None = None) -> Port:
    """Return the port of a blocking *client*, for operations for which the clients have no method."""
    return BlockingServer(client, find_dialect(client), context=context)
