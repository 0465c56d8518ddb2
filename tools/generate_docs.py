"""
Write ``docs/cli.md`` from the commands, rows of ``docs/json.md`` from docstrings, and ``mappings/``: ``make docs``.

Tests compare the files with what is built here. Below a heading of ``docs/json.md`` a comment may name a class, and
with ``but`` the fields that the page itself describes. The text of every other field that the class's docstring has is
written into its row; rows are added and removed by hand.
"""

# ruff: noqa: INP001 - a script, not part of a package
from __future__ import annotations

import importlib
import inspect
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

from docstring_parser.google import parse

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # the package beside this file, not the one that is installed

from es_simhash.cli.app import each_command, make_app
from es_simhash.cli.export import COMPONENT
from es_simhash.dashboards import build_dashboards
from es_simhash.mapping.mapping import build_component_template, build_index_template, build_mapping
from es_simhash.pipeline.build import build_pipeline, build_search_template

CLI, JSON, MAPPINGS = ROOT / "docs/cli.md", ROOT / "docs/json.md", ROOT / "mappings"
MARK = "<!-- `make docs` writes what follows, from the commands. -->\n"
GUARDS = ("--yes", "--dry-run")
_CLASS = re.compile(r"<!-- (es_simhash[\w.]+)(?: but ([\w ]+))? -->")
_ROW = re.compile(r"\| `(\w+)` \| .*?( See \[[^]]+\]\([^)]+\)\.)? \|")
# Packs for Kibana and Dashboards, by the name of the file: index, time, source and text.
PACKS = {
    "my-index": ("my-index", "published_at", "source", "body"),
    "logs": ("logs-*", "@timestamp", "data_stream.dataset", "message"),
}


def build_cli() -> str:
    """Return ``docs/cli.md`` with what the commands say now."""
    with patch("sys.argv", ["es-simhash"]):  # where the name of a program comes from
        entries = make_app(is_documented=True).generate_docs(output_format="markdown", usage_name="es-simhash")
    written, mark, _ = CLI.read_text(encoding="utf-8").partition(MARK)
    _, start, commands = entries.partition("## es-simhash setup")
    guards = "| command | option | meaning |\n|---|---|---|\n" + "".join(_guards())
    return re.sub(r"\n{3,}", "\n\n", f"{written}{mark}\n{guards}\n{start}{commands}").rstrip() + "\n"


def _guards() -> Iterator[str]:
    """Yield a row for each option that holds back, or lets through, what a command writes."""
    for name, command in each_command():
        for option in command.assemble_argument_collection(parse_docstring=True):
            if found := [guard for guard in GUARDS if guard in option.names]:
                yield f"| `{name}` | `{found[0]}` | {' '.join((option.parameter.help or '').split())} |\n"


def build_json() -> str:
    """Return ``docs/json.md`` with what the docstrings say now."""
    lines, texts = [], dict[str, str]()
    for line in JSON.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            texts = {}
        elif named := _CLASS.fullmatch(line):
            but = (named[2] or "").split()
            texts = {field: text for field, text in _texts_of(named[1]).items() if field not in but}
        row = _ROW.fullmatch(line)
        lines.append(f"| `{row[1]}` | {texts[row[1]]}{row[2] or ''} |" if row and row[1] in texts else line)
    return "\n".join(lines) + "\n"


def _texts_of(name: str) -> dict[str, str]:
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


def build_mappings() -> dict[str, str]:
    """Return what ``es-simhash export`` prints for an index, by the path of the file below ``mappings/``."""
    documents = {
        "mapping": {"mappings": build_mapping(text_field="body")},
        "component-template": build_component_template(text_field="body"),
        "index-template": build_index_template(["my-index-*"], component=COMPONENT),
        "pipeline": build_pipeline(text_field="body"),
        "search-template": build_search_template(),
    }
    files = {
        f"{product}/{name}.json": json.dumps(document, indent=2, ensure_ascii=False) + "\n"
        for product in ("elasticsearch", "opensearch")
        for name, document in documents.items()
    }
    for name, (index, time, source, text) in PACKS.items():
        pack = build_dashboards(index, time_field=time, source_field=source, text_field=text)
        files[f"dashboards/{name}.ndjson"] = "".join(json.dumps(part, ensure_ascii=False) + "\n" for part in pack)
    return files


if __name__ == "__main__":
    CLI.write_text(build_cli(), encoding="utf-8")
    JSON.write_text(build_json(), encoding="utf-8")
    for path, content in build_mappings().items():
        (MAPPINGS / path).write_text(content, encoding="utf-8")
