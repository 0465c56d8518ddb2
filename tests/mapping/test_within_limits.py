"""Searches cut to the limits of a server, by hand: what is sent again, remembered, and left to a flow."""

import pytest

from es_simhash.mapping.context import Context
from es_simhash.mapping.within_limits import WithinLimits
from es_simhash.transport.limits import Limits
from es_simhash.transport.protocol import Call, Compute
from tests.transport.by_hand import SCRIPTED, ServerError, carry_out

TERMS = "The number of terms [60] used in the Terms Query request has exceeded the allowed maximum of [10]."
IDS = "failed to create query: Too many ids specified, allowed max result window is [50]"
WINDOW = "Result window is too large, from + size must be less than or equal to: [3] but was [8]."
WHOLE = {"_shards": {"total": 1, "successful": 1, "failed": 0}, "hits": {"total": {"value": 0}, "hits": []}}


async def one(context, *calls):
    """Send one call, or several at once."""
    server = WithinLimits(SCRIPTED, context)
    return await (server.send(*calls) if len(calls) == 1 else server.together(calls))


def search(**body):
    return Call("search", {"index": "i", "body": body})


class Refuses:
    """A server that refuses requests one after another, and then answers."""

    def __init__(self, *refusals, hits=0):
        self.refusals, self.hits, self.calls = list(refusals), hits, []

    def __call__(self, call):
        self.calls.append(call)
        if call.api == "msearch":
            return {"responses": [self.answer(body) for body in call.arguments["body"][1::2]]}
        return {} if call.api == "clear_scroll" else self.answer(call.arguments.get("body", {}))

    def answer(self, body):
        if self.refusals:
            refusal = self.refusals.pop(0)
            return ServerError(400, refusal) if isinstance(refusal, str) else refusal
        number = min(self.hits, body.get("size", 3))
        self.hits -= number if "scroll_id" in body else 0
        return {
            **WHOLE,
            "_scroll_id": "s",
            "hits": {"total": {"value": number}, "hits": [{"_id": str(n)} for n in range(number)]},
        }


def failed(reason):
    """Return an answer in which one of two indices refused."""
    failures = [{"reason": {"type": "query_shard_exception", "reason": reason}}]
    return {**WHOLE, "_shards": {"total": 2, "successful": 1, "failed": 1, "failures": failures}}


@pytest.mark.parametrize("refusal", [TERMS, failed(TERMS)])
def test_long_lists_are_cut(refusal):
    """Anywhere in a query, with the same score; the limit is remembered."""
    values = [str(n) for n in range(25)]
    aggs = {"a": {"terms": {"field": "k", "include": values}}}
    query = {"bool": {"must_not": [{"terms": {"k": values, "boost": 2.0, "_name": "x"}}]}}
    server, context = Refuses(refusal), Context()
    carry_out(one(context, search(query=query, aggs=aggs)), server)
    parts = [{"terms": {"k": values[begin : begin + 10]}} for begin in (0, 10, 20)]
    cut = {"constant_score": {"filter": {"bool": {"should": parts}}, "boost": 2.0, "_name": "x"}}
    assert server.calls[-1].arguments["body"] == {"query": {"bool": {"must_not": [cut]}}, "aggs": aggs}
    assert len(server.calls) == 2
    carry_out(one(context, search(query=query)), server)
    assert len(server.calls) == 3


def test_ids_are_asked_for_as_terms():
    ids = [str(n) for n in range(12_000)]
    server = Refuses(IDS)
    carry_out(one(Context(), search(query={"ids": {"values": ids}})), server)
    [part] = server.calls[-1].arguments["body"]["query"]["constant_score"]["filter"]["bool"]["should"]
    assert part == {"terms": {"_id": ids}}


def test_too_many_parts_are_left_to_the_operation():
    """A lookup has other plans, and a server allows so many clauses."""
    query = {"terms": {"k": [str(n) for n in range(5_130)]}}
    server = Refuses(TERMS)
    with pytest.raises(ServerError, match="number of terms"):
        carry_out(one(Context(), search(query=query)), server)
    assert len(server.calls) == 1


