"""``es-simhash follow`` as a process that is stopped."""

import json
import signal
import subprocess

from tests.servers.command_line import PROGRAM
from tests.servers.proxy import signalling_proxy
from tests.servers.support import assert_all_right, numbered, put, read_all, texts


def test_a_signal_while_it_writes(server, index, run):
    """The batch is finished and the position recorded; its numbers are lines of JSON."""
    assert run("create", index, "-t", "body").exit_code == 0
    put(server, index, numbered(texts(10)))
    command = [*PROGRAM, "follow", index, "--state-index", f"{index}-state", "--interval", "0.1", "--metrics", "0.01"]
    with (
        signalling_proxy(server.url, "_bulk", 1, signal.SIGINT) as proxy,
        subprocess.Popen([*command, "--url", proxy.url], stdout=subprocess.PIPE, text=True) as process,
    ):
        proxy.pid = process.pid
        proxy.began.set()
        output, _ = process.communicate(timeout=300)
    assert (process.returncode, json.loads(output.splitlines()[-1])["written"]) == (0, 10)
    assert_all_right(read_all(server, index))
    [state] = read_all(server, f"{index}-state").values()
    assert [place["read"] for place in state["position"]["places"]] == [9]
