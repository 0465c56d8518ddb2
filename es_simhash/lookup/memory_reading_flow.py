"""
Reads fingerprints in ranges: the aggregation, its answer, and the loop that searches range after range.

What a range is, and what a search of one looks like, is decided by its callers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from es_simhash.lookup.memory_options import CUT, ResidentError, ResidentFault
from es_simhash.mapping.fields import Fields
from es_simhash.transport.answers import find_gaps, refusal_text
from es_simhash.transport.protocol import Call, Compute, Flow, Together
from es_simhash.transport.retry_flow import Patience, is_passing

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from es_simhash.lookup.memory_table import FingerprintTable


# Fingerprints that one search returns, and searches at once.
PAGE = 50_000
SEARCHES = 2
# A table needs up to so many bytes for a fingerprint.
BYTES = 76
DIGITS = 16

_Range = TypeVar("_Range")


@dataclass(frozen=True, slots=True)
class Page(Generic[_Range]):
    """
    What one search has shown.

    Attributes:
        asked:
            The range.
        new:
            The fingerprints that were not known; ``None`` without an answer.
        again:
            Ranges that have to be searched now: itself, or what is left of one that has too many fingerprints.
        is_refused:
            Whether there was no whole answer.
        last:
            The last operation shown, where operations are read; -1 if none was.
    """

    asked: _Range
    new: NDArray[np.uint64] | None = None
    again: Sequence[_Range] = ()
    is_refused: bool = False
    last: int = -1


def fingerprint_terms(name: str) -> dict[str, Any]:
    """
    Return the aggregation that shows the fingerprints of the field *name*, the smallest ones first.
    """
    # The default order, by count, takes the server twice as long.
    return {"terms": {"field": name, "size": PAGE, "order": {"_key": "asc"}, "execution_hint": "map"}}


def broken_query(fields: Fields) -> dict[str, Any]:
    """
    Return the query of documents that have block terms and no fingerprint.
    """
    blocks = [{"exists": {"field": each}} for each in fields.blocks]
    missing = {"exists": {"field": fields.fingerprint}}
    return {"bool": {"must_not": missing, "should": blocks, "minimum_should_match": 1}}


def read_aggregations(answer: Mapping[str, Any], kind: ResidentFault) -> Mapping[str, Any] | None:
    """
    Return the aggregations of an *answer*; ``None`` where the server was busy, or shards did not answer.

    Raises:
        ResidentError: If the search was refused for another reason; of this *kind*.
    """
    if "error" in answer and not is_passing(answer.get("status", 0)):
        raise ResidentError(kind, refusal_text(answer["error"])[:CUT])
    if "error" in answer or find_gaps(answer, ignore=["terminated_early"]):
        return None
    found: Mapping[str, Any] = answer["aggregations"]
    return found


def read_fingerprints(digits: Sequence[str]) -> NDArray[np.uint64]:
    """
    Return fingerprints of 16 lower-case hex digits as numbers.

    Raises:
        ResidentError: If one is something else.
    """
    import numpy as np  # noqa: PLC0415 -- loads slowly

    joined = "".join(digits)
    if joined.strip("0123456789abcdef") or set(map(len, digits)) - {DIGITS}:
        wrong = (each for each in digits if len(each) != DIGITS or each.strip("0123456789abcdef"))
        raise ResidentError("fingerprint", next(wrong)[:CUT])
    return np.frombuffer(bytes.fromhex(joined), ">u8").astype(np.uint64)


def check_memory(table: FingerprintTable, most_bytes: int) -> None:
    """
    Refuse a *table* that occupies more than *most_bytes*.

    Raises:
        ResidentError: If it does.
    """
    if table.nbytes > most_bytes:
        raise ResidentError("memory", f"{table.nbytes:,} bytes for {len(table):,} fingerprints")


def read_ranges(
    ranges: Iterable[_Range],
    *,
    calls: Callable[[Sequence[_Range]], Sequence[Call]],
    take: Callable[[Sequence[_Range], Sequence[Any]], list[Page[_Range]]],
    patience: Patience | None = None,
) -> Flow[list[Page[_Range]]]:
    """
    Search *ranges*, a few at once, and return what was shown; while the server searches, the last answers are taken.

    Args:
        ranges:
            What to search.
        calls:
            Makes the requests for some ranges, one or more.
        take:
            Makes pages of ranges and the answers to their requests, which may be exceptions; not on the event loop.
        patience:
            How long to repeat what has no whole answer.

    Raises:
        ResidentError: If there is no whole answer in that time, or *take* raises it.
    """
    waiting, pages = deque(ranges), list[Page[_Range]]()
    patience = patience or Patience()
    asked: list[_Range] = []
    answers: list[Any] = []
    while waiting or asked:
        following = [waiting.popleft() for _ in range(min(SEARCHES, len(waiting)))]
        work: list[Call | Compute] = [Compute(take, (asked, answers))] if asked else []
        work += calls(following) if following else []
        results = yield Together(work, concurrency=len(work))
        taken, answers = (results[0], results[1:]) if asked else ([], results)
        if isinstance(taken, BaseException):
            raise taken
        asked = following
        pages += taken
        waiting.extend(each for page in taken for each in page.again)
        if any(page.is_refused for page in taken):
            if patience.is_spent:
                raise ResidentError("answer")
            yield patience.wait()
        elif taken:
            patience.renew()
    return pages


def by_fingerprint(
    fingerprints: Sequence[int], find: Callable[[NDArray[np.uint64]], Sequence[NDArray[np.uint64]]]
) -> dict[int, list[int]]:
    """
    Return what *find* finds near each of *fingerprints*, by fingerprint.
    """
    import numpy as np  # noqa: PLC0415 -- loads slowly

    found = find(np.array(fingerprints, np.uint64))
    return {wanted: each.tolist() for wanted, each in zip(fingerprints, found, strict=True)}
