"""
Neighbours, and groups of them: exact, whatever the order of arrival. Loads numpy: import lazily.

Places are in canonical order, the preferred document first. A document is canonical if no neighbour before it
is (the lexicographically first maximal independent set); every other document joins the first canonical among its
neighbours, so a later document never takes members from an earlier one. No requests.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from es_simhash.groups.all_pairs import expand_ranges, near_pairs
from es_simhash.groups.joins import PlacePairs, Places
from es_simhash.lookup.content import TextStore

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
        if self.per is not None:
            found &= self.per >= 0
        if self.dates is not None:
            found &= self.dates != MISSING
        if self.texts is not None:
            found &= self.texts >= 0
        return found


class Nodes:
    """
    Documents as nodes, about 150 bytes each; *span*, inclusive, is in the unit of their dates.
    Documents that nothing tells apart are one node, so any number of copies costs nothing. Texts are compared last.
    """

    def __init__(self, documents: Documents, *, span: int = 0) -> None:
        places = np.flatnonzero(documents.has_all())
        self._values, fingerprint = _number(documents.fingerprints[places])
        keyword = _number(_pick(documents.per, places))[1]
        dates, date = _number(np.clip(_pick(documents.dates, places), -_LATEST, _LATEST))
        text = _pick(documents.texts, places)
        # Stable, so the first document of a node is the first of them in canonical order.
        order = np.lexsort((text, date, keyword, fingerprint))
        columns = [column[order] for column in (fingerprint, keyword, date, text)]
        is_first = np.ones(len(order), np.bool_)
        is_first[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
        starts = np.flatnonzero(is_first)
        fingerprint, keyword, date, text = (column[starts] for column in columns)
        self.places = places
        """Places of the documents that have a node; the others have no neighbours."""
        self.node = np.empty(len(order), np.int64)
        """The node of each of them."""
        self.node[order] = np.cumsum(is_first) - 1
        self.first: Places = places[order[starts]]
        """For each node, the place of its first document."""
        self.counts = np.diff(np.append(starts, len(order)))
        """How many documents each node has."""
        self.texts: NDArray[np.int64] = text
        """The text of each node."""
        self._keyword = keyword
        self._keywords = int(keyword.max()) + 1 if len(keyword) else 1
        self._sets, family = np.unique(fingerprint * self._keywords + keyword, return_inverse=True)
        self._dates = max(1, len(dates))
        self._family = family.reshape(-1)
        # Sorted as the nodes are: those of one fingerprint, one keyword and neighbouring dates are a range.
        self._key = self._family * self._dates + date
        reach = min(span, _LATEST)
        self._low = np.searchsorted(dates, dates - reach, side="left")[date]
        self._high = np.searchsorted(dates, dates + reach, side="right")[date]
        self._starts = np.searchsorted(fingerprint, np.arange(len(self._values) + 1))

    def __len__(self) -> int:
        return len(self.first)

    def candidates(self, max_distance: int) -> Iterator[PlacePairs]:
        """Yield the pairs of nodes that distance, keyword and dates allow, each once, in parts of bounded size."""
        every = np.arange(len(self), dtype=np.int64)
        end = np.searchsorted(self._key, self._family * self._dates + self._high, side="left")
        yield from expand_ranges(every, every + 1, end)
        for found in near_pairs(self._values, max_distance):
            yield from self._between(found.left, found.right)

    def _between(self, left: Places, right: Places) -> Iterator[PlacePairs]:
        number = np.arange(len(left))
        for chosen, node in expand_ranges(number, self._starts[left], self._starts[left + 1]):
            wanted = right[chosen] * self._keywords + self._keyword[node]
            family = np.minimum(np.searchsorted(self._sets, wanted), len(self._sets) - 1)
            some = self._sets[family] == wanted
            one, base = node[some], family[some] * self._dates
            first = np.searchsorted(self._key, base + self._low[one], side="left")
            last = np.searchsorted(self._key, base + self._high[one], side="left")
            yield from expand_ranges(one, first, last)

    def with_candidates(self, max_distance: int) -> Places:
        """Return the places of the documents that may have a neighbour: only their texts are of interest."""
        some = self.counts > 1
        for left, right in self.candidates(max_distance):
            some[left] = some[right] = True
        return self.places[some[self.node]]


def _number(values: NDArray[Any]) -> tuple[NDArray[Any], Places]:
    """Return the distinct values, sorted, and the number of each value among them."""
    distinct, number = np.unique(values, return_inverse=True)
    return distinct, number.reshape(-1).astype(np.int64)


def _pick(column: NDArray[np.int64] | None, places: Places) -> NDArray[np.int64]:
    return np.zeros(len(places), np.int64) if column is None else column[places]


def similar_pairs(
    pairs: PlacePairs, texts: NDArray[np.int64], sets: TextStore, similarity: float
) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Return which *pairs* have texts of at least *similarity*, and similarities, exact only for those."""
    left, right = texts[pairs[0]], texts[pairs[1]]
    sizes = sets.sizes
    small, large = np.minimum(sizes[left], sizes[right]), np.maximum(sizes[left], sizes[right])
    largest = sets.measure.largest(small, large)
    found = np.where(left == right, largest, 0.0)
    for number in np.flatnonzero((left != right) & (largest >= similarity)).tolist():
        texts_of_pair = sets[int(left[number])], sets[int(right[number])]
        found[number] = sets.measure.compare(*texts_of_pair, bound=similarity).similarity
    return found >= similarity, found


