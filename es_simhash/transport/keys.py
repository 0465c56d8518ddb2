"""
The key of a document, by which it is told from every other one. Plain values.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class Key(NamedTuple):
    """
    Where a document is. No other document has the same three.

    Attributes:
        index:
            Name of the index that holds it, never an alias.
        id:
            Its ``_id``.
        routing:
            Its routing value, where it has one.
    """

    index: str  # type: ignore[assignment]  # hides the method of tuples
    id: str
    routing: str | None = None

    def header(self) -> dict[str, Any]:
        """Return the metadata of a request about it, as multi-gets and bulk requests have it."""
        header = {"_index": self.index, "_id": self.id}
        return header if self.routing is None else {**header, "routing": self.routing}


def document_key(hit: Mapping[str, Any]) -> Key:
    """
    Return the key of the document of *hit*, an item of a search or of a multi-get.
    """
    return Key(hit["_index"], hit["_id"], hit.get("_routing"))
