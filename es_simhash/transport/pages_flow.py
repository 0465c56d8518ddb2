"""
Reads every hit of a search, page by page, and says what may be missing. No other module reads pages.

It reads a point in time, in one or several slices, or a scroll if a server has no usable one.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from es_simhash.errors import InvalidInputError
from es_simhash.transport.answers import (
    Gap,
    find_gaps,
    is_closed,
    is_shard_missing,
    is_slice_refused,
    is_window_refused,
)
from es_simhash.transport.protocol import Call, Flow, Index, Together, error_text, status_of
from es_simhash.transport.retry_flow import ATTEMPTS, Patience, attempt, is_passing

Hits = Sequence[Mapping[str, Any]]
_LARGEST_PAGE = 2**31 - 1
# OpenSearch: an index without any mapping does not know this field, and no document is in it.
_BY_INDEX = {"_index": {"order": "asc", "unmapped_type": "keyword"}}


class View:
    """
    A point in time, what may be missing from it, and how many hits it gives at once.
    *pit*: its id, as the last answer gave it. *keep_alive*: seconds. *attempts*: for a page, before a refusal counts.
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
        return Call("search", {"body": {**body, "pit": {"id": self.pit, "keep_alive": self.keep_alive}}})

    def note(self, answer: Mapping[str, Any]) -> None:
        self.pit = answer.get("pit_id", self.pit)

    def close(self) -> Call:
        body = {"pit_id": [self.pit]} if self.is_opensearch else {"id": self.pit}
        return Call("close_point_in_time", {"body": body})


