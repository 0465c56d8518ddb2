"""
Write ``client/sync_methods/`` and ``client/async_methods/`` from ``client/methods/``; ``--check`` only compares.

``make client`` runs it, and ``make check`` checks. For the sync client the options are written out: a keyword-only
argument without default whose type is a class of options stands for its public fields, and a field that is itself such
a class for its own. ``Annotated[LookupOptions, "only preset verify"]`` takes some.
Below Args, the entry of such an argument stands for one entry that names its fields, but for those with an entry of
their own; Args that end with ``...`` have an entry for each argument that lacks one. A method checks its flags.

For the async client there is then little to change, as the methods hand an operation to their base class. What is made
for this (unasync, and the converters of several drivers) goes the other way: it takes ``async`` and ``await`` out of an
async source, and writes no options out.
"""

# ruff: noqa: INP001, T201 - a script, not part of a package
from __future__ import annotations

import ast
import builtins
import copy
import dataclasses
import importlib
import inspect
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # the package beside this file, not the one that is installed

from es_simhash.arguments import Parameter, entries_of, parameters, public_fields, stands_for

SOURCES = ROOT / "es_simhash" / "client" / "methods"
TARGETS = SOURCES.with_name("sync_methods"), SOURCES.with_name("async_methods")
NOTE = "# Generated from methods/{} by tools/generate_clients.py: change that file, then run `make client`.\n"
USUAL = {
    "index": "Name, list of names, pattern, alias or data stream.",
    "progress": "Is called with a :class:`Progress` after each part of the work.",
}
"""What most methods say of an argument."""
RENAMED = {"Generator": "AsyncGenerator", "Iterator": "AsyncIterator", "SyncBase": "AsyncBase"}


def imports_of(body: list[ast.stmt]) -> dict[str, str]:
    """Return the statement that imports each name."""
    nodes = [node for statement in body for node in ast.walk(statement) if isinstance(node, ast.ImportFrom)]
    return {
        alias.asname or alias.name: f"from {node.module} import {ast.unparse(alias)}"
        for node in nodes
        for alias in node.names
    }


def classes_of(options: type[Any]) -> Iterator[type[Any]]:
    """Yield a class of options, and those that its fields stand for."""
    yield options
    for field in public_fields(options):
        if inner := stands_for(field):
            yield from classes_of(inner)


def spread(entries: dict[str, str], nested: dict[str, dict[str, str]]) -> dict[str, str]:
    """Return *entries* with those of the arguments *nested*, which stand for fields, as entries of these."""
    found: dict[str, str] = {}
    for name, text in entries.items():
        left = {key: said for key, said in nested.get(name, {}).items() if key.split(", ")[0] not in entries}
        found |= {name: text} if name not in nested else left if text == "..." else {", ".join(left): text}
    return found


def entries_in(options: type[Any]) -> dict[str, str]:
    """Return what the docstring of a class of options says below Args, and those of the classes in its fields."""
    nested = {field.name: entries_in(inner) for field in public_fields(options) if (inner := stands_for(field))}
    found = spread(entries_of(options), nested)
    explained = {name for key in found for name in key.split(", ")}
    if lacking := [name for name in parameters(options) if name not in explained]:
        raise LookupError(f"{options.__name__}: no entry below Args for {lacking}")
    return found


def build(options: type[Any], names: set[str]) -> str:
    """Return the expression that makes an object of the arguments *names*."""
    given = []
    for field in public_fields(options):
        if inner := stands_for(field):
            given.append(f"{field.name}={build(inner, names)}")
        elif field.name in names:
            given.append(f"{field.name}={field.name}")
    return f"{options.__name__}({', '.join(given)})"


def imports_for(options: type[Any], annotations: str) -> Iterator[str]:
    """Yield the imports of what *annotations* of the fields of a class of options name."""
    known: dict[str, str] = {}
    for module in {base.__module__ for cls in classes_of(options) for base in cls.__mro__[:-1]}:
        tree = ast.parse(inspect.getsource(sys.modules[module]))
        defined = {name: f"from {module} import {name}" for name in vars(sys.modules[module])}
        known |= {name: line for name, line in (defined | imports_of(tree.body)).items() if name not in known}
    for node in ast.walk(ast.parse(annotations)):
        if isinstance(node, ast.Name) and not hasattr(builtins, node.id):
            yield known[node.id]


