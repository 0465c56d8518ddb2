"""How the commands reach a server: URL, login and product; a login is never shown."""

import json
import socket
import traceback

import elasticsearch
import opensearchpy
import pytest

from es_simhash import SimHashClient
from es_simhash.cli.connect import find_server
from es_simhash.cli.options import To
from es_simhash.connection import Server, open_client
from tests.servers.canned import answering
from tests.servers.command_line import TEXT, failed

BOTH = pytest.mark.parametrize("server", ["elasticsearch", "opensearch"], indirect=True)


@BOTH
def test_the_product_is_told_without_cluster_rights(run, news, server, monkeypatch):
    """Detection and what is said agree; the client notices the wrong product, or path, and there is no traceback."""
    for product in ("auto", server.product):
        monkeypatch.setenv("ES_SIMHASH_PRODUCT", product)
        assert run("check", news).exit_code == 0
        failed(run("check", news, "--url", f"{server.url}/{news}"), f"/{news}", "does not know this path", "URL")
    if server.product == "opensearch":
        monkeypatch.setenv("ES_SIMHASH_PRODUCT", "elasticsearch")
        failed(run("check", news), "ES_SIMHASH_PRODUCT")


def test_server_down(run, index, monkeypatch, tmp_path):
    report = tmp_path / "report"
    report.write_text("earlier")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
        failed(run("find", index, TEXT, "--url", url), f"cannot reach {url}", "ES_SIMHASH_URL")
        monkeypatch.setenv("ES_SIMHASH_PRODUCT", "opensearch")
        failed(run("find", index, TEXT, "--url", url), f"cannot reach {url}")
        lines = json.dumps({"body": TEXT})
        failed(run("ingest", index, "-", "--report", report, "--url", url, stdin=lines), f"cannot reach {url}")
    assert report.read_text() == "earlier"


PRODUCTS = ("auto", "opensearch", "elasticsearch")


def test_another_kind_of_server(run, index, server, monkeypatch):
    """A page, a redirect, an answer that breaks off, and TLS where there is none: each in its own words."""

    def said(url, product):
        monkeypatch.setenv("ES_SIMHASH_PRODUCT", product)
        return failed(run("find", index, TEXT, "--url", url), url)

    for answer, words in {
        b"": "it is no search server",
        b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\n<html>": "not as a search server does",
        b"HTTP/1.1 301 Moved\r\nLocation: https://x/\r\nContent-Length: 0\r\n\r\n": "sends to another address (301)",
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{": "middle of an answer",
    }.items():
        with answering(answer) as url:
            assert words in said(url, PRODUCTS[1])
    for product in PRODUCTS:
        line = said(server.url.replace("http://", "https://"), product)
        assert "does not speak TLS: give a URL that begins with http://" in line
        assert "certificate" not in line


def test_an_index_that_is_not_there(run, news):
    failed(run("find", "zzzz", TEXT), "check the name, or create the index")
    failed(run("groups", news, "--pairs", "--against", "zzzz"), "[zzzz]: check the name, or create the index")
    passages = "has no passages: add them with es-simhash create INDEX --existing --yes --passages, and fill them with"
    failed(run("passages", news, TEXT), passages)


@BOTH
def test_a_login_in_the_url_is_never_shown(run, news, server, monkeypatch):
    url = server.url.replace("://", "://elastic:hunter%232@")
    assert json.loads(run("check", news, "--url", url, "--json").stdout)["indices"][0]["ready"]
    down = run("find", news, TEXT, "--url", "http://elastic:hunter2@127.0.0.1:1")
    failed(down, "cannot reach http://127.0.0.1:1")
    monkeypatch.setenv("ES_SIMHASH_DEBUG", "1")
    with pytest.raises(Exception, match="no such index") as debug:
        run("find", f"{news}-no", TEXT, "--url", url)
    shown = "".join(traceback.format_exception(debug.value)) + repr(debug.value)
    for text in (down.output, shown):
        assert text
        assert "hunter" not in text
        assert "aHVudGVy" not in text


def test_the_login_of_the_environment_goes_before_that_of_the_url(monkeypatch):
    to = To(url="http://elastic:hunter%232@host")
    assert (find_server(to)[1].user, find_server(to)[1].password) == ("elastic", "hunter#2")
    monkeypatch.setenv("ES_SIMHASH_USER", "me")
    monkeypatch.setenv("ES_SIMHASH_PASSWORD", "own")
    assert (find_server(to)[1].user, find_server(to)[1].password) == ("me", "own")


def test_no_representation_of_a_client_has_its_password():
    """Neither ours nor that of a connection, whatever the client library prints of itself."""
    for library in (elasticsearch.Elasticsearch, opensearchpy.OpenSearch):
        with library(["http://elastic:hunter2@127.0.0.1:9200"]) as client:
            assert "hunter2" not in repr(SimHashClient(client))


def test_a_parameter_in_a_url_is_refused(run, index, server):
    """No request would carry it; and it may be a key, so it is not shown."""
    for end in ("?apikey=s3cr3t", "/?apikey=s3cr3t", "#s3cr3t"):
        assert "s3cr3t" not in failed(run("check", index, "--url", server.url + end), "has a parameter")


@pytest.mark.parametrize(("product", "library"), [("elasticsearch", elasticsearch), ("opensearch", opensearchpy)])
def test_the_timeout_is_that_of_each_request(monkeypatch, product, library):
    given = {}
    monkeypatch.setattr(
        library, "Elasticsearch" if library is elasticsearch else "OpenSearch", lambda _, **of: given.update(of)
    )
    open_client(Server("http://localhost:9200", product=product, timeout_seconds=7), {}, "news")
    assert 7 in given.values()


def test_logins_that_cannot_be(run, index, monkeypatch):
    """Half a login, or two, are refused before anything is sent."""
    monkeypatch.setenv("ES_SIMHASH_USER", "u")
    failed(run("check", index), "ES_SIMHASH_PASSWORD")
    monkeypatch.setenv("ES_SIMHASH_API_KEY", "k")
    failed(run("check", index), "unset one of them")
    for odd in ("k\n", "i:k\n", "\u00e9"):
        monkeypatch.setenv("ES_SIMHASH_API_KEY", odd)
        failed(run("check", index), "has characters that no API key has")
    monkeypatch.delenv("ES_SIMHASH_USER")
    monkeypatch.setenv("ES_SIMHASH_API_KEY", "k")
    monkeypatch.setenv("ES_SIMHASH_CA_FILE", "/no/such/file")
    failed(run("check", index), "ES_SIMHASH_CA_FILE")
