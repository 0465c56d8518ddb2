"""The documents that a report shows, as values, and how they are read from hits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from es_simhash.mapping.fields import Fields, read_values, text_or_none
from es_simhash.record import Record

# Characters of a text that are kept.
_LONGEST_TEXT = 20_000
_LONGEST_TITLE = 2_000


@dataclass(frozen=True, slots=True)
class Member(Record):
    """
    A document that is shown.
    *text*: the beginning; ``None`` if no text could be read. *length*: characters of the whole text. *distance*,
    *similarity*: to the canonical; the canonical has the distance 0; ``None``: the texts were not compared.
    *has_other_numbers*: whether nothing else differs from the canonical's text. *source*, *time*, *title*, *url*: empty
    if the document has no value.
    """

    _NAMES = "id index title url length distance similarity has_other_numbers source time"

    id: str
    index: str
    text: str | None
    length: int = 0
    distance: int = 0
    similarity: float | None = None
    has_other_numbers: bool = False
    source: str = ""
    time: str = ""
    title: str = ""
    url: str = ""

    @property
    def is_cut(self) -> bool:
        return self.text is not None and len(self.text) < self.length


@dataclass(frozen=True, slots=True)
class ShownGroup(Record):
    """
    A group, with some of its documents.
    *id*: the name of the group. *canonical*: ``None`` if it could not be read.
    *members*: some of its duplicates, those with the largest distance first.
    """

    id: str
    documents: int
    canonical: Member | None
    members: tuple[Member, ...]


@dataclass(frozen=True, slots=True)
class MemberReader:
    """
    Reads what is shown of a document from its hit.
    *texts*: fields of the text; empty to read no texts. *shown*: fields of title, address, source, date, by kind.
    """

    fields: Fields
    texts: Sequence[str]
    shown: Mapping[str, str]

    @property
    def docvalue_fields(self) -> list[Any]:
        return [self.fields.distance]

    def whole_text(self, hit: Mapping[str, Any]) -> str | None:
        return text_or_none(hit, self.texts) if self.texts else None

    def read(self, hit: Mapping[str, Any]) -> Member:
        text = self.whole_text(hit)
        return Member(
            hit["_id"],
            hit["_index"],
            None if text is None else text[:_LONGEST_TEXT],
            len(text or ""),
            int(next(iter((hit.get("fields") or {}).get(self.fields.distance) or ()), 0)),
            source=self._said(hit, "source"),
            time=self._said(hit, "date"),
            title=self._said(hit, "title"),
            url=self._said(hit, "url"),
        )

    def _said(self, hit: Mapping[str, Any], kind: str) -> str:
        values = read_values(hit.get("_source") or {}, self.shown[kind]) if kind in self.shown else []
        return next((value for value in values if isinstance(value, str)), "")[:_LONGEST_TITLE]
