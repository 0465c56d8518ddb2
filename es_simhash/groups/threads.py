"""
Streams of results from several threads, in the order of one thread.

numpy lets other threads run while it sorts and compares, so threads use all cores. Nothing here knows what is computed.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from threading import Condition, Thread
from typing import Generic, TypeVar

_T = TypeVar("_T")

# Results of one task that wait at most.
_WAITING = 4


def usable_cores() -> int:
    """
    Return how many cores this process may use.
    """
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def in_order(tasks: Sequence[Callable[[], Iterator[_T]]], threads: int) -> Iterator[_T]:
    """
    Yield what all *tasks* yield, the first task's results first, while up to so many *threads* run tasks.

    Few results wait at a time. An exception of a task is raised in its place. When the caller stops early, the threads
    end at the next result of their tasks.
    """
    if threads <= 1 or len(tasks) <= 1:
        for task in tasks:
            yield from task()
        return
    stream = _Stream(tasks, threads)
    try:
        yield from stream.results()
    finally:
        stream.close()


class _Stream(Generic[_T]):
    """Tasks, the threads that run them, and their results."""

    def __init__(self, tasks: Sequence[Callable[[], Iterator[_T]]], threads: int) -> None:
        self._tasks = tasks
        self._changed = Condition()
        self._results: list[deque[_T]] = [deque() for _ in tasks]
        self._errors: dict[int, BaseException] = {}
        self._finished: set[int] = set()
        self._started = 0
        self._read = 0
        # How far a task may run ahead of the one that is read.
        self._ahead = 2 * threads
        self._is_closed = False
        self._threads = [Thread(target=self._run, daemon=True) for _ in range(min(threads, len(tasks)))]
        for thread in self._threads:
            thread.start()

    def results(self) -> Iterator[_T]:
        for number, waiting in enumerate(self._results):
            with self._changed:
                self._read = number
                self._changed.notify_all()
            while True:
                with self._changed:
                    self._changed.wait_for(lambda: waiting or number in self._finished)  # noqa: B023
                    if not waiting:
                        break
                    result = waiting.popleft()
                    self._changed.notify_all()
                yield result
            if number in self._errors:
                raise self._errors[number]

    def close(self) -> None:
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        while (number := self._next()) is not None:
            try:
                for result in self._tasks[number]():
                    if not self._put(number, result):
                        return
            except BaseException as error:  # noqa: BLE001 -- raised where the results are read
                self._errors[number] = error
            with self._changed:
                self._finished.add(number)
                self._changed.notify_all()

    def _next(self) -> int | None:
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or self._started < self._read + self._ahead)
            if self._is_closed or self._started == len(self._tasks):
                return None
            self._started += 1
            return self._started - 1

    def _put(self, number: int, result: _T) -> bool:
        """Add a result once there is room; False where nobody wants it any more."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or len(self._results[number]) < _WAITING)
            self._results[number].append(result)
            self._changed.notify_all()
            return not self._is_closed
