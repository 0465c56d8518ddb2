"""
Write ``client/sync_methods/`` and ``client/async_methods/`` from ``client/methods/``; ``--check`` only compares.

``make client`` runs it, and ``make check`` checks. For the sync client, ``expand_options`` writes the options out. For
the async client there is then little to change, as the methods hand an operation to their base class: names of base
classes and iterators, and ``async`` and ``await`` around ``self._run``.
The tools that are made for this (unasync, and the converters of several drivers) go the other way: they take ``async``
and ``await`` out of an async source. Then the async client would be the one that is written and read.
"""

# ruff: noqa: INP001, T201 - a script, not part of a package
from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from expand_options import expand

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "es_simhash" / "client" / "methods"
TARGETS = SOURCES.with_name("sync_methods"), SOURCES.with_name("async_methods")
NOTE = "# Generated from methods/{} by tools/generate_clients.py: change that file, then run `make client`.\n"

RENAMED = {"Generator": "AsyncGenerator", "Iterator": "AsyncIterator", "SyncBase": "AsyncBase"}

# A replacement of the source from one position (line, byte) to another.
Edit = tuple[tuple[int, int], tuple[int, int], str]


def convert(source: str) -> str:
    """Return the async form of a module of sync methods, not yet formatted."""
    tree = ast.parse(source)
    classes = {f"Async{node.name}": node.name for node in tree.body if isinstance(node, ast.ClassDef)}
    names = RENAMED | {old: new for new, old in classes.items()}
    edits = [edit for node in ast.walk(tree) for edit in _edits(node, names)]
    lines = source.encode().splitlines(keepends=True)
    for (line, start), (last_line, end), text in sorted(edits, reverse=True):
        tail = lines[last_line - 1][end:]
        lines[line - 1 : last_line] = [lines[line - 1][:start] + text.encode() + tail]
    return b"".join(lines).decode()


def _edits(node: ast.AST, names: dict[str, str]) -> Iterator[Edit]:
    match node:
        case ast.ClassDef(name=name):
            start = (node.lineno, len("class "))
            yield start, (node.lineno, start[1] + len(name)), names[name]
        case ast.FunctionDef() if any(map(_is_run, ast.walk(node))):
            yield (node.lineno, node.col_offset), (node.lineno, node.col_offset), "async "
        case ast.Call() if _is_run(node):
            yield (node.lineno, node.col_offset), (node.lineno, node.col_offset), "await "
        case ast.ImportFrom(module="collections.abc"):
            wanted = {names.get(alias.name, alias.name) for alias in node.names} | {"AsyncIterable"}
            yield *_span(node), f"from collections.abc import {', '.join(sorted(wanted))}"
        case ast.ImportFrom():
            for alias in node.names:
                if alias.name in names:
                    yield *_span(alias), names[alias.name]
        case ast.Subscript(value=ast.Name(id="Generator"), slice=ast.Tuple(elts=[item, *_])):
            yield *_span(node), f"AsyncGenerator[{ast.unparse(item)}, None]"
        case ast.arg(annotation=ast.Subscript(value=ast.Name(id="Iterable"), slice=ast.Name(id="Any")) as annotation):
            yield *_span(annotation), "Iterable[Any] | AsyncIterable[Any]"
        case ast.Name(id=name) if name in names and name != "Generator":
            yield *_span(node), names[name]
        case ast.Constant(value=str(name)) if name in names:
            yield *_span(node), f'"{names[name]}"'


def _is_run(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func) == "self._run"


def _span(node: ast.expr | ast.stmt | ast.alias) -> tuple[tuple[int, int], tuple[int, int]]:
    last = node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
    return (node.lineno, node.col_offset), last


def build_files() -> dict[Path, str]:
    """Return the content of each generated file, formatted."""
    files = {}
    for path in sorted(SOURCES.glob("[!_]*.py")):
        expanded = expand(path.read_text(encoding="utf-8"))
        for folder, text in zip(TARGETS, (expanded, convert(expanded)), strict=True):
            files[folder / path.name] = _format(NOTE.format(path.name) + text, folder / path.name)
    return files


def _format(text: str, target: Path) -> str:
    for command in (["check", "--select", "I,F401", "--fix-only", "--quiet"], ["format", "--quiet"]):
        text = subprocess.run(  # noqa: S603 - our own arguments
            [sys.executable, "-m", "ruff", *command, "--stdin-filename", str(target), "-"],
            input=text,
            stdout=subprocess.PIPE,
            encoding="utf-8",
            cwd=ROOT,
            check=True,
        ).stdout
    return text


def main() -> int:
    """Write the files, or with ``--check`` return 1 if they are not what would be written."""
    files = build_files()
    if "--check" in sys.argv[1:]:
        held = {path: path.read_text(encoding="utf-8") for folder in TARGETS for path in folder.glob("[!_]*.py")}
        different = sorted(
            str(path.relative_to(ROOT)) for path in files.keys() | held if held.get(path) != files.get(path)
        )
        if different:
            print(f"these files differ from client/methods and its classes of options: {different}: run `make client`")
        return int(bool(different))
    for path, text in files.items():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
