"""Ctrl-C and SIGTERM in the middle of each command that writes: what is said, and that the command named goes on."""

import json
import shlex
import signal
import subprocess
import sys

import pytest

from es_simhash import fingerprint, fingerprint_fields
from tests.server.proxy import signalling_proxy
from tests.server.support import read_all, send_lines
from tests.server.test_restore import delete, write_archive

PROGRAM = [sys.executable, "-m", "es_simhash"]
TEXT = "The council approved the new bridge over the river on Tuesday after a long debate about its cost."
CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}


def stop(server, word, number, sent, *arguments):
    """
    Run a command that gets the signal *sent* after the request *number* whose path has *word*; return what it said and
    the command that it named, for the server itself.
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
    ("arguments", "sent", "said"),
    [
        (["reconcile", "-d", "3"], signal.SIGINT, "500 documents were rewritten"),
        (["dedupe", "-d", "3", "--yes"], signal.SIGTERM, None),
        (["remove", "--yes"], signal.SIGINT, "our fields were removed from"),
        (["backfill", "-t", "body", "--scheme", "words", "--prefix", "words_hash"], signal.SIGTERM, None),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else None,
)
def test_a_command_that_is_stopped_says_how_to_go_on(server, filled, run, arguments, sent, said):
    """At its second bulk request; what it names, run again, completes the work."""
    name, *options = arguments
    message, again = stop(server, "_bulk", 2, sent, name, filled, *options)
    assert said is None or said in message
    assert again[:2] == [name, filled]
    result = run(*again)
    assert result.exit_code == 0, result.output
    found = read_all(server, filled)
    assert len(found) == 1100
    owns = [source.get("words_hash" if name == "backfill" else "simhash") for source in found.values()]
    if name == "remove":
        assert owns == [None] * 1100
    elif name == "backfill":
        assert len({own["fingerprint"] for own in owns}) == 1
    else:
        assert {own["group"] for own in owns} == {"0000"}


def test_a_restore_that_is_stopped(server, filled, run, tmp_path):
    """After its first batch; the same command then brings the rest back."""
    source = json.dumps({"body": TEXT, **fingerprint_fields(fingerprint(TEXT))})
    names = [f"{number:04}" for number in range(700)]
    path = write_archive(tmp_path / "removed.jsonl.gz", [(filled, name, None, source, "0700") for name in names])
    delete(server, filled, names)
    said, again = stop(server, "_bulk", 2, signal.SIGINT, "restore", str(path))
    assert "500 restored" in said
    result = run(*again)
    assert result.exit_code == 0, result.output
    assert len(read_all(server, filled)) == 1100
