"""
What the commands print: data on stdout; messages and progress on stderr. Texts of users go through :func:`visible`.
Rich is imported where it is used.
"""

from __future__ import annotations

import json
import logging
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

from es_simhash.cli.wording import in_shell
from es_simhash.errors import count as count  # noqa: PLC0414 -- what commands print with
from es_simhash.tables.hidden import escape_in_json, visible as visible  # noqa: PLC0414 -- as above
from es_simhash.tables.notebook import Marked, Part, Sheet, percent
from es_simhash.tables.tabular import Tabular, sheets_of
from es_simhash.tables.terminal import draw_marked, draw_sheet

if TYPE_CHECKING:
    from rich.console import Console

    from es_simhash import Progress

PARTLY = 3
"""The exit code where some documents were refused, or some lines are void, and the others are done."""

SHOWN_FAILURES = 10

DRY = "; dry run: nothing was written"


class Output:
    """How the command that runs prints: its answers as JSON or as tables, its messages as JSON or as sentences."""

    as_json: ClassVar[bool] = False
    says_json: ClassVar[bool] = False


def choose_output(*, wants_json: bool) -> None:
    """
    Let answers be JSON where no person reads them: with ``--json``, and in a pipe or a file.
    What is no terminal may say that it shows what one shows, such as a pager: TTY_COMPATIBLE, as rich has it.
    """
    is_terminal = {"0": False, "1": True}.get(os.environ.get("TTY_COMPATIBLE", ""), sys.stdout.isatty())
    Output.as_json, Output.says_json = wants_json or not is_terminal, wants_json


def to_json(value: Any, *, indent: int | None = None) -> str:
    """Return *value* as JSON that is safe to show on a terminal: it means the same, with more escapes."""
    # A stdout that is not UTF-8 cannot print every character; JSON has escapes for those too.
    is_utf8 = (getattr(sys.stdout, "encoding", None) or "").lower().replace("-", "") == "utf8"
    return escape_in_json(json.dumps(value, ensure_ascii=not is_utf8, indent=indent))


def print_json(value: Any, *, indent: int | None = None) -> None:
    """Print *value* as JSON: on one line, so that several values make JSON Lines, or indented."""
    print_text(to_json(value, indent=indent))


def print_text(text: str) -> None:
    if sys.stdout.isatty():
        hide_progress()
    # print would flush each line, which costs most of the time when there are a million lines.
    sys.stdout.write(f"{text}\n")


def print_line(text: str) -> None:
    print_text(visible(in_shell(text)))


def note(message: str) -> None:
    """Print a message on stderr, on one line; with ``--json`` as ``{"note": {"message": ...}}``."""
    _say("note", message, prefix="")


def warn(message: str, **data: Any) -> None:
    """Print a warning on stderr, on one line; with ``--json`` as ``{"warning": {"message": ...}}``, with *data*."""
    _say("warning", message, **data)


def error(message: str, *, kind: str, **data: Any) -> None:
    """
    Print an error on stderr, on one line; with ``--json`` as ``{"error": {"kind": ..., "message": ...}}``.
    *kind* and *data*, such as an id, are for programs and are printed only with ``--json``.
    """
    _say("error", message, kind=kind, **data)


def stopped(message: str) -> None:
    """Print how far a command came that is stopped: with ``--json`` an error, for people a sentence."""
    _say("error", message, prefix="", kind="stopped")


# A user and a password in a URL, which may stand where no URL belongs.
_LOGIN = re.compile(r"(?<=://)[^\s/@]*:[^\s@]*@")


def _say(name: str, message: str, *, prefix: str | None = None, **data: Any) -> None:
    hide_progress()
    data |= {"message": in_shell(message)}
    data = {name: _LOGIN.sub("***@", value) if isinstance(value, str) else value for name, value in data.items()}
    prefix = f"{name}: " if prefix is None else prefix
    line = to_json({name: data}) if Output.says_json else visible(f"{prefix}{data['message']}")
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def settled(index: str, *, is_settled: bool) -> int:
    """Return the exit code of a command, and say so where the index *is_settled* not."""
    if not is_settled:
        error("documents changed meanwhile: run it again", kind="unsettled", indices=[index])
    return 0 if is_settled else PARTLY


class _Saying(logging.Handler):
    """Prints the warnings of the library, and what it says of a grouping that it records, if *says_grouping*."""

    def __init__(self, *, says_grouping: bool) -> None:
        super().__init__(logging.INFO)
        self._says_grouping = says_grouping

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno >= logging.WARNING:
            warn(record.getMessage())
        elif self._says_grouping and record.name == "es_simhash.grouping":
            note(record.getMessage())


@contextmanager
def saying_what_is_logged(*, says_grouping: bool) -> Iterator[None]:
    """Print what the library logs for people; of a grouping that it records only if *says_grouping*."""
    logger, handler = logging.getLogger("es_simhash"), _Saying(says_grouping=says_grouping)
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(handler.level)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)


class Failed(Protocol):
    """A failure of one part of the work: its fields, among them its kind and reason, and a sentence for people."""

    def to_dict(self) -> dict[str, Any]:
        """Return its fields as plain JSON values."""


