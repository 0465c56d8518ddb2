"""Progress in a notebook: shown by default in a kernel of IPython, nowhere else, and not too often."""

from __future__ import annotations

import sys
import types

import pytest

from es_simhash import Progress
from es_simhash.client import base as notebook
from es_simhash.client.base import Bar, shown_by_default


class Display:
    """Stands for ``IPython.display``; keeps what it shows."""

    HTML = str

    def __init__(self):
        self.shown = []

    def display(self, html, *, display_id):
        assert display_id
        self.update(html)
        return self

    def update(self, html):
        self.shown.append(html)


@pytest.mark.parametrize(("shell", "is_shown"), [(None, False), (object(), False), ("kernel", True)])
def test_only_a_kernel_shows_it(monkeypatch, shell, is_shown):
    """A script has no shell, and the shell of a terminal has no kernel."""
    shell = types.SimpleNamespace(kernel=object()) if shell == "kernel" else shell
    module = types.ModuleType("IPython")
    module.get_ipython = lambda: shell
    monkeypatch.setitem(sys.modules, "IPython", module)
    monkeypatch.setitem(sys.modules, "IPython.display", types.ModuleType("IPython.display"))
    assert isinstance(shown_by_default(), Bar) == is_shown


def test_without_ipython_nothing_is_imported(monkeypatch):
    """A program outside a notebook does not pay for it."""
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    assert shown_by_default() is None
    assert "IPython" not in sys.modules


def test_a_bar_is_one_display_that_changes(monkeypatch):
    """Short calls show nothing; then a few times a second, and the end of each step."""
    clock = types.SimpleNamespace(now=0.0)
    monkeypatch.setattr(notebook.time, "monotonic", lambda: clock.now)
    display = Display()
    bar = Bar(display)
    for now, done in ((0.1, 10), (0.6, 20), (0.65, 30), (0.9, 40), (0.95, 100)):
        clock.now = now
        bar(Progress(done, 100, "reading <texts>"))
    assert [html.partition("</progress> ")[2] for html in display.shown] == [
        "reading &lt;texts&gt;: 20 of 100</div>",
        "reading &lt;texts&gt;: 40 of 100</div>",
        "reading &lt;texts&gt;: 100 of 100</div>",
    ]
