"""What the machine of tests/estates has found, one plain test each."""

from tests.lookup.test_lookup_server import ONE_SHARD

TEXT = "the council approved a new bridge over the river on tuesday after long debate about its cost"


def test_an_update_keeps_the_routing_value(server, index, simhash):
    """Also where another program wrote the document anew, with another value that leads to the same shard."""
    simhash.create_index(index, text_field="body", settings=ONE_SHARD)
    first = {"_id": "a", "_routing": "old", "body": TEXT}
    again = {"_id": "a", "body": TEXT}
    copy = {"_id": "b", "body": TEXT}
    list(simhash.ingest(index, [first], on_duplicate="tag"))
    list(simhash.ingest(index, [first, again, copy], on_duplicate="tag"))
    assert "_routing" not in server.request("GET", f"/{index}/_doc/a")
    assert server.request("GET", f"/{index}/_doc/a")["_source"]["body"] == TEXT
