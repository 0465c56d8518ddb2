"""Embedded servers as they are: started, stopped, killed, started wrongly, of an old version; and our fixtures."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import elasticsearch
import psutil
import pytest

from es_simhash import SimHashClient
from es_simhash.errors import EmbeddedServerError
from es_simhash.servers import child, embedded_server
from tests.servers.command_line import invoke
from tests.servers.servers import is_required
from tests.servers.support import ROUNDS

ENDING_SECONDS = 30


def start(product, **options):
    """Start a server of the test's own, or end the test as the fixtures do."""
    try:
        return embedded_server(product, **options)
    except EmbeddedServerError as error:
        if "JDK" in str(error) and not is_required():
            pytest.skip(str(error))
        raise


@pytest.mark.faults
def test_server_ends_with_its_killed_parent(tmp_path):
    """A parent that is killed leaves neither a process nor a temporary folder behind."""
    program = tmp_path / "parent.py"
    program.write_text(
        "import json, time\n"
        "from es_simhash.servers import embedded_server\n"
        "server = embedded_server('opensearch')\n"
        "print(json.dumps([server.pid, str(server.data)]), flush=True)\n"
        "time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, program], stdout=subprocess.PIPE) as parent:
        pid, data = json.loads(parent.stdout.readline())
        child = psutil.Process(pid)
        assert child.is_running()
        parent.send_signal(signal.SIGKILL)
    child.wait(ENDING_SECONDS)
    assert not Path(data).exists()


def test_the_pipe_tells_a_stop_from_the_end_of_the_parent(monkeypatch):
    """The system gives a child its new parent only after the pipe is closed."""
    for sent, is_orphaned in ((b"end\n", False), (b"", True)):
        reading, writing = os.pipe()
        os.write(writing, sent)
        os.close(writing)
        with os.fdopen(reading) as stdin:
            monkeypatch.setattr(sys, "stdin", stdin)
            assert child._wait_for_the_end(os.getppid()) is is_orphaned


def test_server_listens_on_loopback_only(server):
    """Every listening socket of an embedded server's process is bound to 127.0.0.1."""
    if server.pid is None:
        pytest.skip("not an embedded server")
    sockets = psutil.Process(server.pid).net_connections(kind="tcp")
    listening = {socket.laddr.ip.removeprefix("::ffff:") for socket in sockets if socket.status == psutil.CONN_LISTEN}
    assert listening == {"127.0.0.1"}


def test_unknown_setting_is_named_on_one_line(tmp_path):
    """A setting that the server refuses gives one line that names it, and the end of the log as a note."""
    with pytest.raises(EmbeddedServerError) as caught:
        start("opensearch", data=tmp_path, settings={"no.such.setting": 1})
    assert "unknown setting [no.such.setting]" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert any("no.such.setting" in note for note in caught.value.__notes__)


OLDER = "8.19.21"


@pytest.fixture
def older():
    """An Elasticsearch of the major version before the client's."""
    if elasticsearch.__version__[0] < 9:
        pytest.skip("needs elasticsearch-py 9 or newer")
    with start("elasticsearch", version=OLDER) as server:
        yield server


@pytest.mark.faults
@pytest.mark.skipif(ROUNDS == 1, reason="starts another server: make faults does")
def test_elasticsearch_8_refuses_a_client_for_9(older, monkeypatch):
    """The library passes the client's 400 on; the command line names the client to install, in one line."""
    with elasticsearch.Elasticsearch(older.url) as client, pytest.raises(elasticsearch.BadRequestError) as caught:
        SimHashClient(client, scheme="shingles").find_near_dups("news", fingerprint=7)
    assert "media_type_header_exception" in str(caught.value)
    monkeypatch.setenv("ES_SIMHASH_URL", older.url)
    for command in (["find", "news", "a text"], ["check", "news"], ["create", "news", "--text-field", "body"]):
        result = invoke(command)
        assert result.exit_code == 1, result.output
        [line] = result.stderr.splitlines()
        assert line.startswith("error: ")
        assert "pip install 'elasticsearch>=8.12,<9'" in line
