"""
A faulty wire under the caller's own client: what networks, proxies and busy servers do to requests, by a schedule.

``Wire.options`` returns what makes a client of either product, sync or async, speak through the wire::

    wire = Wire(seed=7)                                   # about every seventh request meets a fault
    wire = Wire(script={("bulk", 1): "lost"})             # the second bulk request does, and no other
    client = make_client(server, **wire.options(server.product))

A request is counted by its kind (``bulk``, ``search``, ``msearch``, ``mget``, ``mapping`` ...), so that the schedule
does not depend on the order in which threads send. ``wire.log`` says what happened. Nothing here knows this library.
"""

from __future__ import annotations

import asyncio
import json
import random
import threading
import time
from collections import Counter
from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Fault:
    """
    One thing that goes wrong.

    Attributes:
        name:
            Its name, in schedules and logs.
        times:
            How often the server carries out the request; for a fault of items, those items.
        status:
            What the client is answered in place of the server's answer.
        breaks:
            ``"connection"`` or ``"timeout"``: how the request fails without an answer.
        items:
            Whether only some items of a bulk, msearch or mget meet it.
        shards:
            What an answer then says of its shards: ``"failed"``, ``"silent"`` (neither failed nor successful) or
            ``"timed_out"``.
    """

    name: str
    times: int = 1
    status: int | None = None
    breaks: str | None = None
    items: bool = False
    shards: str | None = None

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
        Fault("delayed"),
        Fault("429 for items", times=0, status=429, items=True),
        Fault("503 for items", times=0, status=503, items=True),
        Fault("503 for items after the work", status=503, items=True),
        Fault("shards failed", shards="failed"),
        Fault("shards silent", shards="silent"),
        Fault("search timed out", shards="timed_out"),
    )
}
DELAY_SECONDS = 0.02

Answer = tuple[int, bytes]
# Yields a body to send and is sent the answer, or seconds to wait; returns what the client is to be answered.
Steps = Generator[bytes | float | None, Answer, Answer]


class BrokenError(Exception):
    """The request fails without an answer; its argument says how."""


@dataclass
class Wire:
    """
    A schedule of faults, and the clients' classes that follow it.

    Attributes:
        seed:
            Decides which requests meet which fault.
        share:
            Share of requests that meet one.
        faults:
            Names of the faults that may happen.
        script:
            From kind and number (from 0) of a request to the name of its fault; then nothing is left to chance.
        kinds:
            Kinds of requests that faults may happen to; ``None`` for all.
        is_on:
            Whether anything happens now.
        left:
            Number of requests after which every one fails, and before which none does; ``None`` for no such end.
        log:
            One line for each fault that happened.
    """

    seed: int | str = 0
    share: float = 0.15
    faults: Iterable[str] = tuple(FAULTS)
    script: Mapping[tuple[str, int], str] | None = None
    kinds: frozenset[str] | None = None
    is_on: bool = True
    left: int | None = None
    log: list[str] = field(default_factory=list)
    _counts: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def options(self, product: str, *, asynchronous: bool = False) -> dict[str, Any]:
        """Return the keyword arguments that make a client of *product* use this wire."""
        if product == "opensearch":
            return {"connection_class": _opensearch_connection(self, asynchronous=asynchronous)}
        return {"node_class": _elasticsearch_node(self, asynchronous=asynchronous)}

    def carry(self, method: str, path: str, body: bytes | str | None) -> Steps:
        """Carry one request: send it as often as its fault says, and answer as it says."""
        body = body.encode() if isinstance(body, str) else body
        kind = kind_of(path)
        fault, chance = self._next(kind, f"{method} {path}")
        if fault is None:
            return (yield body)
        if fault.name == "delayed":
            yield DELAY_SECONDS
        if fault.items:
            return (yield from _carry_items(kind, path, body or b"", fault, chance))
        answer = (0, b"")
        for _ in range(fault.times):
            answer = yield body
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
            elif self.is_on and (self.kinds is None or kind in self.kinds) and chance.random() < self.share:
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


