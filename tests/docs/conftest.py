"""A server for the examples of a page, in a folder of the test's own."""

import pytest

from tests.servers.fixtures import get_server


@pytest.fixture(params=["opensearch", "elasticsearch"])
def server(request, tmp_path, monkeypatch):
    """A server whose address the commands know; files of the examples go into a folder of the test's own."""
    server = get_server(request, request.param)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ES_SIMHASH_URL", server.url)
    return server
