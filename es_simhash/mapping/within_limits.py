"""
How many hits, ids and terms a search may ask for; every search of every operation is cut to that here. What is asked
of more indices than a request can name is asked in parts.

A server names a limit when it refuses a search. The limit is remembered and the search is sent again: long lists are
split, and hits beyond one page are read by a scroll, which keeps every order on every server. Operations know nothing
of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from es_simhash.mapping.port import Port
from es_simhash.transport.answers import find_gaps, sentences
from es_simhash.transport.limits import DEFAULT_MAX_TERMS, LARGEST, Limits, limits_named
from es_simhash.transport.pages import Scroll
from es_simhash.transport.protocol import Call, Compute, error_text, in_parts, status_of
from es_simhash.transport.retry import attempt
from es_simhash.transport.server import Answer

_CUT = ("search", "msearch", "open_point_in_time", "scroll")
_BY_INDEX = ("get_mapping", "get_settings")
_FORBIDDEN = 403
# Parts of a body that are no queries.
_OPAQUE = frozenset({"_source", "docvalue_fields", "params", "pit", "script", "search_after", "sort", "stored_fields"})


class _TooManyPartsError(Exception):
    """A query would have too many clauses; caught here."""


def _cut(call: Call, limits: Limits) -> Call:
    if limits.max_seconds < LARGEST:
        call = replace(call, arguments=_cut_lives(call.arguments, limits.max_seconds))
    if call.api != "search":
        return call
    given = body = call.arguments["body"]
    if limits.max_terms < DEFAULT_MAX_TERMS or limits.max_ids < LARGEST:
        body = _cut_lists(body, limits)
    if body.get("size", 0) > limits.max_hits and _may_scroll(call):
        body = {**body, "size": limits.max_hits}
    return call if body is given else replace(call, arguments={**call.arguments, "body": body})


def _cut_lives(node: Mapping[str, Any], most: int) -> dict[str, Any]:
    """Return arguments, or a body, by which a view or a scroll stays open for at most so many seconds."""
    cut = dict(node)
    for key, value in node.items():
        if key in ("keep_alive", "scroll"):
            cut[key] = f"{min(int(value.removesuffix('s')), most)}s"
        elif key in ("body", "pit"):
            cut[key] = _cut_lives(value, most)
    return cut


def _cut_lists(body: Mapping[str, Any], limits: Limits) -> Mapping[str, Any]:
    most = limits.max_clauses // 2
    left = [most]
    try:
        found: Mapping[str, Any] = _cut_node(body, limits, left)
    except _TooManyPartsError:
        return body  # the operation may know a search with shorter lists
    return found if left[0] < most else body


def _cut_node(node: Any, limits: Limits, left: list[int]) -> Any:
    if isinstance(node, list):
        is_flat = not any(isinstance(each, (Mapping, list)) for each in node)
        return node if is_flat else [_cut_node(each, limits, left) for each in node]
    if not isinstance(node, Mapping):
        return node
    if len(node) == 1 and (parts := _parts(node, limits)):
        left[0] -= len(parts["constant_score"]["filter"]["bool"]["should"])
        if left[0] < 0:
            raise _TooManyPartsError
        return parts
    return {key: each if key in _OPAQUE else _cut_node(each, limits, left) for key, each in node.items()}


def _parts(query: Mapping[str, Any], limits: Limits) -> dict[str, Any]:
    """Return what matches as *query* does, with the same score, if that has too long a list; else nothing."""
    [(kind, given)] = query.items()
    if kind not in ("ids", "terms") or not isinstance(given, Mapping):
        return {}
    common = {key: given[key] for key in ("boost", "_name") if key in given}
    [(name, values), *more] = [each for each in given.items() if each[0] not in common] or [("", None)]
    most = limits.max_ids if kind == "ids" else limits.max_terms
    if more or not isinstance(values, list) or len(values) <= most:
        return {}
    if kind == "ids" and limits.max_terms > most:
        kind, name, most = "terms", "_id", limits.max_terms
    should = [{kind: {name: values[begin : begin + most]}} for begin in range(0, len(values), most)]
    return {"constant_score": {"filter": {"bool": {"should": should}}, **common}}


class WithinLimits(Port):
    """
    A port whose searches are cut to what servers allow, as far as the context has learned it.
    Cost: nothing if no search is refused. Else one refused search for each limit, and a scroll for more hits than a
    page.
    """

    async def send(self, call: Call) -> Answer:
        if call.api in _BY_INDEX and len(parts := in_parts(call.arguments["index"])) > 1:
            found: Answer = {}
            for part in parts:
                found |= await self._inner.send(replace(call, arguments={**call.arguments, "index": part}))
            return found
        sent = self._cut(call)
        try:
            answer: Answer | Exception = await self._settle(call, sent, await self._inner.send(sent))
        except Exception as error:
            answer = await self._settle(call, sent, error)
            if answer is error:
                raise
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def together(self, calls: Sequence[Call | Compute], *, concurrency: int = 4) -> list[Any]:
        sent = [self._cut(each) if isinstance(each, Call) else each for each in calls]
        answers = await self._inner.together(sent, concurrency=concurrency)
        for place, (call, each) in enumerate(zip(calls, sent, strict=True)):
            if isinstance(call, Call) and isinstance(each, Call):
                answers[place] = await self._settle(call, each, answers[place])
        return answers

    def _cut(self, call: Call) -> Call:
        if call.api not in _CUT:
            return call
        if call.api != "msearch":
            # A view does not say what it is of, so all views have the same limits.
            return _cut(call, self.context.limits(call.arguments.get("index", "")))
        body = list(call.arguments["body"])
        body[1::2] = [self._cut(each).arguments["body"] for each in _searches_of(call)]
        return replace(call, arguments={**call.arguments, "body": body})

    async def _settle(self, call: Call, sent: Call, answer: Any) -> Any:
        """Return the *answer* to *call*, which was sent as *sent*, or a better one where a limit stands in its way."""
        if call.api not in _CUT:
            return answer
        if call.api != "msearch":
            return await self._settle_one(call, sent, answer)
        if isinstance(answer, Exception):
            return answer
        settled = []
        for one, part, own in zip(_searches_of(call), _searches_of(sent), answer["responses"], strict=True):
            found = await self._settle_one(one, part, own)
            if isinstance(found, Exception):
                if status_of(found) is None:  # the server did not answer
                    return found
                error = {"type": type(found).__name__, "reason": error_text(found)}
                found = {"status": status_of(found), "error": error}
            settled.append(found)
        return {**answer, "responses": settled}

    async def _settle_one(self, call: Call, sent: Call, answer: Any) -> Any:
        while refusal := answer if isinstance(answer, Exception) or "error" in answer else find_gaps(answer):
            self.context.learn_limits(call.arguments.get("index", ""), limits_named(refusal))
            cut = self._cut(call)
            if cut == sent:
                break  # a shard is missing for another reason: what the others have is read all the same
            sent = cut
            answer = await attempt(self._inner.send(sent))
        wanted, window = (each.arguments.get("body", {}).get("size") for each in (call, sent))
        is_refused = isinstance(answer, Exception) or "error" in answer
        if window == wanted or is_refused or len(answer["hits"]["hits"]) < window:
            return answer
        try:
            return await self._scroll(call, sent, answer)
        except Exception as error:  # noqa: BLE001 -- a failure is a value here
            # A user who may not scroll: the operation sees what the server refuses, and asks for less.
            return await attempt(self._inner.send(call)) if status_of(error) == _FORBIDDEN else error

    async def _scroll(self, call: Call, sent: Call, answer: Mapping[str, Any]) -> Answer:
        """Return *answer*, to the first page that was *sent*, with all hits that *call* asks for."""
        arguments = dict(sent.arguments)
        index, body = arguments.pop("index"), arguments.pop("body")
        hits: list[Mapping[str, Any]] = []
        wanted = call.arguments["body"]["size"]
        scroll = Scroll(self, index, body, page=body["size"], options=arguments, order={})
        async with aclosing(scroll.read()) as pages:
            async for page in pages:
                hits.extend(page)
                if len(hits) >= wanted:
                    break
        whole = {**answer, "hits": {**answer["hits"], "hits": hits[:wanted]}}
        if scroll.gaps and not find_gaps(answer):
            failure = {"reason": {"type": "scroll", "reason": "; ".join(sentences(scroll.gaps))}}
            whole["_shards"] = {**answer["_shards"], "failed": 1, "failures": [failure]}
        return whole


def _searches_of(call: Call) -> list[Call]:
    lines = call.arguments["body"]
    return [Call("search", {**head, "body": body}) for head, body in zip(lines[::2], lines[1::2], strict=True)]


def _may_scroll(call: Call) -> bool:
    """Return whether the page of a search may be cut: not in a view, in a scroll, and after a first page."""
    arguments = call.arguments
    return "index" in arguments and "scroll" not in arguments and not arguments["body"].get("from")
