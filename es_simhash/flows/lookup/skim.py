"""
Skimming: reading only the fingerprints of many candidates first, and then the documents of those that are near.

The expensive part of a hit is its ``_id``: it lies in the stored fields, and unpacking those costs a server several
times what the rest of a hit does. The requests live in ``search`` and ``transfer.pages``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from es_simhash.flows.lookup.collect import Collector
from es_simhash.flows.lookup.question import Question
from es_simhash.flows.transfer.pages import Handle, Hits, Pass, without_requests
from es_simhash.hashing import from_hex
from es_simhash.index.rescore import NearDup, held_fingerprints

__all__ = ["Part", "Skim", "skim_passes"]


def skim_passes(question: Question, collector: Collector, read_whole: Handle) -> Iterator[Pass]:
    """
    Yield the passes, in one view of the index, that collect the same as reading all candidates whole.

    Args:
        question:
            The question.
        collector:
            Receives what was found, at the end; nothing before, since a view may turn out not to be readable.
        read_whole:
            Handles the pages of all candidates where skimming did not find what it counted.
    """
    sizes = question.subject.options.sizes
    skim = Skim(question.fingerprint, question.max_distance, question.field)
    body = question.body() | {"stored_fields": "_none_"}
    del body["_source"]  # a server refuses both together
    # Candidates that did not fit on a first page are more than were expected.
    likely = 2 * question.expected if question.expects_many else 2 * sizes.first_page
    page = int(min(max(likely + 1, 2 * sizes.first_page), sizes.largest_page))
    yield Pass(body, without_requests(skim.count), page, likely)
    parts = skim.parts(question.subject.options.size, min(sizes.fingerprints, question.limits.max_terms))
    found: list[NearDup] = []
    for part in parts:
        page = min(sizes.next_page, part.missing + 1)
        body = question.subject.holders_body(part.fingerprints, page=page)
        yield Pass(body, _part_handler(part, collector, found), page, part.documents)
    if skim.is_whole(parts):
        collector.found, collector.candidates = found, skim.candidates
    else:
        # A document has block terms and no fingerprint, for example: read everything whole.
        yield Pass(question.body(), read_whole, sizes.next_page)


def _part_handler(part: Part, collector: Collector, found: list[NearDup]) -> Handle:
    field = collector.question.field

    def take(hits: Hits) -> bool:
        found.extend(part.take(collector.rescore([hit for hit in hits if held_fingerprints(hit, field)])))
        return part.any_will_do and not part.missing

    return without_requests(take)


@dataclass(slots=True)
class Part:
    """
    Near fingerprints whose documents are asked for together.

    Attributes:
        fingerprints:
            The fingerprints.
        documents:
            How many of the candidates have one of them.
        missing:
            How many more documents are wanted; below 0, more were found than there are candidates.
        any_will_do:
            Whether fewer are wanted than there are, no matter which.
    """

    fingerprints: frozenset[int]
    documents: int
    missing: int
    any_will_do: bool

    def take(self, found: Sequence[NearDup]) -> list[NearDup]:
        """Return the wanted documents of a page of documents *found*."""
        wanted = [each for each in found if each.fingerprint in self.fingerprints]
        if self.any_will_do:
            wanted = wanted[: self.missing]
        self.missing -= len(wanted)
        return wanted


class Skim:
    """
    The near fingerprints among the candidates of a lookup.

    Args:
        fingerprint:
            The fingerprint looked up.
        max_distance:
            Largest distance of a near-duplicate, in bits.
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

    def count(self, hits: Hits) -> None:
        """Count the near fingerprints of a page of candidates."""
        self.candidates += len(hits)
        for hit in hits:
            digits = held_fingerprints(hit, self._name)
            if not digits:
                self._unreadable += 1
                continue
            distance, nearest = min((self._distance(value), value) for value in map(from_hex, digits))
            if distance <= self._max_distance:
                self._near[nearest] += 1

    def parts(self, size: int | None, most: int) -> list[Part]:
        """
        Return what to ask for, at most *most* fingerprints together: all that is near, or the *size* nearest documents.
        """
        left = sum(self._near.values()) if size is None else size
        farthest = self._farthest(left)
        # Of the documents at the farthest distance that is needed, only some are needed, no matter which.
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
        totals = accumulate(counts)
        return next((distance for distance, total in enumerate(totals) if total > documents), len(counts))

    def is_whole(self, parts: Sequence[Part]) -> bool:
        """Return whether every candidate was compared, and every wanted near-duplicate was found."""
        return not self._unreadable and not any(part.missing for part in parts)

    def _distance(self, value: int) -> int:
        return (value ^ self._fingerprint).bit_count()
