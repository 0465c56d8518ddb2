"""
Reads all buckets of a field: the documents of each of its values, however many values there are.

A composite aggregation returns them page by page, in the order of the values. The caller handles the buckets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from es_simhash.flows.context import Index
from es_simhash.flows.protocol import Call, Flow, status_of
from es_simhash.flows.transfer.answers import check_whole, find_gaps, refusal_text
from es_simhash.flows.transfer.retry import ask

__all__ = ["BucketReader", "aggregate", "has_too_many"]

# What servers say of a page that is larger than search.max_buckets, or than index.max_terms_count.
_TOO_MANY = ("too_many_buckets", "too many buckets", "max_terms_count")
_SMALLEST_PAGE = 100


def aggregate(index: Index, clauses: Sequence[Mapping[str, Any]], aggs: Mapping[str, Any]) -> Flow[dict[str, Any]]:
    """
    Return the results of *aggs* over the documents of *index* that match all *clauses*.

    Sent again while the server is busy.

    Raises:
        IncompleteSearchError: If the answer does not cover every document.
    """
    body = {"size": 0, "query": {"bool": {"filter": list(clauses)}}, "aggs": aggs, "track_total_hits": False}
    answer = yield from ask(Call("search", {"index": index, "body": body}))
    # OpenSearch ends a composite aggregation early once its page is full, and a terms aggregation when it counts
    # without looking at documents, and says so of both.
    check_whole(find_gaps(answer, ignore=["terminated_early"]))
    found: dict[str, Any] = answer["aggregations"]
    return found


def has_too_many(refusal: BaseException) -> bool:
    """
    Return whether the server refused a request because it asks for more buckets or terms than it allows.
    """
    return status_of(refusal) in {400, 503} and any(words in refusal_text(refusal) for words in _TOO_MANY)


@dataclass(slots=True)
class BucketReader:
    """
    Reads the buckets of one field. A server that allows only smaller pages gets smaller ones.

    Attributes:
        index:
            What to search.
        clauses:
            Queries that the counted documents match.
        field:
            The field; a document with several values is in several buckets.
        page:
            Buckets a request.
        aggs:
            Aggregations of each bucket.
        has_missing:
            Whether the documents without a value are a bucket too, whose key is ``None``.
    """

    index: Index
    clauses: Sequence[Mapping[str, Any]]
    field: str
    page: int
    aggs: Mapping[str, Any] | None = None
    has_missing: bool = False
    _after: Mapping[str, Any] | None = None
    _is_done: bool = False

    def read(self) -> Flow[list[tuple[Any, dict[str, Any]]]]:
        """Return some more values, each with its bucket; empty after the last one."""
        if self._is_done:
            return []
        found = yield from self._send()
        buckets = found["buckets"]
        self._after = found.get("after_key")
        self._is_done = self._after is None or len(buckets) < self.page
        return [(bucket["key"]["value"], bucket) for bucket in buckets]

    def _send(self) -> Flow[dict[str, Any]]:
        terms = {"field": self.field, **({"missing_bucket": True} if self.has_missing else {})}
        while True:
            composite: dict[str, Any] = {"sources": [{"value": {"terms": terms}}], "size": self.page}
            if self._after is not None:
                composite["after"] = self._after
            every = {"composite": composite, **({"aggs": self.aggs} if self.aggs else {})}
            try:
                found = yield from aggregate(self.index, self.clauses, {"every": every})
            except Exception as error:
                if not self._takes_smaller(error):
                    raise
            else:
                every_bucket: dict[str, Any] = found["every"]
                return every_bucket

    def _takes_smaller(self, error: Exception) -> bool:
        """Return whether *error* refuses the size of the page, and make that smaller."""
        if self.page <= _SMALLEST_PAGE or not has_too_many(error):
            return False
        self.page = max(_SMALLEST_PAGE, self.page // 4)
        return True
