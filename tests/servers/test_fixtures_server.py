"""The fixtures themselves: each test here fails if a fixture gave something else than its name says."""

from __future__ import annotations

import uuid


def test_client_reaches_the_server_of_its_product(server, client, call, index):
    """A document written through the client of either mode is found over plain HTTP."""
    call(client.index(index=index, id="1", body={"text": "a"}, refresh=True))
    assert server.request("GET", f"/{index}/_doc/1")["_source"] == {"text": "a"}
    assert type(client).__module__.startswith({"opensearch": "opensearchpy"}.get(server.product, server.product))


def test_removing_leaves_other_indices_alone(server, index):
    """Clean-up deletes what starts with the test's index name, and nothing else."""
    for name in (index, f"{index}-more", f"other-{index}"):
        server.request("PUT", f"/{name}")
    server.remove(index)
    assert list(server.request("GET", f"/*{index}*")) == [f"other-{index}"]
    server.request("DELETE", f"/other-{index}")


def test_removing_takes_data_streams_too(opensearch):
    """A data stream of the test's own goes, together with the indices behind it."""
    name = f"test-{uuid.uuid4().hex}"
    template = {"index_patterns": [f"{name}*"], "data_stream": {}, "priority": 500}
    opensearch.request("PUT", f"/_index_template/{name}", template)
    opensearch.request("PUT", f"/_data_stream/{name}")
    opensearch.remove(name)
    assert not opensearch.request("GET", f"/*{name}*?expand_wildcards=all")
    opensearch.request("DELETE", f"/_index_template/{name}")
