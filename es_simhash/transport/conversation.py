"""
The conversation with a server: requests that are sent again as ``refusals.py`` says, and what their answers show.

Shards without any active copy are noticed at once, and named. A server waits a minute for such a shard before it
refuses a write or a refresh, which is longer than clients wait for an answer.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from es_simhash.errors import IncompleteSearchError
from es_simhash.transport.answers import Gap, find_gaps, sentences
from es_simhash.transport.protocol import Call, Index, in_parts, index_key, status_of
from es_simhash.transport.refusals import ATTEMPTS, BUSY, NO_SHARD, NO_SOURCE, Refusal, Row
from es_simhash.transport.server import Answer, Server

logger = logging.getLogger("es_simhash")

_T = TypeVar("_T")

LONGEST_WAIT_SECONDS = 30.0
MOST_DOUBLINGS = 20
# After about two seconds, so that nobody takes a wait of a minute for a command that hangs.
_TOLD_AT_FAILURE = 4
_ONCE = ("bulk", "close_point_in_time", "open_point_in_time")


async def pause(server: Server, failures: int, first_wait_seconds: float = BUSY.first_wait_seconds) -> None:
    """Wait after so many *failures* before: twice as long as the last time, 30 seconds at most."""
    await server.sleep(min(first_wait_seconds * 2 ** min(failures, MOST_DOUBLINGS), LONGEST_WAIT_SECONDS))


@dataclass(slots=True)
class Patience:
    """How many failures in a row are waited for."""

    attempts: int = ATTEMPTS
    first_wait_seconds: float = BUSY.first_wait_seconds
    failures: int = 0

    @property
    def is_spent(self) -> bool:
        """Whether the attempt that fails now is the last one."""
        return self.failures >= self.attempts - 1

    async def wait(self, server: Server) -> None:
        """Count a failure, and wait before the next attempt."""
        self.failures += 1
        if self.failures == _TOLD_AT_FAILURE and self.attempts == ATTEMPTS:
            logger.warning("the server is busy or not ready: the request is sent again, for about a minute in all")
        await pause(server, self.failures - 1, self.first_wait_seconds)


async def rounds(
    server: Server,
    waiting: Sequence[_T],
    send: Callable[[Sequence[_T]], Awaitable[Sequence[_T]]],
    row: Row = BUSY,
) -> Sequence[_T]:
    """
    Call *send* with what is *waiting*, and then with what it returns, until that is nothing; return what is left.
    As often as *row* says without one that is done: a short queue takes a few at a time, which is no reason to give up.
    """
    patience = Patience(row.attempts, row.first_wait_seconds)
    while waiting:
        left = await send(waiting)
        if len(left) < len(waiting):
            patience.failures = 0
        waiting = left
        if waiting and patience.is_spent:
            break
        if waiting:
            await patience.wait(server)
    return waiting


async def halves(
    server: Server,
    parts: Sequence[_T],
    answer: Any,
    *,
    send: Callable[[Sequence[_T]], Awaitable[Any]],
    splits: Callable[[BaseException], bool],
    waits: bool = True,
) -> list[tuple[Sequence[_T], Any]]:
    """
    Return *parts* with the *answer* to their request, or its exception; where that *splits* them, of each half alone.
    Unless *waits* is false, a server that is busy has a moment first.
    """
    if not isinstance(answer, BaseException) or len(parts) == 1 or not splits(answer):
        return [(parts, answer)]
    if waits and BUSY.meets(answer):
        await pause(server, 0)
    found = []
    for half in (parts[: len(parts) // 2], parts[len(parts) // 2 :]):
        came = await attempt(send(half))
        found += await halves(server, half, came, send=send, splits=splits, waits=waits)
    return found


Changes: TypeAlias = Mapping[Row, Callable[[], bool]]
"""By the row of the table what changes a request, and returns whether it did: what was left out cannot be again."""


def change_for(refusal: Refusal, changes: Changes) -> bool:
    """Return whether what is asked was changed because of a *refusal*, perhaps of some of the shards only."""
    return bool(refusal) and any(row.meets(refusal) and change() for row, change in changes.items())


async def changing(work: Callable[[], Awaitable[_T]], changes: Changes, gaps_in: Callable[[_T], Refusal]) -> _T:
    """Return what *work* returns, which begins anew where a refusal, or a gap, of it is one that *changes* mend."""
    while True:
        try:
            result = await work()
        except Exception as error:
            if not change_for(error, changes):
                raise
        else:
            if not change_for(gaps_in(result), changes):
                return result


async def until(
    server: Server,
    work: Callable[[], Awaitable[_T]],
    *,
    is_done: Callable[[_T], bool] = lambda _: True,
    patience: Patience | None = None,
    passes: Callable[[Exception], bool] = BUSY.meets,
) -> _T:
    """
    Return what *work* returns, which is called for each attempt, while the server is busy or *is_done* says no.
    The last result is returned even if it is not good enough. By default: nine attempts, five if a shard has no copy.
    *passes*: which failures are waited for.
    """
    patience = patience or Patience()
    while True:
        try:
            result = await work()
        except Exception as error:
            is_lasting = NO_SHARD.meets(error) and patience.failures >= NO_SHARD.attempts - 1
            if patience.is_spent or is_lasting or not passes(error):
                raise
        else:
            if is_done(result):
                patience.failures = 0
                return result
            if patience.is_spent:
                return result
        await patience.wait(server)


def is_repeatable(call: Call) -> bool:
    """Return whether *call* may simply be sent again: not what writes, opens or closes something."""
    return call.api not in _ONCE


async def attempt(work: Awaitable[_T]) -> _T | Exception:
    """Return what *work* returns, or the exception that it failed with."""
    try:
        return await work
    except Exception as error:  # noqa: BLE001 -- judged by the caller
        return error


async def unless_refused(work: Awaitable[_T], *statuses: int) -> _T | None:
    """Return what *work* returns; ``None`` if a request of it fails with one of *statuses*."""
    try:
        return await work
    except Exception as error:
        if status_of(error) not in statuses:
            raise
        logger.debug("not answered: %s", error)
        return None


async def search_texts(
    server: Server,
    index: Index,
    body: Mapping[str, Any],
    fields: Sequence[str],
    *,
    source: Sequence[str] = (),
    routing: str | None = None,
    send: Callable[[Call], Awaitable[Answer]] | None = None,
) -> Answer:
    """
    Return the answer to *body*, whose hits have *fields* in ``_source``.
    Costs a second search if an index keeps no ``_source``: asked for parts of it, a server refuses; asked for all of
    it, it returns none. *body* has no ``_source``; *source* names more parts to return.
    """
    request = text_body(body, fields, source=source)
    arguments: dict[str, Any] = {"index": index} | ({} if routing is None else {"routing": routing})

    async def ask() -> Answer:
        return await (send or server.send)(Call("search", {**arguments, "body": request}))

    return await changing(ask, {NO_SOURCE: lambda: ask_whole(request)}, find_gaps)


def ask_whole(body: dict[str, Any]) -> bool:
    """Have *body* ask for the whole source of hits; return whether it did not before."""
    asked, body["_source"] = body.get("_source", True), True
    return asked is not True


def text_body(body: Mapping[str, Any], fields: Sequence[str], *, source: Sequence[str] = ()) -> dict[str, Any]:
    """Return the search *body* of hits that carry *fields*, as :func:`search_texts` sends it first."""
    return {**body, "_source": [*fields, *source]}


LOOK_FOR_SHARDS = {"size": 0, "track_total_hits": False, "query": {"match_all": {}}}
"""A search that only shows which shards answer."""


async def check_shards(server: Server, index: Index) -> None:
    """
    Raise IncompleteSearchError if a shard of *index* has no active copy, after a few seconds for it to start.
    Cost: one search without hits; a user who may not search is not checked.
    """
    missing = await until(
        server,
        lambda: _find_missing(server, index),
        is_done=lambda gaps: not gaps,
        patience=Patience(NO_SHARD.attempts),
    )
    if missing:
        reason = f"index {index_key(index)}: {'; '.join(sentences(missing))}"
        raise IncompleteSearchError(f"{reason}: see the health of the cluster", reasons=(reason,))


async def _find_missing(server: Server, index: Index) -> list[Gap]:
    """Return what a search says of shards without any active copy; nothing if the server refuses the search."""
    try:
        answer = await server.search(index=index, body=LOOK_FOR_SHARDS)
    except Exception as error:
        if status_of(error) is None:
            raise
        return [Gap("shards_missing")] if NO_SHARD.meets(error) else []
    return [gap for gap in find_gaps(answer) if gap.is_missing_shard]


async def refresh(server: Server, index: Index) -> None:
    """
    Make all that was written to *index* visible to searches, however busy the server is.
    Cost: two requests, because shards without any active copy are looked for first. IncompleteSearchError is raised if
    there is one, or if a shard cannot be refreshed.
    """
    failed = 0
    for part in in_parts(index):
        await check_shards(server, part)

        async def send(part: Index = part) -> int:
            answer = await server.refresh(index=part)
            return len((answer.get("_shards") or {}).get("failures") or ())

        failed += await until(server, send, is_done=lambda failed: not failed)
    if failed:
        reason = f"{failed} shards could not be refreshed"
        raise IncompleteSearchError(f"{reason}: see the health of the cluster", reasons=(reason,))
