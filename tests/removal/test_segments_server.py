"""Removals where reads must go to primaries: with segment replication, also where a user may not see the settings."""

import pytest
from opensearchpy.exceptions import AuthorizationException

from tests.passages.test_passages_server import words
from tests.servers.removals import DELETED, outcomes
from tests.servers.support import ONE_SHARD, put, read_all, stored_groups


@pytest.fixture
def server(opensearch):
    """Elasticsearch has neither segment replication nor the preference."""
    return opensearch


def test_segment_replication(server, index, simhash, client, mode, plan, monkeypatch):
    """A removal, a restore, follow, backfill: each has other operations inside that read primaries."""
    simhash.create_index(index, text_field="body", settings={**ONE_SHARD, "replication.type": "SEGMENT"})
    start = words(1, 60)
    near = " ".join([*start.split()[:-4], *words(12, 4).split()])
    texts = {"a": start, "b": near, "c": words(3, 80)}
    documents = [{"_id": id_, "body": text} for id_, text in texts.items()]
    assert len(list(simhash.ingest(index, documents, max_distance=16, verify=0.8))) == 3
    server.request("POST", f"/{index}/_refresh")
    before = {"a": "a", "b": "a", "c": "c"}
    assert stored_groups(read_all(server, index)) == before
    simhash.plan_removal(index, plan, also=["rewritten"], max_share=1.0)

    def refuse(**_):
        raise AuthorizationException(403, "security_exception", {})

    for is_hidden in (False, True):
        assert outcomes(simhash.apply_removal(plan)) == {"b": DELETED}
        assert stored_groups(read_all(server, index)) == {"a": "a", "c": "c"}
        with monkeypatch.context() as patch:
            if is_hidden:  # any index may then have such replicas
                patch.setattr(client.indices, "get_settings", refuse)
            assert outcomes(simhash.restore(plan)) == {"b": ("restored", None)}
        assert stored_groups(read_all(server, index)) == before
    put(server, index, [{"_id": "e", "body": texts["c"]}])
    done = list(simhash.follow(index, once=True, state_index=f"{index}-state"))[-1]
    assert (done.written, done.regrouped, done.failed) == (1, 1, 0)
    assert simhash.reconcile(index).changed == 0
    assert list(simhash.backfill(index))[-1].changed == 0
    assert simhash.remove_fields(index, groups_only=True).documents == 4
