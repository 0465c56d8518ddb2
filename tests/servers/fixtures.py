"""
Fixtures over real servers: a server, a fresh index, a client, and one test body for sync and async.

``server`` runs a test on OpenSearch and on Elasticsearch; ``mode``, and so ``client``, ``call`` and ``simhash``, runs
it with the sync and with the async clients.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import json
import uuid
from typing import Any

import pytest

from es_simhash.errors import EmbeddedServerError
from es_simhash.transport.conversation import Patience
from tests.servers.cluster import EmbeddedCluster
from tests.servers.command_line import NEAR, OTHER, TEXT, invoke
from tests.servers.security import SecuredServer
from tests.servers.servers import PRODUCTS, SERVERS, NoServerError, is_required, send
from tests.servers.support import ROUNDS


def get_server(request, product):
    """Return the session's server of *product*, or end the test: skipped, or failed where servers are required."""
    try:
        return request.config.stash[SERVERS].get(product)
    except NoServerError as error:
        if is_required():
            pytest.fail(f"no {product} server: {error}", pytrace=False)
        pytest.skip(f"no {product} server: {error}")


@pytest.fixture(params=PRODUCTS)
def server(request):
    """A running server, of either product."""
    return get_server(request, request.param)


# The parameter puts the server's name into the id of a test, by which parallel workers share the tests out.
@pytest.fixture(params=["opensearch"])
def opensearch(request):
    """A running OpenSearch, for tests that only it can run."""
    return get_server(request, request.param)


@pytest.fixture(params=["elasticsearch"])
def elasticsearch(request):
    """A running Elasticsearch, for tests that only it can run."""
    return get_server(request, request.param)


@pytest.fixture
def pipelines(opensearch):
    """A running OpenSearch whose search pipelines have processors, such as ``truncate_hits``."""
    nodes = opensearch.request("GET", "/_nodes/search_pipelines")["nodes"].values()
    kinds = {each["type"] for node in nodes for each in node["search_pipelines"].get("response_processors", ())}
    if "truncate_hits" not in kinds:
        pytest.skip("this OpenSearch lacks the module search-pipeline-common")
    return opensearch


def get_templates(request):
    """Return the session's OpenSearch if it has search templates, as embedded ones have; else skip the test."""
    server = get_server(request, "opensearch")
    status, _, _ = send(server.url, "POST", "/_render/template", {"source": "{}"})
    if status != 200:
        pytest.skip("this OpenSearch lacks the module lang-mustache")
    return server


@pytest.fixture(scope="session", params=["secured"])
def secured():
    """A running OpenSearch with the security plugin for the session: each test takes index names of its own."""
    with SecuredServer() as server:
        try:
            server.start()
        except EmbeddedServerError as error:
            if is_required():
                raise
            pytest.skip(f"no OpenSearch with the security plugin: {error}")
        yield server


@pytest.fixture(scope="session", params=PRODUCTS[: 1 + (ROUNDS > 2)], ids="cluster of {}".format)
def cluster(request):
    """
    Two nodes for the session: each test takes index names of its own, and starts the node that it killed.
    Tests start one cluster, `make faults` one of each product.
    """
    with EmbeddedCluster(request.param) as cluster:
        yield cluster


@pytest.fixture
def index(server):
    """The name of an index of this test's own; whatever starts with it is deleted afterwards."""
    name = f"test-{uuid.uuid4().hex}"
    yield name
    server.remove(name)


@pytest.fixture
def pipeline_name(opensearch, index):
    """The name of a pipeline and an index of this test's own."""
    yield index
    opensearch.remove(index)
    opensearch.request("DELETE", f"/_ingest/pipeline/{index}")


@pytest.fixture
def runner():
    """A private event loop."""
    with asyncio.Runner() as runner:
        yield runner


def make_client(server, *, asynchronous=False, **options):
    """Return a client of the server's own kind; an asynchronous one must be made and closed on its loop."""
    if server.product == "opensearch":
        import opensearchpy as library

        cls = library.AsyncOpenSearch if asynchronous else library.OpenSearch
    else:
        import elasticsearch as library

        cls = library.AsyncElasticsearch if asynchronous else library.Elasticsearch
    return cls([server.url], **options)


