"""Names of indices as callers give them, and by what a document is told from every other one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from es_simhash.arguments import check_name
from es_simhash.errors import InvalidInputError, WrongTypeError, shorten

Index = str | Sequence[str]


def index_key(index: Index) -> str:
    """Return the names in *index* as one string, separated by commas."""
    return index if isinstance(index, str) else ",".join(index)


def check_index(index: Index) -> str | list[str]:
    """
    Return *index* if it names at least one index, alias, data stream or pattern; selectors (``::``) are refused.
    A server would take an empty name for all indices.
    """
    names = [index] if isinstance(index, str) else list(index) if isinstance(index, (list, tuple)) else None
    if names is None or not all(isinstance(name, str) for name in names):
        raise WrongTypeError(f"index must be a name or a list of names, not {shorten(index)}")
    if not names or not all(part.strip() for name in names for part in name.split(",")):
        raise InvalidInputError(f"index {shorten(index)} names no index: give a name, a pattern or a list of them")
    for name in names:
        check_name("index", name)
        if "::" in name:
            raise InvalidInputError(f"index {shorten(name)} has a selector, which is not supported: leave out '::...'")
    return index if isinstance(index, str) else names


_NOT_IN_NAMES = frozenset(' "*,/<>?\\|#:')


def check_new_name(index: str) -> str:
    """Return *index* if the servers take it as the name of a new index, or as date math; else raise an error."""
    is_name = (
        index == index.lower()
        and not _NOT_IN_NAMES.intersection(index)
        and index[0] not in "-_+"
        and index not in (".", "..")
        and len(index.encode()) <= 255
    )
    if not is_name and not (index.startswith("<") and index.endswith(">")):
        raise InvalidInputError(
            f"index {shorten(index)} cannot be the name of a new index: use at most 255 lower-case letters, digits, "
            "'-', '_' and '.', and begin with a letter or digit"
        )
    return index


def local_names(index: Index) -> list[str]:
    """Return the names in *index* that are not on another cluster."""
    names = index_key(check_index(index)).split(",")
    return [name for name in names if ":" not in name or name.startswith("<")]  # <...> is date math


class Key(NamedTuple):
    """Where a document is: no other has the same three. *index* is never an alias."""

    index: str  # type: ignore[assignment]  # hides the method of tuples
    id: str
    routing: str | None = None

    def header(self) -> dict[str, Any]:
        """Return the metadata of a request about it, as multi-gets and bulk requests have it."""
        header = {"_index": self.index, "_id": self.id}
        return header if self.routing is None else {**header, "routing": self.routing}


def document_key(hit: Mapping[str, Any]) -> Key:
    """Return the key of the document of *hit*, an item of a search or of a multi-get."""
    return Key(hit["_index"], hit["_id"], hit.get("_routing"))
