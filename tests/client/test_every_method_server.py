"""
Every public method of both clients, on real servers: a failure, an interrupt or a cancellation at any of its requests
reaches the caller, and what the method opened on the server is closed.
"""

import asyncio
import inspect
import itertools
import re
import uuid
from collections.abc import Iterator

import pytest

from es_simhash import InvalidInputError, SimHashClient, SimHashError
from es_simhash.client.async_port import AsyncioServer
from es_simhash.client.port import BlockingServer
from es_simhash.transport.protocol import Call
from tests.servers.fixtures import make_client
from tests.servers.support import ONE_SHARD, put, texts

TEXTS = texts(30, seed=3)
MOST = 3  # requests of one method at which something happens: each, or every n-th


class Watch:
    """Counts requests, and lets one fail; knows how many views are open."""

    def __init__(self, fail_at=None, failure=None):
        self.fail_at, self.failure = fail_at, failure
        self.requests = self.open = 0

    def begins(self, call):
        """Note *call*; raise the failure where it is due."""
        self.open -= call.api == "close_point_in_time"
        self.requests += 1
        if self.requests - 1 == self.fail_at:
            raise self.failure

    def answered(self, call):
        self.open += call.api == "open_point_in_time"


@pytest.fixture
def watching(monkeypatch):
    """Return a function that lets all requests from now on go through a watch; ``None`` for none."""
    now = [None]

    def around(base):
        send, together = base.send, base.together

        async def watched(self, call):
            watch = now[0]
            if watch is None:
                return await send(self, call)
            watch.begins(call)
            answer = await send(self, call)
            watch.answered(call)
            return answer

        async def all_watched(self, calls, *, concurrency=4):
            if now[0] is not None:
                for each in calls:
                    if isinstance(each, Call):
                        now[0].begins(each)
            return await together(self, calls, concurrency=concurrency)

        monkeypatch.setattr(base, "send", watched)
        monkeypatch.setattr(base, "together", all_watched)

    around(BlockingServer)
    around(AsyncioServer)

    def watch(each):
        now[0] = each
        return each

    return watch


DOCUMENTS = [{"_id": f"{number:02d}", "number": number, "body": text} for number, text in enumerate(TEXTS)]


@pytest.fixture(scope="module")
def filled():
    """Return a function that returns an index of a server with all documents, which tests only read."""
    made = {}

    def fill(server):
        if server.url not in made:
            name = f"test-{uuid.uuid4().hex}"
            made[server.url] = server, name
            with make_client(server) as client:
                simhash = SimHashClient(client)
                simhash.create_index(name, text_field="body", settings=ONE_SHARD, passages=True)
                list(simhash.ingest(name, DOCUMENTS))
            server.request("POST", f"/{name}/_refresh")
        return made[server.url][1]

    yield fill
    for server, name in made.values():
        server.remove(name)