def test_hits_beyond_the_window_are_read_by_a_scroll():
    server, context = Refuses(WINDOW, hits=10), Context()
    call = search(size=8, sort=[{"n": "asc"}])
    answer = carry_out(one(context, call), server).result
    assert len(answer["hits"]["hits"]) == 8
    assert [each.api for each in server.calls] == ["search", "search", "search", "scroll", "scroll", "clear_scroll"]
    assert server.calls[2].arguments["body"] == {"size": 3, "sort": [{"n": "asc"}], "track_total_hits": True}
    few = Refuses(hits=2)
    assert len(carry_out(one(context, call), few).result["hits"]["hits"]) == 2
    assert [each.arguments["body"]["size"] for each in few.calls] == [3]


def test_a_failed_scroll():
    """A user who may not scroll gets the refusal, by which a flow asks for less; what fails at once is a value."""
    context = Context()
    context.learn_limits("i", Limits(max_hits=3))
    server = Refuses(hits=10)

    def refuse(call):
        if "scroll" in call.arguments:
            return ServerError(403, "scroll")
        return ServerError(400, WINDOW) if call.arguments["body"]["size"] > 3 else server(call)

    with pytest.raises(ServerError, match="Result window"):
        carry_out(one(context, search(size=8)), refuse)

    def lose(call):
        return ValueError("lost") if "scroll" in call.arguments else server(call)

    batch = Call("msearch", {"body": [{"index": "i"}, {"size": 8}]})
    answers = carry_out(one(context, search(size=8), batch), lose).result
    assert [*map(str, answers)] == ["lost", "lost"]


def test_each_search_of_a_batch():
    """Only what was refused is sent again; another refusal, and other requests, stay as they are."""
    refused = {"status": 400, "error": {"type": "x", "reason": TERMS}}
    other = {"status": 429, "error": {"type": "busy"}}
    query = {"terms": {"k": [*map(str, range(25))]}}
    batch = Call("msearch", {"body": [{"index": "i"}, {"query": query}, {"index": "i"}, {"query": {"match_all": {}}}]})
    server = Refuses(refused, other)
    [answer, length] = carry_out(one(Context(), batch, Compute(len, ("abc",))), server).result
    assert "error" not in answer["responses"][0]
    assert (answer["responses"][1], length) == (other, 3)
    assert [each.api for each in server.calls] == ["msearch", "search"]


@pytest.mark.parametrize("failure", [ServerError(400, "parse"), ServerError(429, TERMS), ValueError("broken")])
def test_other_failures_reach_the_operation(failure):
    calls = []
    with pytest.raises(type(failure), match=str(failure)[:5]) as raised:
        carry_out(one(Context(), search(size=8)), lambda call: calls.append(call) or failure)
    assert raised.value is failure
    assert len(calls) == 1


def test_what_stays_open_does_so_as_long_as_a_server_allows():
    """A point in time, its searches, and a scroll."""
    refusal = "Keep alive for request (10m) is too large. It must be less than (1.5m)."
    opening = Call("open_point_in_time", {"index": "i", "keep_alive": "600s"})
    searches = [
        Call("search", {"body": {"pit": {"id": "p", "keep_alive": "600s"}, "size": 2}}),
        Call("search", {"index": "i", "scroll": "60s", "body": {"size": 2}}),
        Call("scroll", {"body": {"scroll_id": "s", "scroll": "600s"}}),
    ]
    server, context = Refuses(refusal, WHOLE, refusal), Context()
    port = WithinLimits(SCRIPTED, context)
    for call in (opening, *searches):
        carry_out(port.to_the_end(port.send(call)), server)
    assert "90s" in str(server.calls[1].arguments)
    assert [str(each.arguments).count("90s") for each in server.calls[2:]] == [0, 1, 0, 1]
    assert "60s" in str(server.calls[4].arguments)


def test_many_indices_are_asked_about_in_parts():
    """Names, in a list or with commas, but none beside a pattern, which may leave others out."""
    names = [f"index-{'x' * 100}-{number}" for number in range(80)]
    asked = []

    def answer(call):
        part = call.arguments["index"]
        asked.append(part if isinstance(part, str) else ",".join(part))
        return {name: {} for name in asked[-1].split(",")}

    for given in (names, ",".join(names)):
        asked.clear()
        found = carry_out(one(Context(), Call("get_settings", {"index": given, "name": "index.uuid"})), answer)
        assert (list(found.result), ",".join(asked)) == (names, ",".join(names))
        assert max(map(len, asked)) < 3_500
        assert len(asked) < 8
    for given in (names[:2], [*names, "-x*"]):
        asked.clear()
        carry_out(one(Context(), Call("get_mapping", {"index": given})), answer)
        assert asked == [",".join(given)]