def _carry_items(kind: str, path: str, body: bytes, fault: Fault, chance: random.Random) -> Steps:
    """Some items are answered with the fault's status; of a bulk they are carried out only if it says so."""
    if kind != "bulk":
        status, data = yield body
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
        status, data = yield b"".join(line + b"\n" for lines in kept for line in lines)
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


def _run(steps: Steps, send: Any) -> Answer:
    """Carry out *steps* with a function that sends a body."""
    answer: Any = None
    while True:
        try:
            wanted = steps.send(answer)
        except StopIteration as stop:
            return stop.value
        answer = time.sleep(wanted) if isinstance(wanted, float) else send(wanted)


async def _run_async(steps: Steps, send: Any) -> Answer:
    answer: Any = None
    while True:
        try:
            wanted = steps.send(answer)
        except StopIteration as stop:
            return stop.value
        answer = await (asyncio.sleep(wanted) if isinstance(wanted, float) else send(wanted))


def _elasticsearch_node(wire: Wire, *, asynchronous: bool) -> type:
    import elastic_transport as library
    from elastic_transport._node import NodeApiResponse
    from elastic_transport.client_utils import DEFAULT

    product = library.HttpHeaders({"content-type": "application/json", "x-elastic-product": "Elasticsearch"})

    def to_answer(answer: Any) -> Answer:
        return answer.meta.status, answer.body

    def from_answer(node: Any, answer: Answer) -> Any:
        return NodeApiResponse(library.ApiResponseMeta(answer[0], "1.1", product, 0.0, node.config), answer[1])

    def broken(error: BrokenError) -> Exception:
        kind = library.ConnectionTimeout if error.args[0] == "timeout" else library.ConnectionError
        return kind("injected by the wire")

    class Node(library.Urllib3HttpNode):
        def perform_request(self, method, target, body=None, headers=None, request_timeout=DEFAULT):
            def send(body):
                return to_answer(super(Node, self).perform_request(method, target, body, headers, request_timeout))

            try:
                return from_answer(self, _run(wire.carry(method, target, body), send))
            except BrokenError as error:
                raise broken(error) from None

    class AsyncNode(library.AiohttpHttpNode):
        async def perform_request(self, method, target, body=None, headers=None, request_timeout=DEFAULT):
            async def send(body):
                sent = super(AsyncNode, self).perform_request(method, target, body, headers, request_timeout)
                return to_answer(await sent)

            try:
                return from_answer(self, await _run_async(wire.carry(method, target, body), send))
            except BrokenError as error:
                raise broken(error) from None

    return AsyncNode if asynchronous else Node


def _opensearch_connection(wire: Wire, *, asynchronous: bool) -> type:
    import opensearchpy as library

    every_status = range(300, 600)

    def to_answer(answer: Any) -> Answer:
        return answer[0], answer[2].encode("utf-8", "surrogatepass")

    def from_answer(connection: Any, answer: Answer, ignore: Any) -> Any:
        text = answer[1].decode("utf-8", "surrogatepass")
        if answer[0] >= 300 and answer[0] not in ignore:
            connection._raise_error(answer[0], text, "application/json")
        return answer[0], {"content-type": "application/json"}, text

    def broken(error: BrokenError) -> Exception:
        kind = library.ConnectionTimeout if error.args[0] == "timeout" else library.ConnectionError
        return kind("N/A", "injected by the wire", error)

    class Connection(library.Urllib3HttpConnection):
        def perform_request(self, method, url, params=None, body=None, ignore=(), **options):
            options["ignore"] = every_status

            def send(body):
                return to_answer(super(Connection, self).perform_request(method, url, params, body, **options))

            try:
                return from_answer(self, _run(wire.carry(method, url, body), send), ignore)
            except BrokenError as error:
                raise broken(error) from None

    class AsyncConnection(library.AIOHttpConnection):
        async def perform_request(self, method, url, params=None, body=None, ignore=(), **options):
            options["ignore"] = every_status

            async def send(body):
                sent = super(AsyncConnection, self).perform_request(method, url, params, body, **options)
                return to_answer(await sent)

            try:
                return from_answer(self, await _run_async(wire.carry(method, url, body), send), ignore)
            except BrokenError as error:
                raise broken(error) from None

    return AsyncConnection if asynchronous else Connection
