"""Whether a document may be deleted: :func:`may_delete` asks all that is asked of one. Pure: ``present`` reads."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import groupby
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from es_simhash.errors import InvalidInputError
from es_simhash.mapping.fields import read_text, read_values
from es_simhash.removal.classes import Document, find_loss, is_kept_shorter
from es_simhash.removal.losses import Loss
from es_simhash.removal.records import KeptKind, LeftOut, PlannedDocument, PlannedRemoval
from es_simhash.texts.measures import WORD_SHINGLES, TextMeasure
from es_simhash.transport.protocol import Key

if TYPE_CHECKING:
    from es_simhash.groups.table import Row


Compared: TypeAlias = PlannedRemoval | LeftOut

Candidate: TypeAlias = "tuple[Row, Row, int]"
"""A duplicate and its canonical, as they were grouped, and their distance in bits."""


Decisive: TypeAlias = Mapping[str, bool]
"""Fields of ``_source`` that decide about the documents of an index, and for each whether a null in it is a value."""


def read_document(source: Mapping[str, Any], text_fields: Sequence[str], titles: Sequence[str]) -> Document | None:
    """Return what is compared of a document; ``None`` if its text cannot be read, or it has none."""
    try:
        text = read_text(source, text_fields)
    except InvalidInputError:
        return None
    if text is None:
        return None
    values = (value for name in titles for value in read_values(source, name))
    return Document.of(text, *(str(value) for value in values if value is not None))


@dataclass(frozen=True, slots=True)
class Comparer:
    """
    Compares documents as they are now.
    *text_fields* (by index name) say how texts are read. *decided_by* (by index name): what is digested, whole.
    *bound*: the smallest similarity of a duplicate to its canonical. *shown*: fields that people see before these and
    the text. *titles*: those of them that count as text. *longest*: longer values are cut in the plan.
    """

    text_fields: Mapping[str, Sequence[str]]
    bound: float
    decided_by: Mapping[str, Decisive]
    shown: Sequence[str] = ()
    titles: Sequence[str] = ()
    longest: int = 10_000
    measure: TextMeasure = WORD_SHINGLES

    @property
    def source_fields(self) -> list[str]:
        by_index = [*self.text_fields.values(), *self.decided_by.values()]
        return sorted({*(name for fields in by_index for name in fields), *self.shown})

    def compare(self, candidates: Sequence[Candidate], items: Mapping[Key, Mapping[str, Any]]) -> list[Compared]:
        """
        Return for each candidate its line of the plan, or why it is left out. *items* has each multi-get item. Memory:
        two prepared texts at a time, each up to 60 times as large as the text.
        """
        judged: list[Compared] = []
        for _, pairs in groupby(candidates, key=lambda pair: pair[1].key):
            stays: _Read | LeftOut | None = None
            for row, canonical, distance in pairs:
                stays = stays or self._read(canonical, items[canonical.key])
                judged.append(self._judge(self._read(row, items[row.key]), stays, distance))
        return judged

    def _judge(self, goes: _Read | LeftOut, stays: _Read | LeftOut, distance: int) -> Compared:
        if isinstance(goes, str):
            return goes
        if isinstance(stays, str):
            return stays
        if not all(map(self.measure.size, (goes.shingles, stays.shingles))):
            return "too_short"
        similarity = self.measure.compare(goes.shingles, stays.shingles, bound=self.bound).similarity
        if similarity < self.bound:
            return "not_similar"
        loss = find_loss(goes.document, stays.document)
        shorter = is_kept_shorter(goes.document, stays.document, loss)
        return PlannedRemoval(goes.planned, stays.planned, distance, similarity, loss, shorter)

    def _read(self, row: Row, item: Mapping[str, Any]) -> _Read | LeftOut:
        if "error" in item:
            return "unreadable"
        if not item.get("found"):
            return "changed"
        source = item.get("_source") or {}
        document = read_document(source, self.text_fields[row.index], self.titles)
        if document is None:
            return "unreadable"
        values, cut = self._values(source, row.index)
        digest = digest_of(source, self.decided_by[row.index])
        planned = PlannedDocument(row.id, row.index, row.routing, *version_of(item), digest, values, cut)
        return _Read(planned, document, self.measure.prepare([document.text.text])[0])

    def _values(self, source: Mapping[str, Any], index: str) -> tuple[dict[str, Any], tuple[str, ...]]:
        """Return the values to note in the plan, and the names of those that were cut."""
        values: dict[str, Any] = {}
        cut = []
        for name in dict.fromkeys([*self.shown, *self.text_fields[index], *self.decided_by[index]]):
            found = read_values(source, name)
            if not found:
                continue
            value = found[0] if len(found) == 1 else found
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            if len(text) > self.longest:
                value = text[: self.longest]
                cut.append(name)
            values[name] = value
        return values, tuple(cut)


class _Read(NamedTuple):
    """A document as it is now: what the plan notes of it, and what is compared."""

    planned: PlannedDocument
    document: Document
    shingles: Any


def digest_of(source: Mapping[str, Any], fields: Decisive) -> str:
    """Return the digest of the values of *fields*; an array of one value is that value, and no value is no field."""
    found = {
        name: [value for value in read_values(source, name) if has_nulls or value is not None]
        for name, has_nulls in fields.items()
    }
    values = {name: values_of for name, values_of in found.items() if values_of}
    return blake2b(json.dumps(values, sort_keys=True).encode(), digest_size=16).hexdigest()


def version_of(item: Mapping[str, Any]) -> tuple[int, int]:
    """Return sequence number and primary term of a document that was read, or of a hit."""
    return item["_seq_no"], item["_primary_term"]


def is_written(planned: PlannedDocument, item: Mapping[str, Any]) -> bool:
    """Return whether the document *planned* is there in another version: only then is its source needed."""
    return bool(item.get("found")) and version_of(item) != planned.version


State = Literal["same", "changed", "missing", "no_index", "unreadable"]
"""What became of a document: as planned in all that decided, changed in it, not there, no such index, or not known."""

Fate: TypeAlias = Literal["delete", "deleted_before", "decided", "unsure"] | KeptKind
"""
What to do with a line: delete the document, note that an earlier run has deleted it, keep it, or read it again.
"""

_NO_INDEX = "index_not_found_exception"


def is_unreadable(item: Mapping[str, Any]) -> bool:
    """Return whether the server could not read a document now: a full queue or a moved shard says nothing of it."""
    error = item.get("error")
    return error is not None and not (isinstance(error, Mapping) and error.get("type") == _NO_INDEX)


def state_of(planned: PlannedDocument, item: Mapping[str, Any], decided_by: Mapping[str, Decisive]) -> State:
    """Return what became of *planned*; where it *is_written*, or has its source, *decided_by* has its index."""
    if "error" in item:
        return "unreadable" if is_unreadable(item) else "no_index"
    if not item.get("found"):
        return "missing"
    # A source that came is archived, and a proxy may have cut it.
    if not is_written(planned, item) and "_source" not in item:
        return "same"
    if item.get("_routing") != planned.routing:
        return "changed"  # another document, which its shard keeps under the same id
    return "same" if digest_of(source_of(item), decided_by[planned.index]) == planned.digest else "changed"


def source_of(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return the ``_source`` of an item, which may be text."""
    source = item.get("_source") or {}
    return json.loads(source, parse_int=_read_int) if isinstance(source, str) else source


