"""
Progress of a long command: a bar on stderr with rate and time left.
"""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

from es_simhash.cli.output import console

__all__ = ["Tracker"]

_STEP_SECONDS = 0.1


class Tracker:
    """
    A progress bar on stderr, as a context manager. Shows nothing if stderr is not a terminal.

    Args:
        description:
            What the command is doing.
        total:
            All the work, in bytes or documents; ``None`` if it is not known yet.
    """

    def __init__(self, description: str, *, total: int | None) -> None:
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn  # noqa: PLC0415 -- slow to import

        screen = console(stderr=True)
        self.documents = 0
        self._started = self._shown = time.monotonic()
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[documents]} documents, {task.fields[rate]}/s"),
            TimeRemainingColumn(compact=True),
            console=screen,
            disable=not screen.is_terminal,
            transient=True,
        )
        self._task = self._progress.add_task(description, total=total, documents="0", rate="0")

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._progress.disable:  # rich 13 prints an empty line for a bar that was never shown
            self._progress.stop()

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._started

    def advance(self, documents: int, *, completed: int, total: int | None = None) -> None:
        """
        Count *documents* more, and show that *completed* of *total* is done. Redraws at most every 0.1 seconds.
        """
        self.documents += documents
        if time.monotonic() - self._shown >= _STEP_SECONDS:
            self._shown = time.monotonic()
            rate = f"{self.documents / self.seconds:,.0f}"
            self._progress.update(
                self._task, completed=completed, total=total, documents=f"{self.documents:,}", rate=rate
            )
