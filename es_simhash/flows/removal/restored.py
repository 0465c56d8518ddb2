"""
What a restore reports: plain values. Nothing is restored here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from es_simhash.removal.records import Archived, add_detail

__all__ = ["Restored", "RestoredAction", "RestoredKind"]

RestoredAction: TypeAlias = Literal["restored", "would restore", "exists", "differs", "refused"]
RestoredKind: TypeAlias = Literal[
    "index_missing", "unmapped", "other_scheme", "dropped", "pipeline", "unreadable", "refused"
]

_SENTENCES: dict[str, str] = {
    "index_missing": "its index does not exist any more: create it, or name another index to restore into",
    "unmapped": "its index does not map our fields any more: add them to its mapping, or name another index to "
    "restore into",
    "other_scheme": "its fingerprint is not the one that the index's scheme gives its text: name an index that has the "
    "scheme it was removed from",
    "dropped": "an ingest pipeline of the server dropped it",
    "pipeline": "it was written, and is not as it was archived: a final pipeline of the index, or another program, "
    "changed it",
    "unreadable": "the server could not read it now: run the restore again",
    "refused": "the server refused",
}


@dataclass(frozen=True, slots=True)
class Restored:
    """
    What became of one document of an archive; in a dry run, what would become of it.

    Attributes:
        id:
            Its ``_id``.
        index:
            Name of the index that holds it now; where it was refused, of the one that was to hold it.
        action:
            ``"restored"`` where it was missing and is there now; in a dry run ``"would restore"``. ``"exists"`` where
            it was there already, with the same fields, and ``"differs"`` where another document has its id: nothing is
            written then. ``"refused"`` where it could not be written. ``"differs"`` with the kind ``"pipeline"`` where
            it was written, and then changed.
        routing:
            Its routing value, where it has one.
        canonical:
            Id of the document that it was removed for.
        canonical_index:
            Name of the index that held that.
        kind:
            Why it was refused or changed, as a word; else ``None``.
        detail:
            What more is known, such as the server's own words.
    """

    id: str
    index: str
    action: RestoredAction
    routing: str | None = None
    canonical: str = ""
    canonical_index: str = ""
    kind: RestoredKind | None = None
    detail: str = ""

    @property
    def is_done(self) -> bool:
        """Whether the document is in the index, with the fields of the archive, or would be."""
        return self.action in ("restored", "would restore", "exists")

    @property
    def reason(self) -> str | None:
        """Why the document is not as the archive has it, as a sentence for people; else ``None``."""
        if self.action == "differs" and self.kind is None:
            return "another version of it is there, which was not changed"
        return None if self.kind is None else add_detail(_SENTENCES[self.kind], self.detail)

    def to_dict(self) -> dict[str, Any]:
        """Return the record as plain JSON values."""
        return {
            "id": self.id,
            "index": self.index,
            "action": self.action,
            "canonical": self.canonical,
            "canonical_index": self.canonical_index,
            "kind": self.kind,
            "reason": self.reason,
            **({} if self.routing is None else {"routing": self.routing}),
        }

    @classmethod
    def of(
        cls,
        archived: Archived,
        index: str,
        action: RestoredAction,
        kind: RestoredKind | None = None,
        detail: str = "",
    ) -> Restored:
        """Return the record of a line of an archive."""
        canonical = archived.canonical
        return cls(archived.id, index, action, archived.routing, canonical.id, canonical.index, kind, detail)
