"""
A faulty wire under the caller's own client: what networks, proxies and busy servers do to requests, by a schedule.

``Wire.options`` returns what makes a client of either product, sync or async, speak through the wire::

    wire = Wire(seed=7)                                   # about every seventh request meets a fault
    wire = Wire(script={("bulk", 1): "lost"})             # the second bulk request does, and no other
    client = make_client(server, **wire.options(server.product))

A request is counted by its kind (``bulk``, ``search``, ``msearch``, ``mget``, ``mapping`` ...), so that the schedule
does not depend on the order in which threads send. ``wire.log`` says what happened.
"""

from __future__ import annotations

import json
import random
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from es_simhash.client.port import finish


@dataclass(frozen=True)
class Fault:
    """One thing that goes wrong."""

    name: str
    times: int = 1  # that the server carries out the request; for a fault of items, those items
    status: int | None = None  # that the client is answered in place of the server's answer
    breaks: str | None = None  # "connection" or "timeout": how the request fails without an answer
    items: bool = False  # only some items of a bulk, msearch or mget meet it
    shards: str | None = None  # of an answer, then: "failed", "silent" (neither failed nor successful) or "timed_out"

    def fits(self, kind: str) -> bool:
        """Return whether requests of *kind* can meet it."""
        if self.shards:
            return kind in {"search", "msearch"}
        return not self.items or kind in {"bulk", "msearch", "mget"}


FAULTS = {
    fault.name: fault
    for fault in (
        Fault("429", times=0, status=429),
        Fault("502", times=0, status=502),
        Fault("503", times=0, status=503),
        Fault("503 after the work", status=503),
        Fault("unreachable", times=0, breaks="connection"),
        Fault("lost", breaks="connection"),
        Fault("timeout", breaks="timeout"),
        Fault("repeated", times=2),
        Fault("429 for items", times=0, status=429, items=True),
        Fault("503 for items", times=0, status=503, items=True),
        Fault("503 for items after the work", status=503, items=True),
        Fault("shards failed", shards="failed"),
        Fault("shards silent", shards="silent"),
        Fault("search timed out", shards="timed_out"),
    )
}

Answer = tuple[int, bytes]
Send = Callable[[bytes | None], Awaitable[Answer]]


class BrokenError(Exception):
    """The request fails without an answer; its argument says how."""


@dataclass
class Wire:
    """A schedule of faults, and the clients' classes that follow it."""

    seed: int | str = 0
    share: float = 0.15  # of the requests that meet a fault
    faults: Iterable[str] = tuple(FAULTS)
    script: Mapping[tuple[str, int], str] | None = None  # kind and number of a request to its fault: no chance then
    is_on: bool = True
    left: int | None = None  # requests after which every one fails, and before which none does
    log: list[str] = field(default_factory=list)
    _counts: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def options(self, product: str, *, asynchronous: bool = False) -> dict[str, Any]:
        """Return the keyword arguments that make a client of *product* use this wire."""
        if product == "opensearch":
            return {"connection_class": _opensearch_connection(self, asynchronous=asynchronous)}
        return {"node_class": _elasticsearch_node(self, asynchronous=asynchronous)}

    async def carry(self, method: str, path: str, body: bytes | str | None, send: Send) -> Answer:
        """Carry one request: send it as often as its fault says, and answer as it says."""
        body = body.encode() if isinstance(body, str) else body
        kind = kind_of(path)
        fault, chance = self._next(kind, f"{method} {path}")
        if fault is None:
            return await send(body)
        if fault.items:
            return await _carry_items(kind, path, body or b"", fault, chance, send)
        answer = (0, b"")
        for _ in range(fault.times):
            answer = await send(body)
        if fault.breaks:
            raise BrokenError(fault.breaks)
        if fault.status:
            return fault.status, json.dumps({"error": _error(fault.status), "status": fault.status}).encode()
        return _spoil_shards(answer, fault.shards) if fault.shards else answer

    def _next(self, kind: str, request: str) -> tuple[Fault | None, random.Random]:
        with self._lock:
            number = self._counts[kind]
            self._counts[kind] += self.is_on
            chance = random.Random(f"{self.seed}/{kind}/{number}")
            name = None
            if self.is_on and self.left is not None:
                name = None if self.left > 0 else "unreachable"
                self.left -= 1
            elif self.is_on and self.script is not None:
                name = self.script.get((kind, number))
            elif self.is_on and chance.random() < self.share:
                name = chance.choice([each for each in self.faults if FAULTS[each].fits(kind)])
            if name is not None:
                self.log.append(f"{kind} {number}: {name} ({request[:80]})")
            return (None if name is None else FAULTS[name]), chance


def kind_of(path: str) -> str:
    """Return what a request is for: the first part of its path that begins with an underscore."""
    parts = path.partition("?")[0].strip("/").split("/")
    named = [part[1:] for part in parts if part.startswith("_")]
    return parts[-1] if "_search" in parts[:-1] else named[0] if named else "index"


def _error(status: int) -> dict[str, Any]:
    names = {429: "rejected_execution_exception", 503: "unavailable_shards_exception"}
    return {"type": names.get(status, "bad_gateway"), "reason": "injected by the wire", "root_cause": []}


