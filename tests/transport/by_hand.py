"""
One scripted port: it answers, fails or cancels at any request, and sees that what is opened can be closed.

``carry_out`` does everything that the two ports do; ``drive`` is it where nothing but the answer matters.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial, update_wrapper
from typing import Any

from es_simhash.client.port import finish
from es_simhash.lookup.plan import SAMPLE_DOCUMENTS
from es_simhash.mapping.context import Context
from es_simhash.mapping.port import Around, Port
from es_simhash.transport.conversation import LOOK_FOR_SHARDS
from es_simhash.transport.protocol import Call, Compute

CLOSES = ("close_point_in_time",)
READS = ("get_mapping", "get_settings", "mget", "msearch", "search")
MOST_WAITS = 200

# What both products allow by default.
MOST_HITS, MOST_VALUES, MOST_CLAUSES = 10_000, 65_536, 1_024
MOST_BUCKETS, MOST_DOC_VALUES, LONGEST_SECONDS = 65_535, 100, 86_400


def check_allowed(call):
    """Assert that a server takes the request whose limits are as the products have them."""
    bodies = call.arguments.get("body") or {}
    searches = {"search": [bodies], "msearch": bodies[1::2] if isinstance(bodies, list) else []}.get(call.api, [])
    for body in searches:
        assert body.get("from", 0) + body.get("size", 10) <= MOST_HITS
        assert len(body.get("docvalue_fields", ())) <= MOST_DOC_VALUES
        assert sum(_clauses(body.get("query", {}))) <= MOST_CLAUSES
        for aggregation in body.get("aggs", {}).values():
            sizes = [aggregation.get(kind, {}).get("size", 10) for kind in ("terms", "composite")]
            assert max(sizes) <= MOST_BUCKETS
    for lives in (call.arguments, bodies, (bodies if isinstance(bodies, dict) else {}).get("pit", {})):
        if isinstance(lives, dict) and "keep_alive" in lives:
            assert int(lives["keep_alive"].removesuffix("s")) <= LONGEST_SECONDS


def _clauses(node):
    """Yield 1 for each clause of a query; assert that its lists are short enough."""
    if isinstance(node, list):
        for part in node:
            yield from _clauses(part)
    elif isinstance(node, dict):
        for kind, inside in node.items():
            if kind in ("bool", "filter", "must", "must_not", "should", "constant_score", "function_score", "query"):
                yield from _clauses(inside)
            elif isinstance(inside, dict):
                yield 1
                most = MOST_HITS if kind == "ids" else MOST_VALUES
                assert all(len(values) <= most for values in inside.values() if isinstance(values, list))


def opens(call):
    """Return whether a call opens something on the server that only its answer names."""
    return call.api == "open_point_in_time"


class ScriptedServer(Port):
    """The port of all tests by hand; each request goes to the script that is carried out now."""

    def __init__(self):
        super().__init__(Context())
        self._scripts = []

    @contextmanager
    def following(self, script):
        self._scripts.append(script)
        try:
            yield
        finally:
            self._scripts.pop()

    @property
    def _script(self):
        return self._scripts[-1]

    async def send(self, call):
        return self._script.answer_one(call)

    async def together(self, calls, *, concurrency=4):
        return self._script.answer_all(calls)

    async def compute(self, function, *args, **kwargs):
        named = update_wrapper(partial(function, **kwargs), function) if kwargs else function
        return self._script.answer_one(Compute(named, args))

    async def sleep(self, seconds):
        self._script.sleep(seconds)

    async def to_the_end(self, work):
        """Return the cancellation that came while *work* was carried out, beside what it returned."""
        script = self._script
        script.is_held = True
        try:
            result = await work
        except Exception:
            if script.pending is not None:
                raise script.pending from None
            raise
        finally:
            script.is_held = False
            pending, script.pending = script.pending, None
        return result, pending

    def tell(self, progress):
        self._script.run.told.append(progress)


SCRIPTED = ScriptedServer()


def scripted(context=None):
    """Return the port of a client with a *context*, by default a new one."""
    return Around(SCRIPTED, context or Context())


class Cancelled(BaseException):
    """What comes when the caller wants no more."""


class ServerError(Exception):
    """What a client raises for a response with an error status."""

    def __init__(self, status, text=""):
        super().__init__(text)
        self.status_code = status


@dataclass
class Run:
    """
    What became of an operation: what it returned, raised, called, emitted, waited (in seconds) and told.
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


