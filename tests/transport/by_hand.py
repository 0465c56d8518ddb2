"""
Carries flows out by hand: answers what they yield, and throws a failure or a cancellation in at any step.

``drive`` is for flows without pauses and groups of calls; ``carry_out`` does everything that a driver does.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from es_simhash.lookup.find_flow import SAMPLE
from es_simhash.transport.protocol import Call, Compute, Emit, Tell, Together, Wait
from es_simhash.transport.retry_flow import LOOK_FOR_SHARDS

CLOSES = ("close_point_in_time", "clear_scroll")
READS = ("get_mapping", "get_settings", "mget", "msearch", "search")
MOST_WAITS = 200


def drive(flow, answers, *, fail_at=None, failure=None):
    """
    Carry *flow* out and return ``(result, calls, emitted)``; *answers* gives each call its answer, or an exception.
    At the request number *fail_at*, from 0 and of any kind, *failure* is thrown in place of the answer.
    """
    calls, emitted = [], []
    step, answer, error = 0, None, None
    while True:
        try:
            request = flow.send(answer) if error is None else flow.throw(error)
        except StopIteration as stop:
            return stop.value, calls, emitted
        answer = error = None
        if isinstance(request, Tell):
            continue
        if isinstance(request, Call):
            calls.append(request)
        if step == fail_at:
            error = failure
        elif isinstance(request, Emit):
            emitted.extend(request.items)
        elif isinstance(request, Compute):
            answer = request.function(*request.arguments)
        elif isinstance(request, Call):
            answer = answers(request)
            if isinstance(answer, BaseException):
                answer, error = None, answer
        step += 1


class Cancelled(BaseException):
    """What a driver throws in when the caller wants no more."""


class ServerError(Exception):
    """What a client raises for a response with an error status."""

    def __init__(self, status, text=""):
        super().__init__(text)
        self.status_code = status


@dataclass
class Run:
    """
    What became of a flow: what it returned, raised, called, emitted, waited (in seconds) and told.
    *steps*: number of requests, a group of calls being one. *hit*: the call or function at which there was trouble.
    """

    result: Any = None
    error: BaseException | None = None
    calls: list[Call] = field(default_factory=list)
    emitted: list[Any] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    told: list[Any] = field(default_factory=list)
    steps: int = 0
    hit: str | None = None

    @property
    def apis(self):
        return [call.api for call in self.calls]


def carry_out(flow, store, *, fail_at=None, failure=None, is_late=False, cancel_at=None, meddle_at=None, meddle=None):
    """
    Carry *flow* out against *store*, which answers, and return the :class:`Run`.
    The call number *fail_at*, from 0, fails with *failure*. At the request of any kind number *cancel_at* a
    cancellation is thrown in. While something is being opened it comes at the request after, which is then not sent, as
    with the drivers. *is_late*: the server has done what was asked before either comes. Before the call number
    *meddle_at*, *meddle* does to the store what another program would.
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
        if isinstance(request, Tell):
            run.told.append(request.progress)
            continue
        run.steps += 1
        if pending is not None:
            error, pending = pending, None
            continue
        if isinstance(request, Emit):
            run.emitted.extend(request.items)
        elif isinstance(request, Wait):
            run.waits.append(request.seconds)
            answer = AssertionError("the flow waits without end") if len(run.waits) > MOST_WAITS else None
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


def calls_to_fail(run, *, is_late):
    """
    Yield the number of each call of an undisturbed run that may be failed.
    A call that only reads is none where the failure is late: a server that has read is as it was.
    """
    for number, call in enumerate(run.calls):
        if not is_late or call.opens or call.api not in READS:
            yield number


def is_harmless(run, number, failure):
    """Return whether the call only asked for statistics or missing shards, which a writer can do without."""
    body = run.calls[number].arguments.get("body") or {}
    samples = run.hit == "search" and body["size"] == SAMPLE
    counts = run.hit == "msearch" and all(each["size"] == 0 and "aggs" not in each for each in body[1::2])
    checks = run.hit == "search" and body == LOOK_FOR_SHARDS
    return (samples or counts or checks) and hasattr(failure, "status_code")


def is_passing(failure):
    """Return whether a server that fails like this may do what is asked a moment later."""
    return getattr(failure, "status_code", None) in (429, 503)


def closed_all(run, store, *, is_late=False):
    """Return whether nothing is left open; the request that closes may itself have been cut off."""
    return not store.open or (run.hit in CLOSES and not is_late)
