"""
Neighbours, and groups of them: exact, whatever the order of arrival. Loads numpy: import lazily.

Places are in canonical order, the preferred document first. A document is canonical if no neighbour before it
is (the lexicographically first maximal independent set); every other document joins the first canonical among its
neighbours, so a later document never takes members from an earlier one. No requests.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from es_simhash.groups.all_pairs import CHUNK, distinct_pairs, expand_ranges
from es_simhash.groups.joins import PlacePairs, Places
from es_simhash.lookup.content import TextStore
from es_simhash.lookup.fingerprint_table import FingerprintTable

Numbers = NDArray[np.signedinteger[Any]]
MISSING = np.iinfo(np.int64).min
"""The date of a document without one, which has no neighbours."""
# Dates beyond this are moved to it, so that a span can be added to them.
_LATEST = 2**62 - 1


@dataclass(frozen=True, slots=True)
class Documents:
    """
    What decides about neighbours, in canonical order; ``None`` for what does not decide.
    *dates* are whole numbers of one unit, or :data:`MISSING`; *per* and *texts* are numbers of values, or -1. A
    document without one of them has no neighbours.
    """

    fingerprints: NDArray[np.uint64]
    per: NDArray[np.int64] | None = None
    dates: NDArray[np.int64] | None = None
    texts: NDArray[np.int64] | None = None

    def has_all(self) -> NDArray[np.bool_]:
        """Return which documents have everything that neighbours need."""
        found = np.ones(len(self.fingerprints), np.bool_)
        for column, missing in ((self.per, -1), (self.dates, MISSING), (self.texts, -1)):
            if column is not None:
                found &= column != missing
        return found


class Nodes:
    """
    Documents as nodes, about 80 bytes each, fewer than 2**31; *span*, inclusive, is in the unit of their dates.
    Documents that nothing tells apart are one node, so any number of copies costs nothing. Texts are compared last.
    """

    def __init__(self, documents: Documents, *, span: int = 0) -> None:
        self.places = np.flatnonzero(documents.has_all())
        """Places of the documents that have a node; the others have no neighbours."""
        # Numbers of 32 bits: with all documents as rows, these columns are what takes most memory.
        self._values, fingerprint = _number(documents.fingerprints[self.places])
        keyword = _number(_pick(documents.per, self.places))[1]
        dates, date = _number(np.clip(_pick(documents.dates, self.places), -_LATEST, _LATEST))
        text = _pick(documents.texts, self.places).astype(np.int32)
        # Stable, so the first document of a node is the first of them in canonical order.
        order = np.lexsort((text, date, keyword, fingerprint))
        fingerprint, keyword, date, text = (column[order] for column in (fingerprint, keyword, date, text))
        is_first = np.ones(len(order), np.bool_)
        is_first[1:] = np.logical_or.reduce(
            [column[1:] != column[:-1] for column in (fingerprint, keyword, date, text)]
        )
        self.node = np.empty(len(order), np.int32)
        """The node of each of them."""
        self.node[order] = np.cumsum(is_first, dtype=np.int32) - 1
        starts = np.flatnonzero(is_first)
        self.first: Places = self.places[order[starts]]
        """For each node, the place of its first document."""
        del order, is_first
        self.texts: Numbers = text[starts]
        """The text of each node."""
        fingerprint, self._keyword, date = fingerprint[starts], keyword[starts], date[starts]
        del starts, keyword, text
        self._keywords = int(self._keyword.max(initial=0)) + 1
        self._numbers = np.arange(len(self._values), dtype=np.int32)
        self._dates = max(1, len(dates))
        reach = min(span, _LATEST)
        self._low = np.searchsorted(dates, dates - reach, side="left").astype(np.int32)[date]
        self._high = np.searchsorted(dates, dates + reach, side="right").astype(np.int32)[date]
        self._starts = np.searchsorted(fingerprint, np.append(self._numbers, len(self._values)))
        family = fingerprint.astype(np.int64) * self._keywords + self._keyword
        is_new = np.append(True, family[1:] != family[:-1])[: len(family)]
        self._sets = family[is_new]
        # Sorted as the nodes are: those of one fingerprint, one keyword and neighbouring dates are a range.
        self._key = (np.cumsum(is_new) - 1) * self._dates + date

    def __len__(self) -> int:
        return len(self.first)

    def part(self, some: Places) -> Self:
        """Return the nodes of the numbers *some*, which are sorted."""
        value = np.searchsorted(self._starts, some, side="right") - 1
        present, starts = np.unique(value, return_index=True)
        part = copy(self)
        of_nodes = ("first", "texts", "_keyword", "_key", "_low", "_high")
        vars(part).update({name: getattr(self, name)[some] for name in of_nodes})
        vars(part).update(_values=self._values[present], _numbers=self._numbers[present])
        vars(part).update(_starts=np.append(starts, len(some)))
        return part

    def candidates(self, max_distance: int) -> Iterator[PlacePairs]:
        """Yield the pairs of nodes that distance, keyword and dates allow, each once, in parts of bounded size."""
        for begin in range(0, len(self), CHUNK):
            key = self._key[begin : begin + CHUNK]
            some = np.arange(begin, begin + len(key))
            end = np.searchsorted(self._key, key - key % self._dates + self._high[some], side="left")
            yield from expand_ranges(some, some + 1, end)
        for left, right in distinct_pairs(self._values, max_distance):
            yield from self._between(self, left, right)

    def across(self, others: Self, max_distance: int) -> Iterator[PlacePairs]:
        """Yield such pairs of a node and one of *others*, which is another part of the same nodes."""
        for left, right in _across(self._values, others._values, max_distance):
            yield from self._between(others, left, right)

    def _between(self, others: Self, left: Places, right: Places) -> Iterator[PlacePairs]:
        """Yield those of pairs of places of values, *right* of those of *others*."""
        number = np.arange(len(left))
        for chosen, node in expand_ranges(number, self._starts[left], self._starts[left + 1]):
            wanted = others._numbers[right[chosen]].astype(np.int64) * self._keywords + self._keyword[node]
            family = np.minimum(np.searchsorted(self._sets, wanted), len(self._sets) - 1)
            some = self._sets[family] == wanted
            one, base = node[some], family[some] * self._dates
            first = np.searchsorted(others._key, base + self._low[one], side="left")
            last = np.searchsorted(others._key, base + self._high[one], side="left")
            yield from expand_ranges(one, first, last)


def _across(values: NDArray[np.uint64], others: NDArray[np.uint64], max_distance: int) -> Iterator[PlacePairs]:
    """Yield the pairs of places of two sorted arrays of distinct fingerprints within *max_distance*."""
    table = FingerprintTable(max_distance)
    table.add(values)
    for begin in range(0, len(others) if len(values) else 0, ASKED):
        right, near = table.near_pairs(others[begin : begin + ASKED])
        yield np.searchsorted(values, near), right + begin


def _number(values: NDArray[Any]) -> tuple[NDArray[Any], Numbers]:
    """Return the distinct values, sorted, and the number of each value among them."""
    distinct, number = np.unique(values, return_inverse=True)
    return distinct, number.reshape(-1).astype(np.int32)


def _pick(column: NDArray[np.int64] | None, places: Places) -> NDArray[np.int64]:
    return np.zeros(len(places), np.int64) if column is None else column[places]


def similar_pairs(
    left: Numbers, right: Numbers, sets: TextStore, similarity: float
) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Return which pairs of texts have at least *similarity*, and similarities, exact only for those."""
    sizes = sets.sizes
    small, large = np.minimum(sizes[left], sizes[right]), np.maximum(sizes[left], sizes[right])
    largest = sets.measure.largest(small, large)
    found = np.where(left == right, largest, 0.0)
    for number in np.flatnonzero((left != right) & (largest >= similarity)).tolist():
        texts_of_pair = sets[int(left[number])], sets[int(right[number])]
        found[number] = sets.measure.compare(*texts_of_pair, bound=similarity).similarity
    return found >= similarity, found


