"""
Telling which of many candidates are near by their fingerprints alone, before anything else of them is read.

A hit's id lies in the stored fields, and unpacking those costs a server several times what the rest of a hit does. What
is near is asked for a second time, by its fingerprint. The searches are ``lookup``'s business.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from es_simhash.flows.paging import Hits
from es_simhash.flows.protocol import Flow
from es_simhash.index.rescore import NearDup, held_fingerprints

__all__ = ["Skim"]


class Skim:
    """
    The fingerprints of candidates, as far as they are near.

    Args:
        fingerprint:
            The fingerprint looked up.
        max_distance:
            Largest distance of what is kept, in bits.
        name:
            The docvalue field that holds fingerprints.
    """

    def __init__(self, fingerprint: int, max_distance: int, name: str) -> None:
        self.candidates = 0
        self._fingerprint = fingerprint
        self._max_distance = max_distance
        self._name = name
        self._near: Counter[int] = Counter()
        self._unreadable = 0

    def note(self, hits: Hits) -> Flow[bool]:
        """Remember the near fingerprints of a page of candidates; never enough."""
        yield from ()
        self.candidates += len(hits)
        for hit in hits:
            held = held_fingerprints(hit, self._name)
            if not held:
                self._unreadable += 1
                continue
            distance, nearest = min((self._distance(value), value) for value in (int(each, 16) for each in held))
            if distance <= self._max_distance:
                self._near[nearest] += 1
        return False

    def parts(self, size: int | None, most: int) -> Iterator[frozenset[int]]:
        """
        Yield the fingerprints to ask for, at most *most* together: those of the *size* nearest documents, or all.
        """
        if size is not None:
            self._cut(size)
        near = sorted(self._near, key=self._distance)
        for start in range(0, len(near), most):
            yield frozenset(near[start : start + most])

    def documents(self, part: frozenset[int]) -> int:
        """Return how many of the candidates have a fingerprint of *part*."""
        return sum(self._near[each] for each in part)

    def tick_off(self, found: list[NearDup]) -> None:
        """Take note that these documents, each once, have been read with all that their hits carry."""
        self._near.subtract(each.fingerprint for each in found)

    @property
    def is_whole(self) -> bool:
        """Whether every candidate could be compared, and each near one has been read since."""
        return not self._unreadable and all(count <= 0 for count in self._near.values())

    def _distance(self, value: int) -> int:
        return (value ^ self._fingerprint).bit_count()

    def _cut(self, size: int) -> None:
        """Forget what is farther than the *size* nearest documents."""
        at_distance = Counter[int]()
        for value, count in self._near.items():
            at_distance[self._distance(value)] += count
        documents = 0
        for distance in sorted(at_distance):
            documents += at_distance[distance]
            if documents >= size:
                self._near = Counter({v: n for v, n in self._near.items() if self._distance(v) <= distance})
                return