def print_failures(failures: Sequence[Failed], *, total: int | None = None, advice: str = "run it again") -> None:
    """
    Print the first failures as errors, and how many more there are, with *advice* about those.
    *total*: number of all failures, where *failures* are only the first of them.
    """
    shown = failures[:SHOWN_FAILURES]
    for failure in shown:
        error(str(failure), **failure.to_dict())
    rest = (len(failures) if total is None else total) - len(shown)
    if rest > 0:
        error(f"and {rest:,} more: {advice}", kind="more", number=rest)


def plain_failures(failures: Iterable[Failed]) -> dict[str, Any]:
    """Return the failures of a result as its item ``failures``."""
    return {"failures": [failure.to_dict() for failure in failures]}


def show(result: Any, *lines: str, sheets: Iterable[Part] = (), **how: Any) -> None:
    """
    Print a *result*: as JSON, or its tables, or these *sheets*, and *lines* for people.
    It is a dict, or has ``to_dict``; *how*: as for :func:`print_sheets`.
    """
    if Output.as_json:
        print_json(result if isinstance(result, dict) else result.to_dict())
        return
    title, parts = sheets_of(result) if isinstance(result, Tabular) else ("", list(sheets))
    if parts:
        print_sheets(*parts, title=title, **how)
    for line in lines:
        print_line(line)


NARROWEST = 20
"""Columns of the narrowest tables."""


def console(*, stderr: bool = False) -> Console:
    """Return a rich console on stdout or stderr that does not read markup in the texts of users."""
    from rich.console import Console  # noqa: PLC0415 -- see above

    hide_progress()
    # A pager may show what a terminal does, and seldom its colors.
    color: Literal["auto"] | None = "auto" if stderr or sys.stdout.isatty() else None
    screen = Console(stderr=stderr, color_system=color, highlight=False, markup=False, emoji=False)
    screen.width = max(NARROWEST, screen.width)
    return screen


_PATIENCE_SECONDS, _STEP_SECONDS, _LINE_SECONDS = 2.0, 0.1, 30.0


class Tracker:
    """
    Shows the progress of calls on stderr: a bar after two seconds, or a line every 30 seconds if that is no terminal.
    What else is printed takes the bar away until the next step.
    """

    shown: ClassVar[Tracker | None] = None

    def __init__(self) -> None:
        self._step = ""
        self._bar: Any = None
        self._began = self._drawn = 0.0

    def hide(self) -> None:
        """Take the bar away, until there is progress again."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def tell(self, progress: Progress) -> None:
        """Show *progress*, a bar at most every 0.1 seconds."""
        now, is_terminal = time.monotonic(), sys.stderr.isatty()
        if progress.step != self._step:
            self.hide()
            self._step, self._began, self._drawn = progress.step, now, now
        if now - self._drawn < (_STEP_SECONDS if is_terminal else _LINE_SECONDS):
            return
        self._drawn, seconds = now, now - self._began
        done = f"{progress.done:,}, {progress.done / (seconds or 1):,.0f}/s"
        if not is_terminal:
            share = f"; {percent(progress.done / progress.total)}" if progress.total else ""
            note(f"{progress.step}: {done}{share}")
        elif seconds >= _PATIENCE_SECONDS:
            self._draw(progress, done)

    def _draw(self, progress: Progress, done: str) -> None:
        from rich.progress import BarColumn, Progress as Bar, TaskProgressColumn, TextColumn, TimeRemainingColumn  # noqa: PLC0415 -- slow to import

        if self._bar is None:
            columns = [TextColumn("{task.description}"), BarColumn(), TaskProgressColumn()]
            columns += [TextColumn("{task.fields[done]}"), TimeRemainingColumn(compact=True)]
            # What was redirected would go to stderr, broken into lines.
            self._bar = Bar(
                *columns, console=console(stderr=True), transient=True, redirect_stdout=False, redirect_stderr=False
            )
            self._task = self._bar.add_task(progress.step, done="")
            self._bar.start()
        self._bar.update(self._task, completed=progress.done, total=progress.total, done=done)


def hide_progress() -> None:
    if Tracker.shown is not None:
        Tracker.shown.hide()


@contextmanager
def tracking() -> Iterator[Callable[[Progress], None]]:
    """Provide what shows the progress of calls within the block."""
    tracker = Tracker.shown = Tracker()
    try:
        yield tracker.tell
    finally:
        tracker.hide()
        Tracker.shown = None


def print_sheets(*parts: Part, title: str = "", known: Mapping[str, Any] | None = None) -> None:
    """
    Print tables and marked passages that fit the terminal, and say on stderr what was cut.
    *known*: values that need no column, such as the name of the index.
    """
    from rich.text import Text  # noqa: PLC0415 -- most commands do not need rich

    screen = console()
    if title:
        screen.print(Text(visible(title), style="italic"))
    # A dict keeps the order in which values were cut.
    cut: dict[str, None] = {}
    for number, part in enumerate(parts):
        if isinstance(part, Sheet) and part.title and part.rows and (title or number):
            screen.print()
        if isinstance(part, Marked):
            screen.print(draw_marked(part))
        elif isinstance(part, Sheet) and part.rows:
            drawn, names = draw_sheet(part, width=screen.width, known=known)
            cut |= dict.fromkeys(names)
            screen.print(*drawn, sep="\n")
    if named := ", ".join(cut):
        note(f"cut to fit {screen.width} columns: {named}; --json shows all, and so does a wider terminal")