@dataclass
class Script:
    """What happens at each request of an operation: :func:`carry_out` says it, and *run* notes what became of it."""

    run: Run
    store: Any
    fail_at: int | None = None
    failure: BaseException | None = None
    is_late: bool = False
    cancel_at: int | None = None
    meddle_at: int | None = None
    meddle: Any = None
    is_held = False
    pending: BaseException | None = None

    def carry_out(self, work):
        """Return what *work* returns; note what it emits if it is a stream."""
        with SCRIPTED.following(self):
            if not hasattr(work, "__anext__"):
                return finish(work)
            following = work.__anext__()
            while True:
                try:
                    self.run.emitted.extend(finish(following))
                except StopAsyncIteration:
                    return None
                following = work.athrow(Cancelled()) if self._is_cancelled() else work.__anext__()

    def _is_cancelled(self, *calls):
        """Count a step; return whether a cancellation comes at it, and note at what."""
        self.run.steps += 1
        if self.run.steps - 1 != self.cancel_at:
            return False
        names = [each.function.__qualname__ if isinstance(each, Compute) else each.api for each in calls]
        self.run.hit = names[0] if names else None
        return True

    def _answer(self, each):
        """Return an answer, or an exception as a value."""
        if isinstance(each, Compute):
            try:
                return each.function(*each.arguments)
            except Exception as error:  # noqa: BLE001 -- a value here
                return error
        check_allowed(each)
        # Otherwise a cancellation before the answer would leave open what nobody knows of.
        assert self.is_held or not opens(each)
        number = len(self.run.calls)
        self.run.calls.append(each)
        if number == self.meddle_at:
            self.meddle(self.store)
        if self.failure is None or number != self.fail_at:
            return self.store(each)
        self.run.hit = each.api
        if self.is_late:
            self.store(each)
        return self.failure

    def answer_one(self, each):
        is_cancelled = self._is_cancelled(each)
        answer = self._answer(each) if not is_cancelled or self.is_late or self.is_held else None
        if is_cancelled and not self.is_held:
            raise Cancelled
        if is_cancelled:
            self.pending = Cancelled()
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def answer_all(self, calls):
        is_cancelled = self._is_cancelled(*calls)
        answers = [self._answer(each) for each in calls] if not is_cancelled or self.is_late else []
        if is_cancelled:
            raise Cancelled
        return answers

    def sleep(self, seconds):
        self.run.waits.append(seconds)
        if self._is_cancelled():
            raise Cancelled
        assert len(self.run.waits) <= MOST_WAITS, "the operation waits without end"


def carry_out(work, store, **trouble):
    """
    Carry *work* out against *store*, which answers, and return the :class:`Run`. *trouble*, fields of :class:`Script`:
    The call number *fail_at*, from 0, fails with *failure*. At the request of any kind number *cancel_at* there is a
    cancellation. While something is being opened or closed it comes after the answer, as with the port of asyncio.
    *is_late*: the server has done what was asked before either comes. Before the call number *meddle_at*, *meddle* does
    to the store what another program would.
    """
    script = Script(Run(), store, **trouble)
    try:
        script.run.result = script.carry_out(work)
    except BaseException as raised:
        if script.failure is None and script.cancel_at is None:
            raise
        script.run.error = raised
    return script.run


def drive(work, answers, **trouble):
    """Carry *work* out as :func:`carry_out` does, and return ``(result, calls, emitted)``; what it raises comes out."""
    run = carry_out(work, answers, **trouble)
    if run.error is not None:
        raise run.error
    return run.result, run.calls, run.emitted


def failures():
    """Return one of each failure that a request may meet."""
    return [ServerError(429, "full"), ServerError(503), ServerError(409), ConnectionError("gone")]


def calls_to_fail(run, *, is_late):
    """
    Yield the number of each call of an undisturbed run that may be failed.
    A call that only reads is none where the failure is late: a server that has read is as it was.
    """
    for number, call in enumerate(run.calls):
        if not is_late or opens(call) or call.api not in READS:
            yield number


def is_harmless(run, number, failure):
    """Return whether the call only asked for statistics or missing shards, which a writer can do without."""
    body = run.calls[number].arguments.get("body") or {}
    samples = run.hit == "search" and body["size"] == SAMPLE_DOCUMENTS
    counts = run.hit == "msearch" and all(each["size"] == 0 and "aggs" not in each for each in body[1::2])
    checks = run.hit == "search" and body == LOOK_FOR_SHARDS
    return (samples or counts or checks) and hasattr(failure, "status_code")


def is_passing(failure):
    """Return whether a server that fails like this may do what is asked a moment later."""
    return getattr(failure, "status_code", None) in (429, 503)


def closed_all(run, store, *, is_late=False):
    """Return whether nothing is left open; the request that closes may itself have been cut off."""
    return not store.open or (run.hit in CLOSES and not is_late)
