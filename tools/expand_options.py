"""
Write out classes of options in methods: each public field becomes a keyword argument, with its text in the docstring.

In ``client/methods/`` a keyword-only argument without default whose type is a dataclass stands for its fields, but for
the private ones; each has an entry in the Args of the class's docstring. ``Annotated[LookupOptions, "without size"]``
leaves some out, ``"only preset verify"`` takes some. A field that is itself such a dataclass stands for its fields.

A method checks its flags: arguments and fields of the type ``bool``.

In a docstring the entry of such an argument stands for the entries of its fields: with the text ``...`` for those of
the class, with another text for one entry that names them all. Fields that have an entry of their own are left out.
Args that end with ``...`` stand for an entry of each argument that has none: of its class, or the usual one below.
"""

# ruff: noqa: INP001 - a script, not part of a package
from __future__ import annotations

import ast
import builtins
import dataclasses
import functools
import importlib
import inspect
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

sys.path.insert(0, str(Path(__file__).parents[1]))  # the package beside this file, not the one that is installed

from es_simhash.arguments import entries_of, public_fields, stands_for

Imports: TypeAlias = dict[str, tuple[str, str]]
"""Where each imported name comes from: its module, and its name there."""

INDENT = " " * 12
USUAL = {
    "index": "Name, list of names, pattern, alias or data stream.",
    "progress": "Is called with a :class:`Progress` after each part of the work.",
}
"""What most methods say of an argument."""


def imports_of(tree: ast.AST) -> Imports:
    found: Imports = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {alias.asname or alias.name: (node.module, alias.name) for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name: (alias.name, "") for alias in node.names}
    return found


@functools.cache
def _imports_of_module(module: str) -> Imports:
    return imports_of(ast.parse(inspect.getsource(importlib.import_module(module))))


@dataclasses.dataclass(frozen=True)
class Field:
    """A public field, as it is written, and what its annotation imports; or a class if it stands for other fields."""

    name: str
    annotation: str = ""
    default: str = ""
    imports: Imports = dataclasses.field(default_factory=dict)
    nested: OptionsClass | None = None


class OptionsClass:
    """A class of options, and the text that it is written in."""

    def __init__(self, cls: type[Any]) -> None:
        self.cls = cls
        self.name = cls.__name__
        self.module = cls.__module__
        self._text = entries_of(cls)
        named = {name for names in self._text for name in names.split(", ")}
        if lacking := [field.name for field in public_fields(cls) if field.name not in named]:
            raise LookupError(f"{self.name}: no entry below Args for {lacking}")

    def fields(self) -> list[Field]:
        return [self._field(field) for field in public_fields(self.cls)]

    def leaves(self) -> list[Field]:
        """Return the public fields, with those of a nested class in its place."""
        return [leaf for field in self.fields() for leaf in (field.nested.leaves() if field.nested else [field])]

    def entries(self) -> dict[str, str]:
        """Return the entries of the docstring's Args, those of nested classes in their place."""
        nested = {field.name: field.nested for field in self.fields() if field.nested}
        return expand_entries(self._text, nested, {})

    def build(self, names: set[str]) -> str:
        """Return the expression that makes an object of the arguments *names*."""
        given = []
        for field in self.fields():
            if field.nested:
                given.append(f"{field.name}={field.nested.build(names)}")
            elif field.name in names:
                given.append(f"{field.name}={field.name}")
        return f"{self.name}({', '.join(given)})"

    def classes(self) -> Imports:
        """Return the imports that :meth:`build` needs."""
        found = {self.name: (self.module, self.name)}
        for field in self.fields():
            found |= field.nested.classes() if field.nested else {}
        return found

    def _field(self, field: dataclasses.Field[Any]) -> Field:
        if inner := stands_for(field):
            return Field(field.name, nested=OptionsClass(inner))
        owner = next(cls for cls in self.cls.__mro__ if field.name in vars(cls).get("__annotations__", {}))
        known, annotation = _imports_of_module(owner.__module__), str(field.type)
        names = {node.id for node in ast.walk(ast.parse(annotation)) if isinstance(node, ast.Name)}
        imports = {name: known.get(name, (owner.__module__, name)) for name in names if not hasattr(builtins, name)}
        return Field(field.name, annotation, repr(field.default), imports)


