"""Where the servers of the tests come from, and plain HTTP to them that depends on no search client."""

from __future__ import annotations

import base64
import json
import os
import ssl
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from es_simhash.errors import EmbeddedServerError, MissingDependencyError
from es_simhash.servers import EmbeddedServer
from tests.servers.plugins import PluginServer

PRODUCTS = ("opensearch", "elasticsearch")

# Addresses of servers to use instead of embedded ones, separated by commas, user and password in them if need be.
URLS = "ES_SIMHASH_TEST_URLS"
# Versions of the embedded ones, for example "opensearch-2.19.1,elasticsearch-8.19.21".
VERSIONS = "ES_SIMHASH_TEST_VERSIONS"
# The heap of the embedded ones, such as "2g".
HEAP = "ES_SIMHASH_TEST_HEAP"
# With 1, a server that cannot be had fails the tests that need it; without, they are skipped.
REQUIRED = "ES_SIMHASH_REQUIRE_SERVERS"

# A little more than an embedded server may take to start.
START_SECONDS = 200


class NoServerError(Exception):
    """There is no server of that product here; the message says why."""


@dataclass(frozen=True)
class Server:
    """A running server that tests may use; *pid* and *data* (its folder) are those of an embedded one."""

    product: str
    version: str
    url: str
    pid: int | None = None
    data: str | None = None

    @classmethod
    def of(cls, embedded: EmbeddedServer) -> Server:
        """Return an embedded server as tests see it."""
        return cls(embedded.product, embedded.version, embedded.url, embedded.pid, str(embedded.data))

    def request(self, method: str, path: str, body: Any = None, *, missing_ok: bool = False) -> Any:
        """Send a request and return the decoded answer, ``None`` for a 404 that is expected."""
        status, answer, _ = send(self.url, method, path, body)
        if status == 404 and missing_ok:
            return None
        assert status < 400, f"{method} {path}: {status} {answer}"
        return answer

    def remove(self, prefix: str) -> None:
        """Delete the data streams and the indices whose names start with *prefix*, and nothing else."""
        found = self.request("GET", f"/{prefix}*?expand_wildcards=all", missing_ok=True) or {}
        # A data stream answers with the indices behind it, which cannot be deleted one by one.
        for stream in {details["data_stream"] for details in found.values() if "data_stream" in details}:
            self.request("DELETE", f"/_data_stream/{stream}", missing_ok=True)
        names = [name for name, details in found.items() if "data_stream" not in details]
        for start in range(0, len(names), 50):  # as many as fit into one line of a request
            some = ",".join(names[start : start + 50])
            self.request("DELETE", f"/{some}?ignore_unavailable=true")


def send(
    url: str, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
) -> tuple[int, Any, dict[str, str]]:
    """Return status, decoded body and headers (names in lower case) of one request."""
    parts = urlsplit(url)
    host = parts.hostname if parts.port is None else f"{parts.hostname}:{parts.port}"
    data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(  # noqa: S310 - the tester's own URL
        f"{parts.scheme}://{host}{path}", data, method=method
    )
    request.add_header("Content-Type", "application/x-ndjson" if isinstance(body, bytes) else "application/json")
    for name, value in (headers or {}).items():
        request.add_header(name, value)
    if parts.username is not None:
        login = base64.b64encode(f"{parts.username}:{parts.password or ''}".encode()).decode()
        request.add_header("Authorization", f"Basic {login}")
    # No proxy between a test and its server, and no check of a test server's certificate.
    context = ssl._create_unverified_context()  # noqa: S323
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context), _AnyStatus()
    )
    with opener.open(request, timeout=30) as answer:
        text = answer.read().decode()
        kind = answer.headers.get("Content-Type", "")
        is_json = "json" in kind and "ndjson" not in kind
        found = {name.lower(): value for name, value in answer.headers.items()}
        return answer.status, json.loads(text) if is_json and text else text, found


class _AnyStatus(urllib.request.HTTPErrorProcessor):
    def http_response(self, request, response):
        return response

    https_response = http_response


