"""The command line as a process: Ctrl-C and SIGTERM while it writes, how it goes on, closed pipes."""

import json
import signal
import subprocess

import pytest

from es_simhash import fingerprint, fingerprint_fields
from tests.servers.command_line import PROGRAM, TEXT, stop
from tests.servers.proxy import signalling_proxy
from tests.servers.support import assert_all_right, numbered, put, read_all, send_lines, texts


@pytest.fixture
def filled(server, index, run):
    """An index of 1,100 documents with fingerprints, all copies of one text, without groups."""
    result = run("create", index, "-t", "body")
    assert result.exit_code == 0, result.output
    own = fingerprint_fields(fingerprint(TEXT))
    lines = []
    for number in range(1100):
        lines += [{"index": {"_index": index, "_id": f"{number:04}"}}, {"body": TEXT, **own}]
    send_lines(server, lines)
    return index


@pytest.mark.parametrize(
    ("server", "arguments", "sent", "said"),
    [
        ("opensearch", ["reconcile", "-d", "3"], signal.SIGINT, "1,000 documents were rewritten"),
        # It has no scripts: its second bulk does the first 500 again.
        (
            "elasticsearch",
            ["remove-fields", "--yes"],
            signal.SIGTERM,
            "our fields were removed from 0 documents; up to 500 more operations were sent",
        ),
    ],
    indirect=["server"],
    ids=lambda value: value[0] if isinstance(value, list) else None,
)
def test_a_command_that_is_stopped_says_how_to_go_on(server, filled, run, arguments, sent, said):
    """At its second bulk request; run again, it completes the work."""
    name, *options = arguments
    message = stop(server, "_bulk", 2, sent, name, filled, *options)
    assert said in message
    result = run(name, filled, *options)
    assert result.exit_code == 0, result.output
    found = read_all(server, filled)
    assert len(found) == 1100
    owns = [source.get("simhash") for source in found.values()]
    if name == "remove-fields":
        assert owns == [None] * 1100
    else:
        assert {own["group"] for own in owns} == {"0000"}


def test_a_removal_that_is_stopped(server, filled, run, tmp_path):
    """It says how many documents are gone, also of the batch under way; the same command removes the others."""
    plan = tmp_path / "removal.db"
    result = run("plan", filled, "--out", plan, "-d", "3", "--max-share", "1")
    assert result.exit_code == 0, result.output
    command = ("apply", str(plan), "--yes", "--large-groups")
    said = stop(server, "_bulk", 3, signal.SIGINT, *command)
    server.request("POST", f"/{filled}/_refresh")
    gone = 1100 - len(read_all(server, filled))
    # The first bulk request asks whether the login sees documents whole, and changes nothing.
    assert gone == 400
    assert said == f"stopped: {gone} documents were deleted, and {plan} has each of them; run it again"
    result = run(*command)
    assert result.exit_code == 0, result.output
    assert len(read_all(server, filled)) == 1


def test_a_follower_that_gets_a_signal_while_it_writes(server, index, run):
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


def test_a_closed_pipe_is_quiet(news, server, tmp_path):
    """A reader that has seen enough is no error, and nothing is printed about it."""
    (tmp_path / "many.jsonl").write_text((json.dumps(TEXT) + "\n") * 3000)
    command = [*PROGRAM, "find", news, "--input", str(tmp_path / "many.jsonl"), "--url", server.url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141
