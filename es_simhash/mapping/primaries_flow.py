"""
Reading from primary shards where replicas may lag behind: segment replication of OpenSearch.

There a refresh makes writes visible on primaries first. :func:`reads_primaries` decorates a flow that must
see what was just written. Which documents it reads is not decided here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import wraps
from typing import Any, TypeVar, cast

from es_simhash.mapping.context import Context
from es_simhash.transport.names import Index, check_index, local_names
from es_simhash.transport.protocol import Call, Flow, Request, Together, status_of
from es_simhash.transport.retry_flow import ask

_T = TypeVar("_T")
_F = TypeVar("_F", bound=Callable[..., Flow[Any]])

_PREFERENCE = {"preference": "_primary"}
_SEARCHES = ("open_point_in_time", "search")


def reads_primaries(flow: _F) -> _F:
    """
    Return *flow* with searches that read primary shards if replicas of the index may lag behind.

    The arguments of *flow* begin with a context and an index, and it checks them before its first request.
    Cost: one more request, for the settings of the index.
    """

    @wraps(flow)
    def wrapped(context: Context, index: Index, *args: Any, **kwargs: Any) -> Flow[Any]:
        check_index(index)
        started = flow(context, index, *args, **kwargs)
        first = next(started)  # a flow checks its arguments before its first request
        may_lag = yield from _may_lag(index)
        return (yield from _carry_on(started, first, _prefer_primaries if may_lag else _same))

    return cast("_F", wrapped)


def _same(request: Request) -> Request:
    return request


def _carry_on(flow: Flow[_T], request: Request, change: Callable[[Request], Request]) -> Flow[_T]:
    """Carry *flow* out from *request*, its first one, with each request as *change* returns it."""
    while True:
        answer: Any = None
        failure: BaseException | None = None
        try:
            answer = yield change(request)
        except BaseException as error:  # noqa: BLE001 -- the flow decides
            failure = error
        try:
            request = flow.send(answer) if failure is None else flow.throw(failure)
        except StopIteration as stop:
            result: _T = stop.value
            return result


def _may_lag(index: Index) -> Flow[bool]:
    """Return whether a refresh of *index* may not reach its replicas."""
    names = local_names(index)
    if not names:
        return False
    try:
        answer = yield from ask(Call("get_settings", {"index": ",".join(names), "name": "index.replication.type"}))
    except Exception as error:
        if status_of(error) not in (401, 403):
            raise
    else:
        return any(_replication(each) == "SEGMENT" for each in answer.values())
    # A user who may not read settings may search: only OpenSearch knows the preference.
    try:
        yield Call("search", {"index": names, "body": {"size": 0}, **_PREFERENCE})
    except Exception as error:
        if status_of(error) not in (400, 401, 403):
            raise
        return False  # a user who may not search either reads nothing that could lag
    return True


def _replication(answer: Mapping[str, Any]) -> str | None:
    index = (answer.get("settings") or {}).get("index") or {}
    found: str | None = (index.get("replication") or {}).get("type")
    return found


def _prefer_primaries(request: Request) -> Request:
    if isinstance(request, Together):
        return replace(request, calls=[_prefer(each) if isinstance(each, Call) else each for each in request.calls])
    return _prefer(request) if isinstance(request, Call) else request


def _prefer(call: Call) -> Call:
    if call.api in _SEARCHES and "index" in call.arguments:  # a search in a point in time names no index
        return replace(call, arguments=_preferring(call.arguments))
    if call.api == "msearch":
        lines = call.arguments["body"]
        body = [line if n % 2 else _preferring(line) for n, line in enumerate(lines)]
        return replace(call, arguments={**call.arguments, "body": body})
    return call


def _preferring(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the *arguments* of a search that reads primaries, of certain shards where they name some."""
    shards = arguments.get("preference")
    return {**arguments, "preference": "_primary" if shards is None else f"{shards}|_primary"}
