"""
Reading an index in several slices of one point in time at once.

As ``paging.read_pages``, which serves where slices cannot be read; what the hits are for is the caller's business.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from es_simhash.flows.context import Index
from es_simhash.flows.protocol import Call, Flow, Together, error_text, status_of
from es_simhash.flows.transfer.answers import Gap, find_gaps, is_window_refused
from es_simhash.flows.transfer.pages import Hits, order_without_ties, read_pages
from es_simhash.flows.transfer.retry import Patience, is_passing

__all__ = ["read_slices"]

KEEP_ALIVE = "10m"

Handle = Callable[[Hits, Sequence[Call]], Flow[list[Any]]]


def read_slices(index: Index, body: Mapping[str, Any], handle: Handle, *, page: int, slices: int) -> Flow[list[Gap]]:
    """
    Give every hit of *body* in *index* to *handle*, and return why some may be missing.

    Args:
        index:
            What to search.
        body:
            Search body; its size and order are set here.
        handle:
            Called with the hits of a page of every slice, and the calls that read the next pages. The flow it returns
            carries these out beside its own work, and returns their answers.
        page:
            Hits a page and slice.
        slices:
            Number of slices read at once.
    """
    try:
        opened = yield Call("open_point_in_time", {"index": index, "keep_alive": KEEP_ALIVE}, opens=True)
    except Exception as error:
        if status_of(error) not in (400, 403, 404, 405):
            raise
        opened = None
    if opened is not None:
        gaps = yield from _read(opened, body, handle, page, slices)
        if gaps is not None:
            return gaps

    def single(hits: Hits) -> Flow[bool]:
        yield from handle(hits, [])
        return False

    return (yield from read_pages(index, body, single, page=page))


class _Reader:
    """One slice: what it asks next."""

    def __init__(self, body: Mapping[str, Any], order: list[dict[str, str]], number: int, slices: int) -> None:
        self._body = {**body, "sort": order}
        if slices > 1:
            self._body["slice"] = {"id": number, "max": slices}
        self._after: Any = None
        self.is_open = True

    def call(self, pit: str, page: int) -> Call:
        after = {} if self._after is None else {"search_after": self._after}
        request = {**self._body, **after, "size": page, "pit": {"id": pit, "keep_alive": KEEP_ALIVE}}
        return Call("search", {"body": request})

    def take(self, hits: Hits, page: int) -> None:
        self.is_open = len(hits) >= page
        if hits:
            self._after = hits[-1]["sort"]


def _read(
    opened: Mapping[str, Any], body: Mapping[str, Any], handle: Handle, page: int, slices: int
) -> Flow[list[Gap] | None]:
    is_opensearch = "pit_id" in opened
    pit = opened["pit_id"] if is_opensearch else opened["id"]
    gaps = dict.fromkeys(find_gaps(opened))
    readers = [_Reader(body, order_without_ties(opened), number, slices) for number in range(slices)]
    try:
        live = readers
        answers = yield Together([each.call(pit, page) for each in live], concurrency=slices)
        while live:
            hits: list[Mapping[str, Any]] = []
            asked = page
            for reader, first in zip(live, answers, strict=True):
                answer, size, patience = first, asked, Patience()
                while True:
                    is_failed = isinstance(answer, BaseException)
                    failed = [] if is_failed else find_gaps(answer)  # of one of several indices
                    if size > 1 and is_window_refused(answer if is_failed else failed):
                        page = min(page, max(1, size // 2))
                    elif not is_failed:
                        break
                    elif status_of(answer) == 400 and "_shard_doc" in error_text(answer) and not hits:
                        return None  # OpenSearch before 3.3
                    elif patience.is_spent or not is_passing(answer):
                        raise answer
                    else:
                        yield patience.wait()
                    size = page
                    [answer] = yield Together([reader.call(pit, size)])
                gaps |= dict.fromkeys(failed)
                pit = answer.get("pit_id", pit)
                found = answer["hits"]["hits"]
                reader.take(found, size)
                hits += found
            live = [each for each in live if each.is_open]
            answers = yield from handle(hits, [each.call(pit, page) for each in live])
    finally:
        close = {"pit_id": [pit]} if is_opensearch else {"id": pit}
        # The answer, or the error on its way, matters more than what expires by itself.
        yield Together([Call("close_point_in_time", {"body": close})])
    return list(gaps)
