"""
The process of one node: started with a configuration, waited for, stopped and killed.

Knows the protocol of ``child.py``, and nothing of HTTP, ports or releases.
"""

from __future__ import annotations

import json
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from es_simhash.errors import EmbeddedServerError

CHILD = Path(__file__).with_name("child.py")
STOP_SECONDS = 20.0


class NodeProcess:
    """
    A running child process.

    Args:
        config:
            The configuration of the node, as ``launch.py`` makes it.
        log_path:
            The file that everything the process prints is appended to.
    """

    def __init__(self, config: dict[str, Any], *, log_path: Path) -> None:
        with log_path.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and our own file
                [sys.executable, "-P", str(CHILD)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                # Ctrl-C in a terminal is for the parent, which then stops the server in an orderly way.
                start_new_session=True,
            )
        assert self._process.stdin is not None  # noqa: S101 - for the type checker: it was asked for above
        assert self._process.stdout is not None  # noqa: S101
        self._input, self._output = self._process.stdin, self._process.stdout
        self._input.write(json.dumps(config).encode() + b"\n")
        self._input.flush()

    @property
    def pid(self) -> int:
        """
        The id of the process.
        """
        return self._process.pid

    def is_running(self) -> bool:
        """
        Return whether the process is alive.
        """
        return self._process.poll() is None

    def await_report(self, deadline: float) -> None:
        """
        Return when the node reports that it is ready.

        Args:
            deadline:
                When to give up, by ``time.monotonic()``.

        Raises:
            TimeoutError: If it is not ready in time.
            EmbeddedServerError: If the node reports an error, or the process ends; the message is the end of a sentence
                that begins with the server's name.
        """
        readable, _, _ = select.select([self._output], [], [], max(0.0, deadline - time.monotonic()))
        if not readable:
            raise TimeoutError
        line = self._output.readline()
        if not line:
            raise EmbeddedServerError(f"ended while it started (exit code {self._process.wait()})")
        report = json.loads(line)
        if "error" in report:
            raise EmbeddedServerError(f"did not start: {report['error']}")

    def stop(self) -> None:
        """
        Ask the process to end, and kill it after 20 seconds.
        """
        self._input.close()  # the child takes the end of its input as the request to end
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self.release()

    def kill(self) -> None:
        """
        End the process as a crash would (SIGKILL).
        """
        self._process.kill()
        self.release()

    def release(self) -> None:
        """
        Wait for the end of the process, and close its pipes.
        """
        self._process.wait()
        self._input.close()
        self._output.close()
