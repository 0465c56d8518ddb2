"""
An index in memory that answers a flow's calls, and what carries a flow out against it with trouble at any step.

Versions, visibility by refresh, points in time and scrolls are kept as a server keeps them.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

from es_simhash import build_mapping
from es_simhash.flows.lookup.index_stats import SAMPLE
from es_simhash.flows.protocol import Call, Compute, Emit, Together, Wait
from tests.flows.by_hand import ServerError

INDEX = "i"
GIVES_BACK = ("close_point_in_time", "clear_scroll")
MOST_WAITS = 200


class Cancelled(BaseException):
    """What a driver throws in when the caller wants no more."""


class Store:
    """
    One index with *documents*, all visible; ids sort as they were put.

    Attributes:
        open:
            Points in time and scrolls that nobody has given back.
        refuse:
            A function from the header of a bulk operation to the status it is refused with, or ``None``.
        broken:
            Ids whose copy cannot be read by a multi-get now.
    """

    def __init__(self, documents=None, *, has_pit=True, is_opensearch=False, mapping=None):
        self.mapping = mapping or build_mapping(text_field="body")
        self.has_pit, self.is_opensearch = has_pit, is_opensearch
        self.docs: dict[str, dict[str, Any]] = {}
        self.sequence = 0
        self.open: dict[str, Any] = {}
        self.given = 0
        self.window = 10_000
        self.refuse = lambda header: None
        self.broken: set[str] = set()
        for id_, source in (documents or {}).items():
            self.put(id_, source)
        self.refresh(INDEX)

    def put(self, id_, source):
        """Write as any other program would; return the version."""
        self.sequence += 1
        self.docs[id_] = {"source": copy.deepcopy(source), "version": (self.sequence, 1)}
        return self.sequence, 1

    def source(self, id_):
        return self.docs[id_]["source"]

    def __call__(self, call):
        assert call.opens == (call.api == "open_point_in_time" or "scroll" in call.arguments)
        return getattr(self, call.api)(**call.arguments)

    def get_mapping(self, index):
        return {INDEX: {"mappings": copy.deepcopy(self.mapping)}}

    def put_mapping(self, index, body):
        self.mapping |= copy.deepcopy(body)
        return {}

    def get_settings(self, index, name=None):
        return {INDEX: {"settings": {"index": {"uuid": "u"}}}}

    def count(self, index, body):
        return {"count": len(self._hits(self.shown, body))}

    def refresh(self, index):
        self.shown = copy.deepcopy(self.docs)
        return {"_shards": {"failed": 0}}

    def open_point_in_time(self, index, keep_alive):
        if not self.has_pit:
            return ServerError(405, "no such endpoint")
        self.given += 1
        name = f"pit{self.given}"
        self.open[name] = self.shown
        return {"pit_id" if self.is_opensearch else "id": name, "_shards": {"total": 1, "failed": 0}}

    def close_point_in_time(self, body):
        return self._close(body["pit_id"] if self.is_opensearch else [body["id"]])

    def search(self, body, index=None, scroll=None):
        if body["size"] > self.window:
            return ServerError(400, "Result window is too large ... [index.max_result_window]")
        held = self.open[body["pit"]["id"]] if "pit" in body else self.shown
        if "aggs" in body:
            return self._composite(held, body)
        hits = self._hits(held, body)
        answer = self._page(hits[: body["size"]])
        if scroll:
            self.given += 1
            answer["_scroll_id"] = f"scroll{self.given}"
            self.open[answer["_scroll_id"]] = (hits[body["size"] :], body["size"])
        return answer

    def scroll(self, body):
        hits, size = self.open[body["scroll_id"]]
        self.open[body["scroll_id"]] = (hits[size:], size)
        return self._page(hits[:size])

    def clear_scroll(self, body):
        return self._close(body["scroll_id"])

    def _close(self, names):
        [name] = names
        return ServerError(404) if self.open.pop(name, None) is None else {}

    def msearch(self, body):
        return {"responses": [{**self.search(each), "status": 200} for each in body[1::2]]}

    def mget(self, body):
        return {"docs": [self._get(each["_id"], each["_source"]) for each in body["docs"]]}

    def bulk(self, body):
        lines, items = iter(body), []
        for line in lines:
            [(kind, header)] = line.items()
            items.append({kind: {"_index": INDEX, "_id": header["_id"], **self._write(kind, header, next(lines))}})
        return {"items": items}

    def _write(self, kind, header, body):
        id_, held = header["_id"], self.docs.get(header["_id"])
        status = self.refuse(header)
        if status is None and kind == "update" and held is None:
            status = 404
        if (
            status is None
            and "if_seq_no" in header
            and (header["if_seq_no"], header["if_primary_term"]) != (held["version"])
        ):
            status = 409
        if status is not None:
            return {"status": status, "error": {"type": "refused", "reason": f"status {status}"}}
        version = self.put(id_, merged(held["source"], body["doc"]) if kind == "update" else body)
        return {"status": 200, "_seq_no": version[0], "_primary_term": version[1]}

    def _get(self, id_, wanted):
        if id_ in self.broken:
            error = {"type": "es_rejected_execution_exception", "reason": "full"}
            return {"_index": INDEX, "_id": id_, "error": error}
        if id_ not in self.docs:
            return {"_index": INDEX, "_id": id_, "found": False}
        return {"_index": INDEX, "_id": id_, "found": True, **self._shape(self.docs[id_], wanted)}

    @staticmethod
    def _shape(held, wanted):
        sequence, term = held["version"]
        tops = {name.split(".")[0] for name in wanted} if isinstance(wanted, (list, tuple)) else None
        source = {key: value for key, value in held["source"].items() if tops is None or key in tops}
        shown = {} if wanted is False else {"_source": copy.deepcopy(source)}
        return {"_seq_no": sequence, "_primary_term": term, **shown}

    def _hits(self, held, body):
        names = [each if isinstance(each, str) else each["field"] for each in body.get("docvalue_fields", ())]
        part = body.get("slice", {"id": 0, "max": 1})
        [after] = body.get("search_after", [-1])[:1]
        return [
            {
                "_index": INDEX,
                "_id": id_,
                "sort": [place],
                "fields": {name: [value] for name in names if (value := value_of(each["source"], name)) is not None},
                **self._shape(each, body.get("_source", True)),
            }
            for place, (id_, each) in enumerate(sorted(held.items()))
            if place > after and place % part["max"] == part["id"] and is_match(body["query"], id_, each["source"])
        ]

    @staticmethod
    def _page(hits):
        shards = {"total": 1, "failed": 0}
        return {"_shards": shards, "timed_out": False, "hits": {"total": {"value": len(hits)}, "hits": hits}}

    def _composite(self, held, body):
        [(name, agg)] = body["aggs"].items()
        wanted = agg["composite"]["sources"][0]["id"]["terms"]["field"]
        keys = sorted({value for each in held.values() if (value := value_of(each["source"], wanted)) is not None})
        keys = [key for key in keys if key > agg["composite"].get("after", {"id": ""})["id"]]
        found = {"buckets": [{"key": {"id": key}} for key in keys]} | ({"after_key": {"id": keys[-1]}} if keys else {})
        return {**self._page([]), "aggregations": {name: found}}


def merged(held, change):
    """Return *held* with *change* put into it, as an update by a partial document does."""
    both = isinstance(held, dict) and isinstance(change, dict)
    return held | {key: merged(held.get(key), value) for key, value in change.items()} if both else change


def value_of(source, name):
    """Return the value at the dotted *name*."""
    for part in name.split("."):
        source = source.get(part) if isinstance(source, dict) else None
    return source


def is_match(query, id_, source):
    """Return whether a document matches *query*, of the kinds that flows send."""
    [(kind, body)] = query.items()
    if kind == "bool":
        every = [body.get(name, []) for name in ("filter", "must", "should", "must_not")]
        filters, musts, shoulds, nots = [each if isinstance(each, list) else [each] for each in every]
        least = body.get("minimum_should_match", 0 if filters or musts or not shoulds else 1)
        return (
            all(is_match(each, id_, source) for each in filters + musts)
            and sum(is_match(each, id_, source) for each in shoulds) >= least
            and not any(is_match(each, id_, source) for each in nots)
        )
    if kind == "script":
        return True  # what it leaves out is rescored away all the same
    if kind == "ids":
        return id_ in body["values"]
    if kind == "exists":
        return value_of(source, body["field"]) is not None
    [(name, wanted)] = body.items()
    value = value_of(source, name)
    if kind == "range":
        return value is not None and value >= wanted["gte"]
    return value in (wanted if kind == "terms" else [wanted])


@dataclass
class Run:
    """
    What became of a flow.

    Attributes:
        result:
            What it returned.
        error:
            What it raised; ``None`` where it returned.
        calls:
            Every call in order, those that went out together included.
        emitted:
            What it emitted.
        waits:
            Its pauses, in seconds.
        steps:
            Number of requests it made, a group of calls being one.
        hit:
            Name of the call or function at which there was trouble; of several the first.
    """

    result: Any = None
    error: BaseException | None = None
    calls: list[Call] = field(default_factory=list)
    emitted: list[Any] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    steps: int = 0
    hit: str | None = None

    @property
    def apis(self):
        return [call.api for call in self.calls]


def carry_out(flow, store, *, fail_at=None, failure=None, is_late=False, cancel_at=None, meddle_at=None, meddle=None):
    """
    Carry *flow* out against *store* and return the :class:`Run`.

    Args:
        flow:
            The flow.
        store:
            What answers.
        fail_at:
            Number of the call, from 0, that fails with *failure*.
        failure:
            The exception; ``None`` for none.
        is_late:
            Whether the server has done what was asked before the failure, or the cancellation, comes.
        cancel_at:
            Number of the request of any kind, from 0, at which a cancellation is thrown in. While something is being
            opened it comes at the request after, which is then not sent, as with the drivers.
        meddle_at:
            Number of the call before which *meddle* is called.
        meddle:
            What another program does to the store.
    """
    run = Run()

    def answer_to(request):
        if isinstance(request, Compute):
            try:
                return request.function(*request.arguments)
            except Exception as error:  # noqa: BLE001 -- thrown in, as a driver does
                return error
        number = len(run.calls)
        run.calls.append(request)
        if meddle is not None and number == meddle_at:
            meddle(store)
        if failure is None or number != fail_at:
            return store(request)
        run.hit = request.api
        if is_late:
            store(request)
        return failure

    pending = answer = error = None
    while True:
        try:
            request = flow.send(answer) if error is None else flow.throw(error)
        except StopIteration as stop:
            run.result = stop.value
            return run
        except BaseException as raised:
            if failure is None and cancel_at is None:
                raise
            run.error = raised
            return run
        answer = error = None
        run.steps += 1
        if pending is not None:
            error, pending = pending, None
            continue
        if isinstance(request, Emit):
            run.emitted.append(request.item)
        elif isinstance(request, Wait):
            run.waits.append(request.seconds)
            answer = AssertionError("it waits without end") if len(run.waits) > MOST_WAITS else None
        elif run.steps - 1 != cancel_at or is_late or getattr(request, "opens", False):
            is_group = isinstance(request, Together)
            answer = [answer_to(each) for each in request.calls] if is_group else answer_to(request)
        if isinstance(answer, BaseException):
            answer, error = None, answer
        if run.steps - 1 == cancel_at:
            calls = [each for each in getattr(request, "calls", [request]) if isinstance(each, (Call, Compute))]
            [run.hit, *_] = [
                each.function.__qualname__ if isinstance(each, Compute) else each.api for each in calls
            ] or [None]
            if getattr(request, "opens", False) and error is None:
                pending = Cancelled()
            else:
                answer, error = None, Cancelled()


def refuse_twice(store, id_, status):
    """Have the first two writes of a document refused; return the list that their headers are put into."""
    refused = []

    def refuse(header):
        if header["_id"] != id_ or len(refused) == 2:
            return None
        refused.append(header)
        return status

    store.refuse = refuse
    return refused


def failures():
    """Return one of each failure that a request may meet."""
    return [ServerError(429, "full"), ServerError(503), ServerError(500), ServerError(409), ConnectionError("gone")]


def is_harmless(run, number, failure):
    """Return whether the call was a survey, which a writer can do without, unless the server is gone."""
    body = run.calls[number].arguments.get("body") or {}
    samples = run.hit == "search" and body["size"] == SAMPLE
    counts = run.hit == "msearch" and {each["size"] for each in body[1::2]} == {0}
    return (samples or counts) and hasattr(failure, "status_code")


def is_passing(failure):
    """Return whether a server that fails like this may do what is asked a moment later."""
    return getattr(failure, "status_code", None) in (429, 503)


def gave_back(run, store, *, is_late=False):
    """Return whether nothing is left open, but for what the very request that gives back was cut off from."""
    return not store.open or (run.hit in GIVES_BACK and not is_late)
