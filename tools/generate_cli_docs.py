"""Write the entries of the commands into ``docs/cli.md``. ``make docs`` runs it, and a test compares the result."""

# ruff: noqa: INP001 - a script, not part of a package
from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).parents[1]))  # the package beside this file, not the one that is installed

from es_simhash.cli.app import each_command, make_app

ROOT = Path(__file__).parents[1]
TARGET = ROOT / "docs" / "cli.md"

MARK = "<!-- `make docs` writes what follows, from the commands. -->\n"
GUARDS = ("--yes", "--dry-run")


def build_text() -> str:
    """Return ``docs/cli.md`` with what the commands say now."""
    with patch("sys.argv", ["es-simhash"]):  # where the name of a program comes from
        entries = make_app(is_documented=True).generate_docs(output_format="markdown", usage_name="es-simhash")
    written, mark, _ = TARGET.read_text(encoding="utf-8").partition(MARK)
    _, start, commands = entries.partition("## es-simhash setup")
    guards = "| command | option | meaning |\n|---|---|---|\n" + "".join(_guards())
    return re.sub(r"\n{3,}", "\n\n", f"{written}{mark}\n{guards}\n{start}{commands}").rstrip() + "\n"


def _guards() -> Iterator[str]:
    """Yield a row for each option that holds back, or lets through, what a command writes."""
    for name, command in each_command():
        for option in command.assemble_argument_collection(parse_docstring=True):
            if found := [guard for guard in GUARDS if guard in option.names]:
                yield f"| `{name}` | `{found[0]}` | {' '.join((option.parameter.help or '').split())} |\n"


if __name__ == "__main__":
    TARGET.write_text(build_text(), encoding="utf-8")
