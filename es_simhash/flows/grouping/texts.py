"""
Reading the texts of documents that may be neighbours, prepared for their comparison, in bounded memory.

What is done with them is in ``index.grouping``.
"""

from __future__ import annotations

import hashlib
import tempfile
import weakref
from array import array
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from es_simhash.flows.context import Index
from es_simhash.flows.lookup.fetch import FETCH
from es_simhash.flows.lookup.verify import FoundTexts, fetch_texts
from es_simhash.flows.protocol import Compute, Flow, Progress, Tell
from es_simhash.index.measures.measure import WORD_SHINGLES, TextMeasure

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from es_simhash.index.grouping.groups import Texts
    from es_simhash.index.grouping.table import Row, Table

__all__ = ["TextStore", "read_texts"]

MEMORY_BYTES = 256 * 2**20


class TextStore:
    """
    Different texts, prepared: in memory up to a bound, then in a temporary file that is mapped into memory.

    Equal texts, after normalisation, are kept once. Besides the shingles or units, 8 bytes each, a text takes about 200
    bytes of memory.

    Args:
        measure:
            By which they will be compared.
        memory_bytes:
            How much memory the prepared texts may take.
    """

    def __init__(self, measure: TextMeasure = WORD_SHINGLES, *, memory_bytes: int = MEMORY_BYTES) -> None:
        self.measure = measure
        self._limit = memory_bytes
        self._numbers: dict[bytes, int] = {}
        self._ends = array("q", [0])
        self._kept: list[NDArray[np.uint64]] = []
        self._file: Any = None
        self._mapped: NDArray[np.uint64] | None = None

    def add(self, text: str) -> int:
        """Add *text*, prepared; return the number of the text, that of an equal one where there is one."""
        prepared = self.measure.prepare([text])[0]
        digest = hashlib.blake2b(prepared.tobytes(), digest_size=16).digest()
        number = self._numbers.setdefault(digest, len(self._numbers))
        if number == len(self._ends) - 1:
            self._ends.append(self._ends[-1] + prepared.size)
            self._put(prepared)
        return number

    def _put(self, prepared: NDArray[np.uint64]) -> None:
        if self._file is None:
            self._kept.append(prepared)
            if 8 * self._ends[-1] <= self._limit:
                return
            self._file = tempfile.TemporaryFile()  # noqa: SIM115 -- closed with this object
            weakref.finalize(self, self._file.close)
            for each in self._kept:
                self._file.write(each.tobytes())
            self._kept.clear()
        else:
            self._file.write(prepared.tobytes())
        self._mapped = None

    @property
    def sizes(self) -> NDArray[np.int64]:
        """How many shingles or units each text has."""
        import numpy as np  # noqa: PLC0415

        ends = np.array(self._ends, np.int64)
        return ends[1:] - ends[:-1]

    def __getitem__(self, number: int) -> NDArray[np.uint64]:
        """Return the text *number*, prepared."""
        import numpy as np  # noqa: PLC0415

        if self._file is None:
            return self._kept[number]
        if self._mapped is None:
            self._file.flush()
            self._mapped = np.memmap(self._file, np.uint64, mode="r")
        return np.asarray(self._mapped[self._ends[number] : self._ends[number + 1]])


def read_texts(
    index: Index,
    table: Table,
    places: Sequence[int],
    text_fields: Mapping[str, Sequence[str]],
    measure: TextMeasure,
) -> Flow[Texts]:
    """
    Return the present texts of the documents at *places* of *table*.

    Cost: one search for every 500 documents.

    Args:
        index:
            What to search.
        table:
            The documents.
        places:
            Those whose texts are wanted.
        text_fields:
            Fields of the text, by name of the index.
        measure:
            By which the texts will be compared.

    Raises:
        IncompleteSearchError: If shards did not answer.
    """
    import numpy as np  # noqa: PLC0415

    from es_simhash.index.grouping.groups import Texts  # noqa: PLC0415 -- loads numpy

    store = TextStore(measure)
    numbers = np.full(len(table), -1, np.int64)
    lengths = np.zeros(len(table), np.int64)
    versions = np.full((len(table), 2), -1, np.int64)
    for begin in range(0, len(places), FETCH):
        rows = {place: table.row(place) for place in places[begin : begin + FETCH]}
        for fields in sorted({tuple(text_fields[row.index]) for row in rows.values()}):
            part = {place: row for place, row in rows.items() if tuple(text_fields[row.index]) == fields}
            keys = [row.key for row in part.values()]
            found = yield from fetch_texts(index, keys, fields, versions=True)
            found.check_read()
            yield Compute(_add, (store, numbers, lengths, part, found))
            for place, row in part.items():
                versions[place] = found.versions.get(row.key, (-1, -1))
        yield Tell(Progress(min(begin + FETCH, len(places)), len(places), "reading texts"))
    unread = int((numbers[list(places)] < 0).sum()) if len(places) else 0
    return Texts(store, numbers, unread, versions, lengths)


def _add(
    store: TextStore,
    numbers: NDArray[np.int64],
    lengths: NDArray[np.int64],
    rows: Mapping[int, Row],
    found: FoundTexts,
) -> None:
    for place, row in rows.items():
        text = found.texts.get(row.key)
        if text is not None:
            numbers[place], lengths[place] = store.add(text), len(text)