def expand_entries(
    entries: dict[str, str], classes: dict[str, OptionsClass], names: dict[str, set[str]]
) -> dict[str, str]:
    """Return *entries* with those of the arguments *classes* expanded; *names*: the fields of entry that are taken."""
    explained = {name for key in entries for name in key.split(", ")}
    found: dict[str, str] = {}
    for key, text in entries.items():
        if key not in classes:
            found[key] = text
            continue
        taken = names.get(key) or {leaf.name for leaf in classes[key].leaves()}
        left = [leaf.name for leaf in classes[key].leaves() if leaf.name in taken - explained]
        if text == "...":
            found |= {name: entry for name, entry in classes[key].entries().items() if name.split(", ")[0] in left}
        else:
            found[", ".join(left)] = text
    return found


def expand(source: str) -> str:
    """Return a module of methods with all arguments written out, not yet formatted."""
    tree = ast.parse(source)
    imports = imports_of(tree)
    lines = source.splitlines(keepends=True)
    needed: dict[str, Imports] = {}
    top = {alias for node in tree.body if isinstance(node, ast.ImportFrom) for alias in imports_of(node)}
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    for function in sorted(functions, key=lambda node: -node.lineno):
        found = list(_arguments(function, imports))
        if not found:
            _write_checks(lines, function, found)
            _write_docstring(lines, function, found)
            continue
        _write(lines, function, found, top)
        for _, options, _ in found:
            for leaf in options.leaves():
                needed.setdefault(options.name, {}).update(leaf.imports)
    head = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.lineno < functions[0].lineno]
    for node in sorted(head, key=lambda node: -node.lineno):
        for name in sorted(imports_of(node).keys() & needed.keys()):
            missing = {key: value for key, value in needed[name].items() if key not in imports}
            at = node.end_lineno or node.lineno
            lines[at:at] = [f"{' ' * node.col_offset}{_import(key, *value)}\n" for key, value in missing.items()]
    return "".join(lines)


def _import(name: str, module: str, original: str) -> str:
    alias = "" if name in (original, module) else f" as {name}"
    return f"from {module} import {original}{alias}" if original else f"import {module}{alias}"


def _arguments(function: ast.FunctionDef, imports: Imports) -> Iterator[tuple[ast.arg, OptionsClass, set[str]]]:
    """Yield the arguments that stand for the fields of a class, the class, and the names of the fields taken."""
    for argument, default in zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True):
        annotation, chosen = argument.annotation, ""
        if isinstance(annotation, ast.Subscript) and ast.unparse(annotation.value) == "Annotated":
            annotation, text = annotation.slice.elts  # type: ignore[attr-defined]
            chosen = ast.literal_eval(text)
        if default is None and isinstance(annotation, ast.Name) and annotation.id in imports:
            module, name = imports[annotation.id]
            cls = getattr(importlib.import_module(module), name)
            if dataclasses.is_dataclass(cls):
                options = OptionsClass(cls)
                verb, *names = chosen.split() or ["without"]
                leaves = {leaf.name for leaf in options.leaves()}
                if unknown := set(names) - leaves:
                    raise LookupError(f"{function.name}: {name} has no {sorted(unknown)}")
                yield argument, options, leaves & set(names) if verb == "only" else leaves - set(names)


