"""Whether a line of a plan still fits: the documents as they are now against those planned. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from es_simhash.removal.records import PlannedDocument, PlannedRemoval

State = Literal["same", "changed", "missing", "no_index", "unreadable"]
"""
What became of a document: the planned version, another version, no such document, no such index, or not known.
"""

KeptKind = Literal[
    "changed", "missing", "canonical_changed", "canonical_missing", "index_replaced", "unreadable"
]  # fmt: skip
"""Why a document of a plan is kept."""

LineVerdict: TypeAlias = Literal["delete", "deleted_before"] | KeptKind
"""What to do with a line: delete the document, note that an earlier run has deleted it, or keep it."""

_NO_INDEX = "index_not_found_exception"


def is_unreadable(item: Mapping[str, Any]) -> bool:
    """
    Return whether the server could not read a document now: a full queue, or a shard that is moved, says
    nothing of it.
    """
    error = item.get("error")
    return error is not None and not (isinstance(error, Mapping) and error.get("type") == _NO_INDEX)


def state_of(planned: PlannedDocument, item: Mapping[str, Any]) -> State:
    """Return what became of the document *planned*; *item* is its item of a multi-get."""
    if "error" in item:
        return "unreadable" if is_unreadable(item) else "no_index"
    if not item.get("found"):
        return "missing"
    return "same" if (item["_seq_no"], item["_primary_term"]) == planned.version else "changed"


def judge_removal(
    removal: PlannedRemoval, document: Mapping[str, Any], canonical: Mapping[str, Any], *, is_archived: bool
) -> LineVerdict:
    """Return what is to be done with a line; *is_archived*: an earlier run with this archive archived it."""
    goes, stays = state_of(removal.document, document), state_of(removal.canonical, canonical)
    if "unreadable" in (goes, stays):
        return "unreadable"
    if "no_index" in (goes, stays):
        return "index_replaced"
    if goes == "missing" and is_archived:
        return "deleted_before"
    if stays != "same":
        return "canonical_missing" if stays == "missing" else "canonical_changed"
    if goes == "same":
        return "delete"
    return "missing" if goes == "missing" else "changed"
