"""
Whether a line of a plan still fits the index: by the documents as they are now, against those that were planned.

Pure: documents come as the items of a multi-get.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from es_simhash.removal.records import PlannedDocument, PlannedRemoval

__all__ = ["KeptKind", "State", "Verdict", "is_unreadable", "judge_removal", "state_of"]

State = Literal["same", "changed", "missing", "no_index", "unreadable"]
"""
What became of a document: the planned version, another version, no such document, no such index, or not known.
"""

KeptKind = Literal[
    "changed", "missing", "canonical_changed", "canonical_missing", "index_replaced", "unreadable"
]  # fmt: skip
"""Why a document of a plan is kept."""

Verdict: TypeAlias = Literal["delete", "deleted_before", "restore"] | KeptKind
"""What to do with a line: delete the document, note that an earlier run has deleted it, bring it back, or keep it."""

_NO_INDEX = "index_not_found_exception"


@dataclass(frozen=True, slots=True)
class _Pair:
    document: State
    canonical: State


def is_unreadable(item: Mapping[str, Any]) -> bool:
    """
    Return whether the server could not read a document now: a full queue, or a shard that is moved, says nothing of it.
    """
    error = item.get("error")
    return error is not None and not (isinstance(error, Mapping) and error.get("type") == _NO_INDEX)


def state_of(planned: PlannedDocument, item: Mapping[str, Any]) -> State:
    """
    Return what became of a document that was *planned*.

    Args:
        planned:
            The document as it was.
        item:
            The item of a multi-get about it.
    """
    if "error" in item:
        return "unreadable" if is_unreadable(item) else "no_index"
    if not item.get("found"):
        return "missing"
    return "same" if (item["_seq_no"], item["_primary_term"]) == planned.version else "changed"


def judge_removal(
    removal: PlannedRemoval, document: Mapping[str, Any], canonical: Mapping[str, Any], *, is_archived: bool
) -> Verdict:
    """
    Return what is to be done with a line of a plan.

    Args:
        removal:
            The line.
        document:
            The item of a multi-get about the duplicate.
        canonical:
            The one about its canonical.
        is_archived:
            Whether an earlier run with the same archive has archived the duplicate.
    """
    pair = _Pair(state_of(removal.document, document), state_of(removal.canonical, canonical))
    if "unreadable" in (pair.document, pair.canonical):
        return "unreadable"
    if "no_index" in (pair.document, pair.canonical):
        return "index_replaced"
    if pair.document == "missing" and is_archived:
        # That it was changed since is no reason: nobody knows how long ago the duplicate was deleted.
        return "restore" if pair.canonical == "missing" else "deleted_before"
    if pair.canonical != "same":
        return "canonical_missing" if pair.canonical == "missing" else "canonical_changed"
    if pair.document == "same":
        return "delete"
    return "missing" if pair.document == "missing" else "changed"
