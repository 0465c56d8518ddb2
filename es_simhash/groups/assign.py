"""
Neighbours, and groups of them: exact, whatever the order of arrival. Loads numpy: import lazily.

Places are in canonical order, the preferred document first. A document is canonical if no neighbour before it
is (the lexicographically first maximal independent set); every other document joins the first canonical among its
neighbours, so a later document never takes members from an earlier one. No requests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import IO, Any, Self

import numpy as np
from numpy.typing import NDArray

from es_simhash.groups.all_pairs import expand_ranges, near_pairs
from es_simhash.groups.grouping_request import Resources
from es_simhash.groups.joins import PlacePairs, Places
from es_simhash.groups.shares import sort_places
from es_simhash.lookup.content import TextStore

MISSING = np.iinfo(np.int64).min
"""The date of a document without one, which has no neighbours."""
# Dates beyond this are moved to it, so that a span can be added to them.
_LATEST = 2**62 - 1
# Pairs kept in memory where there is a file for the others. A pair takes 8 bytes, and 16 where there are more than
# 2**32 places.
MOST_EDGES = 20_000_000
# Pairs read from the file at once.
PAIRS_READ = 1 << 20
# A chain in canonical order settles one document a round; after so many rounds it is walked one by one.
MOST_ROUNDS = 50
_UNDECIDED, _CANONICAL, _MEMBER = 0, 1, 2
_USUAL = Resources()


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
        columns = [each[order] for each in (fingerprint, keyword, date, text)]
        is_first = np.ones(len(order), np.bool_)
        is_first[1:] = np.logical_or.reduce([each[1:] != each[:-1] for each in columns])
        starts = np.flatnonzero(is_first)
        fingerprint, keyword, date, text = (each[starts] for each in columns)
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

    def candidates(self, max_distance: int, resources: Resources = _USUAL) -> Iterator[PlacePairs]:
        """Yield the pairs of nodes that distance, keyword and dates allow, each once, in parts of bounded size."""
        every = np.arange(len(self), dtype=np.int64)
        end = np.searchsorted(self._key, self._family * self._dates + self._high, side="left")
        yield from expand_ranges(every, every + 1, end)
        for found in near_pairs(
            self._values, max_distance, threads=resources.threads, memory_bytes=resources.memory_bytes
        ):
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

    def with_candidates(self, max_distance: int, resources: Resources = _USUAL) -> Places:
        """Return the places of the documents that may have a neighbour: only their texts are of interest."""
        some = self.counts > 1
        for left, right in self.candidates(max_distance, resources):
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


class Edges:
    """Pairs of places, readable many times in the same order. Use it in a ``with`` statement."""

    def __init__(self, count: int, pairs: Iterable[PlacePairs], spill: Callable[[], IO[bytes]] | None = None) -> None:
        self._spill = spill
        self._type = np.dtype(np.uint32 if count <= 1 << 32 else np.uint64)
        self._parts: list[NDArray[np.unsignedinteger]] = []
        self._file: IO[bytes] | None = None
        try:
            self._keep(pairs)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[PlacePairs]:
        """Yield the pairs as (earlier, later)."""
        for part in self._parts:
            yield part[:, 0].astype(np.int64), part[:, 1].astype(np.int64)
        if self._file is not None:
            self._file.seek(0)
            while data := self._file.read(2 * PAIRS_READ * self._type.itemsize):
                part = np.frombuffer(data, self._type).reshape(-1, 2)
                yield part[:, 0].astype(np.int64), part[:, 1].astype(np.int64)

    def _keep(self, pairs: Iterable[PlacePairs]) -> None:
        kept = 0
        for left, right in pairs:
            part = np.stack((np.minimum(left, right), np.maximum(left, right)), axis=1).astype(self._type)
            kept += len(part)
            if kept <= MOST_EDGES or self._spill is None:
                self._parts.append(part)
            else:
                self._file = self._file or self._spill()
                self._file.write(part.tobytes())

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


def group_fingerprints(fingerprints: NDArray[np.uint64], max_distance: int, *, resources: Resources = _USUAL) -> Places:
    """
    Return, for each fingerprint in canonical order, the place of its canonical, which may be itself.

    Copies cost nothing. Memory: 16 bytes a fingerprint and ``memory_bytes`` while pairs are made, then 24 to 34
    bytes a fingerprint and 8 bytes a pair; with ``spill``, pairs beyond 160 MB go to a file.

    >>> chain = np.array([0b000, 0b011, 0b111], np.uint64)
    >>> group_fingerprints(chain, 2).tolist()
    [0, 0, 2]
    """
    ordered, places = sort_places(np.ascontiguousarray(fingerprints, np.uint64))
    is_first = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    # The first copy represents all copies: it is the first of them in canonical order.
    starts = np.flatnonzero(is_first)
    copies = np.flatnonzero(~is_first)
    originals = places[starts[np.searchsorted(starts, copies, side="right") - 1]]
    copies = places[copies]
    if len(copies):
        ordered, places = ordered[starts], places[starts]
    del starts, is_first

    def pairs() -> Iterator[PlacePairs]:
        for found in near_pairs(ordered, max_distance, threads=resources.threads, memory_bytes=resources.memory_bytes):
            yield places[found.left], places[found.right]

    canonical = group_pairs(len(fingerprints), pairs(), resources)
    canonical[copies] = canonical[originals]
    return canonical


def group_documents(
    documents: Documents,
    max_distance: int,
    *,
    span: int = 0,
    sets: TextStore | None = None,
    similarity: float = 0.0,
    resources: Resources = _USUAL,
) -> Places:
    """Return the place of each document's canonical, where more than the distance makes neighbours."""
    nodes = Nodes(documents, span=span)

    def near() -> Iterator[PlacePairs]:
        for left, right in nodes.candidates(max_distance, resources):
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
    grouped = group_pairs(len(nodes), pairs, resources)
    canonical = np.arange(len(documents.fingerprints), dtype=np.int64)
    canonical[nodes.places] = nodes.first[order][grouped][rank[nodes.node]]
    return canonical