@contextlib.contextmanager
def client_through(server, wire):
    """Provide a sync client of ours whose requests go through *wire*."""
    from es_simhash import SimHashClient

    with contextlib.closing(make_client(server, **wire.options(server.product))) as client:
        yield SimHashClient(client)


@pytest.fixture
def sync_client(server):
    """An ``OpenSearch`` or ``Elasticsearch``."""
    client = make_client(server)
    yield client
    client.close()


@pytest.fixture
def async_client(server, runner):
    """An ``AsyncOpenSearch`` or ``AsyncElasticsearch`` that lives on the loop of ``runner``."""

    async def make():
        return make_client(server, asynchronous=True)

    client = runner.run(make())
    yield client
    runner.run(client.close())


@pytest.fixture(params=["sync", "async"])
def mode(request):
    """``"sync"`` or ``"async"``."""
    return request.param


@pytest.fixture
def client(mode, request):
    """The client of the test's mode."""
    return request.getfixturevalue(f"{mode}_client")


@pytest.fixture
def call(runner):
    """Return a function that waits for a coroutine, or for an async iterator's list, and returns all else as it is."""
    return functools.partial(_wait_for, runner)


def _wait_for(runner: asyncio.Runner, outcome: Any) -> Any:
    if hasattr(outcome, "__aiter__"):
        return runner.run(_collect(outcome))
    return runner.run(_await(outcome)) if inspect.isawaitable(outcome) else outcome


async def _await(outcome):
    return await outcome


async def _collect(items):
    return [item async for item in items]


class Calls:
    """Makes an async object look sync: its methods return results, and lists in place of async iterators."""

    def __init__(self, wrapped, call):
        self._wrapped = wrapped
        self._call = call

    def __getattr__(self, name):
        attribute = getattr(self._wrapped, name)
        if not callable(attribute):
            return attribute
        return lambda *args, **kwargs: self._call(attribute(*args, **kwargs))


@pytest.fixture
def make_simhash(mode, client, call):
    """Return a function that makes a client of ours, of the test's mode, with the options given."""
    from es_simhash import AsyncSimHashClient, SimHashClient

    def make(**options):
        return (
            SimHashClient(client, **options) if mode == "sync" else Calls(AsyncSimHashClient(client, **options), call)
        )

    return make


@pytest.fixture
def simhash(make_simhash):
    """A client of ours with its defaults; every method can be called as if it were sync."""
    return make_simhash()


@pytest.fixture
def sync_simhash(sync_client):
    """A sync client of ours, for a test that does something in the middle of a stream: ``simhash`` reads it at once."""
    from es_simhash import SimHashClient

    return SimHashClient(sync_client)


@pytest.fixture
def impatient(monkeypatch):
    """Requests are repeated as often as ever, but without waits."""

    async def wait(patience, server):
        patience.failures += 1

    monkeypatch.setattr(Patience, "wait", wait)


@pytest.fixture
def run(server, monkeypatch):
    """Return a function that runs a command line against the server."""
    for name in ("PRODUCT", "API_KEY", "USER", "PASSWORD", "CA_FILE", "DEBUG"):
        monkeypatch.delenv(f"ES_SIMHASH_{name}", raising=False)
    monkeypatch.setenv("ES_SIMHASH_URL", server.url)
    return lambda *args, stdin=None: invoke([str(each) for each in args], stdin=stdin)


@pytest.fixture
def news(run, index, tmp_path, server):
    """An index with three documents, two of them near-duplicates of each other."""
    path = tmp_path / "news.jsonl"
    texts = {"a": TEXT, "b": NEAR, "c": OTHER}
    path.write_text("".join(json.dumps({"key": key, "body": text}) + "\n" for key, text in texts.items()))
    result = run("ingest", index, path, "--create", "-t", "body", "--id-field", "key", "-d", 12)
    assert result.exit_code == 0, result.output
    server.request("POST", f"/{index}/_refresh")
    return index
