"""What tests of the command line share: the program, documents, and the one line that says what went wrong."""

from __future__ import annotations

import io
import signal
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from unittest.mock import patch

from es_simhash.cli.app import STDIN, make_app, run
from es_simhash.cli.show import Output
from tests.servers.proxy import signalling_proxy

PROGRAM = [sys.executable, "-m", "es_simhash"]
CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}

TEXT = "The council approved the new bridge over the river on Tuesday after a long debate about its cost"
NEAR = f"{TEXT} and its height."
OTHER = "Rain is expected in the north, with strong winds along the coast until Friday evening."


def parse(words: list[str]) -> dict[str, object]:
    """Return what a command line gives its command; one that cannot be parsed is an error."""
    words = [STDIN if word == "-" else word for word in words if word != "--json"]
    _, bound, _ = make_app().parse_args(words)
    return dict(bound.arguments)


@dataclass
class Result:
    """What a command line printed, and how it ended."""

    exit_code: int
    stdout: str
    stderr: str

    @property
    def output(self) -> str:
        return self.stdout + self.stderr


def invoke(arguments: list[object], stdin: str | bytes | None = None) -> Result:
    """Run a command line in this process."""
    given = stdin.encode() if isinstance(stdin, str) else stdin or b""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", "backslashreplace", newline="") for _ in range(2))
    with patch("sys.stdin", io.TextIOWrapper(io.BytesIO(given), "utf-8")), redirect_stdout(out), redirect_stderr(err):
        code = run([str(argument) for argument in arguments])
    Output.as_json = Output.says_json = False
    texts = []
    for stream in (out, err):
        stream.flush()
        texts.append(stream.buffer.getvalue().decode())
    return Result(code, *texts)


def failed(result, *parts):
    """Check that a command failed with one line on stderr that has all *parts* in it, and return the line."""
    assert result.exit_code == 1, result.output
    [line] = [line for line in result.stderr.splitlines() if not line.startswith("created ")]
    assert line.startswith("error: ")
    for part in parts:
        assert part in line
    return line


def stop(server, word, number, sent, *arguments):
    """
    Run a command that gets the signal *sent* after the request *number* whose path has *word*.
    Return what it said at last.
    """
    with signalling_proxy(server.url, word, number, sent) as proxy:
        command = [*PROGRAM, *arguments, "--url", proxy.url.replace("://", "://somebody:secret@")]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            proxy.pid = process.pid
            proxy.began.set()
            output, message = process.communicate(timeout=300)
        assert proxy.seen >= number, message
    assert process.returncode == CODES[sent], output + message
    assert "Traceback" not in message
    assert "secret" not in message
    said = message.splitlines()[-1]
    assert said.startswith("stopped: ")
    assert "run it again" in said
    return said