def group_pairs(count: int, pairs: Iterable[PlacePairs], resources: Resources = _USUAL) -> Places:
    """Return, for each of *count* places in canonical order, the place of its canonical; *pairs* are the neighbours."""
    with Edges(count, pairs, resources.spill) as edges:
        return _star(count, edges)


def _star(count: int, edges: Edges) -> Places:
    state = np.zeros(count, np.int8)
    for _ in range(MOST_ROUNDS):
        blocked = np.zeros(count, np.bool_)
        for earlier, later in edges:
            live = (state[earlier] == _UNDECIDED) & (state[later] == _UNDECIDED)
            blocked[later[live]] = True
        fresh = (state == _UNDECIDED) & ~blocked
        state[fresh] = _CANONICAL
        for earlier, later in edges:
            state[later[fresh[earlier]]] = _MEMBER
        if not (state == _UNDECIDED).any():
            break
    else:
        _walk(state, edges)
    canonical = np.arange(count, dtype=np.int64)
    for earlier, later in edges:
        chosen = state[earlier] == _CANONICAL
        np.minimum.at(canonical, later[chosen], earlier[chosen])
    return canonical


def _walk(state: NDArray[np.int8], edges: Edges) -> None:
    """Decide the documents of long chains that are still undecided, one after the other."""
    after: dict[int, list[int]] = {}
    for earlier, later in edges:
        live = (state[earlier] == _UNDECIDED) & (state[later] == _UNDECIDED)
        for a, b in zip(earlier[live].tolist(), later[live].tolist(), strict=True):
            after.setdefault(a, []).append(b)
    for place in np.flatnonzero(state == _UNDECIDED).tolist():
        if state[place] == _UNDECIDED:
            state[place] = _CANONICAL
            state[after.get(place, [])] = _MEMBER
