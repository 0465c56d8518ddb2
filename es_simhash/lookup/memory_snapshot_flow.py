"""
Reads the fingerprints of one point in time of an index into memory, and searches in that point in time.

Nothing has to be kept current: a lookup that asks the same point in time for documents with exactly the fingerprints of
the table misses none, whatever is written meanwhile. Which lookups are made is not decided here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from es_simhash.errors import IncompleteSearchError
from es_simhash.hashing import to_hex
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
from es_simhash.mapping.confirmation_flow import confirm
from es_simhash.mapping.context import Context
from es_simhash.mapping.fields import Fields
from es_simhash.mapping.meta import IndexSettings
from es_simhash.transport.answers import find_gaps, is_view_ended, is_window_refused
from es_simhash.transport.names import Index
from es_simhash.transport.pages_flow import KEEP_ALIVE_SECONDS, close_view, open_view
from es_simhash.transport.protocol import Flow
from es_simhash.transport.retry_flow import SHARD_ATTEMPTS, Patience, check_shards, is_passing, retry
from es_simhash.transport.view import Hits, View

FINGERPRINTS = 1 << 64
# Ranges are planned for so much of a page: there may be more in one than in another.
FILLED = 0.9
# A point in time that was not searched for so much of its life is searched for nothing.
UNUSED = 0.25


@dataclass(frozen=True, slots=True)
class Span:
    """Fingerprints of a range as hex digits, after *after* and up to *last*; ``None`` where it has no such end."""

    after: str | None = None
    last: str | None = None

    def query(self, name: str) -> dict[str, Any]:
        """Return the query of documents that have one of them in the field *name*."""
        bounds = {key: digits for key, digits in (("gt", self.after), ("lte", self.last)) if digits is not None}
        return {"range": {name: bounds}} if bounds else {"exists": {"field": name}}


def spans(documents: int) -> list[Span]:
    """
    Return ranges that together have all fingerprints, and each so few that they fit on a page if evenly spread.
    """
    count = max(1, int(documents / (FILLED * reading.PAGE)) + 1)
    ends = [to_hex(FINGERPRINTS * number // count) for number in range(1, count)]
    return [Span(*each) for each in zip([None, *ends], [*ends, None], strict=True)]


def _is_settled(answer: Mapping[str, Any]) -> bool:
    """Return whether the same search would have no better answer in a moment."""
    gaps = find_gaps(answer)
    return not gaps or is_window_refused(gaps) or is_view_ended(gaps)


class Snapshot:
    """
    The fingerprints of the documents of an index, as they were in one point in time.

    Args:
        context:
            What the client object knows.
        index:
            What to search.
        max_distance:
            Largest distance of the lookups in bits, inclusive.
        memory_bytes:
            Most bytes that the fingerprints may occupy.
        filter:
            Queries that the documents match.
        routing:
            Routing value that restricts the searches to a shard.

    Cost: one search for each 45,000 documents.
    """

    def __init__(
        self,
        context: Context,
        index: Index,
        *,
        max_distance: int,
        memory_bytes: int,
        filter: Sequence[Mapping[str, Any]] = (),
        routing: str | None = None,
    ) -> None:
        from es_simhash.lookup.memory_table import FingerprintTable  # noqa: PLC0415 -- loads numpy

        self._context = context
        self._index = index
        self._fields = Fields(context.prefix)
        self._memory_bytes = memory_bytes
        self._filter = list(filter)
        self._options = {} if routing is None else {"routing": routing}
        self._table = FingerprintTable(max_distance)
        self._view: View | None = None
        self._used = 0.0

    def __len__(self) -> int:
        return len(self._table)

    def near(self, fingerprints: Sequence[int]) -> dict[int, list[int]]:
        """Return for each of *fingerprints* those of the table that are near it."""
        return by_fingerprint(fingerprints, self._table.near)

    def load(self, settings: IndexSettings) -> Flow[None]:
        """
        Open the point in time, whose indices have these *settings*, and read all fingerprints.

        Raises:
            ResidentError: If that is not possible.
            SettingsChanged: If the settings have changed.
        """
        started = self._context.clock()
        try:
            self._view = yield from open_view(self._index, KEEP_ALIVE_SECONDS, self._options)
            if self._view is None:  # where a shard is missing, Elasticsearch opens none
                yield from check_shards(self._index)
                self._view = yield from open_view(self._index, KEEP_ALIVE_SECONDS, self._options)
        except IncompleteSearchError as error:
            raise ResidentError("answer", error.reasons[0]) from error
        except Exception as error:
            raise as_fault(error, "answer" if is_passing(error) else "view") from error
        if self._view is None:
            raise ResidentError("view")
        if self._view.gaps:
            raise ResidentError("answer", str(next(iter(self._view.gaps))))
        since = self._context.clock() - started
        yield from confirm(self._context, self._index, settings=settings, after_seconds=since)
        documents = yield from self._count(self._view)
        if documents * BYTES > self._memory_bytes:
            raise ResidentError("memory", f"{documents:,} documents, {self._memory_bytes:,} bytes")
        yield from self._read(self._view, spans(documents))

    def _count(self, view: View) -> Flow[int]:
        """Return how many documents have a fingerprint; refuse those that have only block terms."""
        name = self._fields.fingerprint
        answer = yield from self._search(view, self._body({"exists": {"field": name}}, track_total_hits=True))
        broken = yield from self._search(view, self._body(broken_query(self._fields), size=1))
        if broken["hits"]["hits"]:
            raise ResidentError("fingerprint")
        return int(answer["hits"]["total"]["value"])

    def _body(self, query: Mapping[str, Any], *, size: int = 0, **more: Any) -> dict[str, Any]:
        body = {"size": size, "_source": False, "query": {"bool": {"filter": [query, *self._filter]}}}
        return {"track_total_hits": False, **body, **more}

    def _read(self, view: View, wanted: Sequence[Span]) -> Flow[None]:
        name = self._fields.fingerprint
        terms = {"fingerprints": fingerprint_terms(name)}
        yield from read_ranges(
            wanted,
            calls=lambda some: [view.call(self._body(each.query(name), aggs=terms)) for each in some],
            take=lambda some, answers: self._take(view, some, answers),
            patience=Patience(SHARD_ATTEMPTS),
        )
        self._used = self._context.clock()

    def _take(self, view: View, asked: Sequence[Span], answers: Sequence[Any]) -> list[Page[Span]]:
        """Put the fingerprints of the *answers* to the searches of the ranges *asked* into the table."""
        pages = [self._page(view, each, answer) for each, answer in zip(asked, answers, strict=True)]
        check_memory(self._table, self._memory_bytes)
        return pages

    def _page(self, view: View, asked: Span, answer: Any) -> Page[Span]:
        if is_view_ended(answer if isinstance(answer, Exception) else find_gaps(answer)):
            raise ResidentError("expired")
        if isinstance(answer, Exception) and not is_passing(answer):
            raise as_fault(answer, "search")
        found = None if isinstance(answer, Exception) else read_aggregations(answer, "search")
        if found is None:
            return Page(asked, again=[asked], is_refused=True)
        view.note(answer)
        digits = [each["key"] for each in found["fingerprints"]["buckets"]]
        new = self._table.add(read_fingerprints(digits))
        # The smallest come first, so that all of the range up to the last one are there.
        return Page(asked, new, [Span(digits[-1], asked.last)] if len(digits) >= reading.PAGE else [])

    def hits(self, body: Mapping[str, Any]) -> Flow[Hits | None]:
        """
        Return all hits of *body* in the point in time, or ``None`` where its ``size`` does not hold them.

        Raises:
            ResidentError: If there is no whole answer.
        """
        if self._view is None:
            raise ResidentError("view")
        while True:
            size = min(body["size"], self._view.largest_page)
            answer = yield from self._search(self._view, {**body, "size": size})
            if answer is not None:
                hits: Hits = answer["hits"]["hits"]
                return hits if len(hits) < size else None
            self._view.largest_page = max(1, size // 2)

    def keep(self) -> Flow[None]:
        """Search for nothing if the point in time would end otherwise, because nothing near was found for long."""
        if self._view is not None and self._context.clock() - self._used > UNUSED * KEEP_ALIVE_SECONDS:
            yield from self._search(self._view, self._body({"match_none": {}}))

    def _search(self, view: View, body: Mapping[str, Any]) -> Flow[Any]:
        """Return the whole answer to *body*; ``None`` if the server gives no page of that size."""

        def send() -> Flow[Any]:
            try:
                answer = yield view.call(body)
            except Exception as error:
                if is_view_ended(error):
                    raise ResidentError("expired") from error
                raise
            view.note(answer)
            return answer

        try:
            patience = Patience(SHARD_ATTEMPTS)
            answer = yield from retry(send, is_done=_is_settled, patience=patience)
        except Exception as error:
            if is_window_refused(error) and body["size"] > 1:
                return None
            if isinstance(error, ResidentError):
                raise
            raise as_fault(error, "answer" if is_passing(error) else "search") from error
        self._used = self._context.clock()
        gaps = find_gaps(answer)
        if is_window_refused(gaps) and body["size"] > 1:
            return None
        if gaps:
            raise ResidentError("expired" if is_view_ended(gaps) else "answer", str(gaps[0]))
        return answer

    def close(self) -> Flow[None]:
        """Give the point in time back."""
        view, self._view = self._view, None
        if view is not None:
            yield from close_view(view)
