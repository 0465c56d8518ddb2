"""
Progress in a notebook, where the caller asked for none: a bar below the cell.

A program that runs in a kernel of IPython has imported it; no other program imports it here.
"""

from __future__ import annotations

import sys
import time
from importlib import import_module
from typing import Any

from es_simhash.tables.markup import element
from es_simhash.transport.protocol import OnProgress, Progress

# A call that is over before shows nothing.
_FIRST_SECONDS = 0.5
_STEP_SECONDS = 0.2


def shown_by_default() -> OnProgress | None:
    """
    Return a bar if this program runs in the kernel of a notebook, else ``None``.
    """
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    # The shell of a terminal has no kernel.
    return Bar(import_module("IPython.display")) if getattr(shell, "kernel", None) is not None else None


class Bar:
    """
    A bar below the cell of a notebook.

    Args:
        display:
            The module ``IPython.display``.
    """

    def __init__(self, display: Any) -> None:
        self._display = display
        self._handle: Any = None
        self._due = time.monotonic() + _FIRST_SECONDS

    def __call__(self, progress: Progress) -> None:
        """Show *progress*, at most five times a second, but the end of a step always."""
        is_end = self._handle is not None and progress.done == progress.total
        if time.monotonic() < self._due and not is_end:
            return
        self._due = time.monotonic() + _STEP_SECONDS
        shown = self._display.HTML(bar_html(progress))
        if self._handle is None:
            self._handle = self._display.display(shown, display_id=True)
        else:
            self._handle.update(shown)


def bar_html(progress: Progress) -> str:
    """
    Return *progress* as HTML.

    Examples:
        >>> bar_html(Progress(5, None, "reading documents"))
        '<div>reading documents: 5</div>'
    """
    done = f"{progress.step}: {progress.done:,}"
    if not progress.total:
        return element("div", done)
    bar = element("progress", value=progress.done, max=progress.total)
    return element("div", bar, f" {done} of {progress.total:,}")
