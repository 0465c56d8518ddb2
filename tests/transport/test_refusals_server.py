"""The table of refusals against what real servers say."""

import json
import re
import socket

import pytest

from es_simhash.client.port import finish, port_of
from es_simhash.connection import Login, Server, hide_login, open_client
from es_simhash.transport import refusals
from es_simhash.transport.answers import find_gaps
from es_simhash.transport.conversation import attempt
from es_simhash.transport.pages import viewing
from es_simhash.transport.refusals import UNBLOCK
from es_simhash.transport.server_failures import describe_failure, is_of_client
from tests.servers.canned import answering, canned_server

SPOILING = [{"index": {"_index": "x", "_id": "a" * 513}}, {}]


def test_what_real_servers_say(server, index, sync_client):
    """The refusals that a server with its defaults can be made to give, each met by its row."""
    server.request("PUT", f"/{index}", {"mappings": {"_source": {"enabled": False}}})
    server.request("PUT", f"/{index}/_doc/1?refresh=true", {"body": "text"})
    port = port_of(sync_client)

    async def work():
        said = {
            "SPOILT": await attempt(port.bulk(body=SPOILING)),
            "NO_SOURCE": await attempt(port.search(index=index, body={"_source": ["body"], "stored_fields": ["body"]})),
        }
        async with viewing(port, index, 60) as view:
            pass
        said["VIEW_ENDED"] = await attempt(port.send(view.call({})))
        if server.product == "opensearch":  # Elasticsearch knows the order without a point in time, too
            said["NO_ORDER"] = await attempt(port.search(index=index, body={"sort": ["_shard_doc"]}))
        server.request("POST", f"/{index}/_close")
        said["CLOSED"] = await attempt(port.open_point_in_time(index=index, keep_alive="1s"))
        return said

    said = finish(work())
    for name, answer in said.items():
        refusal = answer if isinstance(answer, Exception) else find_gaps(answer)
        assert getattr(refusals, name).meets(refusal), (name, answer)


LOGIN = Login(user="me", password="hunter#2").headers  # noqa: S106 -- of nobody
KINDS = {
    "no handler found for uri": "no handler found for uri [/a/news/_mapping] and method [GET]",
    "all shards failed": "search_phase_execution_exception: all shards failed",
}
REFUSALS = [
    (301, "", "sends to another address (301): give that address by ES_SIMHASH_URL"),
    (400, "media_type_header_exception", "pip install 'elasticsearch>=8.12,<9'"),
    (400, "no handler found for uri", "leave out what follows its port in the URL"),
    (400, "index_closed_exception", "open the index (POST INDEX/_open), and run it again"),
    (400, "resource_already_exists_exception", "with setup(index)"),
    (403, "cluster_block_exception", UNBLOCK),
    (429, "cluster_block_exception", UNBLOCK),
    (401, "security_exception", "refuses the login (401): set ES_SIMHASH_USER"),
    (403, "security_exception", "does not allow this (403)"),
    (404, "index_not_found_exception", "check the name, or create the index"),
    (409, "version_conflict_engine_exception", "another program changed it at the same time; run it again"),
    (400, "illegal_argument_exception", "refused the request (400): "),
    (503, "all shards failed", "see which shards have no copy"),
    (429, "es_rejected_execution_exception", "cannot serve this now (429): "),
    (500, "null_pointer_exception", "cannot serve this now (500): "),
    (405, "method_not_allowed", "refused the request (405): "),
]


def described(product, url, timeout_seconds=20.0):
    """Return what is said of the failure of one request to *url*."""
    client, _ = open_client(Server(url, product, timeout_seconds=timeout_seconds), LOGIN, "news")
    try:
        with pytest.raises(Exception, match=r"(?s).*") as caught:
            client.indices.get_mapping(index="news")
    finally:
        client.close()
    assert is_of_client(caught.value)
    hide_login(caught.value, LOGIN)
    said = describe_failure(caught.value, url)
    assert not re.search(r"hunter|aHVudGVy|bWU6aHVudGVy", said)
    assert "\n" not in said
    return said


@pytest.mark.parametrize("product", ["elasticsearch", "opensearch"])
def test_a_refusal(product):
    """Of each status and kind, with what the server says, which repeats the login."""

    def refuse(_, headers):
        reason = f"{KINDS.get(kind, 'no')} {headers.get('authorization')}"
        error = {"type": kind, "reason": reason, "root_cause": [{"type": kind, "reason": reason}]}
        return json.dumps({"error": error, "status": status}).encode()

    with canned_server() as server:
        server.echoes = refuse
        for status, kind, words in REFUSALS:
            server.give(b"", status=status)
            said = described(product, server.url)
            assert words in said, kind
            assert server.url in said or "***" in said


@pytest.mark.parametrize("product", ["elasticsearch", "opensearch"])
def test_no_answer(product):
    """Nothing listens, what listens waits for ever, or it speaks no TLS."""
    with canned_server() as server:
        url = server.url
        assert "does not speak TLS: give a URL that begins with http://" in described(product, f"https{url[4:]}")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent_url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        assert "did not answer in time" in described(product, silent_url, timeout_seconds=0.2)
    assert f"cannot reach {url}: connection refused; start the server" in described(product, url)
    with answering(b"") as url:
        assert "it is no search server, or wants https://" in described(product, url)
        assert "makes no TLS connection" in described(product, f"https{url[4:]}")


def test_another_product():
    """The client of Elasticsearch asks for a header that no other server sends."""
    with canned_server() as server:
        server.give(b"{}", X_Elastic_Product="none")
        assert "is not an Elasticsearch" in described("elasticsearch", server.url)
