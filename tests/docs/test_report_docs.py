"""Every example in docs/report.md runs, on both products."""

import shlex

import pytest
from click.testing import CliRunner

from es_simhash.cli import app
from tests.docs.blocks import blocks, run
from tests.server.conftest import get_server


@pytest.fixture(params=["opensearch", "elasticsearch"])
def server(request, tmp_path, monkeypatch):
    """A server without an index of the examples, in a folder of the test's own."""
    pytest.importorskip("vl_convert")
    server = get_server(request, request.param)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ES_SIMHASH_URL", server.url)
    server.remove("news")
    yield server
    server.remove("news")


def test_the_examples(server):
    """The Python blocks in order, in one namespace; then the commands, with the fields that they name."""
    namespace = {"__name__": "report"}
    try:
        for block in blocks("docs/report.md", "python"):
            code = block.replace("http://localhost:9200", server.url)
            if server.product == "opensearch":
                code = code.replace("from elasticsearch import Elasticsearch", "from opensearchpy import OpenSearch")
                code = code.replace("Elasticsearch(", "OpenSearch(")
            run(code, namespace)
        more = {"published": {"type": "date"}, "agency": {"type": "keyword"}, "title": {"type": "text"}}
        namespace["client"].indices.put_mapping(index="news", body={"properties": more})
    finally:
        if "client" in namespace:
            namespace["client"].close()
    lines = [line for block in blocks("docs/report.md", "sh") for line in block.splitlines()]
    commands = [line for line in lines if line.startswith("es-simhash ")]
    assert len(commands) == 5
    for line in commands:
        done = CliRunner().invoke(app, shlex.split(line)[1:])
        assert done.exit_code == 0, (line, done.output)
