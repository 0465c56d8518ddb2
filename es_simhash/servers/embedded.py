"""
One embedded server: a node in a separate process, from start to clean-up.

The process ends with the one that started it, listens on the loopback interface only, and keeps everything in one
folder. ``launch`` decides what the node is made of.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any

from es_simhash.errors import EmbeddedServerError
from es_simhash.servers.artifacts import load_release, require
from es_simhash.servers.launch import (
    check_port,
    check_settings,
    child_config,
    choose_java,
    port_range,
    prepare_home,
    read_port,
)

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping
    from typing import Self

CHILD = Path(__file__).with_name("child.py")
STOP_SECONDS = 20.0


LOG_LINES_IN_ERRORS = 20
POLL_SECONDS = 0.1
HEALTH_SECONDS = 10.0


class EmbeddedServer:
    """
    One node in a separate process, made by :func:`embedded_server`; a context manager that closes it.
    A subclass may start another kind of node: it overrides :meth:`configuration`, and :meth:`connection` if the node is
    not reached by plain HTTP. *data*: the folder of everything that the node writes; by default a temporary one,
    removed when the server is closed. *port*, *transport_port*: on 127.0.0.1, for HTTP and for other nodes; the same
    after a restart, and 0 (a free one) until the first start if none was given.
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
        name: str = "node-1",
        timeout_seconds: float = 180.0,
    ) -> None:
        self._release = load_release(product, version)
        self._settings = check_settings(settings)
        self._java = choose_java(self._release)
        require("jpype")
        self._heap = heap
        self._timeout_seconds = timeout_seconds
        self._temporary = data is None
        self._process: subprocess.Popen[bytes] | None = None
        self.transport_port = 0
        self.product = self._release.product
        self.version = self._release.version
        self.name = name
        self.port = port
        self.data = Path(tempfile.mkdtemp(prefix="es-simhash-") if data is None else data).absolute()
        self.log_path = self.data / "logs" / "server.log"

    @property
    def url(self) -> str:
        """Where the server answers, ``"http://127.0.0.1:PORT"``."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """Process id of the running server; EmbeddedServerError if it is not running."""
        if self._process is None:
            raise EmbeddedServerError(f"{self} is not running: start it first")
        return self._process.pid

    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def configuration(self) -> dict[str, Any]:
        """Return the configuration of the child process: class path, plugins, options of the JVM and node settings."""
        own = {
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
        """Return an HTTP connection to the running server, and the headers that each request needs."""
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=HEALTH_SECONDS), {}

    def health(self, *, nodes: int = 1) -> str | None:
        """Return ``"green"``, ``"yellow"`` or ``"red"``; ``None`` without an answer, or with fewer *nodes*."""
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

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> None:
        """
        Start the server, on the data and port it had before, and return when it answers, after some 5 seconds.
        If it does not start, the error says why, and a note has the end of its log.
        """
        if self.is_running():
            return
        self.kill()  # it ended by itself
        check_port(self.port)
        prepare_home(self.data, self._release)
        config = {**self.configuration(), "remove_when_orphaned": self._temporary}
        deadline = time.monotonic() + self._timeout_seconds
        try:
            self._begin(config, deadline)
            self.port = read_port(self.data, "http")
            self.transport_port = read_port(self.data, "transport")
            self._await_health(deadline)
        except (EmbeddedServerError, TimeoutError) as error:
            self.kill()
            raise self._failure(str(error) or f"was not ready within {self._timeout_seconds:g} seconds") from None
        except BaseException:
            self.kill()
            raise

    def _begin(self, config: dict[str, Any], deadline: float) -> None:
        """
        Begin the child process, and return when its node is ready; what it prints is appended to the log.
        If the node reports an error or ends, EmbeddedServerError is raised, whose message continues the server's name.
        """
        with self.log_path.open("ab") as log:
            self._process = process = subprocess.Popen(  # noqa: S603 - our own interpreter and our own file
                [sys.executable, "-P", str(CHILD)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                # Ctrl-C in a terminal is for the parent, which then stops the server in an orderly way.
                start_new_session=True,
            )
        assert process.stdin is not None  # noqa: S101 - for the type checker: it was asked for above
        assert process.stdout is not None  # noqa: S101
        with contextlib.suppress(BrokenPipeError):  # it ended at once, which is seen below
            process.stdin.write(json.dumps(config).encode() + b"\n")
            process.stdin.flush()
        if not select.select([process.stdout], [], [], max(0.0, deadline - time.monotonic()))[0]:
            raise TimeoutError
        line = process.stdout.readline()
        if not line:
            raise EmbeddedServerError(f"ended while it started (exit code {process.wait()})")
        report = json.loads(line)
        if "error" in report:
            raise EmbeddedServerError(f"did not start: {report['error']}")

    def stop(self) -> None:
        """Stop the server in an orderly way and keep its data; after 20 seconds, kill it."""
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired, BrokenPipeError):
                self._process.communicate(b"end\n", STOP_SECONDS)
            self.kill()

    def kill(self) -> None:
        """End the server as a crash would (SIGKILL), and keep its data."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            with contextlib.suppress(BrokenPipeError):  # what it did not read is still to be written
                process.communicate()

    def close(self) -> None:
        """Stop the server and, if its folder was a temporary one, remove that."""
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


def embedded_server(product: str = "opensearch", **options: Any) -> EmbeddedServer:
    """
    Start a real server and return it, ready to answer; as a context manager it is closed at the end.
    *options*: of :class:`EmbeddedServer`. The first start downloads 60 MB (OpenSearch) or 45 MB (Elasticsearch) into
    the local Maven repository; every start verifies the files against the checksums in es_simhash and takes some 5
    seconds on two cores.
    """
    server = EmbeddedServer(product, **options)
    try:
        server.start()
    except BaseException:
        server.close()
        raise
    return server
