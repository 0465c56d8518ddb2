"""
Telling which of many candidates are near by their fingerprints alone, before anything else of them is read.

A hit's id lies in the stored fields, and unpacking those costs a server several times what the rest of a hit does. What
is near is asked for a second time, by its fingerprint. The searches are ``lookup``'s business.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from es_simhash.flows.protocol import Flow
from es_simhash.flows.transfer.pages import Hits
from es_simhash.hashing import from_hex
from es_simhash.index.rescore import NearDup, held_fingerprints

__all__ = ["Part", "Skim"]


@dataclass(slots=True)
class Part:
    """
    Near fingerprints that are asked for together.

    Attributes:
        fingerprints:
            The fingerprints.
        documents:
            How many of the candidates have one of them.
        missing:
            How many more documents are wanted; below 0, there are others than the candidates.
        any_will_do:
            Whether fewer are wanted than there are, and it is all the same which.
    """

    fingerprints: frozenset[int]
    documents: int
    missing: int
    any_will_do: bool

    def take(self, found: Sequence[NearDup]) -> list[NearDup]:
        """Return what is wanted of a page of documents *found*."""
        wanted = [each for each in found if each.fingerprint in self.fingerprints]
        if self.any_will_do:
            wanted = wanted[: self.missing]
        self.missing -= len(wanted)
        return wanted


class Skim:
    """
    The fingerprints of the candidates of a lookup, as far as they are near.

    Args:
        fingerprint:
            The fingerprint looked up.
        max_distance:
            Largest distance of what is near, in bits.
        name:
            The docvalue field that holds fingerprints.

    Attributes:
        candidates:
            How many candidates were read.
    """

    def __init__(self, fingerprint: int, max_distance: int, name: str) -> None:
        self.candidates = 0
        self._fingerprint = fingerprint
        self._max_distance = max_distance
        self._name = name
        self._near: Counter[int] = Counter()
        self._unreadable = 0

    def note(self, hits: Hits) -> Flow[bool]:
        """Count the near fingerprints of a page of candidates; never enough."""
        yield from ()
        self.candidates += len(hits)
        for hit in hits:
            held = held_fingerprints(hit, self._name)
            if not held:
                self._unreadable += 1
                continue
            distance, nearest = min((self._distance(value), value) for value in map(from_hex, held))
            if distance <= self._max_distance:
                self._near[nearest] += 1
        return False

    def parts(self, size: int | None, most: int) -> list[Part]:
        """
        Return what to ask for, at most *most* fingerprints together: all that is near, or the *size* nearest documents.
        """
        left = sum(self._near.values()) if size is None else size
        farthest = self._farthest(left)
        # Of the documents at the farthest distance that is needed at all, some will do.
        nearer = [each for each in self._near if self._distance(each) < farthest]
        last = [each for each in self._near if self._distance(each) == farthest]
        found: list[Part] = []
        for values in (nearer, last):
            for start in range(0, len(values), most):
                fingerprints = frozenset(values[start : start + most])
                documents = sum(self._near[each] for each in fingerprints)
                wanted = min(documents, left)
                if wanted:
                    found.append(Part(fingerprints, documents, wanted, any_will_do=wanted < documents))
                left -= wanted
        return found

    def _farthest(self, documents: int) -> int:
        """Return the least distance within which there are more than so many *documents*; beyond all if none is."""
        counts = [0] * (self._max_distance + 1)
        for value, count in self._near.items():
            counts[self._distance(value)] += count
        together = accumulate(counts)
        return next((distance for distance, held in enumerate(together) if held > documents), len(counts))

    def is_whole(self, parts: Sequence[Part]) -> bool:
        """Whether every candidate could be compared, and what was wanted of the near ones is there."""
        return not self._unreadable and not any(part.missing for part in parts)

    def _distance(self, value: int) -> int:
        return (value ^ self._fingerprint).bit_count()