def detect(url: str) -> Server:
    """Return what answers at *url*; raise NoServerError if nothing does, or something that is neither product."""
    try:
        status, answer, headers = send(url, "GET", "/")
        if status != 200:  # a bare Elasticsearch node has no GET /
            _, nodes, _ = send(url, "GET", "/_nodes/_local")
            (node,) = nodes["nodes"].values()
            answer = {"version": {"number": node["version"]}}
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise NoServerError(f"nothing usable answers at {_without_login(url)}: {error}") from error
    version = answer.get("version", {}) if isinstance(answer, dict) else {}
    if version.get("distribution") == "opensearch":
        return Server("opensearch", version["number"], url)
    if headers.get("x-elastic-product") == "Elasticsearch":
        return Server("elasticsearch", version["number"], url)
    raise NoServerError(f"{_without_login(url)} is neither OpenSearch nor Elasticsearch: {status} {str(answer)[:80]}")


def _without_login(url: str) -> str:
    return url.rpartition("@")[2]


def is_required() -> bool:
    """Return whether a missing server is a failure."""
    return os.environ.get(REQUIRED) == "1"


class Servers:
    """The servers of one test session: each started, or looked for, when it is first asked for."""

    def __init__(self) -> None:
        self._found: dict[str, Server | NoServerError] = {}
        self._started: list[EmbeddedServer] = []

    def get(self, product: str) -> Server:
        """Return the session's server of that product, or raise NoServerError, without a second attempt."""
        if product not in self._found:
            try:
                self._found[product] = self._find(product)
            except NoServerError as error:
                self._found[product] = error
        found = self._found[product]
        if isinstance(found, NoServerError):
            raise found
        return found

    def close(self) -> None:
        """Stop the embedded servers."""
        for server in self._started:
            server.close()
        self._started.clear()
        self._found.clear()

    def describe(self, product: str) -> str:
        """Return what tests of *product* run on, without starting anything."""
        if os.environ.get(URLS):
            try:
                server = self.get(product)
            except NoServerError as error:
                return f"none ({error})"
            return f"{server.version} at {_without_login(server.url)}"
        return f"{_embedded_version(product) or 'newest pinned'}, embedded"

    def _find(self, product: str) -> Server:
        urls = [url.strip().rstrip("/") for url in os.environ.get(URLS, "").split(",") if url.strip()]
        if urls:
            found = [server for server in map(detect, urls) if server.product == product]
            if len(found) != 1:
                raise NoServerError(f"{URLS} names {len(found)} {product} servers: name one")
            return found[0]
        version = _embedded_version(product)
        try:
            # The newest OpenSearch has one more module, for tests of search pipelines.
            is_plain = product != "opensearch" or version is not None
            heap = os.environ.get(HEAP, "512m")
            server = (
                EmbeddedServer(product, version=version, heap=heap)
                if is_plain
                else PluginServer("search-pipeline-common", heap=heap)
            )
            self._started.append(server)
            server.start()
        except (EmbeddedServerError, MissingDependencyError) as error:
            raise NoServerError(str(error)) from error
        return Server.of(server)


class StartedServers(Servers):
    """The servers of the process that leads parallel test workers: started at once, and written down in *folder*."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._threads = [threading.Thread(target=self._write_down, args=(folder, product)) for product in PRODUCTS]
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Stop the servers, also one that is still starting."""
        for thread in self._threads:
            thread.join()
        super().close()

    def _write_down(self, folder: Path, product: str) -> None:
        try:
            answer = {"server": asdict(self.get(product))}
        except NoServerError as error:
            answer = {"absent": str(error)}
        except Exception as error:
            answer = {"absent": repr(error)}
            raise
        finally:
            partial = folder / f"{product}.partial"
            partial.write_text(json.dumps(answer), "utf-8")
            partial.replace(folder / f"{product}.json")


class SharedServers(Servers):
    """The servers of a parallel test worker: those that :class:`StartedServers` wrote down in *folder*."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder

    def _find(self, product: str) -> Server:
        file = self._folder / f"{product}.json"
        deadline = time.monotonic() + START_SECONDS
        while not file.exists():
            if time.monotonic() > deadline:
                raise NoServerError(f"{product} did not start within {START_SECONDS} seconds")
            time.sleep(0.1)
        answer = json.loads(file.read_text("utf-8"))
        if "absent" in answer:
            raise NoServerError(answer["absent"])
        return Server(**answer["server"])


def _embedded_version(product: str) -> str | None:
    wanted = dict(entry.split("-", 1) for entry in os.environ.get(VERSIONS, "").replace(" ", "").split(",") if entry)
    return wanted.get(product)


# Where pytest's configuration keeps the servers of the session.
SERVERS = pytest.StashKey[Servers]()
