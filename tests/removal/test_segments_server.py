"""Removals where reads must go to primaries: with segment replication, and where a user may not see the settings."""

from functools import partial

import pytest
from opensearchpy.exceptions import AuthorizationException

from tests.passages.test_passages_server import words
from tests.servers.removals import outcomes
from tests.servers.support import ONE_SHARD, put, read_all, stored_groups


def refuse(**_):
    raise AuthorizationException(403, "security_exception", {})


@pytest.fixture
def server(opensearch):
    """Elasticsearch has neither segment replication nor the preference."""
    return opensearch


def fill(server, index, simhash, **settings):
    """Make *index* with passages, in which *b* is a near-duplicate of *a*, which stands in *c*."""
    simhash.create_index(index, text_field="body", passages=True, settings={**ONE_SHARD, **settings})
    start = words(1, 60)
    near = " ".join([*start.split()[:-4], *words(12, 4).split()])
    found = {"a": start, "b": near, "c": f"{start} {words(2, 140)}", "d": words(3, 80)}
    documents = [{"_id": id_, "body": text} for id_, text in found.items()]
    written = simhash.ingest(index, documents, max_distance=16, verify=0.8)
    assert [each.action for each in written] == ["written", "tagged", "written", "written"]
    server.request("POST", f"/{index}/_refresh")


def remove_and_restore(server, index, simhash, plan, begin_restore=lambda: None):
    """Remove a duplicate, and put it back into its group."""
    simhash.plan_removal(index, plan, also=["rewritten"], max_share=1.0)
    assert outcomes(simhash.apply_removal(plan)) == {"b": ("deleted", None)}
    assert stored_groups(read_all(server, index)) == {"a": "a", "c": "c", "d": "d"}
    begin_restore()
    assert outcomes(simhash.restore(plan)) == {"b": ("restored", None)}
    assert stored_groups(read_all(server, index)) == {"a": "a", "b": "a", "c": "c", "d": "d"}


def test_segment_replication(server, index, simhash, sync_simhash, plan):
    """A removal, a restore, follow, backfill: each has other operations inside that read primaries."""
    fill(server, index, sync_simhash, **{"replication.type": "SEGMENT"})
    remove_and_restore(server, index, simhash, plan)
    assert simhash.reconcile(index).duplicates == 1
    put(server, index, [{"_id": "e", "body": words(3, 80)}])
    done = list(simhash.follow(index, once=True, state_index=f"{index}-state"))[-1]
    assert (done.written, done.regrouped, done.failed) == (1, 1, 0)
    assert simhash.reconcile(index).changed == 0
    assert list(simhash.backfill(index))[-1].changed == 0
    assert simhash.remove_fields(index, groups_only=True).documents == 5


def test_settings_that_may_not_be_read(server, index, sync_simhash, sync_client, plan, monkeypatch):
    """Any index may then have such replicas."""
    fill(server, index, sync_simhash)
    hide = partial(monkeypatch.setattr, sync_client.indices, "get_settings", refuse)
    remove_and_restore(server, index, sync_simhash, plan, hide)
    assert sync_simhash.reconcile(index).duplicates == 1
