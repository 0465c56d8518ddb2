"""Progress of a long command on stderr, with rate and time left: a bar on a terminal, elsewhere lines."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

from es_simhash.cli.output import console, count, note

_STEP_SECONDS = 0.1
LINE_SECONDS = 30.0


class Tracker:
    """
    A progress bar on stderr, as a context manager; a line every *line_seconds* if stderr is not a terminal.

    *total*: all the work, in bytes or documents; ``None`` if it is not known yet.
    """

    def __init__(self, description: str, *, total: int | None, line_seconds: float = LINE_SECONDS) -> None:
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn  # noqa: PLC0415 -- slow to import

        screen = console(stderr=True)
        self.documents = 0
        self._description, self._total, self._line_seconds = description, total, line_seconds
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
        """Count *documents* more, and show that *completed* of *total* is done. Redraws at most every 0.1 seconds."""
        self.documents += documents
        self._total = total or self._total
        is_line = bool(self._progress.disable)
        if time.monotonic() - self._shown < (self._line_seconds if is_line else _STEP_SECONDS):
            return
        self._shown = time.monotonic()
        if is_line:
            note(progress_line(self._description, self.documents, self.seconds, completed, self._total))
            return
        rate = f"{self.documents / self.seconds:,.0f}"
        self._progress.update(self._task, completed=completed, total=total, documents=f"{self.documents:,}", rate=rate)


def progress_line(description: str, documents: int, seconds: float, completed: int, total: int | None) -> str:
    """
    Return one line about the progress so far; *completed* and *total* need not count documents.

    Examples:
        >>> progress_line("ingesting", 12_000, 60.0, 250, 1_000)
        'ingesting: 12,000 documents in 60 s, 200/s; 25 %, about 180 s left'
    """
    rate = documents / seconds if seconds else 0.0
    line = f"{description}: {count(documents, 'document')} in {seconds:,.0f} s, {rate:,.0f}/s"
    if not total:
        return line
    share = min(1.0, completed / total)
    rest = f", about {seconds * (1 - share) / share:,.0f} s left" if share else ""
    return f"{line}; {share:.0%}{rest}".replace("%", " %")
