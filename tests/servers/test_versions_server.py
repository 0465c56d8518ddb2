"""Clients and servers of different major versions, where that is known not to work."""

from __future__ import annotations

import elasticsearch
import pytest
from click.testing import CliRunner

from es_simhash import SimHashClient
from es_simhash.cli import app
from es_simhash.errors import EmbeddedServerError
from es_simhash.servers import embedded_server
from tests.servers.servers import is_required

OLDER = "8.19.21"


@pytest.fixture
def older():
    """An Elasticsearch of the major version before the client's."""
    if elasticsearch.__version__[0] < 9:
        pytest.skip("needs elasticsearch-py 9 or newer")
    try:
        server = embedded_server("elasticsearch", version=OLDER)
    except EmbeddedServerError as error:
        if "JDK" in str(error) and not is_required():
            pytest.skip(str(error))
        raise
    with server:
        yield server


@pytest.mark.faults
def test_elasticsearch_8_refuses_a_client_for_9(older, monkeypatch):
    """The library passes the client's 400 on; the command line names the client to install, in one line."""
    with elasticsearch.Elasticsearch(older.url) as client, pytest.raises(elasticsearch.BadRequestError) as caught:
        SimHashClient(client, scheme="shingles").find_near_dups("news", fingerprint=7)
    assert "media_type_header_exception" in str(caught.value)
    monkeypatch.setenv("ES_SIMHASH_URL", older.url)
    for command in (["find", "news", "a text"], ["check", "news"], ["create", "news", "--text-field", "body"]):
        result = CliRunner().invoke(app, command)
        assert result.exit_code == 1, result.output
        [line] = result.stderr.splitlines()
        assert line.startswith("error: ")
        assert "pip install 'elasticsearch>=8.12,<9'" in line
