"""
How many hits, ids and terms a search may ask for; every search of every operation is cut to that here.

A server names a limit when it refuses a search. The limit is remembered and the search is sent again: long lists are
split, and hits beyond one page are read by a scroll, which keeps every order on every server. Operations know nothing
of it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any

from es_simhash.mapping.context import DEFAULT_MAX_TERMS, Context
from es_simhash.mapping.port import Port
from es_simhash.transport.answers import find_gaps, refusal_text, sentences
from es_simhash.transport.pages import Scroll
from es_simhash.transport.protocol import Call, Compute, error_text, index_key, status_of
from es_simhash.transport.retry import attempt
from es_simhash.transport.server import Answer, Server

_ALLOWED = {
    "terms": re.compile(r"number of terms \[\d+\].{0,80}maximum of \[(\d+)\]"),
    "ids": re.compile(r"Too many ids specified, allowed max result window is \[(\d+)\]"),
    "window": re.compile(r"from \+ size must be less than or equal to: \[(\d+)\]"),
}
_SEARCHES = ("search", "msearch")
_FORBIDDEN = 403
# Parts of a query are clauses, of which servers allow 1,024 by default.
_MOST_PARTS = 512
# Parts of a body that are no queries.
_OPAQUE = frozenset({"_source", "docvalue_fields", "params", "pit", "script", "search_after", "sort", "stored_fields"})


class _TooManyPartsError(Exception):
    """A query would have too many clauses; caught here."""


@dataclass(slots=True)
class ServerLimits:
    """
    The limits that servers have named when they refused a search.
    *terms*: values in one ``terms`` query (``index.max_terms_count``), the least of any index. *ids*: ids in one
    ``ids`` query; Elasticsearch allows ``index.max_result_window``. *windows*: hits that one search may ask for
    (``index.max_result_window``), by what is searched.
    """

    terms: int = DEFAULT_MAX_TERMS
    ids: int | None = None
    windows: dict[str, int] = field(default_factory=dict)

    def learn(self, call: Call, refusal: str) -> None:
        found = {name: int(match[1]) for name, words in _ALLOWED.items() if (match := words.search(refusal))}
        self.terms = max(1, found.get("terms", self.terms))
        self.ids = found.get("ids", self.ids)
        if "window" in found and (target := _target(call)) is not None:
            self.windows[target] = max(1, found["window"])

    def cut(self, call: Call) -> Call:
        given = body = call.arguments["body"]
        if self.terms < DEFAULT_MAX_TERMS or self.ids is not None:
            body = self._cut_lists(body)
        window = self.windows.get(_target(call) or "")
        if window is not None and body.get("size", 0) > window:
            body = {**body, "size": window}
        return call if body is given else replace(call, arguments={**call.arguments, "body": body})

    def _cut_lists(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        left = [_MOST_PARTS]
        try:
            found: Mapping[str, Any] = self._cut_node(body, left)
        except _TooManyPartsError:
            return body  # the operation may know a search with shorter lists
        return found if left[0] < _MOST_PARTS else body

    def _cut_node(self, node: Any, left: list[int]) -> Any:
        if isinstance(node, list):
            is_flat = not any(isinstance(each, (Mapping, list)) for each in node)
            return node if is_flat else [self._cut_node(each, left) for each in node]
        if not isinstance(node, Mapping):
            return node
        if len(node) == 1 and (parts := self._parts(node)):
            left[0] -= len(parts["constant_score"]["filter"]["bool"]["should"])
            if left[0] < 0:
                raise _TooManyPartsError
            return parts
        return {key: each if key in _OPAQUE else self._cut_node(each, left) for key, each in node.items()}

    def _parts(self, query: Mapping[str, Any]) -> dict[str, Any]:
        """Return what matches as *query* does, with the same score, if that has too long a list; else nothing."""
        [(kind, given)] = query.items()
        if kind not in ("ids", "terms") or not isinstance(given, Mapping):
            return {}
        common = {key: given[key] for key in ("boost", "_name") if key in given}
        [(name, values), *more] = [each for each in given.items() if each[0] not in common] or [("", None)]
        most = self.ids if kind == "ids" else self.terms
        if more or not isinstance(values, list) or most is None or len(values) <= most:
            return {}
        if kind == "ids" and self.terms > most:
            kind, name, most = "terms", "_id", self.terms
        most = max(1, most)
        should = [{kind: {name: values[begin : begin + most]}} for begin in range(0, len(values), most)]
        return {"constant_score": {"filter": {"bool": {"should": should}}, **common}}


class WithinLimits(Port):
    """
    A port whose searches are cut to what servers allow; *limits* learn, and serve later operations.
    Cost: nothing if no search is refused. Else one refused search for each limit, and a scroll for more hits than a
    page.
    """

    def __init__(self, inner: Server, context: Context, limits: ServerLimits) -> None:
        super().__init__(inner, context)
        self._limits = limits

    async def send(self, call: Call) -> Answer:
        if call.api not in _SEARCHES:
            return await self._inner.send(call)
        sent = _cut(call, self._limits)
        answer: Any
        try:
            answer = await self._inner.send(sent)
        except Exception as error:
            answer = await self._settle(call, sent, error)
            if answer is error:
                raise
        else:
            answer = await self._settle(call, sent, answer)
        if isinstance(answer, Exception):
            raise answer
        return answer  # type: ignore[no-any-return]

    async def together(self, calls: Sequence[Call | Compute], *, concurrency: int = 4) -> list[Any]:
        sent = [_cut(each, self._limits) if isinstance(each, Call) else each for each in calls]
        answers = await self._inner.together(sent, concurrency=concurrency)
        for place, (call, each) in enumerate(zip(calls, sent, strict=True)):
            if isinstance(call, Call) and isinstance(each, Call):
                answers[place] = await self._settle(call, each, answers[place])
        return answers

    async def _settle(self, call: Call, sent: Call, answer: Any) -> Any:
        """Return the *answer* to *call*, which was sent as *sent*, or a better one where a limit stands in its way."""
        if call.api not in _SEARCHES:
            return answer
        if call.api == "search":
            return await self._settle_search(call, sent, answer)
        if isinstance(answer, Exception):
            return answer
        settled = []
        for one, part, own in zip(_searches_of(call), _searches_of(sent), answer["responses"], strict=True):
            found = await self._settle_search(one, part, own)
            if isinstance(found, Exception):
                if status_of(found) is None:  # the server did not answer
                    return found
                error = {"type": type(found).__name__, "reason": error_text(found)}
                found = {"status": status_of(found), "error": error}
            settled.append(found)
        return {**answer, "responses": settled}

    async def _settle_search(self, call: Call, sent: Call, answer: Any) -> Any:
        while refusal := _refusal_of(answer):
            self._limits.learn(call, refusal)
            smaller = self._limits.cut(call)
            if smaller == sent:
                break  # a shard is missing for another reason: what the others have is read all the same
            sent = smaller
            answer = await attempt(self._inner.send(sent))
        window = sent.arguments["body"].get("size")
        if window == call.arguments["body"].get("size") or isinstance(answer, Exception) or "error" in answer:
            return answer
        if len(answer["hits"]["hits"]) < window:
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
        scroll = Scroll(self._inner, index, body, page=body["size"], options=arguments, order={})
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


def _cut(call: Call, limits: ServerLimits) -> Call:
    if call.api not in _SEARCHES:
        return call
    if call.api == "search":
        return limits.cut(call)
    body = list(call.arguments["body"])
    body[1::2] = [limits.cut(each).arguments["body"] for each in _searches_of(call)]
    return replace(call, arguments={**call.arguments, "body": body})


def _searches_of(call: Call) -> list[Call]:
    lines = call.arguments["body"]
    return [Call("search", {**head, "body": body}) for head, body in zip(lines[::2], lines[1::2], strict=True)]


def _refusal_of(answer: Any) -> str:
    """Return the server's words of a refusal, whole or by some shards; empty if it answered."""
    if isinstance(answer, Exception):
        return refusal_text(answer) if status_of(answer) in (400, 503) else ""
    if not isinstance(answer, Mapping):
        return ""
    if "error" in answer:
        return refusal_text(answer)
    return refusal_text(find_gaps(answer)) if (answer.get("_shards") or {}).get("failed") else ""


def _target(call: Call) -> str | None:
    """Return what a search asks whose page may be cut; ``None`` in a view, in a scroll, and after a first page."""
    arguments = call.arguments
    if "index" not in arguments or "scroll" in arguments or arguments["body"].get("from"):
        return None
    return index_key(arguments["index"])
