"""
Bring what docstrings say into ``docs/json.md``. ``make docs`` runs it, and tests compare the page with answers.

Below a heading of the page, a comment may name a class, and with ``but`` the fields that the page itself describes. The
text of every other field that the class's docstring has is written into its row; rows are added and removed by hand.
"""

# ruff: noqa: INP001 - a script, not part of a package
from __future__ import annotations

import importlib
import inspect
import re
import sys
from pathlib import Path

from docstring_parser.google import parse

sys.path.insert(0, str(Path(__file__).parents[1]))  # the package beside this file, not the one that is installed

TARGET = Path(__file__).parents[1] / "docs" / "json.md"
_CLASS = re.compile(r"<!-- (es_simhash[\w.]+)(?: but ([\w ]+))? -->")
_ROW = re.compile(r"\| `(\w+)` \| .*?( See \[[^]]+\]\([^)]+\)\.)? \|")


def texts_of(name: str) -> dict[str, str]:
    """Return what the docstrings of a class say of its attributes and properties, as Markdown in a cell."""
    module, _, name = name.rpartition(".")
    cls = getattr(importlib.import_module(module), name)
    said = {member: value.__doc__ or "" for member, value in inspect.getmembers(cls) if isinstance(value, property)}
    for base in reversed(cls.__mro__):
        for entry in parse(base.__doc__ or "").params:
            said |= dict.fromkeys(entry.arg_name.split(", "), entry.description or "")
    return {member: _cell(text) for member, text in said.items()}


def _cell(text: str) -> str:
    """Return the first sentence of a docstring as Markdown."""
    text = re.sub(r":\w+:`([^`]+)`|``([^`]+)``|\*(\w+)\*", r"`\1\2\3`", " ".join(text.split()))
    for python, plain in {"`None`": "`null`", "`True`": "`true`", "`False`": "`false`", "|": "\\|"}.items():
        text = text.replace(python, plain)
    return re.split(r"(?<=[.])\s", text)[0]


def build_text() -> str:
    """Return the page with what the docstrings say now."""
    lines, texts = [], dict[str, str]()
    for line in TARGET.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            texts = {}
        elif named := _CLASS.fullmatch(line):
            but = (named[2] or "").split()
            texts = {field: text for field, text in texts_of(named[1]).items() if field not in but}
        row = _ROW.fullmatch(line)
        lines.append(f"| `{row[1]}` | {texts[row[1]]}{row[2] or ''} |" if row and row[1] in texts else line)
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    TARGET.write_text(build_text(), encoding="utf-8")
