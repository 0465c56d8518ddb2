"""
Reads the fingerprints of an index into memory, shard by shard, and keeps them current.

``index.resident`` has the table and the rule of how far a shard was read. What is done with the fingerprints is not
decided here: a document that has one is always asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from es_simhash.lookup import memory_reading_flow as reading
from es_simhash.lookup.memory_options import ResidentError, as_fault
from es_simhash.lookup.memory_reading_flow import (
    BYTES,
    Page,
    broken_query,
    by_fingerprint,
    check_memory,
    fingerprint_terms,
    read_aggregations,
    read_fingerprints,
    read_ranges,
)
from es_simhash.mapping.context import Context
from es_simhash.mapping.fields import Fields
from es_simhash.mapping.positions_flow import NOTHING, Positions, PositionsError, Range, Shard, ShardReading
from es_simhash.transport.names import local_names
from es_simhash.transport.protocol import Call, Compute, Flow
from es_simhash.transport.refresh_flow import refresh
from es_simhash.transport.retry_flow import is_passing

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


GONE = 404


class Resident:
    """
    The fingerprints of all documents of an index that a search can show, and perhaps some that are gone.

    Args:
        context:
            What the client object knows.
        index:
            Name of the index, alias or data stream.
        max_distance:
            Largest distance of the lookups in bits, inclusive.
        memory_bytes:
            Most bytes that the fingerprints may occupy.

    Cost: one search for each 50,000 operations at first, and later one for each shard that was written to, with those
    that are new.
    """

    def __init__(self, context: Context, index: str, *, max_distance: int, memory_bytes: int) -> None:
        from es_simhash.lookup.memory_table import FingerprintTable  # noqa: PLC0415 -- loads numpy

        self._fields = Fields(context.prefix)
        self._index = index
        self._memory_bytes = memory_bytes
        self._table = FingerprintTable(max_distance)
        self._readings: dict[Shard, ShardReading] = {}
        # How many operations of the caller came after all that is certain, by index; None if that is not known.
        self._own: Counter[str] | None = None
        self._positions = Positions(index)

    def __len__(self) -> int:
        return len(self._table)

    def near(self, fingerprints: Sequence[int]) -> dict[int, list[int]]:
        """Return for each of *fingerprints* those of the table that are near it."""
        return by_fingerprint(fingerprints, self._table.near)

    def near_among(self, fingerprints: Sequence[int], others: NDArray[np.uint64]) -> dict[int, list[int]]:
        """Return for each of *fingerprints* those of the *others* that are near it."""
        return by_fingerprint(fingerprints, lambda wanted: self._table.near_among(wanted, others))

    def load(self, *, documents: int) -> Flow[None]:
        """
        Read all fingerprints, of about so many *documents*.

        Raises:
            ResidentError: If that is not possible.
        """
        if local_names(self._index) != [self._index]:
            raise ResidentError("remote")
        if documents * BYTES > self._memory_bytes:
            raise ResidentError("memory", f"{documents:,} documents, {self._memory_bytes:,} bytes")
        yield from self.catch_up(documents=documents)
        if documents > 1 and not len(self):  # as where a user may not see the field of the numbers
            raise ResidentError("numbers", f"none of {documents:,} documents was shown")

    def catch_up(self, *, documents: int) -> Flow[None]:
        """Refresh the index and read what was not read yet; nothing of the caller is being written meanwhile."""
        self._own = None
        yield from self._take_positions()
        yield from refresh(self._index)
        for each in self._readings.values():
            each.note_refresh()
        operations = sum(each.latest.largest + 1 for each in self._readings.values())
        yield from self._read(self._unread(reading.PAGE * max(1, operations // max(1, documents))))
        self._own = None if any(each.is_behind for each in self._readings.values()) else Counter()

    def note_own(self, written: Mapping[str, int]) -> None:
        """
        Note how many operations of the caller were *written* to each index since the last request for positions.

        Until it has caught up, the caller must know of their documents itself: they are not read.
        """
        if self._own is not None:
            self._own.update(written)

    def positions_call(self) -> Call:
        """Return the request for the numbers of all shards; nothing of the caller is being written meanwhile."""
        return self._positions.call()

    def ranges(self, answer: Any) -> Flow[list[Range]]:
        """
        Return what to search now for operations of others, given the *answer* to a request for positions.

        Shards that are new are read.

        Raises:
            ResidentError: If the table cannot be kept current.
        """
        known = set(self._readings)
        yield from self._take_positions(answer)
        if self._readings.keys() != known:
            self._own = None
            yield from self._read([each for each in self._unread(reading.PAGE) if each.shard not in known])
        if self._own is not None:
            # These were numbered after all that is certain, so if there are as many numbers, nobody else wrote.
            numbers = Counter[str]()
            for shard, each in self._readings.items():
                numbers[shard.index] += each.latest.largest - each.certain
            if numbers == self._own:
                return []
            self._own = None
        return [Range(shard, each.certain + 1) for shard, each in self._readings.items() if each.is_behind]

    def lines(self, ranges: Iterable[Range]) -> list[Mapping[str, Any]]:
        """Return the lines of a multi-search for *ranges*."""
        lines: list[Mapping[str, Any]] = []
        for each in ranges:
            header = {"index": each.shard.index, "preference": f"_shards:{each.shard.number}"}
            lines += [header, self._body(each)]
        return lines

    def _body(self, wanted: Range) -> dict[str, Any]:
        fields = self._fields
        numbers = {"gte": wanted.first} if wanted.last is None else {"gte": wanted.first, "lte": wanted.last}
        return {
            "size": 0,
            "query": {"bool": {"filter": [{"range": {"_seq_no": numbers}}]}},
            "track_total_hits": False,
            "aggs": {
                "fingerprints": fingerprint_terms(fields.fingerprint),
                "last": {"max": {"field": "_seq_no"}},
                "broken": {"filter": broken_query(fields)},
            },
        }

    def update(self, asked: Sequence[Range], answer: Any) -> Flow[NDArray[np.uint64]]:
        """
        Take the *answer* to the searches of the ranges *asked*; what was not answered whole is read now.

        Returns:
            The fingerprints that the table did not have.

        Raises:
            ResidentError: If the table cannot be kept current.
        """
        pages: list[Page[Range]] = yield Compute(self._take, (asked, [answer]))
        self._advance(pages)
        again = [each for page in pages for each in page.again if each.shard in self._readings]
        return _joined([_new_of(pages), (yield from self._read(again))])

    def _unread(self, width: int) -> list[Range]:
        """Return ranges, about so wide, that together cover all operations that may not have been read."""
        found = []
        for shard, each in self._readings.items():
            if each.is_behind:
                firsts = range(each.certain + 1, each.latest.largest + 1, width)
                found += [Range(shard, first, first + width - 1) for first in firsts[:-1]]
                found.append(Range(shard, firsts[-1]))
        return found

    def _take_positions(self, answer: Any = None) -> Flow[None]:
        """Note where each shard is; begin with shards that are new, and forget those that are gone."""
        try:
            positions = yield from self._positions.read(answer)
        except PositionsError as error:
            raise ResidentError(error.kind) from error
        except Exception as error:
            raise as_fault(error, "statistics") from error
        for shard in [each for each in self._readings if each not in positions]:
            del self._readings[shard]
        for shard, position in positions.items():
            self._readings.setdefault(shard, ShardReading(position)).note(position)

    def _read(self, ranges: Iterable[Range]) -> Flow[NDArray[np.uint64]]:
        """Search *ranges*, a few in each request; return the fingerprints that are new."""
        pages = yield from read_ranges(
            ranges, calls=lambda some: [Call("msearch", {"body": self.lines(some)})], take=self._take
        )
        self._advance(pages)
        return _new_of(pages)

    def _take(self, asked: Sequence[Range], answers: Sequence[Any]) -> list[Page[Range]]:
        """Put the fingerprints of the answer to the one multi-search of the ranges *asked* into the table."""
        [answer] = answers
        if isinstance(answer, Exception):
            if not is_passing(answer):
                raise as_fault(answer, "numbers")
            return [Page(each, again=[each], is_refused=True) for each in asked]
        pages = [self._page(each, one) for each, one in zip(asked, answer["responses"], strict=True)]
        check_memory(self._table, self._memory_bytes)
        return pages

    def _page(self, asked: Range, answer: Mapping[str, Any]) -> Page[Range]:
        # An index that is gone has no position the next time.
        found = None if answer.get("status") == GONE else read_aggregations(answer, "numbers")
        if found is None:
            return Page(asked, again=[asked], is_refused=True)
        terms, last = found["fingerprints"], found["last"].get("value")
        values = read_fingerprints([each["key"] for each in terms["buckets"]])
        if found["broken"]["doc_count"]:
            raise ResidentError("fingerprint")
        last = NOTHING if last is None else int(last)
        again = asked.halves(last) if terms.get("sum_other_doc_count") else []
        return Page(asked, self._table.add(values), again, last=last)

    def _advance(self, pages: Iterable[Page[Range]]) -> None:
        """Note how far each shard was read, all of whose operations *pages* have shown."""
        whole: dict[Shard, list[Page[Range]]] = {}
        for each in pages:
            if not each.again:
                whole.setdefault(each.asked.shard, []).append(each)
        for shard, shown in whole.items():
            if (known := self._readings.get(shard)) is not None:
                first, *others = shown
                # Several searches may have been made in views of the index that differ.
                is_one = not others and first.asked.last is None and first.asked.first <= known.certain + 1
                known.advance(first.last if is_one else None)


def _new_of(pages: Sequence[Page[Range]]) -> NDArray[np.uint64]:
    return _joined([each.new for each in pages if each.new is not None])


def _joined(parts: Sequence[NDArray[np.uint64]]) -> NDArray[np.uint64]:
    import numpy as np  # noqa: PLC0415 -- loads slowly

    return np.concatenate([np.empty(0, np.uint64), *parts])