async def _carry_items(kind: str, path: str, body: bytes, fault: Fault, chance: random.Random, send: Send) -> Answer:
    """Some items are answered with the fault's status; of a bulk they are carried out only if it says so."""
    if kind != "bulk":
        status, data = await send(body)
        if status >= 400:
            return status, data
        answer = json.loads(data)
        name = "responses" if kind == "msearch" else "docs"
        for number, item in enumerate(answer[name]):
            if chance.random() < 0.5:
                own = {key: item[key] for key in ("_index", "_id") if key in item}
                answer[name][number] = own | {"error": _error(fault.status or 0), "status": fault.status}
        return status, json.dumps(answer).encode()
    operations = _operations(body)
    hit = [chance.random() < 0.5 for _ in operations]
    kept = [lines for (lines, _), is_hit in zip(operations, hit) if fault.times or not is_hit]
    items: Iterable[Any] = ()
    if kept:
        status, data = await send(b"".join(line + b"\n" for lines in kept for line in lines))
        if status >= 400:
            return status, data
        items = json.loads(data)["items"]
    answered = iter(items)
    result = []
    for (_, action), is_hit in zip(operations, hit):
        item = next(answered) if fault.times or not is_hit else None
        [(verb, header)] = action.items()
        own = {"_index": header.get("_index", path.strip("/").split("/")[0]), "_id": header.get("_id")}
        failed = {verb: own | {"status": fault.status, "error": _error(fault.status or 0)}}
        result.append(failed if is_hit else item)
    return 200, json.dumps({"took": 1, "errors": any(hit), "items": result}).encode()


def _operations(body: bytes) -> list[tuple[list[bytes], Any]]:
    """Return for each operation of a bulk its lines, and its action."""
    lines = iter(body.strip().split(b"\n"))
    found = []
    for line in lines:
        action = json.loads(line)
        found.append(([line] if "delete" in action else [line, next(lines)], action))
    return found


def _spoil_shards(answer: Answer, how: str) -> Answer:
    """Take the later half of the hits and buckets away, and say so as a server would."""
    status, data = answer
    if status >= 400:
        return answer
    whole = json.loads(data)
    for each in whole.get("responses", [whole]):
        if "_shards" not in each:
            continue
        shown = [each.get("hits", {}).get("hits", [])]
        shown += [found.get("buckets", []) for found in each.get("aggregations", {}).values()]
        shown += each.get("aggregations", {}).get("fingerprints", {}).get("value", [])
        for some in shown:
            del some[len(some) // 2 :]
        if how == "timed_out":
            each["timed_out"] = True
            continue
        each["_shards"]["successful"] -= 1
        if how == "failed":
            each["_shards"]["failed"] += 1
            each["_shards"]["failures"] = [{"shard": 0, "reason": _error(503)}]
    return status, json.dumps(whole, separators=(",", ":")).encode()


def _kind(library: Any, error: BrokenError) -> type[Exception]:
    return library.ConnectionTimeout if error.args[0] == "timeout" else library.ConnectionError


def _elasticsearch_node(wire: Wire, *, asynchronous: bool) -> type:
    import elastic_transport as library
    from elastic_transport._node import NodeApiResponse

    product = library.HttpHeaders({"content-type": "application/json", "x-elastic-product": "Elasticsearch"})

    async def carry(node: Any, own: Any, method: str, target: str, body: Any, options: Any) -> Any:
        async def send(body: bytes | None) -> Answer:
            sent = own(method, target, body, **options)
            answer = await sent if asynchronous else sent
            return answer.meta.status, answer.body

        try:
            status, found = await wire.carry(method, target, body, send)
        except BrokenError as error:
            raise _kind(library, error)("injected by the wire") from None
        return NodeApiResponse(library.ApiResponseMeta(status, "1.1", product, 0.0, node.config), found)

    class Node(library.Urllib3HttpNode):
        def perform_request(self, method, target, body=None, **options):
            return finish(carry(self, super().perform_request, method, target, body, options))

    class AsyncNode(library.AiohttpHttpNode):
        async def perform_request(self, method, target, body=None, **options):
            return await carry(self, super().perform_request, method, target, body, options)

    return AsyncNode if asynchronous else Node


def _opensearch_connection(wire: Wire, *, asynchronous: bool) -> type:
    import opensearchpy as library

    async def carry(connection: Any, own: Any, method: str, url: str, body: Any, ignore: Any, options: Any) -> Any:
        async def send(body: bytes | None) -> Answer:
            sent = own(method, url, body=body, ignore=range(300, 600), **options)
            status, _, text = await sent if asynchronous else sent
            return status, text.encode("utf-8", "surrogatepass")

        try:
            status, found = await wire.carry(method, url, body, send)
        except BrokenError as error:
            raise _kind(library, error)("N/A", "injected by the wire", error) from None
        text = found.decode("utf-8", "surrogatepass")
        if status >= 300 and status not in ignore:
            connection._raise_error(status, text, "application/json")
        return status, {"content-type": "application/json"}, text

    class Connection(library.Urllib3HttpConnection):
        def perform_request(self, method, url, params=None, body=None, ignore=(), **options):
            options["params"] = params
            return finish(carry(self, super().perform_request, method, url, body, ignore, options))

    class AsyncConnection(library.AIOHttpConnection):
        async def perform_request(self, method, url, params=None, body=None, ignore=(), **options):
            options["params"] = params
            return await carry(self, super().perform_request, method, url, body, ignore, options)

    return AsyncConnection if asynchronous else Connection