@pytest.fixture
def methods(server, simhash, make_simhash, filled, index, tmp_path):
    """Return for each method what prepares a call of it, and the call, which gets a client and what was prepared."""
    numbers, prefix, index = itertools.count(), index, filled(server)

    def other():
        name = f"{prefix}-{next(numbers)}"
        put(server, name, DOCUMENTS[:10])
        return name

    def ready():
        name = other()
        simhash.setup(name, text_field="body")
        return name

    def path():
        return str(tmp_path / str(next(numbers)))

    def planned():
        name, plan = ready(), path()
        simhash.plan_removal(name, plan)
        return plan

    def applied():
        plan = planned()
        list(simhash.apply_removal(plan, max_share=1))
        return plan

    def reading(name, *given, **more):
        """Return a call of the method *name* whose answer is read to its end; of a new client where others remember."""

        def call(simhash, _):
            client = make_simhash() if name in ("get_rule", "get_settings", "with_fingerprints") else simhash
            answer = getattr(client, name)(index, *given, **more)
            return list(answer) if isinstance(answer, Iterator) else answer

        return call

    search = {"query": {"match_all": {}}, "sort": ["number"]}
    alone = ("check", "check_sample", "get_rule", "get_settings", "groups", "pairs", "reconcile", "report", "stats")
    plain = {
        **{name: reading(name) for name in alone},
        **{name: reading(name, "00") for name in ("find_near_dups_of", "find_passages_of", "get_fingerprint")},
        **{name: reading(name, TEXTS[0]) for name in ("find_near_dups", "find_passages")},
        **{name: reading(name, TEXTS[:5]) for name in ("find_near_dups_many", "stream_near_dups_many")},
        **{name: reading(name, search) for name in ("search_distinct", "search_distinct_pages")},
        "explain": reading("explain", "00", "01"),
        "make_dashboards": reading("make_dashboards", text_field="body"),
        "put_pipeline": reading("put_pipeline", use_as=None),
        "screen": reading("screen", [*TEXTS, *TEXTS, {"_id": "00", "body": TEXTS[1]}], source=True),
        "tune": reading("tune", sample=5),
        "with_fingerprints": reading("with_fingerprints", [dict(DOCUMENTS[0])]),
    }
    changing = {
        "apply_removal": (planned, lambda simhash, made: list(simhash.apply_removal(made, max_share=1))),
        "backfill": (other, lambda simhash, name: list(simhash.backfill(name, text_field="body"))),
        "create_index": (lambda: f"{prefix}-{next(numbers)}", lambda simhash, name: simhash.create_index(name)),
        "follow": (ready, lambda simhash, name: list(simhash.follow(name, once=True))),
        "ingest": (ready, lambda simhash, name: list(simhash.ingest(name, [dict(each) for each in DOCUMENTS]))),
        "plan_removal": (lambda: (ready(), path()), lambda simhash, made: simhash.plan_removal(*made)),
        "put_mapping": (other, lambda simhash, name: simhash.put_mapping(name, text_field="body")),
        "remove_fields": (ready, lambda simhash, name: simhash.remove_fields(name)),
        "restore": (applied, lambda simhash, made: list(simhash.restore(made))),
        "tag_written": (ready, lambda simhash, name: list(simhash.tag_written(name, ["00", "01"]))),
        "setup": (other, lambda simhash, name: simhash.setup(name, text_field="body")),
    }
    return {name: (lambda: None, call) for name, call in plain.items()} | changing


def test_settings_are_read_at_once(server, simhash, make_simhash, index, watching):
    """One request, however many indices there are, and whatever they record; none for what is known."""
    simhash.create_index(index, text_field=("title", "body"), max_distance=8)
    other, plain = f"{index}-other", f"{index}-plain"
    make_simhash(scheme="keywords").create_index(other, text_field="text")
    server.request("PUT", f"/{plain}", {})
    reader, watch = make_simhash(), Watch()
    watching(watch)
    found = reader.get_settings(f"{index}*")
    assert {name: (each.scheme.name, each.text_fields, each.max_distance) for name, each in found.items()} == {
        index: ("shingles", ("title", "body"), 8),
        other: ("keywords", ("text",), None),
    }
    assert reader.get_settings(plain) == {}
    assert (found[index].rule.max_distance, found[index].is_grouped) == (8, False)
    assert str(reader.get_rule(index)) == str(reader.find_near_dups(index, "a text of an index").rule)
    reader, before = make_simhash(), watch.requests
    assert reader.get_settings(index) == reader.get_settings(index) == {index: found[index]}
    assert watch.requests - before == 1
    watching(None)


METHODS = [name for name, _ in inspect.getmembers(SimHashClient, inspect.isfunction) if not name.startswith("_")]


