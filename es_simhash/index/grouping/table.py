"""
The fingerprinted documents of an index as columns: 30 to 80 bytes a document, so that 10 million fit in memory.

Rows come from hits, and decisions about all of them at once come out. Pure; numpy is loaded here, so callers import
this module when they first need it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from es_simhash.errors import InvalidInputError
from es_simhash.hashing import from_hex
from es_simhash.index.documents import read_text
from es_simhash.index.fields import Fields
from es_simhash.index.grouping.all_pairs import distances_between, near_pairs
from es_simhash.index.grouping.assign import group_fingerprints
from es_simhash.index.grouping.order import OrderKey
from es_simhash.index.grouping.rule import Grouping

__all__ = ["Groups", "Row", "Table"]

# Ids that are strings of Python at once.
CHUNK = 100_000


@dataclass(frozen=True, slots=True)
class Row:
    """
    One document of a table.

    Attributes:
        id:
            Its ``_id``.
        index:
            Name of the index that holds it.
        fingerprint:
            Its fingerprint, unsigned.
        routing:
            Its routing value, where it has one.
    """

    id: str
    index: str
    fingerprint: int
    routing: str | None


class Table:
    """
    Collects what grouping needs from hits.

    Args:
        prefix:
            Name of the object that holds the fields.
        grouping:
            The rule; its order decides which column is kept in addition to fingerprint and id. ``None`` where the
            order of documents does not matter.
        dates:
            Which of the fields that the grouping reads are dates.
        text_fields:
            For the order ``"longest"``: fields of the text, by name of the index.
    """

    def __init__(
        self,
        prefix: str,
        grouping: Grouping | None = None,
        *,
        dates: Collection[str] = (),
        text_fields: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self._fields = Fields(prefix)
        self._grouping = grouping
        self._dates = frozenset(dates)
        self._keys = grouping.keys if grouping is not None else ()
        self._text_fields = dict(text_fields or {})
        self._names: dict[str, int] = {}
        self._routings: dict[int, str] = {}
        self._count = 0
        self._parts: list[tuple[Any, ...]] = []
        if self._needs_texts:
            self._check_text_fields()

    def __len__(self) -> int:
        return self._count

    @property
    def _needs_texts(self) -> bool:
        return any(key.kind == "longest" for key in self._keys)

    def _check_text_fields(self) -> None:
        unknown = [name for name, fields in self._text_fields.items() if not fields]
        if unknown or not self._text_fields:
            raise InvalidInputError(
                f"{'index ' + repr(unknown[0]) if unknown else 'the index'} does not record which field has the text, "
                "so the longest text is not known: record it with put_mapping"
            )

    def search_body(self) -> dict[str, Any]:
        """Return the body of a search for documents of the table, without the query."""
        names: list[Any] = [self._fields.fingerprint]
        source: Any = False
        if self._grouping is not None:
            names += [self._fields.group, self._fields.duplicate_of, self._fields.distance]
            for name in dict.fromkeys(key.field for key in self._keys if key.field):
                names.append({"field": name, "format": "epoch_millis"} if name in self._dates else name)
            if self._needs_texts:
                source = sorted({name for fields in self._text_fields.values() for name in fields})
        return {"docvalue_fields": names, "_source": source}

    def add(self, hits: Sequence[Mapping[str, Any]]) -> None:
        """Add a row for each of *hits* that carries a fingerprint."""
        name = self._fields.fingerprint
        hits = [hit for hit in hits if hit.get("fields", {}).get(name)]
        for place, hit in enumerate(hits, self._count):
            if "_routing" in hit:
                self._routings[place] = hit["_routing"]
        self._count += len(hits)
        if hits:
            self._parts.append(
                (
                    np.array([from_hex(hit["fields"][name][0]) for hit in hits], np.uint64),
                    # Fixed width, so no object for each id; sorts by code points, as UTF-8 does.
                    np.array([hit["_id"].encode() for hit in hits], np.bytes_),
                    np.array([self._names.setdefault(hit["_index"], len(self._names)) for hit in hits], np.int32),
                    np.array([self._state(hit["fields"]) for hit in hits], np.int64),
                    *(np.array([self._rank(key, hit) for hit in hits], np.float64) for key in self._keys),
                )
            )

    def _state(self, fields: Mapping[str, Any]) -> int:
        if self._grouping is None:
            return 0
        names = self._fields
        group, canonical, distance = (
            (fields.get(name) or [None])[0] for name in (names.group, names.duplicate_of, names.distance)
        )
        return hash((group, canonical, None if distance is None else int(distance)))

    def _rank(self, key: OrderKey, hit: Mapping[str, Any]) -> float:
        if key.kind == "longest":
            return -float(len(read_text(hit.get("_source") or {}, self._text_fields[hit["_index"]]) or ""))
        return key.rank(hit["fields"].get(key.field) or ())

    def _columns(self) -> tuple[NDArray[Any], ...]:
        if len(self._parts) > 1:
            self._parts = [tuple(np.concatenate(column) for column in zip(*self._parts, strict=True))]
        if not self._parts:
            return (
                np.empty(0, np.uint64),
                np.empty(0, np.bytes_),
                np.empty(0, np.int32),
                np.empty(0, np.int64),
                *(np.empty(0, np.float64) for _ in self._keys),
            )
        return self._parts[0]

    def ids(self, places: NDArray[np.int64]) -> list[str]:
        """Return the ids of the documents at *places*."""
        return [each.decode() for each in self._columns()[1][places].tolist()]

    def row(self, place: int) -> Row:
        """Return the document at *place*."""
        fingerprints, ids, indices = self._columns()[:3]
        name = list(self._names)[indices[place]]
        return Row(ids[place].decode(), name, int(fingerprints[place]), self._routings.get(place))

    def group(self) -> Groups:
        """Return the groups that the rule makes of the documents."""
        if self._grouping is None:
            raise InvalidInputError("a table without a rule cannot be grouped")
        fingerprints, ids, indices, states, *ranks = self._columns()
        # By name: the numbers of indices follow the order in which hits came, which the next run need not have.
        places = {name: place for place, name in enumerate(sorted(self._names))}
        names = np.array([places[name] for name in self._names], np.int32)
        # The last key of a lexsort is the first that decides.
        order = np.lexsort((names[indices], ids, *reversed(ranks)))
        grouped = group_fingerprints(fingerprints[order], self._grouping.max_distance, rule=self._grouping.rule)
        canonical = np.empty(len(order), np.int64)
        canonical[order] = order[grouped]
        distance = distances_between(fingerprints, fingerprints[canonical])
        return Groups(self, canonical, distance, states)

    def pairs(self, max_distance: int, *, sides: NDArray[np.bool_] | None = None) -> Iterator[tuple[int, int, int]]:
        """
        Yield (place, place, distance) of every pair within *max_distance*, each once.

        Args:
            max_distance:
                Largest distance in bits, inclusive.
            sides:
                For each document, on which of two sides it is; only pairs from both are wanted, the first from the
                side that is false.
        """
        values, inverse, counts = np.unique(self._columns()[0], return_inverse=True, return_counts=True)
        by_value = np.argsort(inverse.reshape(-1), kind="stable")
        ends = np.cumsum(counts)

        def places(value: int) -> list[int]:
            found: list[int] = by_value[ends[value] - counts[value] : ends[value]].tolist()
            return found

        for value in np.flatnonzero(counts > 1).tolist():
            same = places(value)
            for number, a in enumerate(same):
                for b in same[number + 1 :]:
                    yield from _across(a, b, 0, sides)
        for found in near_pairs(values, max_distance):
            for left, right, distance in zip(
                found.left.tolist(), found.right.tolist(), found.distance.tolist(), strict=True
            ):
                others = places(right)
                for a in places(left):
                    for b in others:
                        yield from _across(a, b, distance, sides)


def _across(a: int, b: int, distance: int, sides: NDArray[np.bool_] | None) -> Iterator[tuple[int, int, int]]:
    if sides is None:
        yield min(a, b), max(a, b), distance
    elif sides[a] != sides[b]:
        yield (b, a, distance) if sides[a] else (a, b, distance)


@dataclass(frozen=True, slots=True)
class Groups:
    """
    The groups that a rule makes of a table.

    Attributes:
        table:
            The documents.
        canonical:
            For each, the place of its canonical; its own where it is one.
        distance:
            Distances to it, in bits.
        states:
            What the documents say of their group now, hashed.
    """

    table: Table
    canonical: NDArray[np.int64]
    distance: NDArray[np.uint8]
    states: NDArray[np.int64]

    @property
    def duplicates(self) -> NDArray[np.int64]:
        """Places of the documents that are not canonical."""
        return np.flatnonzero(self.canonical != np.arange(len(self.canonical)))

    def wrong(self) -> list[int]:
        """Return the places of the documents whose group fields are wrong."""
        found = []
        for begin in range(0, len(self.canonical), CHUNK):
            part = slice(begin, begin + CHUNK)
            columns = (self.table.ids(self.canonical[part]), self.canonical[part], self.distance[part])
            rows = zip(columns[0], columns[1].tolist(), columns[2].tolist(), self.states[part].tolist(), strict=True)
            for place, (group, canonical, distance, state) in enumerate(rows, begin):
                wanted = (group, None, None) if canonical == place else (group, group, distance)
                if hash(wanted) != state:
                    found.append(place)
        return found
