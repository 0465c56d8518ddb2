"""
Reads every hit of a search, page by page, and says what may be missing. No other module reads pages.

It reads a point in time, in one or several slices.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, TypeAlias

from es_simhash.transport.answers import Gap, find_gaps
from es_simhash.transport.conversation import Patience, ask_whole, changing, until
from es_simhash.transport.protocol import MAX_HITS, Call, Index
from es_simhash.transport.refusals import BUSY, NO_ORDER, NO_SHARD, NO_SLICE, NO_SOURCE
from es_simhash.transport.server import Answer, Server

Hits = Sequence[Mapping[str, Any]]
Pages: TypeAlias = AsyncGenerator[Hits, None]
# OpenSearch: an index without any mapping does not know these fields, and no document is in it.
_BY_INDEX = {"_index": {"order": "asc", "unmapped_type": "keyword"}}
_BY_NUMBER = {"_seq_no": {"order": "asc", "unmapped_type": "long"}}


class View:
    """
    A point in time, and what may be missing from it.
    *pit*: its id, as the last answer gave it. *keep_alive*: seconds.
    *has_ties*: the server cannot sort by ``_shard_doc``, as OpenSearch before 3.3.
    """

    def __init__(self, opened: Mapping[str, Any], keep_alive: int) -> None:
        self.is_opensearch = "pit_id" in opened
        self.pit = opened["pit_id"] if self.is_opensearch else opened["id"]
        self.keep_alive = f"{keep_alive}s"
        self.gaps = dict.fromkeys(find_gaps(opened, ignore=["unsaid"]))
        self.has_ties = False

    def order(self) -> list[dict[str, Any]]:
        """
        Return an order by shard and place in it, without ties: what ties with the last hit of a page would be lost.
        OpenSearch numbers the shards of each index from 0, so the index is part of the order there. With ties, it is
        by the number of the last operation, which only documents of several shards share.
        """
        if self.has_ties:
            return [_BY_NUMBER, _BY_INDEX]
        return [{"_shard_doc": "asc"}, *([_BY_INDEX] if self.is_opensearch else [])]

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
    The ``size`` and order of *body* are set here.
    """

    def __init__(self, body: Mapping[str, Any], page: int, *, part: tuple[int, int] = (0, 1)) -> None:
        number, slices = part
        self._body = {**body, **({"slice": {"id": number, "max": slices}} if slices > 1 else {})}
        self._page = page
        self._after: Any = None
        self.has_ties = False
        self.is_open = True

    def call(self, view: View) -> Call:
        self.has_ties = view.has_ties
        request = {**self._body, "size": self._page, "sort": view.order()}
        if self._after is not None:
            request["search_after"] = self._after
        return view.call(request)

    def take_ties(self, view: View) -> bool:
        """Have the next page in an order with ties; return whether this one was in another."""
        view.has_ties = True
        return not self.has_ties

    def ask_whole(self) -> bool:
        return ask_whole(self._body)

    def advance(self, hits: Hits) -> Hits:
        """Return those of the *hits* of a page that are given away now: what ties with the last one comes again."""
        self.is_open = len(hits) >= self._page
        if not (hits and self.is_open):
            return hits
        if self.has_ties:
            last = hits[-1]["sort"]
            hits = [hit for hit in hits if hit["sort"] != last]
            self._page *= 1 if hits else 2
        self._after = hits[-1]["sort"] if hits else self._after
        return hits


logger = logging.getLogger("es_simhash")

KEEP_ALIVE_SECONDS = 600


@dataclass(slots=True)
class Step:
    """
    The hits of a page of every slice, and the *calls* that read the next pages.
    Who carries these out, together with other work, puts their *answers* here; else they are carried out afterwards.
    """

    hits: Hits
    calls: Sequence[Call]
    answers: Sequence[Any] | None = None


