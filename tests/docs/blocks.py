"""
The code blocks of a Markdown file, what they say they print, and the scripts of tools/.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(name: str, language: str) -> list[str]:
    """Return the blocks of *language* in the file *name*, in order."""
    text = (ROOT / name).read_text(encoding="utf-8")
    return [body for kind, body in _BLOCK.findall(text) if kind == language]


def run(block: str, namespace: dict) -> None:
    """
    Execute *block*, and compare what it prints with its lines that begin with ``# ->``.
    """
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(block, "README", "exec"), namespace)  # noqa: S102 -- the project's own examples
    promised = [line.removeprefix("# ->").removeprefix(" ") for line in block.splitlines() if line.startswith("# ->")]
    found = printed.getvalue().splitlines()
    if found != promised:
        raise AssertionError(f"printed {found}, not {promised}")


def load_tool(name):
    """Return a script of tools/ as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
