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
    list(simhash.ingest(index, [first, again, copy], on_duplicate="replace"))
    assert "_routing" not in server.request("GET", f"/{index}/_doc/a")
    assert server.request("GET", f"/{index}/_doc/a")["_source"]["body"] == TEXT


def test_a_policy_is_given_the_fields_of_an_update(server, index, simhash):
    """A function as policy gets the partial document, not the action around it; also where that is in flight itself."""
    simhash.create_index(index, text_field="body", settings=ONE_SHARD)
    list(simhash.ingest(index, [{"_id": "a", "body": "of no interest"}, {"_id": "b", "body": TEXT}], verify=False))
    server.request("POST", f"/{index}/_refresh")
    given = []

    def policy(new, old):
        given.append((new["n"], old.source.get("n")))
        return "tag"

    update = {"_op_type": "update", "_id": "a", "doc": {"body": TEXT, "n": 1}}
    reports = list(simhash.ingest(index, [update, {"_id": "c", "body": TEXT, "n": 2}], on_duplicate=policy))
    assert [each.action for each in reports] == ["tagged", "tagged"]
    assert given[0] == (1, None)
    assert {new for new, _ in given} == {1, 2}
