"""
One operation of a bulk request, and what became of it: plain values. Sending is the flows' business.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Operation", "Outcome"]


@dataclass(frozen=True, slots=True)
class Operation:
    """
    One operation of a bulk request.

    Attributes:
        kind:
            ``index``, ``create``, ``update`` or ``delete``.
        header:
            Metadata of the action line, such as ``_index`` and ``_id``.
        body:
            The document or update; ``None`` for a delete.
    """

    kind: str
    header: Mapping[str, Any]
    body: Any = None

    def lines(self) -> list[Any]:
        """Return the lines of the request."""
        first: list[Any] = [{self.kind: dict(self.header)}]
        return first if self.kind == "delete" else [*first, self.body]


@dataclass(frozen=True, slots=True)
class Outcome:
    """
    What became of one operation.

    Attributes:
        id:
            The document's id; given by the server where the operation had none.
        index:
            Name of the index that holds it.
        status:
            HTTP status of the operation.
        error:
            ``None`` if it was done, else one line with the cause.
        version:
            Sequence number and primary term of the document now, where it was written.
    """

    id: str | None
    index: str | None
    status: int
    error: str | None = None
    version: tuple[int, int] | None = None

    @property
    def is_done(self) -> bool:
        """Whether the operation was carried out."""
        return self.error is None
