"""
Reads the operations of a shard as documents, and gives those the fingerprint of their text that lack it.

Which operations are read is decided in ``follow``, what a document needs in ``upkeep.judge``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from es_simhash.transport.answers import check_whole, find_gaps, is_window_refused
from es_simhash.transport.protocol import Call, Compute, Flow
from es_simhash.transport.refresh_flow import now
from es_simhash.transport.retry_flow import ask
from es_simhash.transport.view import Hits
from es_simhash.upkeep.follow_options import RefusedForNowError, is_refused_for_now
from es_simhash.upkeep.follow_places import Place
from es_simhash.upkeep.follow_report import Tally
from es_simhash.upkeep.judge_flow import Judge, Judgement
from es_simhash.writes.bulk_flow import send_bulk
from es_simhash.writes.conditional_write_flow import CONFLICT, MISSING

# What a text needs while it is here: the answer, its fields, and what is computed from it.
BYTES_PER_CHARACTER = 16
FIRST_PAGE = 50
# More of our own writes are not remembered: they are read once more.
MOST_OWN = 100_000


@dataclass(frozen=True, slots=True)
class Page:
    """
    Operations of a shard.

    Attributes:
        hits:
            The documents that they wrote, without those of our own writes.
        last:
            The last operation that the page covers.
        replaced:
            How many operations have no document: a later one has replaced it, or it was deleted.
    """

    hits: Hits
    last: int
    replaced: int


class Changes:
    """
    Reads changed documents page by page, and repairs them.

    Args:
        prefix:
            Name of the object that holds our fields.
        tally:
            Counts.
        batch:
            Most documents on a page.
        memory_bytes:
            What the texts of a page may need; a page has one document at least.
    """

    def __init__(self, prefix: str, tally: Tally, *, batch: int, memory_bytes: int) -> None:
        self._prefix = prefix
        self._tally = tally
        self._batch = batch
        self._characters = memory_bytes // BYTES_PER_CHARACTER
        self._size = min(FIRST_PAGE, batch)

    def read(self, place: Place, judge: Judge, first: int, last: int) -> Flow[Page]:
        """
        Return the first page of the operations from *first* to *last* of a shard.

        Raises:
            IncompleteSearchError: If the shard did not answer whole.
        """
        asked = self._size
        try:
            answer = yield from ask(self._call(place, judge, first, last))
        except Exception as error:
            if asked == 1 or not is_window_refused(error):
                raise
            self._batch = self._size = asked // 2
            return (yield from self.read(place, judge, first, last))
        check_whole(find_gaps(answer))
        hits = answer["hits"]["hits"]
        self._resize(hits)
        end = hits[-1]["_seq_no"] if len(hits) == asked else last
        own = {each for each in place.own if first <= each[0] <= end}
        shown = {(hit["_seq_no"], hit["_primary_term"]) for hit in hits}
        new = [hit for hit in hits if (hit["_seq_no"], hit["_primary_term"]) not in own]
        return Page(new, end, end + 1 - first - len(own | shown))

    def _call(self, place: Place, judge: Judge, first: int, last: int) -> Call:
        query = {"range": {"_seq_no": {"gte": first, "lte": last}}}
        body = {
            "size": self._size,
            # Beside a filter a should clause excludes nothing: it only marks hits.
            "query": {"bool": {"filter": [query], "should": [judge.not_indexed_query()]}},
            "sort": [{"_seq_no": "asc"}],
            "seq_no_primary_term": True,
            "track_total_hits": False,
            "_source": judge.source,
        }
        shard = place.shard
        return Call("search", {"index": shard.index, "preference": f"_shards:{shard.number}", "body": body})

    def _resize(self, hits: Hits) -> None:
        """Choose the size of the next page by the longest document of this one, and at most twice this size."""
        longest = max((_characters(hit.get("_source")) for hit in hits), default=0)
        fitting = self._characters // max(1, longest)
        self._size = max(1, min(self._batch, 2 * self._size, fitting))

    def repair(self, place: Place, judge: Judge, hits: Hits) -> Flow[None]:
        """
        Write the fingerprints that *hits* need, each only into the version that was read.

        Raises:
            RefusedForNowError: If the server refuses writes now; what was not written is to be read again.
        """
        at = yield Compute(now)
        judged: list[Judgement] = yield Compute(_judge, (judge, hits, at))
        wrong = [each for each in judged if each.operation is not None]
        outcomes = yield from send_bulk([each.operation for each in wrong if each.operation is not None])
        for each in judged:
            if each.failure is not None:
                self._tally.fail(each.failure)
        refused = None
        own = set()
        for each, outcome in zip(wrong, outcomes, strict=True):
            if outcome.is_done:
                self._tally.written += 1
                self._tally.stale += each.is_stale
                own |= {outcome.version} if outcome.version is not None else set()
            elif outcome.status == CONFLICT:
                self._tally.conflicts += 1  # the change that was faster has a later number
            elif is_refused_for_now(outcome):
                refused = outcome
            elif outcome.status != MISSING:
                self._tally.fail(outcome.to_failure())
        if refused is not None:
            raise RefusedForNowError(refused.to_failure())  # what was written is read again, and so is grouped
        if len(place.own) < MOST_OWN:
            place.own |= own


def _judge(judge: Judge, hits: Hits, at: str) -> list[Judgement]:
    return judge.judge(hits, at=at) if hits else []


def _characters(value: Any) -> int:
    """Return how many characters a JSON value has, roughly."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, Mapping):
        return sum(map(_characters, value.values()))
    return sum(map(_characters, value)) if isinstance(value, list) else 1
