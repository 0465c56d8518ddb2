"""Compares the present texts of duplicates with those of their canonicals, for a plan of removal. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from es_simhash.errors import InvalidInputError
from es_simhash.hashing import Scheme, fingerprint as compute_fingerprint, to_hex
from es_simhash.mapping.documents import read_text, read_values
from es_simhash.removal.records import PlannedDocument, PlannedRemoval, Reason
from es_simhash.texts.measures import WORD_SHINGLES, Score
from es_simhash.transport.names import Key

if TYPE_CHECKING:
    from es_simhash.groups.table import Row


LeftOut = Literal["not_similar", "unreadable", "changed", "stale"]
"""Why a pair that was compared is not in a plan; a plan also counts what its filter and limit left out."""

Judged: TypeAlias = PlannedRemoval | LeftOut


Candidate: TypeAlias = "tuple[Row, Row, int]"
"""A duplicate and its canonical, as they were grouped, and their distance in bits."""


class PairMeasure(Protocol):
    """How much of the first of two texts the second one has, 0 to 1."""

    def prepare(self, texts: Sequence[str]) -> Sequence[Any]:
        """Return each of *texts* prepared for :meth:`compare`."""

    def compare(self, first: Any, second: Any, *, bound: float) -> Score:
        """Return the score of two prepared texts; one below *bound* may be returned as 0."""


@dataclass(frozen=True, slots=True)
class _Read:
    """A document as it is now: what the plan notes of it, and its text; ``None`` for no text."""

    planned: PlannedDocument
    text: str | None


@dataclass(frozen=True, slots=True)
class Comparer:
    """
    Compares documents as they are now.

    *text_fields* (by index name; empty if unknown) and *schemes* (by index name) say how texts are read and
    hashed. *bound*: the smallest similarity of a duplicate to its canonical; ``None`` compares no texts, only
    fingerprints. *shown*: further fields for the plan. *max_field_chars*: longer values are cut in the plan.
    """

    text_fields: Mapping[str, Sequence[str]]
    schemes: Mapping[str, Scheme]
    prefix: str
    bound: float | None
    shown: Sequence[str] = ()
    max_field_chars: int = 10_000
    measure: PairMeasure = WORD_SHINGLES
    reason: Reason = "similarity"

    @property
    def source_fields(self) -> list[str]:
        """The parts of ``_source`` that are needed."""
        texts = (name for fields in self.text_fields.values() for name in fields)
        return sorted({*texts, *self.shown, f"{self.prefix}.fingerprint"})

    def compare(self, candidates: Sequence[Candidate], items: Mapping[Key, Mapping[str, Any]]) -> list[Judged]:
        """
        Return for each candidate its line of the plan, or why it is left out.

        Not more than two texts are prepared at a time: one may take 40 times its memory. A canonical is prepared once
        if its candidates stand together. *items* has the multi-get item of each document.
        """
        rows = {each.key: each for pair in candidates for each in pair[:2]}
        read = {key: self._read(each, items[key]) for key, each in rows.items()}
        judged: list[Judged] = []
        for key, pairs in groupby(candidates, key=lambda pair: pair[1].key):
            prepared = self._prepare(read[key])
            judged += [self._judge(read[each.key], read[key], bits, prepared) for each, _, bits in pairs]
        return judged

    def _prepare(self, document: _Read | LeftOut) -> Any:
        """Return the text of *document*, prepared; ``None`` if there is nothing to compare."""
        if self.bound is None or not isinstance(document, _Read) or document.text is None:
            return None
        return self.measure.prepare([document.text])[0]

    def _judge(self, document: _Read | LeftOut, canonical: _Read | LeftOut, distance: int, prepared: Any) -> Judged:
        """Return the line of *document*; *prepared* is the text of *canonical*, prepared."""
        if not isinstance(document, _Read):
            return document
        if not isinstance(canonical, _Read):
            return canonical
        if self.bound is None:
            return PlannedRemoval(document.planned, canonical.planned, distance, None, "distance")
        first = self._prepare(document)
        if first is None or prepared is None:
            return "unreadable"
        similarity = self.measure.compare(first, prepared, bound=self.bound).similarity
        if similarity < self.bound:
            return "not_similar"
        return PlannedRemoval(document.planned, canonical.planned, distance, similarity, self.reason)

    def _read(self, row: Row, item: Mapping[str, Any]) -> _Read | LeftOut:
        if "error" in item:
            return "unreadable"
        if not item.get("found"):
            return "changed"
        source = item.get("_source") or {}
        fields = self.text_fields.get(row.index, ())
        try:
            text = read_text(source, fields)
        except InvalidInputError:
            return "unreadable"
        if text is None and fields:
            return "unreadable"
        if self.bound is None and (left_out := self._judge_fingerprint(row, source, text)) is not None:
            return left_out
        values, cut = self._values(source, fields)
        planned = PlannedDocument(row.id, row.index, row.routing, item["_seq_no"], item["_primary_term"], values, cut)
        return _Read(planned, text)

    def _judge_fingerprint(self, row: Row, source: Mapping[str, Any], text: str | None) -> LeftOut | None:
        """Return why a document cannot go by its fingerprint alone; ``None`` if it can."""
        if read_values(source, f"{self.prefix}.fingerprint") != [to_hex(row.fingerprint)]:
            return "changed"
        scheme = self.schemes.get(row.index)
        if text is not None and scheme is not None and compute_fingerprint(text, scheme=scheme) != row.fingerprint:
            return "stale"
        return None

    def _values(self, source: Mapping[str, Any], fields: Sequence[str]) -> tuple[dict[str, Any], tuple[str, ...]]:
        """Return the values to note in the plan, and the names of those that were cut."""
        values: dict[str, Any] = {}
        cut = []
        for name in dict.fromkeys([*fields, *self.shown]):
            found = read_values(source, name)
            if not found:
                continue
            value = found[0] if len(found) == 1 else found
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            if len(text) > self.max_field_chars:
                value = text[: self.max_field_chars]
                cut.append(name)
            values[name] = value
        return values, tuple(cut)
