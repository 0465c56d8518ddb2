"""
What grouping needs of a hit, as columns of arrays: which fields a search brings, and how their values are kept.

Pure; numpy is loaded here, so callers import this module when they first need it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import floor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from es_simhash.errors import InvalidInputError
from es_simhash.groups.content import LAST_OF_NANOS, moment_of
from es_simhash.groups.nodes import MISSING
from es_simhash.groups.order import OrderKey
from es_simhash.groups.rule import Grouping
from es_simhash.hashing import from_hex
from es_simhash.mapping.documents import read_text
from es_simhash.mapping.fields import Fields

# In a millisecond.
_NANOS = 1_000_000
# Nanoseconds are counted from here, in milliseconds since 1970, so that 64 bits also hold a date and a span beyond it.
_MIDDLE = LAST_OF_NANOS // 2

Columns = dict[str, NDArray[Any]]


class ColumnReader:
    """
    Turns hits into columns.

    Args:
        prefix:
            Name of the object that holds the fields.
        grouping:
            Decides which columns there are; ``None`` for fingerprints and ids alone.
        dates:
            Which of the fields that the grouping reads are dates.
        text_fields:
            For the order ``"longest"``: fields of the text, by name of the index.
    """

    def __init__(
        self,
        prefix: str,
        grouping: Grouping | None,
        *,
        dates: Collection[str],
        text_fields: Mapping[str, Sequence[str]],
    ) -> None:
        self._fields = Fields(prefix)
        self._grouping = grouping
        self._dates = frozenset(dates)
        self._text_fields = text_fields
        self._keys = grouping.keys if grouping is not None else ()
        self._per = grouping.per if grouping is not None else None
        self._within = grouping.within if grouping is not None else None
        self._names: dict[str, int] = {}
        self._values: dict[tuple[str, ...], int] = {}

    @property
    def names(self) -> list[str]:
        """The indices of the documents, in the order of their numbers."""
        return list(self._names)

    @property
    def ranks(self) -> list[str]:
        """Names of the columns that decide the canonical order before the id, the first one first."""
        return [f"rank{number}" for number in range(len(self._keys))]

    @property
    def _measures_texts(self) -> bool:
        return any(key.kind == "longest" for key in self._keys)

    def search_body(self) -> dict[str, Any]:
        """Return the body of a search for documents of the table, without the query."""
        names: list[Any] = [self._fields.fingerprint]
        source: Any = False
        if self._grouping is not None:
            names += [self._fields.group, self._fields.duplicate_of, self._fields.distance]
            more = [key.field for key in self._keys if key.field]
            more += [self._per] if self._per else []
            more += [self._within.field] if self._within else []
            for name in dict.fromkeys(more):
                names.append({"field": name, "format": "epoch_millis"} if name in self._dates else name)
            if self._measures_texts:
                source = sorted({name for fields in self._text_fields.values() for name in fields})
        return {"docvalue_fields": names, "_source": source}

    def read(self, hits: Sequence[Mapping[str, Any]]) -> Columns:
        """Return a row for each of *hits*, all of which have a fingerprint."""
        name = self._fields.fingerprint
        columns: Columns = {
            "fingerprint": np.array([from_hex(hit["fields"][name][0]) for hit in hits], np.uint64),
            # Fixed width, so no object for each id; sorts by code points, as UTF-8 does.
            "id": np.array([hit["_id"].encode() for hit in hits], np.bytes_),
            "index": np.array([self._names.setdefault(hit["_index"], len(self._names)) for hit in hits], np.int32),
            "state": np.array([self._state(hit["fields"]) for hit in hits], np.int64),
        }
        if self._per is not None:
            columns["per"] = np.array([self._value(hit["fields"].get(self._per)) for hit in hits], np.int64)
        if self._within is not None:
            dates = [_date(hit["fields"].get(self._within.field)) for hit in hits]
            columns["date"] = np.array([whole for whole, _ in dates], np.int64)
            columns["nanos"] = np.array([nanos for _, nanos in dates], np.int32)
        for column, key in zip(self.ranks, self._keys, strict=True):
            columns[column] = np.array([self._rank(key, hit) for hit in hits], np.float64)
        return columns

    def _state(self, fields: Mapping[str, Any]) -> int:
        if self._grouping is None:
            return 0
        names = self._fields
        group, canonical, distance = (
            (fields.get(name) or [None])[0] for name in (names.group, names.duplicate_of, names.distance)
        )
        return hash((group, canonical, None if distance is None else int(distance)))

    def _value(self, values: Sequence[str] | None) -> int:
        """Return the number of a document's values; all of them count, in no order."""
        if not values:
            return -1
        return self._values.setdefault(tuple(sorted(set(values))), len(self._values))

    def _rank(self, key: OrderKey, hit: Mapping[str, Any]) -> float:
        if key.kind == "longest":
            return -float(len(read_text(hit.get("_source") or {}, self._text_fields[hit["_index"]]) or ""))
        return key.rank(hit["fields"].get(key.field) or ())


def _date(values: Sequence[Any] | None) -> tuple[int, int]:
    """Return the earliest of a document's dates: its milliseconds, and its nanoseconds beyond them."""
    moment = moment_of(values or ())
    if moment is None:
        return MISSING, 0
    whole = floor(moment)
    return whole, int((moment - whole) * _NANOS)


def comparable_dates(columns: Columns) -> tuple[NDArray[np.int64] | None, int]:
    """
    Return the dates as whole numbers, and how many of these make a millisecond.

    They are milliseconds, unless a date has parts of one, as a ``date_nanos`` may.

    Raises:
        InvalidInputError: If such a date stands beside one that no ``date_nanos`` can have: numbers of 64 bits do not
            hold the nanoseconds of both.
    """
    dates, nanos = columns.get("date"), columns.get("nanos")
    if dates is None or nanos is None or not nanos.any():
        return dates, 1
    known = dates != MISSING
    if (known & ((dates < 0) | (dates > LAST_OF_NANOS))).any():
        raise InvalidInputError(
            "some dates of the field 'within' have parts of a millisecond, and others are before 1970 or after 2262: "
            "they cannot be compared exactly; map the field as 'date' in every index"
        )
    return np.where(known, (dates - _MIDDLE) * _NANOS + nanos, MISSING), _NANOS
