"""What tests of the command line share: the program, documents, and the one line that says what went wrong."""

from __future__ import annotations

import shlex
import signal
import subprocess
import sys

from tests.servers.proxy import signalling_proxy

PROGRAM = [sys.executable, "-m", "es_simhash"]
CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}

TEXT = "The council approved the new bridge over the river on Tuesday after a long debate about its cost."
NEAR = TEXT.replace("cost", "cost and its height")
OTHER = "Rain is expected in the north, with strong winds along the coast until Friday evening."


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
    Return what it said, and the command that it named, for the server itself.
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
    said, how = message.splitlines()[-2:]
    assert said.startswith("stopped")
    assert how.startswith("to go on: es-simhash ")
    again = shlex.split(how.removeprefix("to go on: "))[1:]
    return said, ["--url" if each == "--url" else server.url if each == proxy.url else each for each in again]
