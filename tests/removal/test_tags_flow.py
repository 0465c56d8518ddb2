"""Tags under trouble: a record says what the index holds."""

import pytest

from es_simhash import fingerprint_fields
from es_simhash.groups.rule import GroupingRequest
from es_simhash.mapping.context import Context
from es_simhash.removal.tags_flow import tag_duplicates
from tests.transport.by_hand import carry_out
from tests.transport.fake_server import INDEX, FakeServer


@pytest.mark.parametrize("id_", ["b", "urn: b", "i/c: d"])
def test_a_refused_tag_is_reported_whatever_the_id(id_):
    """No sentence is taken apart: an id may hold what separates its parts."""
    store = FakeServer({"a": fingerprint_fields(7), id_: fingerprint_fields(7)})
    store.refuse = lambda header: 400 if header["_id"] == id_ else None
    run = carry_out(tag_duplicates(Context(), INDEX, GroupingRequest(verify=False), dry_run=False), store)
    [record] = run.emitted
    assert (record.id, record.action) == (id_, "kept")
    assert "400" in record.reason
    assert "duplicate_of" not in store.source(id_)["simhash"]
