"""Ctrl-C and SIGTERM: a command says in two lines what it had written, and which command goes on."""

from __future__ import annotations

import shlex
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import FrameType
from typing import Any

import click

from es_simhash.cli.output import note

_ARGUMENTS = "es_simhash.arguments"
_SAID = "es_simhash.stopped"


class Terminated(KeyboardInterrupt):
    """The process was asked to end (SIGTERM)."""


def exit_code(stop: KeyboardInterrupt) -> int:
    """Return what a shell reports for a process that the signal ended: 130 after Ctrl-C, 143 after SIGTERM."""
    return 128 + (signal.SIGTERM if isinstance(stop, Terminated) else signal.SIGINT)


def _stop_of(number: int) -> KeyboardInterrupt:
    return Terminated() if number == signal.SIGTERM else KeyboardInterrupt()


def _raise(number: int, _frame: FrameType | None) -> None:
    raise _stop_of(number)


@contextmanager
def _handling(handler: Any, *numbers: int) -> Iterator[None]:
    """Let *handler* take the signals within the block; nothing is done outside the main thread, which alone may."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


def interrupts() -> AbstractContextManager[None]:
    """Raise :class:`Terminated` for SIGTERM within the block, as Python raises KeyboardInterrupt for Ctrl-C."""
    return _handling(_raise, signal.SIGTERM)


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
            raise _stop_of(number)
        request.stop = _stop_of(number)

    with _handling(handle, signal.SIGINT, signal.SIGTERM):
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
        self.stop: KeyboardInterrupt | None = None
        self._is_stopped = False
        self.begin()

    def begin(self) -> None:
        self.writes, self.has_written, self.is_asking = 0, False, False

    def handle(self, number: int, _frame: FrameType | None) -> None:
        must_wait = self.writes > 0 or (self.has_written and not self.is_asking)
        if self._is_stopped or not must_wait:
            raise _stop_of(number)
        self._is_stopped = True
        self.stop = _stop_of(number)

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


@contextmanager
def say_if_stopped(
    written: Callable[[], str] | None = None, *, again: Callable[[], str] | None = None
) -> Iterator[None]:
    """
    If Ctrl-C or SIGTERM ends the block, say what was *written*, and which command, this one by default, goes on.
    The first signal lets operations that were sent be answered and counted; a second one interrupts at once. By default
    the notes on the exception say what was written, which an operation adds.
    """
    _WATCH.begin()
    try:
        with _handling(_WATCH.handle, signal.SIGINT, signal.SIGTERM):
            yield
    except KeyboardInterrupt as stop:
        unknown = "what was written was not counted" if _WATCH.has_written else "nothing was written"
        done = written() if written else "; ".join(reversed(getattr(stop, "__notes__", ()))) or unknown
        note(f"stopped: {done}")
        note(f"to go on: {(again or this_command)()}")
        if (context := click.get_current_context(silent=True)) is not None:
            context.meta[_SAID] = True
        raise


def say_stopped(context: click.Context) -> None:
    """Say that Ctrl-C or SIGTERM ended the command, unless :func:`say_if_stopped` has said so."""
    if not context.meta.get(_SAID):
        note("stopped")


def this_command(*added: str, without: str = "") -> str:
    """
    Return this command line, to be pasted into a shell, without the login in its URL.
    *added*: options that it gets, and their values. *without*: an option that it loses with its value.
    """
    context = click.get_current_context(silent=True)
    given: list[str] = [] if context is None else context.meta.get(_ARGUMENTS, [])
    shown = []
    for before, argument in zip(["", *given], given, strict=False):
        if without and (without in (argument, before) or argument.startswith(f"{without}=")):
            continue
        is_url = argument.startswith("--url=") or before == "--url"
        shown.append(_without_login(argument) if is_url else argument)
    end = shown.index("--") if "--" in shown else len(shown)
    shown[end:end] = added
    return shlex.join(["es-simhash", *shown])


def remember_arguments(context: click.Context, arguments: list[str]) -> None:
    """Keep the arguments of the command line for :func:`this_command`."""
    context.meta[_ARGUMENTS] = list(arguments)


def _without_login(url: str) -> str:
    option, name, rest = url.rpartition("--url=")
    scheme, separator, place = rest.rpartition("://")
    return f"{option}{name}{scheme.rpartition('@')[2]}{separator}{place.rpartition('@')[2]}"