class Cursor:
    """
    How far one search, or one slice of it (*part*: its number, from 0, and their number), has been read in a view.
    The ``size`` and order of *body* are set here. *is_ordered*: pages are read in order from the beginning.
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
        return Cursor(self._whole, self._page)

    @property
    def is_fresh(self) -> bool:
        return self._after is None

    def call(self, view: View) -> Call:
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
        self.is_open = len(hits) >= self.asked
        if hits and self.is_open:
            self._after = hits[-1]["sort"]


logger = logging.getLogger("es_simhash")

# Deals with the hits of a page; returns whether that is enough.
Handle = Callable[[Hits], Flow[bool]]
# Deals with the hits of a page of every slice; carries out the calls for the next pages, and returns their answers.
HandleAhead = Callable[[Hits, Sequence[Call]], Flow[list[Any]]]
# As HandleAhead, and may return None: that is enough.
_Take = Callable[[Hits, Sequence[Call]], Flow[list[Any] | None]]

KEEP_ALIVE_SECONDS = 600
# What servers allow by default.
LONGEST_KEEP_ALIVE_SECONDS = 24 * 3600
_UNORDERED = {"sort": ["_doc"]}
# Where the caller is slow on purpose, a page is read about so often.
PACED_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Pass:
    """
    One search, all hits of which are read in a view; the ``size`` and order of *body* are set here.
    *likely*: how many hits there probably are; those that fit on one page are first read in no order, which is faster.
    """

    body: Mapping[str, Any]
    handle: Handle
    page: int
    likely: float = math.inf


Passes = Iterable[Pass]


def read_pages(
    index: Index,
    body: Mapping[str, Any],
    handle: Handle,
    *,
    page: int,
    routing: str | None = None,
    ranked: bool = False,
    passes: Passes | None = None,
) -> Flow[list[Gap]]:
    """
    Give every hit of *body* in *index* to *handle*, page by page, and return why some may be missing.
    The ``size`` and order of *body* are set here; *page* becomes smaller if ``max_result_window`` is. The flow of
    *handle* is carried out before the next page is read. *ranked*: the highest score comes first, if the server can do
    that. *passes* are read instead of *body*, one after another, if the server keeps one view of the index for all of
    them. Each is asked for when the one before has been read.
    """
    options = {} if routing is None else {"routing": routing}
    view = yield from open_view(index, KEEP_ALIVE_SECONDS, options)
    if view is not None:
        view.ranked = ranked
        try:
            for each in passes or [Pass(body, handle, page)]:
                cursor = Cursor(each.body, each.page, is_ordered=each.likely >= each.page)
                if not (yield from _read_view(view, [cursor], _one_by_one(each.handle))):
                    break
            else:
                return list(view.gaps)
        finally:
            yield from close_view(view)
    return (yield from read_scroll(index, body, handle, page, options))


def without_requests(function: Callable[[Hits], object]) -> Handle:
    """Return *function*, which makes no request, as a handler of pages; it returns ``True`` for enough."""

    def handle(hits: Hits) -> Flow[bool]:
        yield from ()
        return function(hits) is True

    return handle


def read_each(index: Index, body: Mapping[str, Any], take: Callable[[Hits], object], *, page: int) -> Flow[list[Gap]]:
    """Give every hit to the function *take*, which makes no request; otherwise as :func:`read_pages`."""
    return read_pages(index, body, without_requests(take), page=page)


def read_slices(
    index: Index,
    body: Mapping[str, Any],
    handle: HandleAhead,
    *,
    page: int,
    slices: int,
    documents_per_second: float | None = None,
) -> Flow[list[Gap]]:
    """
    Give every hit of *body* to *handle*, several slices at once, and return why some may be missing.
    *handle* gets the hits of a page of every slice, and the calls that read the next pages. Its flow must carry these
    out, together with its other work, and return their answers. *page* is for each slice, and becomes smaller if
    ``max_result_window`` is. A page that the server is too busy for is asked for again. With *documents_per_second*,
    pages are smaller and the view stays open longer, so that it does not end between two pages.
    """
    keep_alive = KEEP_ALIVE_SECONDS
    if documents_per_second is not None:
        page = min(page, max(1, int(documents_per_second * PACED_SECONDS / slices)))
        between_pages = page * slices / documents_per_second
        keep_alive = int(min(max(keep_alive, 10 * between_pages), LONGEST_KEEP_ALIVE_SECONDS))
    view = yield from open_view(index, keep_alive)
    if view is not None:
        view.attempts = ATTEMPTS
        cursors = [Cursor(body, page, part=(number, slices)) for number in range(slices)]
        try:
            if (yield from _read_view(view, cursors, handle)):
                return list(view.gaps)
        finally:
            yield from close_view(view)

    def alone(hits: Hits) -> Flow[bool]:
        yield from handle(hits, [])
        return False

    return (yield from read_scroll(index, body, alone, page, {}, keep_alive=keep_alive))


def read_part(
    index: Index, body: Mapping[str, Any], handle: Handle, *, view: View | None, page: int, part: tuple[int, int]
) -> Flow[list[Gap]]:
    """
    Give every hit of the slice *part*, its number and the number of slices, to *handle*; else as :func:`read_pages`.
    *view*: of :func:`open_ordered_view`, the same for all slices. If it is ``None``, each slice is scrolled, and sees
    the index as it is when its reading begins.
    """
    if view is None:
        sliced = {**body, "slice": {"id": part[0], "max": part[1]}} if part[1] > 1 else body
        return (yield from read_scroll(index, sliced, handle, page, {}))
    view.attempts = ATTEMPTS
    cursor = Cursor(body, page, part=part)
    if not (yield from _read_view(view, [cursor], _one_by_one(handle))):
        raise InvalidInputError("the server cannot keep an order in a point in time: read without one")
    return list(view.gaps)


def open_ordered_view(index: Index, keep_alive: int) -> Flow[View | None]:
    """
    Open a view that several programs can read at once; it ends after *keep_alive* seconds without a read.
    ``None`` if there is no point in time, or the server keeps no order in one, as OpenSearch before 3.3.
    """
    view = yield from open_view(index, keep_alive)
    if view is None:
        return None
    is_enough = _one_by_one(without_requests(lambda _: True))
    if (yield from _read_view(view, [Cursor({"_source": False}, 1)], is_enough)):
        return view
    yield from close_view(view)
    return None


def open_view(index: Index, keep_alive: int, options: Mapping[str, Any] | None = None) -> Flow[View | None]:
    """
    Open a point in time, which ends after *keep_alive* seconds without a read.
    ``None`` if there is none: too old a server, no right to one, a shard missing.
    """
    arguments = {"index": index, "keep_alive": f"{keep_alive}s", **(options or {})}
    try:
        opened = yield Call("open_point_in_time", arguments, opens=True)
    except Exception as error:
        # Elasticsearch opens no point in time where a shard is missing; a scroll reads the others, and says so.
        is_lacking = status_of(error) in (400, 403, 404, 405) or is_shard_missing(error)
        if not is_lacking or is_closed(error):
            raise
        # A missing index fails again when it is scrolled, in its own words.
        logger.debug("no point in time (%s); scrolling instead", error)
        return None
    return View(opened, keep_alive)


def close_view(view: View) -> Flow[None]:
    yield from _give_back(view.close())


def _one_by_one(handle: Handle) -> _Take:
    """Return what deals with the hits of a page, and then reads the next page."""

    def take(hits: Hits, calls: Sequence[Call]) -> Flow[list[Any] | None]:
        is_enough = yield from handle(hits)
        return None if is_enough else (yield from _send(calls))

    return take


def _send(calls: Sequence[Call]) -> Flow[list[Any]]:
    """Carry *calls* out; a failure is an answer."""
    if len(calls) != 1:
        return (yield Together(calls, concurrency=len(calls))) if calls else []
    return [(yield from attempt(calls[0]))]


def _read_view(view: View, cursors: Sequence[Cursor], take: _Take) -> Flow[bool]:
    """Give what *cursors* read to *take*; return whether the server can keep an order in the *view*."""
    answers: list[Any] | None = yield from _send([each.call(view) for each in cursors])
    if len(cursors) > 1 and any(map(is_slice_refused, answers or ())):
        cursors = [cursors[0].whole]
        answers = yield from _send([cursors[0].call(view)])
    while cursors and answers is not None:
        hits: list[Mapping[str, Any]] = []
        for cursor, answer in zip(cursors, answers, strict=True):
            found = yield from _settle(view, cursor, answer)
            if found is None:
                return False
            cursor.advance(found)
            hits += found
        cursors = [each for each in cursors if each.is_open]
        answers = yield from take(hits, [each.call(view) for each in cursors])
    return True


def _settle(view: View, cursor: Cursor, answer: Any) -> Flow[Hits | None]:
    """Return the hits of *answer*, asked for again as needed; ``None`` where the server can keep no order."""
    patience = Patience(view.attempts)
    while True:
        is_refused = isinstance(answer, BaseException)
        gaps = [] if is_refused else find_gaps(answer)
        if not is_refused:
            view.note(answer)
        if cursor.asked > 1 and is_window_refused(answer if is_refused else gaps):  # by one of several indices
            view.largest_page = min(view.largest_page, max(1, cursor.asked // 2))
        elif is_refused:
            if status_of(answer) == 400 and "_shard_doc" in error_text(answer) and cursor.is_fresh:
                return None  # OpenSearch before 3.3
            if patience.is_spent or not is_passing(answer):
                raise answer
            yield patience.wait()
        elif not cursor.must_order(answer["hits"]["hits"]):
            view.gaps |= dict.fromkeys(gaps)
            hits: Hits = answer["hits"]["hits"]
            return hits
        [answer] = yield from _send([cursor.call(view)])


def read_scroll(
    index: Index,
    body: Mapping[str, Any],
    handle: Handle,
    page: int,
    options: Mapping[str, Any],
    *,
    keep_alive: int = KEEP_ALIVE_SECONDS,
    order: Mapping[str, Any] = _UNORDERED,
) -> Flow[list[Gap]]:
    """As :func:`read_pages`, by a scroll; in the *order* of *body* where that is empty."""
    lives = f"{keep_alive}s"
    while True:
        # A scroll always counts its hits: both products refuse one that must not count them.
        request = {**body, "size": page, **order, "track_total_hits": True}
        try:
            answer = yield Call("search", {"index": index, "body": request, "scroll": lives, **options}, opens=True)
        except Exception as error:
            if not is_window_refused(error) or page == 1:
                raise
        else:
            gaps = dict.fromkeys(find_gaps(answer))
            scroll = answer.get("_scroll_id")
            if page == 1 or not is_window_refused(gaps):
                break
            yield from _end_scroll(scroll)
        page = max(1, page // 2)
    try:
        while hits := answer["hits"]["hits"]:
            if (yield from handle(hits)):
                break
            answer = yield Call("scroll", {"body": {"scroll_id": scroll, "scroll": lives}})
            scroll = answer.get("_scroll_id", scroll)
            gaps |= dict.fromkeys(find_gaps(answer))
    finally:
        yield from _end_scroll(scroll)
    return list(gaps)


def _end_scroll(scroll: str | None) -> Flow[None]:
    if scroll is not None:
        yield from _give_back(Call("clear_scroll", {"body": {"scroll_id": [scroll]}}))


def _give_back(call: Call) -> Flow[None]:
    """Carry out *call*, which frees something on the server; if that fails, the server frees it later by itself."""
    try:
        yield call
    except Exception as error:  # noqa: BLE001 -- the answer, or the error on its way, matters more
        logger.debug("%s failed: %s", call.api, error)
    except BaseException:
        # A cancellation that came while this was being opened is thrown in here, before the call is sent.
        with suppress(Exception):
            yield call
        raise