@dataclass
class Reading:
    """
    All hits of *body* in *index*, several slices at once; at the end :attr:`gaps` says why some may be missing.
    The ``size`` and order of *body* are set here; *page*: most hits of a slice, but never more than servers allow.
    """

    server: Server
    index: Index
    body: Mapping[str, Any]
    _: KW_ONLY
    page: int
    slices: int = 1
    routing: str | None = None
    gaps: list[Gap] = field(default_factory=list)

    async def pages(self) -> Pages:
        """Yield the hits, page by page; the next page is read when it is asked for."""
        async with aclosing(self.steps()) as steps:
            async for step in steps:
                yield step.hits

    async def steps(self) -> AsyncGenerator[Step, None]:
        page = min(self.page, MAX_HITS)
        options = {} if self.routing is None else {"routing": self.routing}
        async with viewing(self.server, self.index, KEEP_ALIVE_SECONDS, options) as view:
            if view is None:
                self.gaps = [Gap("shards_missing")]
                return
            cursors = [Cursor(self.body, page, part=(number, self.slices)) for number in range(self.slices)]
            calls = [cursor.call(view) for cursor in cursors]
            answers: Sequence[Any] = await self.server.together(calls, concurrency=self.slices)
            if self.slices > 1 and any(map(_is_slice_refused, answers)):
                cursors = [Cursor(self.body, page)]
                answers = await self.server.together([cursor.call(view) for cursor in cursors])
            while cursors:
                found: list[Mapping[str, Any]] = []
                for cursor, answer in zip(cursors, answers, strict=True):
                    found += cursor.advance(await _settle(self.server, view, cursor, answer))
                cursors = [cursor for cursor in cursors if cursor.is_open]
                self.gaps = list(view.gaps)
                yield (step := Step(found, [cursor.call(view) for cursor in cursors]))
                if step.answers is not None:
                    answers = step.answers
                elif cursors:
                    answers = await self.server.together(step.calls, concurrency=self.slices)


async def read_each(
    server: Server, index: Index, body: Mapping[str, Any], take: Callable[[Hits], object], *, page: int
) -> list[Gap]:
    """
    Give every hit to the function *take*, page by page, and return why some may be missing.
    A busy server is waited for: who reads all pages loses much by one refusal.
    Cost: one search, if they fit on a page; else they are read in a point in time.
    """
    answer = await server.patient.search(index=index, body={**body, "size": page})
    if len(hits := answer["hits"]["hits"]) < page:
        take(hits)
        return find_gaps(answer)
    reading = Reading(server.patient, index, body, page=page)
    async with aclosing(reading.pages()) as pages:
        async for hits in pages:
            take(hits)
    return reading.gaps


async def open_view(
    server: Server, index: Index, keep_alive: int, options: Mapping[str, Any] | None = None
) -> View | None:
    """
    Open a point in time, which ends after *keep_alive* seconds without a read; cancelled meanwhile, it is closed.
    ``None`` where a shard is missing: Elasticsearch opens none. One that was opened though its answer was lost ends by
    itself.
    """

    async def opening() -> tuple[Answer, BaseException | None]:
        asked = server.open_point_in_time(index=index, keep_alive=f"{keep_alive}s", **(options or {}))
        return await server.to_the_end(asked)

    def passes(error: Exception) -> bool:
        return BUSY.meets(error) and not NO_SHARD.meets(error)

    try:
        opened, cancelled = await until(server, opening, patience=Patience(server.attempts), passes=passes)
    except Exception as error:
        if not NO_SHARD.meets(error):
            raise
        return None
    view = View(opened, keep_alive)
    if cancelled is not None:
        await close_view(server, view)
        raise cancelled
    return view


async def close_view(server: Server, view: View) -> None:
    """Close *view*; if that fails, the server does it later by itself."""
    try:
        _, cancelled = await server.to_the_end(server.send(view.close()))
    except Exception as error:  # noqa: BLE001 -- the answer, or the error on its way, matters more
        logger.debug("a point in time was not closed: %s", error)
    except BaseException:  # an interrupt, perhaps before the request was sent
        with suppress(Exception):
            await server.send(view.close())
        raise
    else:
        if cancelled is not None:
            raise cancelled


@asynccontextmanager
async def viewing(
    server: Server, index: Index, keep_alive: int, options: Mapping[str, Any] | None = None
) -> AsyncIterator[View | None]:
    """Open a view as :func:`open_view` does, and close it on every way out."""
    view = await open_view(server, index, keep_alive, options)
    try:
        yield view
    finally:
        if view is not None:
            await close_view(server, view)


def _is_slice_refused(answer: Any) -> bool:
    return NO_SLICE.meets(answer if isinstance(answer, BaseException) else find_gaps(answer))


async def _settle(server: Server, view: View, cursor: Cursor, answer: Any) -> Hits:
    """Return the hits of *answer*, or of the same page asked for as the server can give it."""
    given = [answer]

    async def read() -> Answer:
        came = given.pop() if given else await server.send(cursor.call(view))
        if isinstance(came, BaseException):
            raise came
        return came

    answer = await changing(read, {NO_ORDER: lambda: cursor.take_ties(view), NO_SOURCE: cursor.ask_whole}, find_gaps)
    view.note(answer)
    view.gaps |= dict.fromkeys(find_gaps(answer))
    hits: Hits = answer["hits"]["hits"]
    return hits
