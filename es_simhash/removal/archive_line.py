"""
One line of an archive: ``{"_index", "_id", "_routing", "_source", "canonical", "plan", "at"}``.

``_source`` is JSON as the server returned it, and ``canonical`` is ``{"index", "id", "routing"}``. Files are read in
``archive`` and written in ``archive_writer``.
"""

from __future__ import annotations

import json
from typing import Any

from es_simhash.index.keys import Key
from es_simhash.removal.raw_json import end_of_value, join_members, split_members
from es_simhash.removal.records import Archived, take

__all__ = ["parse_archive_line", "to_archive_line"]


def to_archive_line(archived: Archived) -> str:
    """
    Return the line of *archived*, without its line feed.
    """
    canonical = archived.canonical
    return join_members(
        {
            "_index": json.dumps(archived.index),
            "_id": json.dumps(archived.id),
            "_routing": json.dumps(archived.routing),
            "_source": archived.source,
            "canonical": json.dumps({"index": canonical.index, "id": canonical.id, "routing": canonical.routing}),
            "plan": json.dumps(archived.plan),
            "at": json.dumps(archived.at),
            **({"together": json.dumps(archived.together)} if archived.together else {}),
            **({"view": json.dumps(archived.view)} if archived.view else {}),
        }
    )


def parse_archive_line(line: str) -> Archived:
    """
    Return what :func:`to_archive_line` made *line* of.

    Raises:
        ValueError: If it is not such a line.
    """
    plain, source = _split(line)
    if not source.startswith("{"):
        raise ValueError("'_source' is missing or no object")
    canonical = take(plain, "canonical", dict)
    key = Key(take(canonical, "index", str), take(canonical, "id", str), take(canonical, "routing", str, type(None)))
    routing = take(plain, "_routing", str, type(None))
    plan, at = take(plain, "plan", str), take(plain, "at", str)
    together, view = (tuple(map(str, take(plain, name, list, type(None)) or ())) for name in ("together", "view"))
    return Archived(take(plain, "_index", str), take(plain, "_id", str), routing, source, key, plan, at, together, view)


def _split(line: str) -> tuple[dict[str, Any], str]:
    """Return the members of a line as plain values, and the text of ``_source``."""
    # In a line of ours. Quotes inside a string are escaped, so this stands between members, and nowhere else.
    at = line.find(', "_source": {')
    if at > 0 and line.startswith("{"):
        begin = line.index("{", at)
        end = end_of_value(line, begin)
        rest = line[:at] + line[end:]
        if '"_source"' not in rest:
            return json.loads(rest), line[begin:end]
    members = split_members(line)
    source = members.pop("_source", "")
    return {name: json.loads(value) for name, value in members.items()}, source