class Method:
    """A method, and which of its arguments stand for the fields of a class of options."""

    def __init__(self, node: ast.FunctionDef, imports: dict[str, str]) -> None:
        self.node = node
        self.classes: dict[str, type[Any]] = {}
        self.taken: dict[str, dict[str, Parameter]] = {}
        for argument, default in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True):
            found = re.fullmatch(r"(?:Annotated\[)?(\w+)(?:, 'only (.+)'\])?", ast.unparse(argument.annotation))
            if default is None and found and found[1] in imports:
                module = imports[found[1]].split()[1]
                options = getattr(importlib.import_module(module), found[1])
                if dataclasses.is_dataclass(options):
                    self._take(argument.arg, options, (found[2] or "").split())

    def _take(self, argument: str, options: type[Any], names: list[str]) -> None:
        fields = parameters(options)
        if unknown := {*names} - fields.keys():
            raise LookupError(f"{self.node.name}: {options.__name__} has no {unknown}")
        self.classes[argument] = options
        self.taken[argument] = {name: fields[name] for name in fields if not names or name in names}

    def expand(self, imported: set[str]) -> None:
        """Write the options out, and a check of the flags; *imported*: names that need no import in the body."""
        arguments, flags = self.node.args, []
        signature = ast.parse("def f(*, _): ...").body[0].args  # type: ignore[attr-defined] -- a def
        signature.kwonlyargs, signature.kw_defaults = [], []
        for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
            for field in self.taken.get(argument.arg, {}).values():
                signature.kwonlyargs.append(ast.arg(field.name, ast.parse(field.annotation, mode="eval").body))
                signature.kw_defaults.append(ast.parse(repr(field.default), mode="eval").body)
            if argument.arg not in self.classes:
                signature.kwonlyargs.append(argument)
                signature.kw_defaults.append(default)
        flags = [each.arg for each in signature.kwonlyargs if ast.unparse(each.annotation) == "bool"]
        docstring, *body = self.node.body
        added = [
            f"from {cls.__module__} import {cls.__name__}"
            for options in self.classes.values()
            for cls in classes_of(options)
            if cls.__name__ not in imported
        ]
        while isinstance(body[0], ast.ImportFrom):
            added.append(ast.unparse(body.pop(0)))
        if flags:
            added.append(f"self._check_flags({', '.join(f'{flag}={flag}' for flag in flags)})")
        added += [f"{name} = {build(cls, {*self.taken[name]})}" for name, cls in self.classes.items()]
        self._write_docstring(docstring.value)  # type: ignore[attr-defined] -- each has one
        arguments.kwonlyargs, arguments.kw_defaults = signature.kwonlyargs, signature.kw_defaults
        self.node.body = [docstring, *ast.parse("\n".join(added)).body, *body]

    def _write_docstring(self, docstring: ast.Constant) -> None:
        text = inspect.cleandoc(docstring.value)
        entries = entries_of(text)
        if not entries:
            return
        names = [argument.arg for argument in [*self.node.args.args[1:], *self.node.args.kwonlyargs]]
        if entries.pop("...", None) is not None:
            entries = {name: "..." if name in self.taken else USUAL.get(name, "") for name in names} | entries
        taken = {
            name: {key: said for key, said in entries_in(options).items() if key.split(", ")[0] in self.taken[name]}
            for name, options in self.classes.items()
        }
        places = [field for name in names for field in self.taken.get(name, [name])]
        written = sorted(spread(entries, taken).items(), key=lambda entry: places.index(entry[0].split(", ")[0]))
        lines = [f"    {name}:\n{textwrap.indent(said, ' ' * 8)}\n" for name, said in written]
        text = re.sub(r"(?<=\nArgs:\n)(    .*\n?|\n(?=    ))+", lambda _: "".join(lines), text)
        docstring.value = "\n" + textwrap.indent(text.rstrip(), " " * 8) + "\n" + " " * 8


def expand(tree: ast.Module) -> ast.Module:
    """Return a module of methods with all arguments written out."""
    imports = imports_of(tree.body)
    head = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    methods = [Method(node, imports) for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    needed: set[str] = set()
    for method in methods:
        for name, options in method.classes.items():
            annotations = "\n".join(field.annotation for field in method.taken[name].values())
            needed |= {line for line in imports_for(options, annotations) if line not in imports.values()}
        method.expand({*imports_of(head)})
    guarded = [node.body for node in tree.body if isinstance(node, ast.If)]  # if TYPE_CHECKING
    place, at = (guarded[0], 0) if guarded else (tree.body, 2)  # behind the docstring and the import from __future__
    place[at:at] = ast.parse("\n".join(sorted(needed))).body
    return tree


class ToAsync(ast.NodeTransformer):
    """Makes the async form of a module of sync methods."""

    def __init__(self, tree: ast.Module) -> None:
        self.names = RENAMED | {cls.name: f"Async{cls.name}" for cls in tree.body if isinstance(cls, ast.ClassDef)}

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        node.name = self.names[node.name]
        return self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.generic_visit(node)
        awaits = any(isinstance(each, ast.Await) for each in ast.walk(node))
        return ast.copy_location(ast.AsyncFunctionDef(**vars(node)), node) if awaits else node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        return ast.Await(node) if ast.unparse(node.func) == "self._run" else node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST:
        for alias in node.names:
            alias.name = self.names.get(alias.name, alias.name)
        node.names += [ast.alias("AsyncIterable")] if node.module == "collections.abc" else []
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        if ast.unparse(node.value) == "Generator":
            node.slice.elts[2:] = []  # type: ignore[attr-defined] -- a tuple
        return self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        if node.annotation and ast.unparse(node.annotation) == "Iterable[Any]":
            node.annotation = ast.parse("Iterable[Any] | AsyncIterable[Any]", mode="eval").body
        return node

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.Name(self.names.get(node.id, node.id))

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        return ast.Constant(self.names.get(node.value, node.value)) if isinstance(node.value, str) else node


def build_files() -> dict[Path, str]:
    """Return the content of each generated file, formatted."""
    files = {}
    for path in sorted(SOURCES.glob("[!_]*.py")):
        tree = expand(ast.parse(path.read_text(encoding="utf-8")))
        for folder, made in zip(TARGETS, (tree, ToAsync(tree).visit(copy.deepcopy(tree))), strict=True):
            target = folder / path.name
            files[target] = _format(NOTE.format(path.name) + ast.unparse(ast.fix_missing_locations(made)), target)
    return files


def _format(text: str, target: Path) -> str:
    for command in (["check", "--select", "I,F401,UP034", "--fix-only", "--quiet"], ["format", "--quiet"]):
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
    held = {path: path.read_text(encoding="utf-8") for folder in TARGETS for path in folder.glob("[!_]*.py")}
    different = sorted(str(path) for path in files.keys() | held if held.get(path) != files.get(path))
    if different and "--check" in sys.argv[1:]:
        print(f"these files differ from client/methods and its classes of options: {different}: run `make client`")
        return 1
    for path, text in files.items():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