def group_fingerprints(fingerprints: NDArray[np.uint64], max_distance: int) -> Places:
    """
    Return, for each fingerprint in canonical order, the place of its canonical, which may be itself.

    Copies cost nothing. Memory: 40 bytes a fingerprint, what :func:`near_pairs` takes, and 16 bytes a pair.

    >>> chain = np.array([0b000, 0b011, 0b111], np.uint64)
    >>> group_fingerprints(chain, 2).tolist()
    [0, 0, 2]
    """
    # The first copy represents all copies: it is the first of them in canonical order.
    values, first, number = np.unique(fingerprints, return_index=True, return_inverse=True)
    pairs = ((first[found.left], first[found.right]) for found in near_pairs(values, max_distance))
    return group_pairs(len(fingerprints), pairs)[first[number]]


def group_documents(
    documents: Documents,
    max_distance: int,
    *,
    span: int = 0,
    sets: TextStore | None = None,
    similarity: float = 0.0,
) -> Places:
    """Return the place of each document's canonical, where more than the distance makes neighbours."""
    nodes = Nodes(documents, span=span)

    def near() -> Iterator[PlacePairs]:
        for left, right in nodes.candidates(max_distance):
            if sets is None:
                yield left, right
            else:
                some, _ = similar_pairs((left, right), nodes.texts, sets, similarity)
                yield left[some], right[some]

    # Nodes are sorted by fingerprint: the rules want them in canonical order.
    order = np.argsort(nodes.first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))

    pairs = ((rank[left], rank[right]) for left, right in near())
    grouped = group_pairs(len(nodes), pairs)
    canonical = np.arange(len(documents.fingerprints), dtype=np.int64)
    canonical[nodes.places] = nodes.first[order][grouped][rank[nodes.node]]
    return canonical


def group_pairs(count: int, pairs: Iterable[PlacePairs]) -> Places:
    """Return, for each of *count* places in canonical order, the place of its canonical; *pairs* are the neighbours."""
    parts = [np.minimum(left, right) << 32 | np.maximum(left, right) for left, right in pairs]
    edges = np.sort(np.concatenate([np.empty(0, np.int64), *parts]))
    del parts
    later = edges & 0xFFFF_FFFF
    edges >>= 32
    starts = np.flatnonzero(np.diff(edges, prepend=-1))
    ends = np.append(starts, len(edges))[1:]
    canonical = np.arange(count, dtype=np.int64)
    # Each place, in canonical order, that no canonical before it has taken takes those beside it that are free.
    for earlier, begin, end in zip(edges[starts].data, starts.data, ends.data, strict=True):
        if canonical[earlier] == earlier:
            beside = later[begin:end]
            canonical[beside[canonical[beside] == beside]] = earlier
    return canonical