def _read_int(text: str) -> int | str:
    return int(text) if len(text) <= 4_300 else text  # Python refuses to read the longest


Version: TypeAlias = tuple[int, int]
"""``_seq_no`` and ``_primary_term``."""


def may_delete(
    line: PlannedRemoval,
    item: Mapping[str, Any],
    canonical_item: Mapping[str, Any],
    decided_by: Mapping[str, Decisive],
    *,
    loss: Loss,
    allowed: Collection[Loss] = (),
    is_decided: bool = False,
    is_kept: bool = False,
    was_tried: bool = False,
    shown: Mapping[Key, Version] | None = None,
    matched: Mapping[Key, Version] | None = None,
) -> Fate:
    """
    Return what is to be done with a line of a plan, whose indices are those of the plan, by what is known of it now.
    The one place that allows a deletion.

    *item*, *canonical_item*: the multi-get items of both documents. *decided_by*: by which fields they are judged.
    *loss*: the class of the line by the present texts; *allowed*: what the plan removes. *is_decided*, *is_kept*:
    people decided so. *was_tried*: an earlier run began to delete the document, and did not note that it stayed.
    *shown*: the versions in which the names of the plan show documents, and *matched*: those in which the filter
    matches; ``None`` where that need not be asked.
    """
    document, canonical = line.document, line.canonical
    goes, stays = state_of(document, item, decided_by), state_of(canonical, canonical_item, decided_by)
    if "unreadable" in (goes, stays):
        return "unreadable"
    if "no_index" in (goes, stays):
        return "index_replaced"
    if goes == "missing" and was_tried:
        return "deleted_before"  # whatever is decided now: its canonical is to be checked
    if is_kept:
        return "decided"
    if stays != "same":
        return "canonical_missing" if stays == "missing" else "canonical_changed"
    if goes != "same":
        return "missing" if goes == "missing" else "changed"
    if loss not in allowed and not is_decided:
        return "not_allowed"
    if (shown is not None and document.key not in shown) or (matched is not None and document.key not in matched):
        return "changed"
    if shown is not None and canonical.key not in shown:
        return "canonical_changed"
    read_going, read_staying = version_of(item), version_of(canonical_item)
    seen = [(read_going, matched and matched[document.key])]
    seen += [] if shown is None else [(read_going, shown[document.key]), (read_staying, shown[canonical.key])]
    return "unsure" if any(searched not in (None, read) for read, searched in seen) else "delete"
