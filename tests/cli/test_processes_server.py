"""The command line as a process: closed pipes, signals, and a served server."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.servers.command_line import PROGRAM, TEXT
from tests.servers.fixtures import get_server
from tests.servers.servers import PRODUCTS, Server
from tests.servers.support import ROUNDS


def test_a_closed_pipe_is_quiet(news, server, tmp_path):
    """A reader that has seen enough is no error, and nothing is printed about it."""
    (tmp_path / "many.jsonl").write_text((json.dumps(TEXT) + "\n") * 3000)
    command = [*PROGRAM, "find", news, "--input", str(tmp_path / "many.jsonl"), "--url", server.url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


def test_ctrl_c_is_quiet(news, server):
    """An interrupt ends with 130, without a traceback, and says how far it came."""
    command = [*PROGRAM, "ingest", news, "-", "--url", server.url]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        for _ in range(1200):
            process.stdin.write(json.dumps({"body": TEXT}).encode() + b"\n")
        process.stdin.flush()
        while server.request("GET", f"/{news}/_count")["count"] < 3 or not _has_started(server, news):
            pass
        process.send_signal(signal.SIGINT)
        process.stdin.close()
        message = process.stderr.read().decode()
    assert process.returncode == 130
    assert "Traceback" not in message


def _has_started(server, index):
    server.request("POST", f"/{index}/_refresh")
    return server.request("GET", f"/{index}/_count")["count"] > 3


# Of OpenSearch, test_data_and_port_outlive_stop_and_kill shows in `make test` that data outlive a stop.
@pytest.mark.faults
@pytest.mark.parametrize("product", PRODUCTS[-1 - (ROUNDS > 2) :])
def test_serve_keeps_its_data(request, product, tmp_path):
    """A document written to a served server is there after it was stopped and started again."""
    if get_server(request, product).pid is None:
        pytest.skip("needs the embedded servers")
    command = [*PROGRAM, "serve", "--product", product, "--data", str(tmp_path / "data"), "--port", "0"]
    for expected in ([], [{"n": 1}]):
        with subprocess.Popen(
            [*command, "--heap", "512m", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ
        ) as process:
            try:
                served = Server(product, "", json.loads(process.stdout.readline())["url"])
                found = served.request("POST", "/kept/_search?ignore_unavailable=true")["hits"]["hits"]
                assert [hit["_source"] for hit in found] == expected
                served.request("PUT", "/kept/_doc/1?refresh=true", {"n": 1})
            finally:
                process.send_signal(signal.SIGINT)
                message = process.stderr.read().decode()
        assert process.returncode == 0, message
        assert "stopped; the data are kept" in message
    assert Path(tmp_path / "data").is_dir()
