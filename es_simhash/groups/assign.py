"""
The rules of grouping: exact, whatever the order of arrival. Loads numpy: import lazily.

Places are in canonical order, the preferred document first. ``star``: a document is canonical if no neighbour
before it is (the lexicographically first maximal independent set); every other document joins the first
canonical among its neighbours, so a later document never takes members from an earlier one. ``connected``: a
group is a connected component, its first document the canonical; members need not be its neighbours. No
requests.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from es_simhash.groups.all_pairs import Edges, near_pairs
from es_simhash.groups.nodes import Documents, Nodes, PreparedTexts, similar_pairs
from es_simhash.groups.order import Resources
from es_simhash.groups.rule import Rule
from es_simhash.groups.shares import sort_places

if TYPE_CHECKING:
    from es_simhash.groups.table import Table


Places = NDArray[np.int64]
# Places whose roots are looked up at once.
STEP = 1 << 20
# A chain in canonical order settles one document a round; after so many rounds it is walked one by one.
MOST_ROUNDS = 50
_UNDECIDED, _CANONICAL, _MEMBER = 0, 1, 2
_USUAL = Resources()


def group_fingerprints(
    fingerprints: NDArray[np.uint64],
    max_distance: int,
    *,
    rule: Rule = "star",
    resources: Resources = _USUAL,
) -> Places:
    """
    Return, for each fingerprint in canonical order, the place of its canonical, which may be itself.

    Copies cost nothing. Memory: 16 bytes a fingerprint and ``memory_bytes`` while pairs are made, then 24 to 34
    bytes a fingerprint and 8 bytes a pair; with ``spill``, pairs beyond 160 MB go to a file.

    >>> chain = np.array([0b000, 0b011, 0b111], np.uint64)
    >>> group_fingerprints(chain, 2).tolist(), group_fingerprints(chain, 2, rule="connected").tolist()
    ([0, 0, 2], [0, 0, 0])
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

    def pairs() -> Iterator[tuple[Places, Places]]:
        for found in near_pairs(ordered, max_distance, threads=resources.threads, memory_bytes=resources.memory_bytes):
            yield places[found.left], places[found.right]

    canonical = group_pairs(len(fingerprints), pairs(), rule, resources)
    canonical[copies] = canonical[originals]
    return canonical


def group_documents(
    documents: Documents,
    max_distance: int,
    *,
    rule: Rule = "star",
    span: int = 0,
    sets: PreparedTexts | None = None,
    similarity: float = 0.0,
    resources: Resources = _USUAL,
) -> Places:
    """Return the place of each document's canonical, where more than the distance makes neighbours."""
    nodes = Nodes(documents, span=span)
    # Nodes are sorted by fingerprint: the rules want them in canonical order.
    order = np.argsort(nodes.first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))

    def pairs() -> Iterator[tuple[Places, Places]]:
        for left, right in nodes.candidates(max_distance, resources):
            if sets is None:
                yield rank[left], rank[right]
            else:
                some, _ = similar_pairs((left, right), nodes.texts, sets, similarity)
                yield rank[left[some]], rank[right[some]]

    grouped = group_pairs(len(nodes), pairs(), rule, resources)
    canonical = np.arange(len(documents.fingerprints), dtype=np.int64)
    canonical[nodes.places] = nodes.first[order][grouped][rank[nodes.node]]
    return canonical


def group_pairs(
    count: int, pairs: Iterable[tuple[Places, Places]], rule: Rule, resources: Resources = _USUAL
) -> Places:
    """Return, for each of *count* places in canonical order, the place of its canonical; *pairs* are the neighbours."""
    with Edges(count, pairs, resources.spill) as edges:
        return _star(count, edges) if rule == "star" else _connected(count, edges)


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


def _connected(count: int, edges: Edges) -> Places:
    """Union-find over arrays: the root of a tree is its earliest place."""
    parent = np.arange(count, dtype=np.int64)
    for a, b in edges:
        while True:
            roots_a, roots_b = _roots(parent, a), _roots(parent, b)
            apart = roots_a != roots_b
            if not apart.any():
                break
            low = np.minimum(roots_a[apart], roots_b[apart])
            high = np.maximum(roots_a[apart], roots_b[apart])
            np.minimum.at(parent, high, low)
            a, b = a[apart], b[apart]  # noqa: PLW2901 -- what is joined need not be looked at again
    for begin in range(0, count, STEP):
        _roots(parent, np.arange(begin, min(begin + STEP, count), dtype=np.int64))
    return parent


def _roots(parent: Places, places: Places) -> Places:
    roots = parent[places]
    while True:
        above = parent[roots]
        if (above == roots).all():
            parent[places] = roots  # shortens the way for later
            return roots
        roots = above


# Ids that are strings of Python at once.
CHUNK = 100_000
_MOST_SHARED = 1_000


@dataclass(frozen=True, slots=True)
class Texts:
    """
    The texts of documents as far as they were read; the arrays have a row for each place.

    *numbers*, and *versions* (``_seq_no`` and ``_primary_term``), are -1 where no text was read, *lengths* in
    characters are 0. *unread* counts the texts that were asked for and could not be read.
    """

    sets: PreparedTexts
    numbers: NDArray[np.int64]
    unread: int = 0
    versions: NDArray[np.int64] | None = None
    lengths: NDArray[np.int64] | None = None


@dataclass(frozen=True, slots=True)
class Groups:
    """The groups that a rule makes of a table; *states* hash the group fields that documents have."""

    table: Table
    canonical: NDArray[np.int64]
    distance: NDArray[np.uint8]
    states: NDArray[np.int64]
    texts: Texts | None = None

    @property
    def duplicates(self) -> NDArray[np.int64]:
        """Places of the documents that are not canonical."""
        return np.flatnonzero(self.canonical != np.arange(len(self.canonical)))

    @property
    def unread(self) -> int:
        """How many documents have no neighbours because their text could not be read."""
        return 0 if self.texts is None else self.texts.unread

    def shared_ids(self) -> dict[str, tuple[str, ...]]:
        """Return the ids that several canonicals have, by id, with the indices of these; at most 1,000."""
        canonicals = np.flatnonzero(self.canonical == np.arange(len(self.canonical)))
        found: dict[str, list[str]] = {}
        for place in self.table.with_equal_ids(canonicals).tolist():
            row = self.table.row(place)
            if row.id not in found and len(found) == _MOST_SHARED:
                break
            found.setdefault(row.id, []).append(row.index)
        return {id_: tuple(sorted(names)) for id_, names in found.items()}

    def version(self, place: int) -> tuple[int, int] | None:
        """Return the version of the document at *place* by whose text it was grouped; ``None`` if that was not read."""
        if self.texts is None or self.texts.versions is None:
            return None
        number, term = self.texts.versions[place].tolist()
        return None if number < 0 else (number, term)

    def similarity(self, places: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the similarity of the documents at *places* to their canonicals; NaN where texts were not compared."""
        found = np.full(len(places), np.nan)
        if self.texts is None:
            return found
        pairs = np.asarray(places, np.int64), self.canonical[places]
        known = (self.texts.numbers[pairs[0]] >= 0) & (self.texts.numbers[pairs[1]] >= 0)
        pairs = pairs[0][known], pairs[1][known]
        found[known] = similar_pairs(pairs, self.texts.numbers, self.texts.sets, 0.0)[1]
        return found

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
