"""
Reads the fingerprints of an index into memory, shard by shard, and keeps them current.

``index.resident`` has the table and the rule of how far a shard was read. What is done with the fingerprints is not
decided here: a document that has one is always asked for.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from es_simhash.flows.context import Context, local_names
from es_simhash.flows.protocol import Call, Compute, Flow, Together, status_of
from es_simhash.flows.transfer.answers import find_gaps, refusal_text
from es_simhash.flows.transfer.positions import Positions, PositionsError
from es_simhash.flows.transfer.refresh import refresh
from es_simhash.flows.transfer.retry import Patience, is_passing
from es_simhash.index.fields import Fields
from es_simhash.index.resident.shards import NOTHING, Range, Shard, ShardReading

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Resident", "ResidentError"]

ResidentFault = Literal["remote", "statistics", "primary", "search", "answer", "fingerprint", "memory"]

# Fingerprints that one search returns, and searches in one request.
PAGE = 50_000
SEARCHES = 2
# A table needs up to so many bytes for a fingerprint.
BYTES = 76
DIGITS = 16
GONE = 404
CUT = 200


class ResidentError(Exception):
    """
    The fingerprints of an index cannot be kept in memory; caught where lookups are made.

    Attributes:
        kind:
            ``"remote"``: the index is on another cluster. ``"statistics"``: the numbers of its shards cannot be read;
            ``"primary"``: not of every shard. ``"search"``: operations cannot be searched by number. ``"fingerprint"``:
            a document has block terms and no readable fingerprint. ``"memory"``: there are too many fingerprints.
            ``"answer"``: the server was too busy, or shards did not answer.
        detail:
            The server's own words, or what there is too much of.
    """

    def __init__(self, kind: ResidentFault, detail: str = "") -> None:
        super().__init__(kind, detail)
        self.kind = kind
        self.detail = detail

    @property
    def is_passing(self) -> bool:
        """Whether it may be otherwise in a moment."""
        return self.kind in ("primary", "answer")

    def __str__(self) -> str:
        """Return the sentence for people."""
        sentences = {
            "remote": "the index is on another cluster",
            "statistics": "the server does not show the sequence numbers of the shards",
            "primary": "a shard has no primary",
            "answer": "the server did not answer a search whole",
            "search": "the server does not search operations by their sequence numbers",
            "fingerprint": "a document has block terms and no fingerprint that can be read",
            "memory": "the fingerprints need more memory than memory_bytes allows",
        }
        return sentences[self.kind] + (f" ({self.detail})" if self.detail else "")


@dataclass(frozen=True, slots=True)
class _Page:
    """
    What one search has shown.

    Attributes:
        asked:
            The range.
        last:
            The last operation shown; -1 if none was.
        new:
            The fingerprints that were not known; ``None`` without an answer.
        again:
            Ranges that have to be searched again: itself, or its halves where it has too many fingerprints.
        is_refused:
            Whether there was no whole answer.
    """

    asked: Range
    last: int = NOTHING
    new: NDArray[np.uint64] | None = None
    again: Sequence[Range] = ()
    is_refused: bool = False


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
        from es_simhash.index.resident.table import FingerprintTable  # noqa: PLC0415 -- loads numpy

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
        return _by_fingerprint(fingerprints, self._table.near)

    def near_among(self, fingerprints: Sequence[int], others: NDArray[np.uint64]) -> dict[int, list[int]]:
        """Return for each of *fingerprints* those of the *others* that are near it."""
        return _by_fingerprint(fingerprints, lambda wanted: self._table.near_among(wanted, others))

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
            raise ResidentError("search", f"none of {documents:,} documents was shown")

    def catch_up(self, *, documents: int) -> Flow[None]:
        """Refresh the index and read what was not read yet; nothing of the caller is being written meanwhile."""
        self._own = None
        yield from self._take_positions()
        yield from refresh(self._index)
        for each in self._readings.values():
            each.note_refresh()
        operations = sum(each.latest.largest + 1 for each in self._readings.values())
        yield from self._read(self._unread(PAGE * max(1, operations // max(1, documents))))
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
            yield from self._read([each for each in self._unread(PAGE) if each.shard not in known])
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
        blocks = [{"exists": {"field": each}} for each in fields.blocks]
        broken = {"must_not": {"exists": {"field": fields.fingerprint}}, "should": blocks, "minimum_should_match": 1}
        # The default order, by count, takes the server twice as long.
        terms = {"field": fields.fingerprint, "size": PAGE, "order": {"_key": "asc"}, "execution_hint": "map"}
        return {
            "size": 0,
            "query": {"bool": {"filter": [{"range": {"_seq_no": numbers}}]}},
            "track_total_hits": False,
            "aggs": {
                "fingerprints": {"terms": terms},
                "last": {"max": {"field": "_seq_no"}},
                "broken": {"filter": {"bool": broken}},
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
        pages: list[_Page] = yield Compute(self._take, (asked, answer))
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
            raise _as_fault(error, "statistics") from error
        for shard in [each for each in self._readings if each not in positions]:
            del self._readings[shard]
        for shard, position in positions.items():
            self._readings.setdefault(shard, ShardReading(position)).note(position)

    def _read(self, ranges: Iterable[Range]) -> Flow[NDArray[np.uint64]]:
        """Search *ranges*, a few in each request; return the fingerprints that are new."""
        waiting, patience, pages = deque(ranges), Patience(), list[_Page]()
        asked: list[Range] = []
        answer: Any = None
        while waiting or asked:
            following = [waiting.popleft() for _ in range(min(SEARCHES, len(waiting)))]
            both: list[Call | Compute] = [Compute(self._take, (asked, answer))]
            if following:
                both.append(Call("msearch", {"body": self.lines(following)}))
            taken, *rest = yield Together(both, concurrency=2)
            if isinstance(taken, BaseException):
                raise taken
            pages += taken
            waiting.extend(each for page in taken for each in page.again)
            if any(page.is_refused for page in taken):
                if patience.is_spent:
                    raise ResidentError("answer")
                yield patience.wait()
            elif taken:
                patience.renew()
            asked, answer = following, rest[0] if rest else None
        self._advance(pages)
        return _new_of(pages)

    def _take(self, asked: Sequence[Range], answer: Any) -> list[_Page]:
        """Put the fingerprints of the *answer* to the searches of the ranges *asked* into the table."""
        if isinstance(answer, Exception):
            if not is_passing(answer):
                raise _as_fault(answer, "search")
            return [_Page(each, again=[each], is_refused=True) for each in asked]
        answers = answer["responses"] if asked else ()
        pages = [self._page(each, one) for each, one in zip(asked, answers, strict=True)]
        if self._table.nbytes > self._memory_bytes:
            raise ResidentError("memory", f"{self._table.nbytes:,} bytes for {len(self._table):,} fingerprints")
        return pages

    def _page(self, asked: Range, answer: Mapping[str, Any]) -> _Page:
        status = answer.get("status", 0)
        # An index that is gone has no position the next time.
        if "error" in answer and not is_passing(status) and status != GONE:
            raise ResidentError("search", refusal_text(answer["error"])[:CUT])
        if "error" in answer or find_gaps(answer, ignore=["terminated_early"]):
            return _Page(asked, again=[asked], is_refused=True)
        found = answer["aggregations"]
        terms, last = found["fingerprints"], found["last"].get("value")
        try:
            values = _values([each["key"] for each in terms["buckets"]])
        except ValueError as error:
            raise ResidentError("fingerprint", str(error)[:CUT]) from error
        if found["broken"]["doc_count"]:
            raise ResidentError("fingerprint")
        last = NOTHING if last is None else int(last)
        again = asked.halves(last) if terms.get("sum_other_doc_count") else []
        return _Page(asked, last, self._table.add(values), again)

    def _advance(self, pages: Iterable[_Page]) -> None:
        """Note how far each shard was read, all of whose operations *pages* have shown."""
        whole: dict[Shard, list[_Page]] = {}
        for each in pages:
            if not each.again:
                whole.setdefault(each.asked.shard, []).append(each)
        for shard, shown in whole.items():
            if (reading := self._readings.get(shard)) is not None:
                first, *others = shown
                # Several searches may have been made in views of the index that differ.
                is_one = not others and first.asked.last is None and first.asked.first <= reading.certain + 1
                reading.advance(first.last if is_one else None)


def _by_fingerprint(
    fingerprints: Sequence[int], find: Callable[[NDArray[np.uint64]], Sequence[NDArray[np.uint64]]]
) -> dict[int, list[int]]:
    import numpy as np  # noqa: PLC0415 -- loads slowly

    found = find(np.array(fingerprints, np.uint64))
    return {wanted: each.tolist() for wanted, each in zip(fingerprints, found, strict=True)}


def _new_of(pages: Sequence[_Page]) -> NDArray[np.uint64]:
    return _joined([each.new for each in pages if each.new is not None])


def _joined(parts: Sequence[NDArray[np.uint64]]) -> NDArray[np.uint64]:
    import numpy as np  # noqa: PLC0415 -- loads slowly

    return np.concatenate([np.empty(0, np.uint64), *parts])


def _values(digits: Sequence[str]) -> NDArray[np.uint64]:
    """Return fingerprints of 16 hex digits as numbers."""
    import numpy as np  # noqa: PLC0415 -- loads slowly

    if wrong := [each for each in digits if len(each) != DIGITS]:
        raise ValueError(wrong[0])
    return np.frombuffer(bytes.fromhex("".join(digits)), ">u8").astype(np.uint64)


def _as_fault(error: Exception, kind: ResidentFault) -> Exception:
    """Return what a refusal means here; the client's own exception where the server did not answer."""
    return error if status_of(error) is None else ResidentError(kind, refusal_text(error)[:CUT])