def _write_checks(
    lines: list[str], function: ast.FunctionDef, found: list[tuple[ast.arg, OptionsClass, set[str]]]
) -> None:
    """Write a check of the flags of a *function* before what it does; its arguments *found* stand for fields."""
    flags = [
        argument.arg
        for argument in function.args.kwonlyargs
        if argument.annotation and ast.unparse(argument.annotation) == "bool"
    ]
    flags += [
        leaf.name
        for _, options, names in found
        for leaf in options.leaves()
        if leaf.annotation == "bool" and leaf.name in names
    ]
    if flags and ast.get_docstring(function):
        docstring, *body = function.body
        first = next(node for node in body if not isinstance(node, ast.ImportFrom))
        call = f"self._check_flags({', '.join(f'{flag}={flag}' for flag in flags)})"
        lines[first.lineno - 1 : first.lineno - 1] = [f"{' ' * docstring.col_offset}{call}\n"]


def _write(
    lines: list[str], function: ast.FunctionDef, found: list[tuple[ast.arg, OptionsClass, set[str]]], top: set[str]
) -> None:
    """Write the arguments *found* of a *function* out: in its body, its docstring and its signature."""
    docstring, *body = function.body
    indent = " " * docstring.col_offset
    imports = {name: where for _, options, _ in found for name, where in options.classes().items() if name not in top}
    built = [f"{indent}{argument.arg} = {options.build(names)}\n" for argument, options, names in found]
    first = next(node for node in body if not isinstance(node, ast.ImportFrom))
    lines[first.lineno - 1 : first.lineno - 1] = built
    _write_checks(lines, function, found)
    if imports:
        start = body[0].lineno - 1
        lines[start:start] = [f"{indent}{_import(name, *where)}\n" for name, where in imports.items()]
        if body[0] is first:
            lines[start + len(imports) : start + len(imports)] = ["\n"]
    _write_docstring(lines, function, found)
    for argument, options, names in reversed(found):
        written = [
            f"{leaf.name}: {leaf.annotation} = {leaf.default}," for leaf in options.leaves() if leaf.name in names
        ]
        line, last = lines[argument.lineno - 1], lines[(argument.end_lineno or argument.lineno) - 1]
        tail = last.encode()[argument.end_col_offset :].decode().removeprefix(",")
        lines[argument.lineno - 1 : argument.end_lineno] = [
            line.encode()[: argument.col_offset].decode() + " ".join(written) + tail
        ]


def _complete(entries: dict[str, str], function: ast.FunctionDef, classes: dict[str, OptionsClass]) -> dict[str, str]:
    """Return *entries* and those of all other arguments of *function*, in the order of its signature."""
    names = [argument.arg for argument in [*function.args.args[1:], *function.args.kwonlyargs]]
    places = {name: place for place, name in enumerate(names)}
    for name, options in classes.items():
        places |= {leaf.name: places[name] for leaf in options.leaves()}
    explained = {name for key in entries for name in key.split(", ")}
    usual = {name: "..." if name in classes else USUAL[name] for name in names if name not in explained}
    return dict(sorted((entries | usual).items(), key=lambda entry: places[entry[0].split(", ")[0]]))


def _write_docstring(
    lines: list[str], function: ast.FunctionDef, found: list[tuple[ast.arg, OptionsClass, set[str]]]
) -> None:
    docstring = function.body[0]
    entries = entries_of(ast.get_docstring(function))
    if not entries:
        return
    classes = {argument.arg: options for argument, options, _ in found}
    if entries.pop("...", None) is not None:
        entries = _complete(entries, function, classes)
    expanded = expand_entries(entries, classes, {argument.arg: names for argument, _, names in found})
    start = next(at for at in range(docstring.lineno, docstring.end_lineno or 0) if lines[at].strip() == "Args:") + 1
    end = next(
        at for at in range(start, docstring.end_lineno or 0) if not lines[at].startswith(INDENT) and lines[at].strip()
    )
    while not lines[end - 1].strip():
        end -= 1
    lines[start:end] = [
        line
        for names, text in expanded.items()
        for line in (f"{INDENT}{names}:\n", textwrap.indent(text, INDENT + "    ") + "\n")
    ]
