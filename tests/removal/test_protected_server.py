"""Fields whose values guard rails protect: each value of a document that would go counts, or the plan is refused."""

import pytest

from es_simhash import MappingError
from tests.servers.removals import copies, fill
from tests.servers.support import ONE_SHARD


@pytest.mark.parametrize(
    ("field", "state"),
    [
        ("nowhere", "is not mapped"),
        ("body", "is mapped as 'text'"),
        ("bare", "is mapped as 'keyword' without doc values"),
    ],
)
def test_a_field_that_cannot_be_protected(index, simhash, tmp_path, field, state):
    """The message says what the field is; no field of ours is missing."""
    mappings = {"properties": {"body": {"type": "text"}, "bare": {"type": "keyword", "doc_values": False}}}
    simhash.create_index(index, text_field="body", settings=ONE_SHARD, mappings=mappings)
    with pytest.raises(MappingError, match=state) as caught:
        simhash.plan_removal(index, tmp_path / "plan.jsonl", protect=field)
    assert caught.value.problems == ()


@pytest.mark.parametrize("node", [{"ignore_above": 5}, {"fields": {"raw": {"type": "keyword", "ignore_above": 5}}}])
def test_values_that_no_index_keeps(server, index, simhash, tmp_path, node):
    """A document that has such a value and would go is refused; one that stays is none of the plan's business."""
    field, plan = "source.raw" if "fields" in node else "source", tmp_path / "plan.jsonl"
    options = {"protect": field, "max_share": 0.9}
    documents = {id_: {"body": text, "source": ["abc", "ab"]} for id_, text in copies(2).items()}
    documents["z"] = {"body": "alone", "source": "too long, and stays"}
    mappings = {"properties": {"source": {"type": "keyword", **node}}}
    fill(server, index, simhash, documents, mappings=mappings)
    assert simhash.plan_removal(index, plan, **options).count == 4
    server.request("POST", f"/{index}/_update/b0001?refresh=true", {"doc": {"source": ["abc", "too long"]}})
    with pytest.raises(MappingError, match="document 'b0001' .* longer than its ignore_above"):
        simhash.plan_removal(index, plan, **options)
    others = {"bool": {"must_not": {"ids": {"values": ["b0001"]}}}}
    assert simhash.plan_removal(index, plan, **options, filter=others).count == 3