@dataclass(frozen=True, slots=True)
class Near:
    """Who are neighbours among nodes: within *max_distance*, and where there are *sets*, with similar texts."""

    max_distance: int
    sets: TextStore | None = None
    similarity: float = 0.0

    def among(self, nodes: Nodes) -> Iterator[PlacePairs]:
        """Yield the pairs of neighbours, each once."""
        return self._similar(nodes.candidates(self.max_distance), nodes.texts, nodes.texts)

    def across(self, nodes: Nodes, others: Nodes) -> Iterator[PlacePairs]:
        """Yield the pairs of neighbours of a node and one of *others*."""
        return self._similar(nodes.across(others, self.max_distance), nodes.texts, others.texts)

    def _similar(self, pairs: Iterable[PlacePairs], *texts: Numbers) -> Iterator[PlacePairs]:
        for left, right in pairs:
            if self.sets is None:
                yield left, right
            else:
                some, _ = similar_pairs(texts[0][left], texts[1][right], self.sets, self.similarity)
                yield left[some], right[some]


# Pairs of neighbours that are held at once: for each node, and in any case.
PAIRS_OF_NODE, PAIRS = 8, 1 << 18
# One node of so many shows which groups are large: those of which it has so many members.
HEAD, LARGE = 64, 8
ASKED = 1 << 18
MOST_PAIRS = 2**62


@dataclass(frozen=True, slots=True)
class _Thinned:
    """
    Nodes without most members of large groups, so that their pairs are few, however large a group is.
    *order*: the nodes in canonical order, in which *edges*, the pairs of the others, are numbers. *gone*: the nodes
    that were taken out, and *canonical*: of each of these.
    """

    order: Places
    edges: Places
    gone: Places
    canonical: Places


