"""
Reading every hit of a search, however many there are, and noticing when that was not every hit.

Uses a point in time read page by page, or a scroll where a server has no usable one. What a hit means is the
caller's business.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from es_simhash.flows.protocol import Call, Flow, error_text, status_of
from es_simhash.flows.transfer.answers import Gap, find_gaps, is_window_refused

__all__ = ["Pass", "Passes", "order_without_ties", "read_pages"]

logger = logging.getLogger("es_simhash")

Hits = Sequence[Mapping[str, Any]]
Handle = Callable[[Hits], Flow[bool]]


@dataclass(frozen=True, slots=True)
class Pass:
    """
    Something to read in a view.

    Attributes:
        body:
            Search body; its ``size`` and order are set here.
        handle:
            What is done with the hits of each page, and whether that is enough.
        page:
            Hits a page.
        likely:
            How many hits there probably are. Where they fit on a page they are first asked for in no order, which
            servers are faster at.
    """

    body: Mapping[str, Any]
    handle: Handle
    page: int
    likely: float = math.inf


Passes = Iterable[Pass]

KEEP_ALIVE = "5m"


def read_pages(
    index: str | Sequence[str],
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

    Args:
        index:
            What to search.
        body:
            Search body; its ``size`` and order are set here.
        handle:
            Called with the hits of each page; the flow it returns is carried out before the next page, and its
            result says whether that is enough.
        page:
            Hits a page; made smaller where the index's ``max_result_window`` wants that.
        routing:
            Routing value that restricts the search to a shard.
        ranked:
            Whether the hits with the highest score come first, where the server can do that.
        passes:
            What to read, one after another, instead of *body* where the server keeps one view of the index for all of
            it; each is asked for when the one before has been read.

    Returns:
        What :func:`~es_simhash.flows.transfer.answers.find_gaps` found in the answers, each once.
    """
    options = {} if routing is None else {"routing": routing}
    opened = None
    try:
        opened = yield Call("open_point_in_time", {"index": index, "keep_alive": KEEP_ALIVE, **options}, opens=True)
    except Exception as error:
        if status_of(error) not in (400, 403, 404, 405):
            raise
        # No point in time here, or no right to one; a missing index fails again below, in its own words.
        logger.debug("no point in time (%s); scrolling instead", error)
    if opened is not None:
        gaps = yield from _read_point_in_time(opened, passes or [Pass(body, handle, page)], ranked=ranked)
        if gaps is not None:
            return gaps
    return (yield from _read_scroll(index, body, handle, page, options))


def order_without_ties(opened: Mapping[str, Any]) -> list[dict[str, str]]:
    """
    Return the order in which to read the point in time *opened*: what ties with the last hit of a page is lost.

    By shard and place in it. OpenSearch numbers the shards of each index anew, so there it takes the index as well.
    """
    return [{"_shard_doc": "asc"}, *([{"_index": "asc"}] if "pit_id" in opened else [])]


class _View:
    """A point in time, what may be missing from it, and how many hits it gives at once."""

    def __init__(self, opened: Mapping[str, Any]) -> None:
        self.is_opensearch = "pit_id" in opened
        self.pit = opened["pit_id"] if self.is_opensearch else opened["id"]
        self.largest_page = 2**31 - 1
        self.gaps = dict.fromkeys(find_gaps(opened))

    def close(self) -> Call:
        body = {"pit_id": [self.pit]} if self.is_opensearch else {"id": self.pit}
        return Call("close_point_in_time", {"body": body})


def _read_point_in_time(opened: Mapping[str, Any], passes: Passes, *, ranked: bool) -> Flow[list[Gap] | None]:
    """Read on in the point in time *opened*; ``None`` where the server cannot keep an order in it."""
    view = _View(opened)
    order = [*([{"_score": "desc"}] if ranked else []), *order_without_ties(opened)]
    try:
        for each in passes:
            if not (yield from _read_pass(view, each, order)):
                return None
        return list(view.gaps)
    finally:
        yield from _give_back(view.close())


def _read_pass(view: _View, wanted: Pass, order: list[dict[str, str]]) -> Flow[bool]:
    """Give what is *wanted* of the *view* to its handle; return whether the server can keep the *order* there."""
    after: Any = None
    ordered = False
    while True:
        page = min(wanted.page, view.largest_page)
        ordered = ordered or wanted.likely >= page
        request = {**wanted.body, "size": page, "pit": {"id": view.pit, "keep_alive": KEEP_ALIVE}}
        if ordered:
            request["sort"] = order
        if after is not None:
            request["search_after"] = after
        try:
            answer = yield Call("search", {"body": request})
        except Exception as error:
            if is_window_refused(error) and page > 1:
                view.largest_page = max(1, page // 2)
                continue
            if status_of(error) == 400 and "_shard_doc" in error_text(error) and after is None:
                return False  # OpenSearch before 3.3
            raise
        view.pit = answer.get("pit_id", view.pit)
        gaps = find_gaps(answer)
        if page > 1 and is_window_refused(gaps):  # of one of several indices
            view.largest_page = max(1, page // 2)
            continue
        view.gaps |= dict.fromkeys(gaps)
        hits = answer["hits"]["hits"]
        if not ordered and len(hits) >= page:
            ordered = True
            continue
        enough = yield from wanted.handle(hits)
        if enough or len(hits) < page:
            return True
        after = hits[-1]["sort"]


def _read_scroll(
    index: str | Sequence[str], body: Mapping[str, Any], handle: Handle, page: int, options: Mapping[str, Any]
) -> Flow[list[Gap]]:
    while True:
        # A scroll always counts its hits: both products refuse one that is told not to.
        request = {**body, "size": page, "sort": ["_doc"], "track_total_hits": True}
        try:
            opening = {"index": index, "body": request, "scroll": KEEP_ALIVE, **options}
            answer = yield Call("search", opening, opens=True)
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
            answer = yield Call("scroll", {"body": {"scroll_id": scroll, "scroll": KEEP_ALIVE}})
            scroll = answer.get("_scroll_id", scroll)
            gaps |= dict.fromkeys(find_gaps(answer))
    finally:
        yield from _end_scroll(scroll)
    return list(gaps)


def _end_scroll(scroll: str | None) -> Flow[None]:
    if scroll is not None:
        yield from _give_back(Call("clear_scroll", {"body": {"scroll_id": [scroll]}}))


def _give_back(call: Call) -> Flow[None]:
    """Carry out *call*, which frees something on the server; a failure costs memory there until it expires."""
    try:
        yield call
    except Exception as error:  # noqa: BLE001 -- the answer, or the error on its way, matters more
        logger.debug("%s failed: %s", call.api, error)
    except BaseException:
        # A cancellation that came while this was being opened is thrown in here, before the call is sent.
        with suppress(Exception):
            yield call
        raise
