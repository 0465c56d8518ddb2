"""Ingest that only creates documents (``op_type="create"``), and names that need care, on real servers."""

import pytest

from es_simhash import InvalidInputError
from tests.estates.wire import Wire
from tests.servers.fixtures import client_through
from tests.servers.support import ONE_SHARD, put, read_all

ONE = "The council approved the new bridge over the river on Tuesday after a long debate about its cost."


@pytest.mark.parametrize(
    ("faults", "batch", "first"),
    [({}, 1, {}), ({("bulk", 0): "lost"}, 500, {}), ({}, 500, {"_routing": "r"}), ({("bulk", 0): "lost"}, 1, {})],
)
def test_one_document_twice(server, index, faults, batch, first):
    """The second is not taken for an attempt of its own whose answer was lost, whatever batch and routing value."""
    with client_through(server, Wire(script=faults)) as simhash:
        simhash.create_index(index, text_field="body", settings=ONE_SHARD)
        document = {"_id": "a", "body": ONE}
        reports = list(simhash.ingest(index, [document | first, document], op_type="create", batch=batch))
        assert [each.action for each in reports] == ["written", "unchanged"]
        assert list(read_all(server, index)) == ["a"]


def test_an_id_of_blanks_is_an_id(server, index, simhash):
    """Servers take it: it is written, found by, left out and explained as any other."""
    simhash.create_index(index, text_field="body", passages=True, settings=ONE_SHARD)
    written = list(simhash.ingest(index, [{"_id": " ", "body": ONE}, {"_id": "b", "body": ONE}]))
    assert [(each.id, each.action) for each in written] == [(" ", "written"), ("b", "tagged")]
    server.request("POST", f"/{index}/_refresh")
    others = {"exclude_ids": [" "]}
    for found in (
        simhash.find_near_dups_of(index, " "),
        simhash.find_passages_of(index, " "),
        simhash.find_near_dups(index, ONE, **others),
        simhash.find_passages(index, ONE, **others),
    ):
        assert [each.id for each in found] == ["b"]
    assert simhash.explain(index, " ", "b").similarity == 1
    assert [each.id for each in simhash.tag_written(index, [" "])] == [" "]
    with pytest.raises(InvalidInputError, match="'' is empty"):
        simhash.find_near_dups_of(index, "")


@pytest.mark.parametrize(("field", "real"), [("text", "body"), ("all", "body"), ("body.words", "body")])
def test_a_field_that_no_document_holds_is_told_with_the_real_one(server, index, simhash, field, real):
    """An alias, a field that the server copies others into, a multi-field; before anything is done."""
    body = {"type": "text", "copy_to": "all", "fields": {"words": {"type": "text"}}}
    properties = {"body": body, "text": {"type": "alias", "path": "body"}, "all": {"type": "text"}}
    server.request("PUT", f"/{index}", {"settings": ONE_SHARD, "mappings": {"properties": properties}})
    put(server, index, [{"_id": "1", "body": "The council approved the new bridge."}])
    said = f"{field}' is filled by index .* from {real}, and no document holds it: name {real}"
    simhash.create_index(f"{index}-ours", settings=ONE_SHARD, mappings={"properties": properties})
    for refused in (
        lambda: simhash.put_mapping(index, text_field=field),
        lambda: simhash.setup(index, text_field=field),
        lambda: simhash.tune(index, text_field=field),
        lambda: list(simhash.backfill(index, text_field=field)),
        lambda: simhash.create_index(f"{index}-new", text_field=field, mappings={"properties": properties}),
        lambda: list(simhash.ingest(f"{index}-ours", [{"body": "x"}], text_field=field)),
        lambda: list(simhash.screen(f"{index}-ours", [{"body": "x"}], text_field=field)),
    ):
        with pytest.raises(InvalidInputError, match=said):
            refused()