# By method and path. A POST to a mapping or an alias writes, and a GET may refresh.
READS = re.compile(
    r"(GET|HEAD) (.*/_(search|mapping|settings|alias|data_stream|stats|field_caps)(/.*)?|/_(cluster|ingest)/.*|/[^_/]+)"
    r"|POST (.*/_(search|msearch|mget|field_caps)|/_index_template/.*|/_ingest/pipeline/_simulate)"
    r"|(POST|DELETE) .*/_(pit|search/point_in_time)"
)
WRITING = {"apply_removal", "backfill", "create_index", "follow", "ingest", "put_mapping", "put_pipeline"}
WRITING |= {"reconcile", "remove_fields", "restore", "setup", "tag_written"}
DRY = ["apply_removal", "backfill", "plan_removal", "reconcile", "remove_fields", "restore", "setup"]


@pytest.mark.parametrize("name", METHODS)
def test_a_client_that_only_reads(server, client, make_simhash, methods, monkeypatch, name):
    """Nothing that could write is sent, whatever is called; what only reads answers as ever."""
    if (server.product, name) == ("elasticsearch", "put_pipeline"):
        pytest.skip("this server has no scripts")
    prepare, call = methods[name]
    made, sent = prepare(), []
    send = client.transport.perform_request

    def noting(method, target, *given, **more):
        sent.append(f"{method} {target.partition('?')[0]}")
        return send(method, target, *given, **more)

    monkeypatch.setattr(client.transport, "perform_request", noting)
    refusal = None
    try:
        call(make_simhash(read_only=True), made)
    except InvalidInputError as error:
        refusal = str(error)
    assert [request for request in sent if not READS.fullmatch(request)] == []
    assert (refusal is not None) == (name in WRITING), refusal
    assert refusal is None or "is refused, because this client only reads" in refusal


@pytest.mark.parametrize("name", DRY)
def test_a_dry_run_needs_no_right_to_write(client, server, filled, make_simhash, methods, monkeypatch, caplog, name):
    """What a client that only reads is told is what another one is told; nothing that could write is sent."""
    prepare, _ = methods[name]
    made, sent = (filled(server) if name == "reconcile" else prepare()), []
    more = (
        {"max_share": 1} if name == "apply_removal" else {"text_field": "body"} if name in ("backfill", "setup") else {}
    )
    send = type(client.transport).perform_request

    def noting(transport, method, target, *given, **more):
        sent.append(f"{method} {target.partition('?')[0]}")
        return send(transport, method, target, *given, **more)

    def ask(simhash):
        if name == "plan_removal":
            return simhash.plan_removal(made[0]).removals
        answer = getattr(simhash, name)(made, dry_run=True, **more)
        return answer if hasattr(answer, "__dataclass_fields__") else list(answer)

    expected = ask(make_simhash())
    caplog.clear()
    monkeypatch.setattr(type(client.transport), "perform_request", noting)
    assert ask(make_simhash(read_only=True)) == expected
    assert [request for request in sent if not READS.fullmatch(request)] == []
    assert ("what is visible was read" in caplog.text) == (name != "restore")


@pytest.mark.parametrize("name", METHODS)
def test_whatever_happens_at_a_request(server, simhash, methods, watching, mode, name):
    """The first requests and some of the later ones: a connection that breaks, and an end by the caller."""
    if (server.product, name) == ("elasticsearch", "put_pipeline"):
        pytest.skip("this server has no scripts")
    prepare, call = methods[name]
    made = prepare()
    whole = watching(Watch())
    call(simhash, made)
    watching(None)
    assert (whole.requests > 0, whole.open) == (True, 0)
    ended = KeyboardInterrupt if mode == "sync" else asyncio.CancelledError
    step = -(-whole.requests // MOST)
    failures = itertools.cycle((ended(), ConnectionError("the wire was cut")))
    for number, failure in zip(range(0, whole.requests, step), failures, strict=False):
        made = prepare()
        watch = watching(Watch(number, failure))
        try:
            call(simhash, made)
            outcome = None
        except (ConnectionError, SimHashError, ended) as error:
            outcome = error
        finally:
            watching(None)
        is_ended = isinstance(outcome, ended)
        assert is_ended == (isinstance(failure, ended) and watch.requests > number), (number, failure, outcome)
        assert watch.open <= 0, (number, failure)  # what is interrupted while it is closed may be closed again
