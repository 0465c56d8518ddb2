"""
The JSON files of this folder, and how the values of a pack are put into them. No chart and no saved object is here.

``"${name}"`` stands for a value of any type, and within a longer string for its text. What is ``None`` is left out.
Besides, an object may have three keys: ``$if`` names a value, and without it the object is left out. ``$use`` names a
part in ``parts.json`` that stands for the object, whose other keys are values of that part. ``$why`` is a comment.
``tools/format_json.py`` formats the files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

_PLACEHOLDER = re.compile(r"\$\{(\w+)\}")


@cache
def read(name: str) -> Any:
    """Return the file *name* as it is; do not change what this returns."""
    return json.loads(read_text(name))


def read_text(name: str) -> str:
    return files("es_simhash.dashboards").joinpath(name).read_text(encoding="utf-8")


def fill(part: Any, values: Mapping[str, Any]) -> Any:
    """Return a copy of *part*, a part of a file, with *values*."""
    if isinstance(part, str):
        # Values are not read for placeholders: they may be names of any kind.
        whole = _PLACEHOLDER.fullmatch(part)
        return values[whole[1]] if whole else _PLACEHOLDER.sub(lambda found: str(values[found[1]]), part)
    if isinstance(part, list):
        return [each for each in (fill(item, values) for item in part) if each is not None]
    if not isinstance(part, dict):
        return part
    if "$if" in part and values[part["$if"]] is None:
        return None
    filled = {
        fill(name, values): fill(each, values) for name, each in part.items() if name not in {"$if", "$use", "$why"}
    }
    found = {name: each for name, each in filled.items() if each is not None}
    return fill(read("parts.json")[part["$use"]], {**values, **found}) if "$use" in part else found
