"""What a lookup of passages finds: documents that share enough with a text, and the shared passages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from es_simhash.record import Record
from es_simhash.tables.notebook import Part, Sheet, flat_source
from es_simhash.tables.tabular import Items
from es_simhash.transport.protocol import Key

_DOCUMENT = ("id", "index", "routing", "contained", "contains", "similarity")
_PASSAGE = ("start", "end", "other_start", "other_end", "text")


@dataclass(frozen=True, slots=True)
class Passage(Record):
    """
    A run of text that the text asked for shares with a document, in characters of the two original texts.

    Attributes:
        start, end:
            Where it starts in the text asked for, and where it has ended: ``text[start:end]``.
        other_start, other_end:
            The same in the text of the document, whose fields are joined by line feeds.
        text:
            What stands there in the document.
    """

    start: int
    end: int
    other_start: int
    other_end: int
    text: str = ""


@dataclass(frozen=True, slots=True)
class Overlap(Record):
    """
    One document of which a part stands in the text asked for, or the reverse.

    Attributes:
        id:
            The document's ``_id``.
        index:
            Name of the index that holds it.
        contained:
            Share of the shingles of the text asked for that the document has: 1.0 if that text stands in the document.
        contains:
            Share of the shingles of the document that the text asked for has: 1.0 if the document stands in that text.
        similarity:
            Shared shingles as a share of those that either has (Jaccard).
        passages:
            The runs of text that both have, of the length asked for, in their order in the text asked for. If there
            are none, shared runs of at least 25 letters.
        routing:
            The document's ``_routing``, where it was indexed with one.
        source:
            The fields of its ``_source`` that were asked for; ``None`` if there were none.
    """

    _OPTIONAL = "routing source"

    id: str
    index: str
    contained: float
    contains: float
    similarity: float
    passages: tuple[Passage, ...] = ()
    routing: str | None = None
    source: Mapping[str, Any] | None = field(default=None, compare=False)

    @property
    def key(self) -> Key:
        """The key that no other document has: index, ``_id`` and routing."""
        return Key(self.index, self.id, self.routing)

    @property
    def order(self) -> tuple[float, float, str, str, str]:
        """The place among others: by the larger share, then by similarity, then by index, id and routing."""
        larger = max(self.contained, self.contains)
        return -larger, -self.similarity, self.index, self.id, self.routing or ""

    def to_rows(self) -> list[dict[str, Any]]:
        """Return a flat row for each passage; one row without a passage if there are none."""
        shared = {name: getattr(self, name) for name in _DOCUMENT}
        source = {f"source.{name}": value for name, value in (self.source or {}).items()}
        return [
            shared | {name: None if passage is None else getattr(passage, name) for name in _PASSAGE} | source
            for passage in self.passages or (None,)
        ]


@dataclass(frozen=True, slots=True)
class Overlaps(Items[Overlap]):
    """
    The answer to one lookup of passages: documents in the order of the larger of contained and contains.

    Attributes:
        items:
            The documents.
        complete:
            Whether every document that shares a run of the length asked for is here; ``False`` only in an
            :class:`IncompleteSearchError`.
        min_contained:
            The share that was asked for.
        min_run:
            The letters of a run that were asked for.
        candidates:
            How many documents were compared.
        reasons:
            Why the answer is incomplete, one line each.
        stale:
            Documents whose hashes are not those of their text, which was changed since; one line each.
    """

    items: tuple[Overlap, ...] = ()
    complete: bool = True
    min_contained: float = 0.8
    min_run: int = 200
    candidates: int = 0
    reasons: tuple[str, ...] = ()
    stale: tuple[str, ...] = ()

    _COLUMNS: ClassVar[tuple[str, ...]] = _DOCUMENT + _PASSAGE

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as plain JSON values."""
        return {
            "overlaps": [overlap.to_dict() for overlap in self.items],
            "complete": self.complete,
            "min_contained": self.min_contained,
            "min_run": self.min_run,
            "candidates": self.candidates,
            "stale": list(self.stale),
        }

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return a flat row for each passage of each document."""
        return [row for overlap in self.items for row in overlap.to_rows()]

    def _title(self) -> str:
        number = f"{len(self):,} document{'' if len(self) == 1 else 's'} with shared passages"
        return f"{number}{'' if self.complete else ', incomplete'}"

    def _sheets(self) -> Sequence[Part]:
        shares = dict.fromkeys(("contained", "contains", "similarity"), 1.0)
        rows = []
        for overlap in self.items:
            longest = max((passage.text for passage in overlap.passages), key=len, default="")
            which = {"id": overlap.id, "index": overlap.index, "routing": overlap.routing}
            alike = {name: getattr(overlap, name) for name in shares}
            parts = {"passages": len(overlap.passages), "longest": len(longest), "passage": longest}
            rows.append(alike | which | flat_source(overlap.source) | parts)
        return [Sheet("", rows, shares)]

    def _notes(self) -> Mapping[str, Sequence[str]]:
        return {"incomplete because": self.reasons, "text has changed": self.stale}
