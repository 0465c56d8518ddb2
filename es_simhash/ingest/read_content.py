"""Reads what a document is compared by before it is indexed, as the mapping of its index will read it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from es_simhash.errors import InvalidInputError, shorten
from es_simhash.groups.content import Content, Unread, milliseconds_of, moment_of, per_of
from es_simhash.groups.rule import Grouping
from es_simhash.mapping.documents import carries, read_text, read_values


@dataclass(frozen=True, slots=True)
class MappedField:
    """How an index maps a field; *path* of a multi-field is that of the field that it belongs to."""

    path: str
    node: Mapping[str, Any]

    @classmethod
    def find(cls, mapping: Mapping[str, Any], field: str) -> MappedField:
        """Return how *mapping* maps *field*, a path that may end with the name of a multi-field."""
        node: Mapping[str, Any] = mapping
        path: list[str] = []
        for part in field.split("."):
            below = node.get("properties")
            if below is not None:
                path.append(part)
            node = (below or node.get("fields") or {}).get(part) or {}
        return cls(".".join(path), node)

    def keywords(self, document: Mapping[str, Any]) -> Iterator[str]:
        """Yield the values of a keyword field in *document*; the server keeps none that is longer than ignore_above."""
        longest = self.node.get("ignore_above")
        for value in read_values(document, self.path):
            if value is None or isinstance(value, Mapping):
                continue
            text = value if isinstance(value, str) else json.dumps(value, default=str)
            if longest is None or len(text.encode("utf-16-le", "surrogatepass")) // 2 <= int(longest):
                yield text

    def drops(self, document: Mapping[str, Any]) -> bool:
        """Return whether *document* has a value that is longer than ignore_above."""
        given = MappedField(self.path, {}).keywords(document)
        return sum(1 for _ in given) > sum(1 for _ in self.keywords(document))

    def moments(self, document: Mapping[str, Any]) -> Iterator[Decimal]:
        """Yield the dates in *document*, in milliseconds since 1970; raise if one cannot be read."""
        for value in read_values(document, self.path):
            given = self.node.get("null_value") if value is None else value
            if given is None:
                continue
            date_format = self.node.get("format")
            found = milliseconds_of(given, date_format, with_nanos=self.node.get("type") == "date_nanos")
            if found is None:
                raise InvalidInputError(f"{shorten(given)} of field {self.path!r} (format {date_format or 'default'})")
            yield found


@dataclass(frozen=True, slots=True)
class ContentReader:
    """A reader of what documents are compared by; empty *text_fields*: texts are not compared."""

    text_fields: Sequence[str] = ()
    per: MappedField | None = None
    within: MappedField | None = None

    @property
    def fields(self) -> list[str]:
        return [*self.text_fields, *(each.path for each in (self.per, self.within) if each)]

    def read(self, document: Mapping[str, Any], *, is_partial: bool = False) -> Content:
        """Return what *document* is compared by; *is_partial*: the index may have the fields that it lacks."""
        unread = self._find_missing(document) if is_partial else None
        text, moment = None, None
        try:
            text = read_text(document, self.text_fields) if self.text_fields else None
        except InvalidInputError as error:
            unread = unread or Unread("text", str(error))
        per = per_of(self.per.keywords(document)) if self.per else ()
        try:
            moment = moment_of(self.within.moments(document)) if self.within else None
        except InvalidInputError as error:
            unread = unread or Unread("date", str(error))
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
    found = [MappedField.find(each, field) for each in mappings]
    formats = {(each.node.get("type"), each.node.get("format")) for each in found}
    limits = [int(each.node["ignore_above"]) for each in found if "ignore_above" in each.node]
    node = {**found[0].node, **({"format": "not the same in all indices"} if len(formats) > 1 else {})}
    return MappedField(found[0].path, {**node, "ignore_above": min(limits)} if limits else node)
