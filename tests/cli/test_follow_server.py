"""``es-simhash follow`` as a process: signals, a successor, an outage, and its numbers."""

import json
import signal
import subprocess

import pytest

from tests.servers.command_line import PROGRAM
from tests.servers.proxy import signalling_proxy
from tests.servers.support import assert_all_right, numbered, put, read_all, texts


@pytest.fixture
def follow(server, index, run):
    """Return a function that starts a follower of an index with ten documents; all of them are killed at the end."""
    assert run("create", index, "-t", "body").exit_code == 0
    put(server, index, numbered(texts(10)))
    started = []

    def start(*options, url=server.url):
        command = [*PROGRAM, "follow", index, "--state-index", f"{index}-state", "--interval", "0.1"]
        command += ["--metrics", "0.01", "--url", url, *options]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def line_of(process, **wanted):
    """Return the first line of numbers with these values; it fails if the process ends before."""
    for line in process.stdout:
        numbers = json.loads(line)
        if all(numbers[name] == value for name, value in wanted.items()):
            return numbers
    raise AssertionError(process.stderr.read())


def test_a_successor_takes_over_from_one_that_was_killed(server, index, follow, sync_simhash):
    first = follow()
    line_of(first, state="waiting", written=10)
    first.kill()
    put(server, index, [{"_id": "late", "body": texts(1, seed=9)[0]}])
    second = sync_simhash.follow(index, state_index=f"{index}-state", interval=0.1)
    report = next(each for each in second if each.state == "waiting")
    second.close()
    assert (report.written, report.errors) == (1, {})
    assert_all_right(read_all(server, index))


def test_a_signal_while_it_writes(server, index, follow):
    """The batch is finished and the position recorded."""
    with signalling_proxy(server.url, "_bulk", 1, signal.SIGINT) as proxy:
        process = follow(url=proxy.url)
        proxy.pid = process.pid
        proxy.began.set()
        process.communicate(timeout=60)
    assert process.returncode == 0
    assert_all_right(read_all(server, index))
    [state] = read_all(server, f"{index}-state").values()
    assert [place["read"] for place in state["position"]["places"]] == [9]
