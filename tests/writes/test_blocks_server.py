"""Blocks that cover a whole index, on real servers: an operation ends at once, and the same one goes on later."""

import pytest

from es_simhash import SimHashError, WritesRefusedError
from es_simhash.transport.conversation import Patience
from es_simhash.transport.protocol import status_of
from tests.servers.support import ONE_SHARD, assert_all_right, numbered, put, read_all, texts


@pytest.fixture
def waits(monkeypatch):
    """Return the list of waits for a server that is busy, of all attempts."""
    found = []

    async def wait(patience, server):
        patience.failures += 1
        found.append(patience.failures)

    monkeypatch.setattr(Patience, "wait", wait)
    return found


@pytest.fixture(params=["write", "read_only", "read_only_allow_delete"])
def block(request, server, index):
    """Return a function that sets a block on the index, or removes it; the last one refuses by 429."""

    def change(value):
        server.request("PUT", f"/{index}/_settings", {f"index.blocks.{request.param}": value})

    yield change
    change(None)


def carry_out(operation):
    """Carry *operation* out to its end; return what an error says, or each record does."""
    try:
        return repr(list(operation()))
    except Exception as error:
        if not isinstance(error, SimHashError) and status_of(error) is None:
            raise
        return str(error)


def test_every_operation(server, index, sync_simhash, waits, block, tmp_path):
    """None waits for what only the user can change, each says that it is a block, and later each is carried out."""
    found = numbered(texts(40))
    plan = tmp_path / "removal.db"
    sync_simhash.create_index(index, text_field="body", settings=ONE_SHARD, max_distance=12)
    put(server, index, found)

    steps = {
        "backfill": lambda: sync_simhash.backfill(index),
        "reconcile": lambda: (sync_simhash.reconcile(index, max_distance=12, verify=False),),
        "ingest": lambda: sync_simhash.ingest(index, [{"_id": "new", "body": found[0]["body"]}]),
        "apply": lambda: sync_simhash.apply_removal(plan),
        "restore": lambda: sync_simhash.restore(plan),
        "remove": lambda: (sync_simhash.remove_fields(index, groups_only=True),),
    }
    for step, operation in steps.items():
        if step == "apply":
            sync_simhash.plan_removal(index, plan, max_share=1.0)
        block(True)
        said = carry_out(operation)
        assert waits == [], step
        assert "block" in said, (step, said)
        block(None)
        carry_out(operation)
        server.request("POST", f"/{index}/_refresh")
        if step == "backfill":
            assert_all_right(read_all(server, index))
        if step == "apply":
            assert "new" not in read_all(server, index)
        if step == "restore":
            assert len(read_all(server, index)) == 41


def test_a_block_is_an_error_that_names_the_index(server, index, simhash, block):
    """Also where only one of two indices is blocked."""
    other = f"{index}-other"
    simhash.create_index(index, text_field="body", settings=ONE_SHARD)
    simhash.create_index(other, text_field="body", settings=ONE_SHARD)
    put(server, index, numbered(texts(4)))
    put(server, other, numbered(texts(4)))
    block(True)
    with pytest.raises(WritesRefusedError, match="takes no writes now .*cluster_block_exception") as refused:
        list(simhash.backfill([index, other]))
    assert (refused.value.kind, refused.value.index) == ("blocked", index)
    block(None)
    assert list(simhash.backfill([index, other]))[-1].failed == 0
    assert_all_right(read_all(server, index) | read_all(server, other))
