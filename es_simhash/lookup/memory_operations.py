"""Reads the fingerprints of an index into memory, in ranges and shard by shard, and keeps them current."""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence, Set as AbstractSet
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from es_simhash.errors import count
from es_simhash.lookup.lookup_options import CUT, LookupRequest, ResidentError, ResidentFault, as_fault
from es_simhash.mapping.context import Context
from es_simhash.mapping.fields import Fields
from es_simhash.mapping.meta import IndexSettings
from es_simhash.mapping.port import Port
from es_simhash.mapping.shards import NOTHING, Position, Positions, PositionsError, Range, Shard, ShardReading
from es_simhash.transport.answers import find_gaps
from es_simhash.transport.conversation import Patience, refresh
from es_simhash.transport.protocol import Call, Compute, Index, cause_of
from es_simhash.transport.refusals import NO_SHARD, is_passing

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from es_simhash.lookup.memory_table import FingerprintTable, Near


logger = logging.getLogger("es_simhash")

# Fingerprints that one search returns, and searches at once.
PAGE = 50_000
SEARCHES = 2
DIGITS = 16
GONE = 404
# What to leave out of an answer, so that its buckets have nothing but their key.
COUNTS = "-responses.aggregations.fingerprints.buckets.doc_count"

_Range = TypeVar("_Range")


@dataclass(frozen=True, slots=True)
class Page(Generic[_Range]):
    """
    What one search has shown of the range *asked*.
    *fingerprints*: those that it showed; ``None`` without a whole answer, which is *is_refused*. *again*: ranges to
    search now: the same range, or the rest of one that has too many fingerprints. *last*: the last operation shown, if
    operations are read; -1 for none.
    """

    asked: _Range
    fingerprints: NDArray[np.uint64] | None = None
    again: Sequence[_Range] = ()
    is_refused: bool = False
    last: int = -1


def fingerprint_terms(name: str) -> dict[str, Any]:
    """Return the aggregation that shows a page of fingerprints of the field *name*, the smallest ones first."""
    # The default order, by count, takes the server twice as long.
    return {"terms": {"field": name, "size": PAGE, "order": {"_key": "asc"}, "execution_hint": "map"}}


def broken_query(fields: Fields, *, by_number: bool = False) -> dict[str, Any]:
    """Return the query of documents that have block terms and no fingerprint, or are not to be read *by_number*."""
    blocks = [{"exists": {"field": each}} for each in fields.blocks]
    missing = {"exists": {"field": fields.value if by_number else fields.fingerprint}}
    blocks += [{"exists": {"field": fields.fingerprint}}] if by_number else []
    return {"bool": {"must_not": missing, "should": blocks, "minimum_should_match": 1}}


def read_aggregations(answer: Mapping[str, Any], kind: ResidentFault) -> Mapping[str, Any] | None:
    """
    Return the aggregations of an *answer*; ``None`` if the server was busy or shards did not answer.
    ResidentError of this *kind* is raised if the search was refused for another reason.
    """
    if "error" in answer and not is_passing(answer.get("status", 0)):
        raise ResidentError(kind, cause_of(answer["error"])[:CUT])
    if "error" in answer or find_gaps(answer, ignore=["terminated_early"]):
        return None
    found: Mapping[str, Any] = answer["aggregations"]
    return found


