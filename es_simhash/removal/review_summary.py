"""A plan of removal in numbers, and each removal beside the document that stays, field by field. Pure."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import isnan
from typing import TYPE_CHECKING, Any

from es_simhash.texts.worddiff import WordDiff, word_diff

if TYPE_CHECKING:
    from es_simhash.removal.records import Guards, PlannedRemoval


LONGEST_VALUE = 120
"""
Characters of a value that is shown in one cell; a longer one is a text.
"""


@dataclass(frozen=True, slots=True)
class FieldPair:
    """
    A field of both documents: its value in the one that goes, and in the one that stays (``None``: it has none).

    *is_cut*: the plan has only the beginning of a value. *diff*: the words that differ, where white space counts
    as one space; ``None`` for short values.
    """

    name: str
    goes: str | None
    stays: str | None
    is_cut: bool = False
    diff: WordDiff | None = None

    @property
    def is_equal(self) -> bool:
        """Whether both values are the same."""
        return self.goes == self.stays


def field_text(value: Any) -> str | None:
    """Return the value of a field as text; ``None`` where there is none."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, (list, tuple)) and all(isinstance(each, str) for each in value):
        return "\n".join(value)
    return json.dumps(value, ensure_ascii=False)


def is_short(value: str | None) -> bool:
    """Return whether *value* fits into one cell."""
    return value is None or (len(value) <= LONGEST_VALUE and "\n" not in value)


def compare_fields(removal: PlannedRemoval, *, max_changes: int = 6) -> list[FieldPair]:
    """
    Return the fields of both documents, in the order of the document that goes; *max_changes* differences
    for each.
    """
    goes, stays = removal.document, removal.canonical
    cut = {*goes.cut, *stays.cut}
    pairs = []
    for name in dict.fromkeys([*goes.fields, *stays.fields]):
        one, other = field_text(goes.fields.get(name)), field_text(stays.fields.get(name))
        diff = None
        if not (is_short(one) and is_short(other)):
            diff = word_diff(_on_one_line(one), _on_one_line(other), max_changes=max_changes)
        pairs.append(FieldPair(name, one, other, name in cut, diff))
    return pairs


def _on_one_line(text: str | None) -> str:
    # White space is no part of a shingle: a line that was wrapped elsewhere is no difference.
    return " ".join((text or "").split())


BANDS = 20
"""
Bands of similarity between 0 and 1; texts of similarity 1 have a band of their own.
"""


MOST_VALUES = 50


MOST_GROUPS = 10


# A field is counted by where its values repeat: a title, which differs in each document, is no source.
_MOST_DIFFERENT = 1_000


Band = float | None


def band_of(similarity: float | None) -> Band:
    """Return the lower end of the band of *similarity*; ``None`` if texts were not compared."""
    if similarity is None or isnan(similarity):
        return None
    return int(min(max(similarity, 0.0), 1.0) * BANDS + 1e-9) / BANDS


@dataclass(frozen=True, slots=True)
class Portion:
    """How many documents would go, of how many (``None``: unknown), for an index or value (``None``: without one)."""

    name: str | None
    removals: int
    documents: int | None = None

    @property
    def share(self) -> float | None:
        """The part that would go, 0 to 1; ``None`` where it is not known."""
        return self.removals / self.documents if self.documents else None

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        share = self.share
        return {
            "name": self.name,
            "removals": self.removals,
            "documents": self.documents,
            "share": None if share is None else round(share, 4),
        }


@dataclass(frozen=True, slots=True)
class Summary:
    """
    The numbers of a plan; tuples have most removals first.

    *bands* has the smallest similarity first, before it ``None`` for texts that were not compared. *groups*:
    index and id of the documents that stand for most removals, with the number. *canonicals*: how many different
    documents stay. *lowest*: the smallest similarity; ``None`` if no texts were compared.
    """

    total: Portion
    indices: tuple[Portion, ...]
    fields: Mapping[str, tuple[Portion, ...]]
    bands: Mapping[Band, int]
    groups: tuple[tuple[str, str, int], ...]
    canonicals: int
    lowest: float | None

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as plain JSON values."""
        return {
            "total": self.total.to_dict(),
            "indices": [each.to_dict() for each in self.indices],
            "fields": {name: [each.to_dict() for each in shares] for name, shares in self.fields.items()},
            "similarity": [{"from": band, "removals": number} for band, number in self.bands.items()],
            "groups": [{"index": index, "id": id_, "removals": number} for index, id_, number in self.groups],
            "canonicals": self.canonicals,
            "lowest": self.lowest,
        }


def summarize(removals: Iterable[PlannedRemoval], guards: Guards) -> Summary:
    """Return the numbers of a plan, also by the protected field and each field whose values are short and repeat."""
    indices: Counter[str] = Counter()
    bands: Counter[Band] = Counter()
    groups: Counter[tuple[str, str]] = Counter()
    values = _Values(guards.protect)
    lowest: float | None = None
    for each in removals:
        indices[each.document.index] += 1
        bands[band_of(each.similarity)] += 1
        groups[each.canonical.index, each.canonical.id] += 1
        values.add(each.document.fields)
        if each.similarity is not None:
            lowest = each.similarity if lowest is None else min(lowest, each.similarity)
    total = indices.total()
    protected = {name: share.documents for name, share in guards.values.items()}
    fields = {
        name: _shares(counts, protected if name == guards.protect else {}) for name, counts in values.counted(total)
    }
    return Summary(
        Portion(None, total, guards.documents or None),
        _shares(indices, {}),
        fields,
        dict(sorted(bands.items(), key=lambda item: -1.0 if item[0] is None else item[0])),
        tuple((index, id_, number) for (index, id_), number in groups.most_common(MOST_GROUPS) if number > 1),
        len(groups),
        lowest,
    )


class _Values:
    """Counts the values of each field, as long as they can be a source, a language or the like."""

    def __init__(self, protect: str | None) -> None:
        self._protect = protect
        self._counts: dict[str, Counter[str | None]] = {}
        self._dropped: set[str] = set()
        self._seen = 0

    def add(self, fields: Mapping[str, Any]) -> None:
        for name in {*fields, *self._counts} - self._dropped:
            text = field_text(fields.get(name))
            counts = self._counts.setdefault(name, Counter({None: self._seen} if self._seen else {}))
            counts[text] += 1
            if name != self._protect and (not is_short(text) or len(counts) > _MOST_DIFFERENT):
                self._dropped.add(name)
                del self._counts[name]
        self._seen += 1

    def counted(self, total: int) -> list[tuple[str, Counter[str | None]]]:
        """Return the fields to show; the protected one first."""
        fits = [
            (name, counts)
            for name, counts in self._counts.items()
            if name == self._protect or 2 * len(counts) <= max(total, 2)
        ]
        return sorted(fits, key=lambda item: (item[0] != self._protect, item[0]))


def _shares(counts: Counter[Any], documents: Mapping[str, int]) -> tuple[Portion, ...]:
    return tuple(Portion(name, number, documents.get(name)) for name, number in counts.most_common(MOST_VALUES))
