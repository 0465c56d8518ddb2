"""Every example in docs/removal.md runs, on both products."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.blocks import blocks, run
from tests.server.conftest import get_server


@pytest.fixture(params=["opensearch", "elasticsearch"])
def server(request, tmp_path, monkeypatch):
    """A server without an index of the examples, in a folder of the test's own."""
    server = get_server(request, request.param)
    monkeypatch.chdir(tmp_path)
    server.remove("news")
    yield server
    server.remove("news")


def test_the_examples(server):
    """The Python blocks in order, in one namespace; then the commands, on an index that is ten times as large."""
    namespace = {"__name__": "removal"}
    try:
        for block in blocks("docs/removal.md", "python"):
            code = block.replace("http://localhost:9200", server.url)
            if server.product == "opensearch":
                code = code.replace("from elasticsearch import Elasticsearch", "from opensearchpy import OpenSearch")
                code = code.replace("Elasticsearch(", "OpenSearch(")
            run(code, namespace)
        documents = [{"_id": f"n{n}", "body": f"{n} " * 20 + chr(97 + n) * 9} for n in range(9)]
        documents.append({"_id": "z", "body": namespace["text"] + "!"})
        list(namespace["simhash"].ingest("news", documents))
    finally:
        if "client" in namespace:
            namespace["client"].close()
    Path("removed.jsonl.gz").unlink()
    environment = {**os.environ, "ES_SIMHASH_URL": server.url}
    lines = [line for block in blocks("docs/removal.md", "sh") for line in block.splitlines()]
    commands = [line for line in lines if line.startswith("es-simhash ")]
    assert len(commands) >= 3
    printed = []
    for line in commands:
        command = [sys.executable, "-m", "es_simhash", *shlex.split(line)[1:]]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (line, done.stderr)
        printed.append(done.stdout)
    assert any("1 document" in each for each in printed)
