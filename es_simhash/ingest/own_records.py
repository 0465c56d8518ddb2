"""Recognises lines of archives, plans of removal and reports where documents are expected."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from es_simhash.errors import InvalidInputError

FORMAT = "es-simhash-plan"


OwnRecord: TypeAlias = Literal["archive", "plan", "report"]


_ARCHIVE = frozenset({"_source", "canonical", "plan"})


_PLAN = frozenset({"id", "index", "seq_no", "primary_term", "canonical", "distance"})


_REPORT = frozenset({"id", "action", "reason"})


# Everything that a report of any version may have: a document of a user has something else as well.
_OF_REPORTS = _REPORT | {
    *("file", "line", "position", "index", "routing", "fingerprinted", "source", "kind", "updated"),
    *("canonical", "canonical_index", "distance", "similarity"),
}


_ACTIONS = frozenset(
    {
        *("written", "tagged", "replaced", "skipped", "dropped", "refused", "unreadable"),
        *("deleted", "kept", "would delete", "would tag", "restored", "would restore", "exists", "differs"),
    }
)


_SENTENCES: Mapping[OwnRecord, str] = {
    "archive": "is a line of an archive of removed documents, and no document: put them back with es-simhash restore",
    "plan": "is a line of a plan of removal, and no document: es-simhash review shows the plan, and es-simhash restore "
    "puts back what was removed by it",
    "report": "is a line of a report of es-simhash, and no document: es-simhash restore puts removed documents back "
    "from their archive",
}


def find_own_record(document: Any) -> OwnRecord | None:
    """
    Return which file of this library *document* is a line of; ``None`` for any document of a user.

    >>> find_own_record({"_id": "1", "_source": {}, "canonical": {"id": "2"}, "plan": "0f"})
    'archive'
    >>> find_own_record({"id": "1", "action": "shipped", "reason": "sold"}) is None
    True
    """
    if not isinstance(document, Mapping):
        return None
    names = document.keys()
    if names >= _ARCHIVE and isinstance(document["canonical"], Mapping):
        return "archive"
    if "format" in names and document["format"] == FORMAT and "index_uuids" in names:
        return "plan"
    if names >= _PLAN and isinstance(document["canonical"], Mapping):
        return "plan"
    if names >= _REPORT and names <= _OF_REPORTS and document["action"] in _ACTIONS:
        return "report"
    return None


def refuse_own_record(document: Any, place: str) -> None:
    """Raise if *document* is a line of a file of this library; *place* names it in the message."""
    if (kind := find_own_record(document)) is not None:
        raise InvalidInputError(f"{place} {_SENTENCES[kind]}")
