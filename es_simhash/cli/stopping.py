"""Ctrl-C and SIGTERM: what was sent to the server is answered and counted before a command ends."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import FrameType
from typing import Any


def exit_code(stop: KeyboardInterrupt) -> int:
    """Return what a shell reports where the signal in *stop* ended a process: 130 after Ctrl-C, 143 after SIGTERM."""
    return 128 + (stop.args[0] if stop.args else signal.SIGINT)


@contextmanager
def _handling(handler: Any) -> Iterator[None]:
    """Let *handler* take the signals within the block; nothing is done outside the main thread, which alone may."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, handler) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


class Request:
    """Whether somebody asked the command to stop: the exception to raise once what was begun is finished."""

    stop: KeyboardInterrupt | None = None


@contextmanager
def stop_requests(is_idle: Callable[[], bool]) -> Iterator[Request]:
    """
    Take the first Ctrl-C or SIGTERM within the block as a request, so that what was begun can be finished.
    If *is_idle* says that nothing is begun, the signal interrupts at once, as does a second one.
    """
    request = Request()

    def handle(number: int, _frame: FrameType | None) -> None:
        if request.stop is not None or is_idle():
            raise KeyboardInterrupt(number)
        request.stop = KeyboardInterrupt(number)

    with _handling(handle):
        yield request


class _Watch:
    """
    When the first Ctrl-C or SIGTERM may interrupt: not while operations are on their way, or not counted.
    *writes*: bulk requests on their way. *has_written*: whether there was one since the command began. *is_asking*:
    whether the main thread waits for an answer. *stop*: the exception to raise before its next request; what was
    answered is counted by then.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.begin()

    def begin(self) -> None:
        self.stop: KeyboardInterrupt | None = None
        self.writes, self.has_written, self.is_asking, self._is_stopped = 0, False, False, False

    def handle(self, number: int, _frame: FrameType | None) -> None:
        must_wait = self.writes > 0 or (self.has_written and not self.is_asking)
        if self._is_stopped or not must_wait:
            raise KeyboardInterrupt(number)
        self._is_stopped = True
        self.stop = KeyboardInterrupt(number)

    @contextmanager
    def during(self, *, is_write: bool) -> Iterator[None]:
        is_main = threading.current_thread() is threading.main_thread()
        if is_main and self.stop is not None:
            stop, self.stop = self.stop, None
            raise stop
        self._count(is_write)
        self.is_asking = self.is_asking or is_main
        try:
            yield
        finally:
            self._count(-is_write)
            self.is_asking = self.is_asking and not is_main

    def _count(self, writes: int) -> None:
        with self._lock:
            self.writes += writes
            self.has_written = self.has_written or writes > 0


_WATCH = _Watch()


def interrupts() -> AbstractContextManager[None]:
    """Let the first Ctrl-C or SIGTERM within the block wait for what was sent; a second one interrupts at once."""
    _WATCH.begin()
    return _handling(_WATCH.handle)


def watch_requests(transport: Any) -> threading.Event:
    """
    Let the first Ctrl-C or SIGTERM wait for the answers of bulk requests that *transport* sends.
    Return an event that is set once there was one.
    """
    kind = type(transport)
    has_written = threading.Event()

    def perform_request(self: Any, method: str, target: str, *args: Any, **options: Any) -> Any:
        is_write = target.partition("?")[0].endswith("/_bulk")
        with _WATCH.during(is_write=is_write):
            if is_write:
                has_written.set()
            return kind.perform_request(self, method, target, *args, **options)

    # A class and no attribute: copies of the transport, which read answers in another way, send by themselves.
    transport.__class__ = type(kind.__name__, (kind,), {"perform_request": perform_request})
    return has_written
