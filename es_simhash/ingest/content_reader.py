"""Reads from a new document what it is compared by, as the mapping of its index will read it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from es_simhash.errors import InvalidInputError
from es_simhash.lookup.content import Content, Unread, per_of
from es_simhash.mapping.fields import carries, read_text
from es_simhash.mapping.rule import Grouping
from es_simhash.mapping.user_fields import MappedField


@dataclass(frozen=True, slots=True)
class ContentReader:
    """A reader of what documents are compared by; empty *text_fields*: texts are not compared."""

    text_fields: Sequence[str] = ()
    per: MappedField | None = None
    within: MappedField | None = None

    @property
    def fields(self) -> list[str]:
        return [*self.text_fields, *(field.path for field in (self.per, self.within) if field)]

    def read(self, document: Mapping[str, Any], *, is_partial: bool = False) -> Content:
        """Return what *document* is compared by; *is_partial*: the index may have the fields that it lacks."""
        unread = self._find_missing(document) if is_partial else None
        text, moment = None, None
        per: tuple[str, ...] = ()
        try:
            text = read_text(document, self.text_fields) if self.text_fields else None
        except InvalidInputError as error:
            unread = unread or Unread("text", str(error))
        try:
            per = per_of(self.per.exact_keywords(document)) if self.per else ()
            moment = min(self.within.moments(document), default=None) if self.within else None
        except InvalidInputError as error:
            unread = unread or Unread("value", str(error))
        return Content(text, per=per, moment=moment, unread=unread)

    def _find_missing(self, partial: Mapping[str, Any]) -> Unread | None:
        return next((Unread("partial", name) for name in self.fields if not carries(partial, name)), None)


def make_reader(
    grouping: Grouping, mappings: Iterable[Mapping[str, Any]], text_fields: str | Sequence[str]
) -> ContentReader | None:
    """Return what reads new documents for *grouping*; ``None`` where only distances count."""
    if grouping.is_by_distance_alone:
        return None
    known = list(mappings) or [{}]
    fields = (text_fields,) if isinstance(text_fields, str) else tuple(text_fields)
    return ContentReader(
        fields if grouping.similarity is not None else (),
        None if grouping.per is None else _agreed(known, grouping.per),
        None if grouping.within is None else _agreed(known, grouping.within.field),
    )


def _agreed(mappings: Sequence[Mapping[str, Any]], field: str) -> MappedField:
    """Return how *mappings* map *field*; a date that they read differently cannot be read here."""
    found = [MappedField.find(mapping, field) for mapping in mappings]
    formats = {(one.node.get("type"), one.node.get("format")) for one in found}
    limits = [int(one.node["ignore_above"]) for one in found if "ignore_above" in one.node]
    node = {**found[0].node, **({"format": "not the same in all indices"} if len(formats) > 1 else {})}
    node = {**node, "ignore_above": min(limits)} if limits else node
    return MappedField(found[0].path, node, any(one.is_copied for one in found))
