"""A point in time on the server, and how far a search has been read in it. ``pages_flow`` sends the requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from es_simhash.transport.answers import find_gaps
from es_simhash.transport.protocol import Call

Hits = Sequence[Mapping[str, Any]]
_LARGEST_PAGE = 2**31 - 1
# OpenSearch: an index without any mapping does not know this field, and no document is in it.
_BY_INDEX = {"_index": {"order": "asc", "unmapped_type": "keyword"}}


class View:
    """
    A point in time, what may be missing from it, and how many hits it gives at once.

    *pit*: its id, as the last answer gave it. *keep_alive*: seconds after each request. *largest_page*: as far as
    the server has shown. *ranked*: the highest score comes first. *attempts*: for a page, before a refusal counts.
    """

    def __init__(self, opened: Mapping[str, Any], keep_alive: int) -> None:
        self.is_opensearch = "pit_id" in opened
        self.pit = opened["pit_id"] if self.is_opensearch else opened["id"]
        self.keep_alive = f"{keep_alive}s"
        self.largest_page = _LARGEST_PAGE
        self.gaps = dict.fromkeys(find_gaps(opened))
        self.ranked = False
        self.attempts = 1

    def order(self) -> list[dict[str, Any]]:
        """
        Return an order without ties, by shard and place in it: what ties with the last hit of a page would be lost.

        OpenSearch numbers the shards of each index from 0, so the index is part of the order there.
        """
        score: list[dict[str, Any]] = [{"_score": "desc"}] if self.ranked else []
        return [*score, {"_shard_doc": "asc"}, *([_BY_INDEX] if self.is_opensearch else [])]

    def call(self, body: Mapping[str, Any]) -> Call:
        """Return the call that searches in it."""
        return Call("search", {"body": {**body, "pit": {"id": self.pit, "keep_alive": self.keep_alive}}})

    def note(self, answer: Mapping[str, Any]) -> None:
        """Note its id as an *answer* gives it."""
        self.pit = answer.get("pit_id", self.pit)

    def close(self) -> Call:
        """Return the call that gives it back."""
        body = {"pit_id": [self.pit]} if self.is_opensearch else {"id": self.pit}
        return Call("close_point_in_time", {"body": body})


class Cursor:
    """
    How far one search, or one slice of it, has been read in a view.

    The ``size`` and order of *body* are set here. *part*: number of the slice, from 0, and the number of slices.
    *is_ordered*: pages are read in order from the beginning. *asked*: hits that the last request asked for.
    """

    def __init__(
        self, body: Mapping[str, Any], page: int, *, part: tuple[int, int] = (0, 1), is_ordered: bool = True
    ) -> None:
        number, slices = part
        self._whole = body
        self._body = {**body, "slice": {"id": number, "max": slices}} if slices > 1 else body
        self._page = page
        self._after: Any = None
        self._is_ordered = is_ordered
        self.asked = 0
        self.is_open = True

    @property
    def whole(self) -> Cursor:
        """A cursor for all slices of the search, from its beginning."""
        return Cursor(self._whole, self._page)

    @property
    def is_fresh(self) -> bool:
        """Whether nothing has been read."""
        return self._after is None

    def call(self, view: View) -> Call:
        """Return the call that reads the next page."""
        self.asked = min(self._page, view.largest_page)
        self._is_ordered = self._is_ordered or self.asked < self._page
        request = {**self._body, "size": self.asked}
        if self._is_ordered:
            request["sort"] = view.order()
        if self._after is not None:
            request["search_after"] = self._after
        return view.call(request)

    def must_order(self, hits: Hits) -> bool:
        """Return whether more hits than fit on a page were read in no order, and have to be read again in order."""
        if self._is_ordered or len(hits) < self.asked:
            return False
        self._is_ordered = True
        return True

    def advance(self, hits: Hits) -> None:
        """Go on after *hits*."""
        self.is_open = len(hits) >= self.asked
        if hits and self.is_open:
            self._after = hits[-1]["sort"]
