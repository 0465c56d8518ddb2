"""
Format the JSON files of the dashboards: what fits on a line stands on one line. ``--check`` changes nothing.

    python tools/format_json.py [--check]

``make format`` runs it.
"""

# ruff: noqa: INP001, T201 - a script, not part of a package
from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent.parent / "es_simhash" / "dashboards"
WIDTH = 120


def format_json(part: Any, indent: int = 0, used: int = 0) -> str:
    """Return *part* as JSON text; *used*: characters before it and behind it on its line."""
    line = json.dumps(part, ensure_ascii=False)
    if not isinstance(part, dict | list) or not part or indent + used + len(line) <= WIDTH:
        return line
    inner = " " * (indent + 2)
    if isinstance(part, dict):
        named = ((json.dumps(name, ensure_ascii=False) + ": ", each) for name, each in part.items())
        items = [name + format_json(each, indent + 2, len(name) + 1) for name, each in named]
    else:
        items = [format_json(each, indent + 2, 1) for each in part]
    begin, end = "{}" if isinstance(part, dict) else "[]"
    return begin + ",".join(f"\n{inner}{each}" for each in items) + f"\n{' ' * indent}{end}"


def main() -> int:
    """Format the files; with ``--check``, name those that are not formatted."""
    wrong = []
    for path in sorted(FOLDER.rglob("*.json")):
        text = path.read_text(encoding="utf-8")
        formatted = format_json(json.loads(text)) + "\n"
        if formatted != text:
            wrong.append(path.name)
            if "--check" not in sys.argv:
                path.write_text(formatted, encoding="utf-8")
    if wrong and "--check" in sys.argv:
        print(f"not formatted, run python tools/format_json.py: {', '.join(wrong)}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
