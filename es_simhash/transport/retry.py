"""
Repeats requests, and refreshes: which refusals are temporary, how long to wait, when to give up, what to ask instead.

Shards without any active copy are noticed at once, and named. A server waits a minute for such a shard before it
refuses a write or a refresh, which is longer than clients wait for an answer.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

from es_simhash.errors import IncompleteSearchError
from es_simhash.transport.answers import Gap, find_gaps, is_shard_missing, is_source_refused, sentences
from es_simhash.transport.protocol import Call, Index, error_text, in_parts, index_key, status_of
from es_simhash.transport.server import Answer, Server

logger = logging.getLogger("es_simhash")

_T = TypeVar("_T")

ATTEMPTS = 9
"""How often a request is sent before its refusal counts: once, and eight times more, within about a minute."""

SHARD_ATTEMPTS = 5
"""How often a request is sent that fails because a shard has no active copy: within about 4 seconds."""

FIRST_WAIT_SECONDS = 0.25
LONGEST_WAIT_SECONDS = 30.0
MOST_DOUBLINGS = 20

# Too many requests, and what proxies and clusters answer while a node restarts.
_BUSY = 429
_PASSING = frozenset({_BUSY, 502, 503, 504})
# OpenSearch has a 503 for a search with more buckets than it allows.
_TOO_MANY = "too_many_buckets"


BLOCK = "cluster_block_exception"
"""What a server says of a block: with 403 or 429 of one that somebody must remove, with 503 while it starts."""


def is_passing(refusal: BaseException | int | None, kind: str = "") -> bool:
    """
    Return whether a refusal (an exception, or a status and the *kind* of the error) is temporary.
    So it is while the server is busy or starting, but not where a disk is full (429): that takes longer than a minute.
    """
    if isinstance(refusal, BaseException):
        return is_passing(status_of(refusal), error_text(refusal))
    return refusal in _PASSING and not (refusal == _BUSY and BLOCK in kind) and _TOO_MANY not in kind


@dataclass(slots=True)
class Patience:
    """How many failures in a row are waited for, and how long: each wait is twice the last, up to 30 seconds."""

    attempts: int = ATTEMPTS
    first_wait_seconds: float = FIRST_WAIT_SECONDS
    failures: int = 0

    @property
    def is_spent(self) -> bool:
        """Whether the attempt that fails now is the last one."""
        return self.failures >= self.attempts - 1

    async def wait(self, server: Server) -> None:
        """Count a failure, and wait before the next attempt."""
        doublings = min(self.failures, MOST_DOUBLINGS)
        seconds = min(self.first_wait_seconds * 2**doublings, LONGEST_WAIT_SECONDS)
        self.failures += 1
        await server.sleep(seconds)

    def renew(self) -> None:
        self.failures = 0


async def retry(
    server: Server,
    work: Callable[[], Awaitable[_T]],
    *,
    is_done: Callable[[_T], bool] = lambda _: True,
    patience: Patience | None = None,
) -> _T:
    """
    Return what *work* returns, which is called for each attempt, while the server is busy or *is_done* says no.
    The last result is returned even if it is not good enough. By default: nine attempts, five if a shard has no copy.
    """
    patience = patience or Patience()
    while True:
        try:
            result = await work()
        except Exception as error:
            is_lasting = is_shard_missing(error) and patience.failures >= SHARD_ATTEMPTS - 1
            if patience.is_spent or is_lasting or not is_passing(error):
                raise
        else:
            if is_done(result):
                patience.renew()
                return result
            if patience.is_spent:
                return result
        await patience.wait(server)


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
    Return the answer to *body*, whose hits have *fields* in ``_source`` or among their stored fields.
    Costs a second search if an index keeps no ``_source``: asked for parts of it, a server refuses; asked for all of
    it, it returns none. *body* has no ``_source`` and no ``stored_fields``; *source* names more parts to return.
    """
    send = send or server.send
    request = text_body(body, fields, source=source)
    arguments = {"index": index} | ({} if routing is None else {"routing": routing})
    try:
        answer = await send(Call("search", {**arguments, "body": request}))
    except Exception as error:
        if not is_source_refused(error):
            raise
    else:
        if not is_source_refused(find_gaps(answer)):
            return answer
    return await send(Call("search", {**arguments, "body": {**request, "_source": True}}))


def text_body(body: Mapping[str, Any], fields: Sequence[str], *, source: Sequence[str] = ()) -> dict[str, Any]:
    """Return the search *body* of hits that carry *fields*, as :func:`search_texts` sends it first."""
    return {**body, "_source": [*fields, *source], "stored_fields": list(fields)}


LOOK_FOR_SHARDS = {"size": 0, "track_total_hits": False, "query": {"match_all": {}}}
"""A search that only shows which shards answer."""


async def check_shards(server: Server, index: Index) -> None:
    """
    Raise IncompleteSearchError if a shard of *index* has no active copy, after a few seconds for it to start.
    Cost: one search without hits; a user who may not search is not checked. One who may see the cluster's health is
    told which shard it is.
    """
    missing = await retry(
        server, lambda: _find_missing(server, index), is_done=lambda gaps: not gaps, patience=Patience(SHARD_ATTEMPTS)
    )
    if missing:
        reason = (await _name_missing(server, index)) or f"index {index_key(index)}: {'; '.join(sentences(missing))}"
        raise IncompleteSearchError(f"{reason}: see the health of the cluster", reasons=(reason,))


async def _find_missing(server: Server, index: Index) -> list[Gap]:
    """Return what a search says of shards without any active copy; nothing if the server refuses the search."""
    try:
        answer = await server.search(index=index, body=LOOK_FOR_SHARDS)
    except Exception as error:
        if status_of(error) is None:
            raise
        return [Gap("shards_missing")] if is_shard_missing(error) else []
    return [gap for gap in find_gaps(answer) if gap.is_missing_shard]


async def _name_missing(server: Server, index: Index) -> str:
    """Return which shards of *index* have no active copy; empty where the user may not ask for the health."""
    try:
        answer = await server.cluster_health(index=index, level="shards")
    except Exception:  # noqa: BLE001 -- the missing shard matters more
        return ""
    missing = [
        f"shard {number} of index {name}"
        for name, each in sorted((answer.get("indices") or {}).items())
        for number, shard in sorted((each.get("shards") or {}).items())
        if not shard.get("active_shards")
    ]
    if not missing:
        return ""
    more = f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""
    return f"{missing[0]}{more} has no active copy"


def now() -> str:
    """Return the time as ``simhash.at`` holds it: ISO 8601, UTC, milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


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

        failed += await retry(server, send, is_done=lambda failed: not failed)
    if failed:
        reason = f"{failed} shards could not be refreshed"
        raise IncompleteSearchError(f"{reason}: see the health of the cluster", reasons=(reason,))