def _thin(nodes: Nodes, near: Near) -> _Thinned:
    """
    Take the members of large groups out, until the others have few pairs.
    The first nodes in canonical order are grouped by themselves: their canonicals are those of all, so what is near
    one of them is decided. Those of large groups show whom they take.
    """
    order = np.argsort(nodes.first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    gone, canonical = [order[:0]], [order[:0]]
    most = PAIRS_OF_NODE * len(nodes) + PAIRS
    part, numbers = nodes, rank
    while (edges := _pack(((numbers[a], numbers[b]) for a, b in near.among(part)), most)) is None:
        left = order[numbers]
        is_head = numbers < np.partition(numbers, len(left) // HEAD)[len(left) // HEAD]
        head, tail = left[is_head], left[~is_head]
        canonicals, members = np.unique(_group(nodes.part(head), near), return_counts=True)
        large = nodes.part(head[canonicals[members >= LARGE]])
        is_gone = np.zeros(len(tail), np.bool_)
        for _, found in near.across(large, nodes.part(tail)):
            is_gone[found] = True
        taken, first = tail[is_gone], rank[head[canonicals]]
        if not len(taken):
            most = MOST_PAIRS  # no group is large
            continue
        best = np.full(len(taken), len(nodes))
        for leader, found in near.across(nodes.part(head[canonicals]), nodes.part(taken)):
            np.minimum.at(best, found, first[leader])
        gone.append(taken)
        canonical.append(order[best])
        left = np.setdiff1d(left, taken, assume_unique=True)
        part, numbers = nodes.part(left), rank[left]
    return _Thinned(order, edges, np.concatenate(gone), np.concatenate(canonical))


def _pack(pairs: Iterable[PlacePairs], most: int) -> Places | None:
    """Return *pairs* sorted, each as one number, the smaller place first; ``None`` if there are more than *most*."""
    parts, count = [np.empty(0, np.int64)], 0
    for left, right in pairs:
        count += len(left)
        if count > most:
            return None
        parts.append(np.minimum(left, right) << 32 | np.maximum(left, right))
    return np.sort(np.concatenate(parts))


def _group(nodes: Nodes, near: Near) -> Places:
    """Return for each node the number of its canonical."""
    thinned = _thin(nodes, near)
    found = np.empty(len(nodes), np.int64)
    found[thinned.order] = thinned.order[_group_edges(len(nodes), thinned.edges)]
    found[thinned.gone] = thinned.canonical
    return found


def near_pairs(documents: Documents, max_distance: int, *, span: int = 0) -> Iterator[PlacePairs]:
    """Yield the places of every two documents that distance, values and dates allow, each pair once; texts aside."""
    # Each is told apart from all others, so that each is a node.
    nodes = Nodes(replace(documents, texts=np.arange(len(documents.fingerprints))), span=span)
    for left, right in nodes.candidates(max_distance):
        yield nodes.first[left], nodes.first[right]


def with_candidates(documents: Documents, max_distance: int, *, span: int = 0) -> Places:
    """Return the places of the documents that may have a neighbour: only their texts are of interest."""
    nodes, near = Nodes(documents, span=span), Near(max_distance)
    thinned = _thin(nodes, near)
    some = np.bincount(nodes.node, minlength=len(nodes)) > 1
    for found in (thinned.order[thinned.edges >> 32], thinned.order[thinned.edges & _LOW]):
        some[found] = True
    if len(thinned.gone):
        some[thinned.gone] = some[thinned.canonical] = True
        alone = np.flatnonzero(~some)
        for _, found in near.across(nodes.part(np.sort(thinned.gone)), nodes.part(alone)):
            some[alone[found]] = True
    return nodes.places[some[nodes.node]]


def group_documents(
    documents: Documents,
    max_distance: int,
    *,
    span: int = 0,
    sets: TextStore | None = None,
    similarity: float = 0.0,
) -> Places:
    """Return the place of each document's canonical, where more than the distance makes neighbours."""
    if sets is not None and documents.texts is not None and similarity:
        # A text without words, or with too few, has nothing in common with any, not even with itself.
        is_empty = np.isin(documents.texts, np.flatnonzero(sets.sizes == 0))
        documents = replace(documents, texts=np.where(is_empty, -1, documents.texts))
    nodes = Nodes(documents, span=span)
    canonical = np.arange(len(documents.fingerprints), dtype=np.int64)
    canonical[nodes.places] = nodes.first[_group(nodes, Near(max_distance, sets, similarity))][nodes.node]
    return canonical


def group_pairs(count: int, left: Places, right: Places) -> Places:
    """Return, for each of *count* places in canonical order, the place of its canonical; the pairs are neighbours."""
    return _group_edges(count, np.sort(np.minimum(left, right) << 32 | np.maximum(left, right)))


_LOW = 0xFFFF_FFFF


def _group_edges(count: int, edges: Places) -> Places:
    """Group *count* places in canonical order by sorted *edges*, in one pass."""
    later, earlier = edges & _LOW, edges >> 32
    starts = np.flatnonzero(np.diff(earlier, prepend=-1))
    ends = np.append(starts, len(edges))[1:]
    canonical = np.arange(count, dtype=np.int64)
    # Each place, in canonical order, that no canonical before it has taken takes those beside it that are free.
    for place, begin, end in zip(earlier[starts].data, starts.data, ends.data, strict=True):
        if canonical[place] == place:
            beside = later[begin:end]
            canonical[beside[canonical[beside] == beside]] = place
    return canonical