def read_fingerprints(buckets: Sequence[Mapping[str, Any]] | NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return the keys of *buckets*, signed copies or hex digits; raise ResidentError unless each has 16 of these."""
    import numpy as np  # noqa: PLC0415 -- loads slowly

    keys = buckets if isinstance(buckets, np.ndarray) else [each["key"] for each in buckets]
    if len(keys) and not isinstance(keys[0], str):
        return np.asarray(keys, np.int64).view(np.uint64)
    digits = [str(each) for each in keys]
    joined = "".join(digits)
    if joined.strip("0123456789abcdef") or set(map(len, digits)) - {DIGITS}:
        wrong = (each for each in digits if len(each) != DIGITS or each.strip("0123456789abcdef"))
        raise ResidentError("fingerprint", next(wrong)[:CUT])
    return np.frombuffer(bytes.fromhex(joined), ">u8").astype(np.uint64)


def check_fits(documents: int, max_distance: int, most_bytes: int) -> None:
    """Raise ResidentError if the fingerprints of so many *documents* need more than *most_bytes*."""
    from es_simhash.lookup.memory_table import bytes_for, count_within  # noqa: PLC0415 -- loads numpy

    if (needed := bytes_for(documents, max_distance)) > most_bytes:
        fitting = count_within(most_bytes, max_distance)
        raise ResidentError(
            "memory",
            f"{documents:,} within {count(max_distance, 'bit')} take {needed:,} bytes; {most_bytes:,} bytes are enough "
            f"for {fitting:,}",
        )


def check_memory(table: FingerprintTable, most_bytes: int) -> None:
    """Raise ResidentError if *table* occupies more than *most_bytes*."""
    if table.nbytes > most_bytes:
        raise ResidentError("memory", f"{table.nbytes:,} bytes for {len(table):,} fingerprints")


async def read_ranges(
    server: Port,
    ranges: Iterable[_Range],
    *,
    calls: Callable[[Sequence[_Range]], Sequence[Call]],
    take: Callable[[Sequence[_Range], Sequence[Any]], list[Page[_Range]]],
    patience: Patience | None = None,
) -> list[Page[_Range]]:
    """
    Search *ranges*, a few at once, and return what was shown; answers are taken while the server searches.
    *take*: makes pages of ranges and the answers to their requests, which may be exceptions; it does not run on the
    event loop. *patience*: how long to repeat what has no whole answer, before ResidentError is raised.
    """
    waiting, pages = deque(ranges), list[Page[_Range]]()
    patience = patience or Patience()
    asked: list[_Range] = []
    answers: list[Any] = []
    while waiting or asked:
        following = [waiting.popleft() for _ in range(min(SEARCHES, len(waiting)))]
        work: list[Call | Compute] = [Compute(take, (asked, answers))] if asked else []
        work += calls(following) if following else []
        results = await server.together(work, concurrency=len(work))
        taken, answers = (results[0], results[1:]) if asked else ([], results)
        if isinstance(taken, BaseException):
            raise taken
        asked = following
        pages += taken
        waiting.extend(each for page in taken for each in page.again)
        if any(page.is_refused for page in taken):
            if patience.is_spent:
                raise ResidentError("answer")
            await patience.wait(server)
        elif taken:
            patience.failures = 0
    return pages


def as_array(fingerprints: Sequence[int]) -> NDArray[np.uint64]:
    import numpy as np  # noqa: PLC0415 -- loads slowly

    return np.array(fingerprints, np.uint64)


class Resident:
    """
    The fingerprints of all documents of an index that a search can show, and perhaps some that are gone.
    Cost: one search for each 50,000 documents at first; later one, with what is new, for each shard that was written
    to.
    """

    def __init__(
        self, context: Context, index: Index, settings: IndexSettings, *, max_distance: int, request: LookupRequest
    ) -> None:
        from es_simhash.lookup.memory_table import FingerprintTable  # noqa: PLC0415 -- loads numpy

        self._fields = Fields(context.prefix)
        self._index = index
        self._memory_bytes = request.most_bytes
        self._max_distance = max_distance
        # Scripts may read the signed copies, and so does this: numbers take the server less time.
        self._by_number = settings.allows_scripts
        self.table = FingerprintTable(max_distance)
        self._readings: dict[Shard, ShardReading] = {}
        # How many operations of the caller came after all that is certain, by index; None if that is not known.
        self._written: Counter[str] | None = None
        self._positions = Positions(index)

    def __len__(self) -> int:
        return len(self.table)

    def near(self, fingerprints: Sequence[int]) -> Near:
        return self.table.near(as_array(fingerprints))

    def near_among(self, fingerprints: Sequence[int], others: NDArray[np.uint64]) -> Near:
        return self.table.near_among(as_array(fingerprints), others)

    async def load(self, server: Port) -> None:
        """Read all fingerprints; raise ResidentError if that is not possible."""
        positions = await self._positions_now(server)
        documents = await self._count(server, {each.index for each in positions})
        check_fits(documents, self._max_distance, self._memory_bytes)
        await self.catch_up(server, documents=documents)
        if documents > 1 and not len(self):  # as where a user may not see the field of the numbers
            raise ResidentError("numbers", f"none of {documents:,} documents was shown")

    async def _count(self, server: Port, names: AbstractSet[str]) -> int:
        """Return how many documents of these indices have a fingerprint, whatever the filter of an alias shows."""
        counted = {"documents": {"value_count": {"field": self._fields.fingerprint}}}
        lines = [{"index": sorted(names)}, {"size": 0, "track_total_hits": False, "aggs": counted}]

        async def send() -> Mapping[str, Any] | None:
            answer = await server.msearch(body=lines)
            return read_aggregations(answer["responses"][0], "search")

        try:
            found = await server.until(send, lambda each: each is not None, attempts=NO_SHARD.attempts)
        except Exception as error:
            if isinstance(error, ResidentError):
                raise
            raise as_fault(error, "answer" if is_passing(error) else "search") from error
        if found is None:
            raise ResidentError("answer")
        return int(found["documents"]["value"])

    async def catch_up(self, server: Port, *, documents: int) -> None:
        """Refresh the index and read what was not read yet; nothing of the caller is being written meanwhile."""
        self._written = None
        await self._take_positions(server)
        await refresh(server, self._index)
        for each in self._readings.values():
            each.note_refresh()
        operations = sum(each.latest.largest + 1 for each in self._readings.values())
        share = operations / max(1, documents)  # below 1, several documents have one number: the index was shrunk
        await self._read(server, self._unread(max(1, int(PAGE * (share if share < 1 else share // 1)))))
        self._written = None if any(each.is_behind for each in self._readings.values()) else Counter()

    def note_written(self, written: Mapping[str, int]) -> None:
        """
        Note how many operations the caller has *written* to each index since the last request for positions.
        Until the table has caught up, the caller must know of these documents itself: they are not read.
        """
        if self._written is not None:
            self._written.update(written)

    async def read_news(self, server: Port) -> NDArray[np.uint64]:
        """
        Read what others wrote, and return the fingerprints shown; nothing of the caller is being written meanwhile.
        A lookup of known fingerprints that was answered before lacks no document but those of these fingerprints: one
        that was not shown then, because it was written again, is shown now.
        """
        known = set(self._readings)
        await self._take_positions(server)
        shown = _joined([])
        if self._readings.keys() != known:
            self._written = None
            shown = await self._read(server, [each for each in self._unread(PAGE) if each.shard not in known])
        if self._written is not None:
            # These were numbered after all that is certain, so if there are as many numbers, nobody else wrote.
            numbers = Counter[str]()
            for shard, each in self._readings.items():
                numbers[shard.index] += each.latest.largest - each.certain
            if numbers == self._written:
                return shown
            self._written = None
        behind = [Range(shard, each.certain + 1) for shard, each in self._readings.items() if each.is_behind]
        return _joined([shown, await self._read(server, behind)])

    def _call(self, ranges: Iterable[Range]) -> Call:
        lines: list[Mapping[str, Any]] = []
        for each in ranges:
            header = {"index": each.shard.index, "preference": f"_shards:{each.shard.number}"}
            lines += [header, self._body(each)]
        return Call("msearch", {"body": lines, "filter_path": COUNTS}, bare_keys=True)

    def _body(self, wanted: Range) -> dict[str, Any]:
        fields = self._fields
        numbers = {"gte": wanted.first} if wanted.last is None else {"gte": wanted.first, "lte": wanted.last}
        terms = fingerprint_terms(fields.fingerprint)
        if self._by_number:
            terms = {"terms": {"field": fields.value, "size": PAGE, "order": {"_key": "asc"}}}
        return {
            "size": 0,
            "query": {"bool": {"filter": [{"range": {"_seq_no": numbers}}]}},
            "track_total_hits": False,
            "aggs": {
                "fingerprints": terms,
                "last": {"max": {"field": "_seq_no"}},
                "not_numbers" if self._by_number else "broken": {
                    "filter": broken_query(fields, by_number=self._by_number)
                },
            },
        }

    def _unread(self, width: int) -> list[Range]:
        """Return ranges, about so wide, that together cover all operations that may not have been read."""
        found = []
        for shard, each in self._readings.items():
            if each.is_behind:
                firsts = range(each.certain + 1, each.latest.largest + 1, width)
                found += [Range(shard, first, first + width - 1) for first in firsts[:-1]]
                found.append(Range(shard, firsts[-1]))
        return found

    async def _take_positions(self, server: Port) -> None:
        """Note where each shard is; begin with shards that are new, and forget those that are gone."""
        positions = await self._positions_now(server)
        for shard in [each for each in self._readings if each not in positions]:
            del self._readings[shard]
        for shard, position in positions.items():
            if shard not in self._readings:
                self._readings[shard] = ShardReading(position)
            self._readings[shard].note(position)

    async def _positions_now(self, server: Port) -> dict[Shard, Position]:
        try:
            return await self._positions.read(server)
        except PositionsError as error:
            raise ResidentError(error.kind) from error
        except Exception as error:
            raise as_fault(error, "statistics") from error

    async def _read(self, server: Port, ranges: Iterable[Range]) -> NDArray[np.uint64]:
        """Search *ranges*, a few in each request; return the fingerprints shown."""
        pages = await read_ranges(server, ranges, calls=lambda some: [self._call(some)], take=self._take)
        shown = _joined([each.fingerprints for each in pages if each.fingerprints is not None])
        await server.compute(self.table.add, shown)
        check_memory(self.table, self._memory_bytes)
        self._advance(pages)
        return shown

    def _take(self, asked: Sequence[Range], answers: Sequence[Any]) -> list[Page[Range]]:
        """Read the answer to the one multi-search of the ranges *asked*."""
        [answer] = answers
        if isinstance(answer, Exception):
            if not is_passing(answer):
                raise as_fault(answer, "numbers")
            return [Page(each, again=[each], is_refused=True) for each in asked]
        return [self._page(each, one) for each, one in zip(asked, answer["responses"], strict=True)]

    def _page(self, asked: Range, answer: Mapping[str, Any]) -> Page[Range]:
        # An index that is gone has no position the next time.
        found = None if answer.get("status") == GONE else read_aggregations(answer, "numbers")
        if found is None:
            return Page(asked, again=[asked], is_refused=True)
        if "not_numbers" in found and found["not_numbers"]["doc_count"]:
            self._by_number = False
            return Page(asked, again=[asked])
        if "broken" in found and found["broken"]["doc_count"]:
            raise ResidentError("fingerprint")
        terms, last = found["fingerprints"], found["last"].get("value")
        values = read_fingerprints(terms.get("buckets", ()))  # servers leave an empty list out where they filter it
        last = NOTHING if last is None else int(last)
        again = asked.halves(last) if terms.get("sum_other_doc_count") else []
        return Page(asked, values, again, last=last)

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


def _joined(parts: Sequence[NDArray[np.uint64]]) -> NDArray[np.uint64]:
    import numpy as np  # noqa: PLC0415 -- loads slowly

    return np.concatenate([np.empty(0, np.uint64), *parts])
