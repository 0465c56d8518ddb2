"""An index that takes no writes ends each operation in one sentence; given again after the block, it does the rest."""

import pytest

from es_simhash import WritesRefusedError
from tests.servers.support import read_all

TEXT = "The harbour office moved its counter to the second floor on Monday."
DOCUMENTS = [{"_id": f"{n}", "body": TEXT if n % 2 else f"{TEXT} {n} {n + 1} other words here {n}"} for n in range(40)]
BLOCKS = ["index.blocks.write", "index.blocks.read_only_allow_delete"]


@pytest.fixture(params=BLOCKS)
def block(request, server, index):
    return lambda *, on: server.request("PUT", f"/{index}/_settings", {request.param: on or None})


@pytest.fixture
def filled(server, index, sync_simhash, sync_client):
    """A grouped index, one of whose documents lacks its fingerprint, and one its group."""
    sync_simhash.create_index(index, text_field="body")
    assert all(each.action != "refused" for each in sync_simhash.ingest(index, DOCUMENTS, max_distance=3))
    sync_client.index(index=index, id="new", body={"body": TEXT}, refresh=True)
    sync_client.update(
        index=index, id="5", body={"doc": {"simhash": {"group": "x", "duplicate_of": "x"}}}, refresh=True
    )
    return index


@pytest.mark.usefixtures("impatient")
def test_each_operation_ends_in_one_error_and_goes_on_later(server, filled, simhash, block, tmp_path):
    def apply():
        return list(simhash.apply_removal(plan, archive=archive))

    plan, archive = tmp_path / "plan", tmp_path / "archive"
    works = [
        lambda: list(simhash.backfill(filled)),
        lambda: simhash.reconcile(filled),
        apply,
        lambda: list(simhash.restore(archive)),
        lambda: simhash.remove_fields(filled),
    ]
    for work in works:
        if work is apply:
            simhash.plan_removal(filled, plan, max_share=1)
        before = read_all(server, filled)
        block(on=True)
        with pytest.raises(Exception, match="cluster_block_exception") as refused:
            work()
        # What a request as a whole meets is the client's own error: remove_fields changes a mapping first.
        if work is not works[-1]:
            assert (refused.value.kind, refused.value.index) == ("blocked", filled)
        block(on=False)
        assert read_all(server, filled) == before
        work()
        assert read_all(server, filled) != before


def test_a_block_behind_an_alias_is_named(server, filled, simhash, sync_simhash, block):
    """Of two indices one is blocked."""
    other = f"{filled}-other"
    sync_simhash.create_index(other, text_field="body")
    server.request("PUT", f"/{other}/_doc/1?refresh=true", {"body": TEXT})
    block(on=True)
    with pytest.raises(WritesRefusedError, match=r"^index '.*' takes no writes now \(cluster_block_exception"):
        list(simhash.backfill([filled, other]))
    block(on=False)
    assert list(simhash.backfill([filled, other]))[-1].failed == 0
