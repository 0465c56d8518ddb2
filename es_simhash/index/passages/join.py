"""
Which documents of an index share a term of passages: all pairs of them, found in memory.

Documents are numbers, their places in a table of the caller. Pure; numpy is loaded here, so callers import this module
when they first need it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from es_simhash.hashing.winnowing import TERM_CHARACTERS

__all__ = ["PlacePairs", "SharedTerms"]

PlacePairs = tuple[NDArray[np.int64], NDArray[np.int64]]
# Pairs that are made at once; one document may have more.
_CHUNK = 1 << 21


class SharedTerms:
    """
    The terms of documents, and the pairs of documents that share one.

    Memory: some 50 bytes a term while pairs are made, 12 before.

    Args:
        common:
            A term that more documents have is common: it makes no pairs.
    """

    def __init__(self, *, common: int) -> None:
        self._common = common
        self._count = 0
        self._parts: list[tuple[NDArray[np.uint64], NDArray[np.int32]]] = []
        self._postings: _Postings | None = None

    def __len__(self) -> int:
        return self._count

    def add(self, documents: Sequence[Sequence[object]]) -> None:
        """Add the terms of *documents*, whose places follow those added before; what is no term is left out."""
        terms = [{each for each in own if isinstance(each, str) and _is_term(each)} for own in documents]
        places = np.arange(self._count, self._count + len(terms), dtype=np.int32)
        self._count += len(terms)
        packed = np.frombuffer("".join(each for own in terms for each in own).encode("ascii"), ">u2")
        parts = packed.reshape(-1, TERM_CHARACTERS // 2).astype(np.uint64)
        values = np.zeros(len(parts), np.uint64)
        for column in parts.T:
            values = values << np.uint64(16) | column
        self._parts.append((values, np.repeat(places, [len(own) for own in terms])))
        self._postings = None

    def _post(self) -> _Postings:
        if self._postings is None:
            values = np.concatenate([np.empty(0, np.uint64), *(values for values, _ in self._parts)])
            owners = np.concatenate([np.empty(0, np.int32), *(owners for _, owners in self._parts)])
            self._parts = [(values, owners)]
            self._postings = _Postings.of(values, owners)
        return self._postings

    def with_common(self) -> NDArray[np.bool_]:
        """Return which documents have a common term: they may share it with others, and no pair says so."""
        posted = self._post()
        found = np.zeros(self._count, np.bool_)
        found[posted.owners[posted.sizes[posted.terms] > self._common]] = True
        return found

    def pairs(self) -> Iterator[PlacePairs]:
        """Yield each pair of documents that share a term which is not common, the smaller place first."""
        posted = self._post()
        sizes = posted.sizes[posted.terms]
        entries = np.flatnonzero((sizes > 1) & (sizes <= self._common))
        owners, work = posted.owners[entries], np.cumsum(sizes[entries])
        begin = 0
        while begin < entries.size:
            before = int(work[begin - 1]) if begin else 0
            last = owners[min(int(np.searchsorted(work, before + _CHUNK)), entries.size - 1)]
            # All entries of a document are in one part, so that no pair comes twice; the last document may wait.
            end = int(np.searchsorted(owners, last))
            end = end if end > begin else int(np.searchsorted(owners, last, side="right"))
            end = entries.size if work[-1] - before <= _CHUNK else end
            yield posted.pairs_of(entries[begin:end])
            begin = end


@dataclass(frozen=True, slots=True, eq=False)
class _Postings:
    """
    Which documents have each term.

    Attributes:
        owners:
            The document of each entry (a document and one of its terms), ascending.
        terms:
            The number of the term of each entry.
        sorted_owners:
            The documents of all entries, sorted by term and then by document.
        starts:
            Where the documents of each term begin there.
        sizes:
            How many documents have each term.
    """

    owners: NDArray[np.int32]
    terms: NDArray[np.int64]
    sorted_owners: NDArray[np.int32]
    starts: NDArray[np.int64]
    sizes: NDArray[np.int64]

    @classmethod
    def of(cls, values: NDArray[np.uint64], owners: NDArray[np.int32]) -> _Postings:
        order = np.argsort(values, kind="stable")
        in_order = values[order]
        is_first = np.ones(values.size, np.bool_)
        is_first[1:] = in_order[1:] != in_order[:-1]
        starts = np.flatnonzero(is_first)
        terms = np.empty(values.size, np.int64)
        terms[order] = np.cumsum(is_first) - 1
        return cls(owners, terms, owners[order], starts, np.diff(starts, append=values.size))

    def pairs_of(self, entries: NDArray[np.int64]) -> PlacePairs:
        """Return the pairs of the documents of *entries* with later documents that share one of these terms."""
        sizes, starts = self.sizes[self.terms[entries]], self.starts[self.terms[entries]]
        within = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        left = np.repeat(self.owners[entries], sizes).astype(np.int64)
        right = self.sorted_owners[np.repeat(starts, sizes) + within].astype(np.int64)
        is_later = right > left
        both = np.unique(left[is_later] << 32 | right[is_later])
        return both >> 32, both & 0xFFFF_FFFF


def _is_term(value: str) -> bool:
    return len(value) == TERM_CHARACTERS and value.isascii()
