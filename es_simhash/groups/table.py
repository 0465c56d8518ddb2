"""The fingerprinted documents of an index as columns: 48 bytes, and the id. No requests. Loads numpy: import lazily."""

from __future__ import annotations

import itertools
from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from es_simhash.groups.all_pairs import distances_between
from es_simhash.groups.assign import (
    MISSING,
    Documents,
    group_documents,
    near_pairs,
    with_candidates,
)
from es_simhash.groups.joins import Places
from es_simhash.lookup.content import TextStore, shown_moments
from es_simhash.mapping.fields import Fields, full_name, read_fingerprint, read_text
from es_simhash.mapping.rule import Grouping, OrderKey
from es_simhash.transport.protocol import Key

Columns = dict[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Row:
    """One document of a table."""

    id: str
    index: str
    fingerprint: int
    routing: str | None

    @property
    def key(self) -> Key:
        """The key that no other document has: index, ``_id`` and routing."""
        return Key(self.index, self.id, self.routing)


class Ids:
    """Whole ids, UTF-8 one after another: each takes 8 bytes and its own length."""

    def __init__(self, ids: Iterable[str] = ()) -> None:
        self._bytes = bytearray()
        self._bounds = array("q", [0])
        self.extend(ids)

    def extend(self, ids: Iterable[str]) -> None:
        for id_ in ids:
            self._bytes += id_.encode()
            self._bounds.append(len(self._bytes))

    def __getitem__(self, place: int) -> str:
        return self._bytes[self._bounds[place] : self._bounds[place + 1]].decode()

    def ranks(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return how many of the ids at *places* are smaller than each, by code points, as UTF-8 sorts."""
        bounds = np.frombuffer(self._bounds, np.int64)
        begin, end = bounds[places], bounds[places + 1]
        ranks = np.zeros(len(places), np.int64)
        tied = np.arange(len(places))  # those with the rank of another one, of which 8 more bytes are read
        while len(tied):
            words, rest = self._words(begin[tied], end[tied])
            order = np.lexsort((rest, words, ranks[tied]))
            tied, words, rest = tied[order], words[order], rest[order]
            is_next = np.append(True, np.diff(ranks[tied]) != 0)
            is_new = is_next | np.append(True, (words[1:] != words[:-1]) | (rest[1:] != rest[:-1]))
            del words, order
            ranks[tied] += _first_of(is_new) - _first_of(is_next)
            begin[tied] += 8
            tied = tied[~(is_new & np.append(is_new[1:], True)) & (rest > 8)]
        return ranks

    def _words(self, begin: NDArray[np.int64], end: NDArray[np.int64]) -> tuple[NDArray[np.uint64], NDArray[np.uint8]]:
        """Return 8 bytes from each *begin* as a number, and how many more there are: 9 stands for all above 8."""
        # A NUL is a byte as any other: so where an id ends decides after its bytes.
        rest = np.minimum(end - begin, 9).astype(np.uint8)
        data, words = np.frombuffer(self._bytes, np.uint8), np.zeros(len(begin), np.uint64)
        for at in range(8):
            words <<= np.uint64(8)
            has_more = rest > at
            words[has_more] |= data[begin[has_more] + at]
        return words, rest


def _first_of(flags: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the place of the last of *flags* up to each."""
    return np.maximum.accumulate(np.where(flags, np.arange(len(flags)), 0))


class Table:
    """
    Collects what *grouping* needs from hits.
    *dates*: which of the fields that it reads are dates. *text_fields*, by name of the index: for the order
    ``"longest"``.
    """

    def __init__(
        self,
        prefix: str,
        grouping: Grouping,
        *,
        dates: Collection[str] = (),
        text_fields: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self._fields = Fields(prefix)
        self._grouping = grouping
        self.dates = frozenset(dates)
        self._text_fields = text_fields or {}
        self._keys = grouping.order_keys
        # Place of the key that prefers the one that was grouped first: who has no moment then comes last.
        first = OrderKey("field", self._fields.at)
        self._first = self._keys.index(first) if first in self._keys else None
        # Numbers of the indices, and of the values of per.
        self._names: dict[str, int] = {}
        self._values: dict[tuple[str, ...], int] = {}
        self._ids = Ids()
        self._routings: dict[int, str] = {}
        self._count = 0
        self.unreadable = 0  # documents that had what is no fingerprint; the first of them
        self.first_unreadable: str | None = None
        self._parts: list[Columns] = []

    def __len__(self) -> int:
        return self._count

    def search_body(self) -> dict[str, Any]:
        """Return the body of a search for documents of the table, without the query."""
        ours, grouping = self._fields, self._grouping
        names = dict.fromkeys(
            [*(key.field for key in self._keys), grouping.per, grouping.within and grouping.within.field]
        )
        shown = [{"field": name, "format": "epoch_millis"} if name in self.dates else name for name in names if name]
        is_by_length = any(key.kind == "longest" for key in self._keys)
        texts = sorted({name for fields in self._text_fields.values() for name in fields})
        return {
            "docvalue_fields": [ours.fingerprint, ours.group, ours.duplicate_of, ours.distance, *shown],
            "_source": texts if is_by_length else False,
        }

    def add(self, hits: Sequence[Mapping[str, Any]]) -> None:
        """Add a row for each of *hits* that carries a fingerprint."""
        name = self._fields.fingerprint
        prints = [read_fingerprint((hit.get("fields", {}).get(name) or (None,))[0]) for hit in hits]
        broken = [hit for hit, value in zip(hits, prints, strict=True) if value is None]
        if broken:
            self.unreadable += len(broken)
            self.first_unreadable = self.first_unreadable or f"{broken[0]['_index']}/{broken[0]['_id']}"
            hits = [hit for hit, value in zip(hits, prints, strict=True) if value is not None]
        for place, hit in enumerate(hits, self._count):
            if "_routing" in hit:
                self._routings[place] = hit["_routing"]
        self._count += len(hits)
        self._ids.extend(hit["_id"] for hit in hits)
        if hits:
            self._parts.append(self._read(hits, [value for value in prints if value is not None]))

    def _read(self, hits: Sequence[Mapping[str, Any]], prints: Sequence[int]) -> Columns:
        """Return a row for each of *hits*."""
        told = np.array([self._told(hit) for hit in hits], np.int64).reshape(-1, 2)
        columns: Columns = {
            "fingerprint": np.array(prints, np.uint64),
            "index": np.array([self._names.setdefault(hit["_index"], len(self._names)) for hit in hits], np.int32),
            "state": told[:, 0],
            "named": told[:, 1],
        }
        per, within = self._grouping.per, self._grouping.within
        if per is not None:
            columns["per"] = np.array([self._value(hit["fields"].get(per)) for hit in hits], np.int64)
        if within is not None:
            dates = [shown_moments(hit["fields"].get(within.field) or ()) for hit in hits]
            columns["date"] = np.array([min(some, default=MISSING) for some in dates], np.int64)
        for number, key in enumerate(self._keys):
            columns[f"rank{number}"] = np.array([self._rank(key, hit) for hit in hits], np.float64)
        return columns

    def _told(self, hit: Mapping[str, Any]) -> tuple[int, int]:
        """Return a hash of its group fields, and one of the name of its group, which is odd for a canonical."""
        names, fields = self._fields, hit["fields"]
        group, canonical, distance = (
            (fields.get(name) or [None])[0] for name in (names.group, names.duplicate_of, names.distance)
        )
        has_moment = self._first is None or names.at in fields
        state = hash((group, canonical, None if distance is None else int(distance), has_moment))
        return state, hash(canonical or group or hit["_id"]) >> 1 << 1 | (canonical is None)

    def count_lost(self) -> int:
        """Return how many documents name a canonical that has no row."""
        named = self._columns()["named"]
        is_canonical = named % 2 == 1
        return int((~np.isin(named[~is_canonical], named[is_canonical] - 1)).sum())

    def _value(self, values: Sequence[str] | None) -> int:
        """Return the number of a document's values; all of them count, in no order."""
        if not values:
            return -1
        return self._values.setdefault(tuple(sorted(set(values))), len(self._values))

    def _rank(self, key: OrderKey, hit: Mapping[str, Any]) -> float:
        if key.kind == "longest":
            return -float(len(read_text(hit.get("_source") or {}, self._text_fields[hit["_index"]]) or ""))
        values = hit["fields"].get(key.field) or ()
        return key.rank(shown_moments(values) if key.field in self.dates else values)

    def _columns(self) -> Columns:
        if not self._parts:
            return self._read([], [])
        if len(self._parts) > 1:
            # A column after the other, so that only one is there twice.
            parts, names = self._parts, list(self._parts[0])
            self._parts = [{name: np.concatenate([part.pop(name) for part in parts]) for name in names}]
        return self._parts[0]

    def ids(self, places: NDArray[np.int64]) -> list[str]:
        return [self._ids[place] for place in places.tolist()]

    def _with_equal_ids(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return those of *places* whose document has the id of another of them."""
        if len(self._names) < 2 and not self._routings:
            return places[:0]
        _, number, counts = np.unique(self._ids.ranks(places), return_inverse=True, return_counts=True)
        return places[counts[number] > 1]

    def row(self, place: int) -> Row:
        columns = self._columns()
        name = list(self._names)[columns["index"][place]]
        return Row(self._ids[place], name, int(columns["fingerprint"][place]), self._routings.get(place))

    def next_moment(self, now: int) -> int:
        """Return the moment, in milliseconds, of what is grouped *now*: after all, if moments decide who stays."""
        moments = self._columns()[f"rank{self._first}"] if self._first is not None else np.empty(0)
        return max(now, int(moments[np.isfinite(moments)].max(initial=0)) + 1)

    def with_candidates(self) -> NDArray[np.int64]:
        """Return the places of the documents that may have a neighbour, by all that decides but their texts."""
        documents = self._documents(np.arange(self._count))
        return np.sort(with_candidates(documents, self._grouping.max_distance, span=self._span()))

    def group(self, texts: Texts | None = None) -> Groups:
        """Return the groups that the rule makes of the documents; *texts*, where it compares any, of the candidates."""
        grouping, columns = self._grouping, self._columns()
        order = self.order()
        grouped = group_documents(
            self._documents(order, texts),
            grouping.max_distance,
            span=self._span(),
            sets=None if texts is None else texts.sets,
            similarity=grouping.similarity or 0.0,
        )
        canonical = np.empty(len(order), np.int64)
        canonical[order] = order[grouped]
        distance = distances_between(columns["fingerprint"], columns["fingerprint"][canonical])
        return Groups(self, canonical, distance, columns["state"], self._full_names(canonical), texts)

    def _full_names(self, canonical: NDArray[np.int64]) -> dict[int, str]:
        """Return the names of the groups whose canonical shares its id with another one; the first keeps the id."""
        canonicals = np.flatnonzero(canonical == np.arange(len(canonical)))
        keys = [(self.row(place).key, place) for place in self._with_equal_ids(canonicals).tolist()]
        keys.sort(key=lambda pair: (pair[0].id, pair[0].index, pair[0].routing or ""))
        found = {
            place: full_name(key.index, key.id, key.routing)
            for (before, _), (key, place) in itertools.pairwise(keys)
            if before.id == key.id
        }
        # Another canonical may have such a name as its id.
        taken = set(self.ids(canonicals)) if found else set()
        for place, name in found.items():
            longer = (f"{self.row(place).index}/" * number + name for number in itertools.count())
            found[place] = next(name for name in longer if name not in taken)
            taken.add(found[place])
        return found

    def _span(self) -> int:
        """Return the largest difference of dates, in milliseconds."""
        return 0 if self._grouping.within is None else self._grouping.within.milliseconds

    def order(self) -> NDArray[np.int64]:
        """Return the places in canonical order."""
        columns = self._columns()
        # By name: the numbers of indices follow the order in which hits came, which the next run need not have.
        names = np.unique(list(self._names), return_inverse=True)[1]
        # The last key of a lexsort is the first that decides.
        places = np.arange(self._count)
        keys: list[NDArray[Any]] = [
            names[columns["index"]],
            self._ids.ranks(places),
            *(columns[f"rank{number}"] for number in reversed(range(len(self._keys)))),
        ]
        if self._routings:
            routings = Ids(self._routings.get(place, "") for place in range(self._count))
            keys.insert(0, routings.ranks(places))
        return np.lexsort(keys)

    def _documents(self, order: NDArray[np.int64], texts: Texts | None = None) -> Documents:
        columns = self._columns()
        deciding = columns.get("per"), columns.get("date"), None if texts is None else texts.numbers
        given = [None if column is None else column[order] for column in deciding]
        return Documents(columns["fingerprint"][order], *given)

    def pairs(self, *, split: int | None = None) -> Iterator[tuple[Places, Places, NDArray[np.uint8]]]:
        """
        Yield the pairs of places that distance, values and dates allow, each once, the first place the smaller; and
        their distances in bits. *split*: only pairs of a place before it and one from it on.
        """
        documents = self._documents(np.arange(self._count))
        for one, other in near_pairs(documents, self._grouping.max_distance, span=self._span()):
            left, right = np.minimum(one, other), np.maximum(one, other)
            if split is not None:
                some = (left < split) & (right >= split)
                left, right = left[some], right[some]
            yield left, right, distances_between(documents.fingerprints[left], documents.fingerprints[right])


# Ids that are strings of Python at once.
_IDS = 100_000


@dataclass(frozen=True, slots=True)
class Texts:
    """
    The texts of documents as far as they were read; the arrays have a row for each place.
    *numbers*, and *versions* (``_seq_no`` and ``_primary_term``), are -1 where no text was read. *unread* counts the
    texts that were asked for and could not be read.
    """

    sets: TextStore
    numbers: NDArray[np.int64]
    versions: NDArray[np.int64]
    unread: int = 0


@dataclass(frozen=True, slots=True)
class Groups:
    """
    The groups that a rule makes of a table; *states* hash the group fields that documents have.
    *distance*: to the canonical, in bits. *full_names*: those of groups whose canonical shares its id with another
    canonical, by place; others have the id.
    """

    table: Table
    canonical: NDArray[np.int64]
    distance: NDArray[np.uint8]
    states: NDArray[np.int64]
    full_names: Mapping[int, str]
    texts: Texts | None = None

    @property
    def duplicates(self) -> NDArray[np.int64]:
        """Places of the documents that are not canonical."""
        return np.flatnonzero(self.canonical != np.arange(len(self.canonical)))

    @property
    def unread(self) -> int:
        """How many documents have no neighbours because their text could not be read."""
        return 0 if self.texts is None else self.texts.unread

    def short(self) -> set[Key]:
        """Return the documents that are near another one, and whose text is too short to compare."""
        if self.texts is None:
            return set()
        read = np.flatnonzero(self.texts.numbers >= 0).tolist()
        return {self.table.row(place).key for place in read if not self.texts.sets[self.texts.numbers[place]].size}

    def names(self, canonicals: NDArray[np.int64]) -> list[str]:
        """Return the names of the groups of *canonicals*."""
        ids = self.table.ids(canonicals)
        if not self.full_names:
            return ids
        return [self.full_names.get(place, id_) for place, id_ in zip(canonicals.tolist(), ids, strict=True)]

    def version(self, place: int) -> tuple[int, int] | None:
        """Return the version of the document at *place* by whose text it was grouped; ``None`` if that was not read."""
        if self.texts is None:
            return None
        number, term = self.texts.versions[place].tolist()
        return None if number < 0 else (number, term)

    def wrong(self) -> list[int]:
        """Return the places of the documents whose group fields are wrong."""
        found = []
        for begin in range(0, len(self.canonical), _IDS):
            part = slice(begin, begin + _IDS)
            columns = (self.names(self.canonical[part]), self.canonical[part], self.distance[part])
            rows = zip(columns[0], columns[1].tolist(), columns[2].tolist(), self.states[part].tolist(), strict=True)
            for place, (group, canonical, distance, state) in enumerate(rows, begin):
                wanted = (group, None, None, True) if canonical == place else (group, group, distance, True)
                if hash(wanted) != state:
                    found.append(place)
        return found
