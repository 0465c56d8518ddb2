"""
The groups that a rule makes of a table of documents: canonicals, distances, similarities, and what has to be rewritten.

Pure; numpy is loaded here, so callers import this module when they first need it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from es_simhash.index.grouping.nodes import PreparedTexts, similar_pairs

if TYPE_CHECKING:
    from es_simhash.index.grouping.table import Table

__all__ = ["Groups", "Texts"]

# Ids that are strings of Python at once.
CHUNK = 100_000
_MOST_SHARED = 1_000


@dataclass(frozen=True, slots=True)
class Texts:
    """
    The texts of documents, as far as they were read.

    Attributes:
        sets:
            The different texts, prepared.
        numbers:
            For each place the number of its text; -1 where none was read.
        unread:
            How many texts were asked for and could not be read.
        versions:
            For each place the ``_seq_no`` and ``_primary_term`` of the document when its text was read; -1 where it was
            not. ``None`` where nobody asked for them.
        lengths:
            For each place how many characters its text has; 0 where none was read. ``None`` where nobody asked for
            them.
    """

    sets: PreparedTexts
    numbers: NDArray[np.int64]
    unread: int = 0
    versions: NDArray[np.int64] | None = None
    lengths: NDArray[np.int64] | None = None


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
        texts:
            Their texts; ``None`` where the grouping does not compare texts.
    """

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
