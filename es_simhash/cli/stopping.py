"""
Ctrl-C and SIGTERM: a command says in two lines what it had written, and which command goes on.

Signals become exceptions here; ``application.py`` turns them into exit codes. No command is here.
"""

from __future__ import annotations

import shlex
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import click

from es_simhash.cli.output import note

__all__ = [
    "Request",
    "Terminated",
    "exit_code",
    "interrupts",
    "remember_arguments",
    "say_if_stopped",
    "stop_requests",
    "this_command",
]

_ARGUMENTS = "es_simhash.arguments"


class Terminated(KeyboardInterrupt):
    """The process was asked to end (SIGTERM)."""


def exit_code(stop: KeyboardInterrupt) -> int:
    """
    Return what a shell reports for a process that the signal ended: 130 after Ctrl-C, 143 after SIGTERM.
    """
    return 128 + (signal.SIGTERM if isinstance(stop, Terminated) else signal.SIGINT)


def _raise(number: int, _frame: FrameType | None) -> None:
    raise Terminated if number == signal.SIGTERM else KeyboardInterrupt


@contextmanager
def _handling(handler: Any, *numbers: int) -> Iterator[None]:
    """Let *handler* take the signals within the block; only the main thread may do that, and elsewhere nothing is."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


@contextmanager
def interrupts() -> Iterator[None]:
    """
    Raise :class:`Terminated` for SIGTERM within the block, as Python raises KeyboardInterrupt for Ctrl-C.
    """
    with _handling(_raise, signal.SIGTERM):
        yield


class Request:
    """
    Whether somebody asked the command to stop, with the exception that says how.

    Attributes:
        stop:
            The exception to raise once what was begun is finished; ``None`` while nobody asked.
    """

    stop: KeyboardInterrupt | None = None


@contextmanager
def stop_requests(is_idle: Callable[[], bool]) -> Iterator[Request]:
    """
    Take the first Ctrl-C or SIGTERM within the block as a request, so that the command can finish what it has begun.

    Args:
        is_idle:
            Whether nothing is begun: the signal then interrupts at once, as does a second one.
    """
    request = Request()

    def handle(number: int, frame: FrameType | None) -> None:
        if request.stop is not None or is_idle():
            _raise(number, frame)
        request.stop = Terminated() if number == signal.SIGTERM else KeyboardInterrupt()

    with _handling(handle, signal.SIGINT, signal.SIGTERM):
        yield request


@contextmanager
def say_if_stopped(
    written: Callable[[], str] | None = None, *, again: Callable[[], str] | None = None
) -> Iterator[None]:
    """
    If Ctrl-C or SIGTERM ends the block, say on stderr what was written, and which command goes on.

    Args:
        written:
            Says what was written, without a full stop; by default the notes on the exception say it, which a flow adds
            that had written something, or else nothing was written.
        again:
            Returns the command that goes on; by default this command itself.
    """
    try:
        yield
    except KeyboardInterrupt as stop:
        done = written() if written else "; ".join(getattr(stop, "__notes__", ())) or "nothing was written"
        note(f"stopped: {done}")
        note(f"to go on: {(again or this_command)()}")
        raise


def this_command(*, skip: int | None = None) -> str:
    """
    Return the command line that is being carried out, to be pasted into a shell, without the login in its URL.

    Args:
        skip:
            The value of ``--skip`` in it, in place of the one given.
    """
    context = click.get_current_context(silent=True)
    given: list[str] = [] if context is None else context.meta.get(_ARGUMENTS, [])
    shown = []
    for before, argument in zip(["", *given], given, strict=False):
        if skip is not None and (argument == "--skip" or argument.startswith("--skip=") or before == "--skip"):
            continue
        is_url = argument.startswith("--url=") or before == "--url"
        shown.append(_without_login(argument) if is_url else argument)
    return shlex.join(["es-simhash", *shown, *([] if skip is None else ["--skip", str(skip)])])


def remember_arguments(context: click.Context, arguments: list[str]) -> None:
    """
    Keep the arguments of the command line for :func:`this_command`.
    """
    context.meta[_ARGUMENTS] = list(arguments)


def _without_login(url: str) -> str:
    option, name, rest = url.rpartition("--url=")
    scheme, separator, place = rest.rpartition("://")
    return f"{option}{name}{scheme.rpartition('@')[2]}{separator}{place.rpartition('@')[2]}"
