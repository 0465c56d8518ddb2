"""A document whose fingerprint is none, written around the library: what each flow makes of it, on real servers."""

import pytest

from es_simhash import IncompleteSearchError, document_fields
from es_simhash.lookup import find as module
from es_simhash.lookup.plan import LookupPlan
from tests.servers.support import ON_BOTH, ONE_SHARD, random_texts, read_all, texts

NEAR, FAR = texts(1, seed=9)[0], random_texts(1, 3)[0]
PLANS = (LookupPlan(3, 4), LookupPlan(3), LookupPlan(3, script=True), LookupPlan(3, 4, script=True))


@pytest.fixture
def filled(server, call, simhash, index):
    """Two copies, and a third of which the fingerprint was overwritten; two others have no more than such a value."""
    call(simhash.create_index(index, text_field="body", settings=ONE_SHARD, max_distance=3))
    list(call(simhash.ingest(index, [{"_id": id_, "body": NEAR} for id_ in "ab"], on_duplicate=None)))
    ours = document_fields(NEAR)["simhash"] | {"fingerprint": "zzz"}
    server.request("PUT", f"/{index}/_doc/bad", {"body": NEAR, "simhash": ours})
    alone = {"simhash": {"fingerprint": "Mine"}}
    server.request("PUT", f"/{index}/_doc/alone", {"body": FAR, **alone})
    server.request("PUT", f"/{index}/_doc/worse?refresh=true", {"note": "mine", **alone})
    return index


@ON_BOTH
def test_only_what_it_could_match_is_incomplete(server, filled, call, simhash, monkeypatch):
    """It is named there, whatever the plan; all other lookups are complete."""
    for plan in PLANS:
        if plan.script and server.product == "elasticsearch":
            continue  # it may run without Painless here
        monkeypatch.setattr(module, "plan_lookup", lambda *_, plan=plan, **__: plan)
        near, far = call(simhash.find_near_dups_many(filled, [NEAR, FAR], max_distance=3))
        assert isinstance(near, IncompleteSearchError), plan
        assert [("'bad'" in reason, "setup(index)" in reason) for reason in near.reasons] == [(True, True)]
        assert (len(far), far.complete, far.plan) == (0, True, plan)
        with pytest.raises(IncompleteSearchError, match="'bad'"):
            call(simhash.find_near_dups(filled, text=NEAR, max_distance=3))
        assert call(simhash.find_near_dups(f"{filled}*", text=FAR, max_distance=3)).complete


def test_other_flows_go_on_and_a_backfill_mends(server, filled, call, simhash):
    """Groups, pairs, statistics, screening and ingest leave it out or say so."""
    call(simhash.reconcile(filled))
    assert [len(group.members) for group in call(simhash.groups(filled))] == [2]
    assert len(list(call(simhash.pairs(filled)))) == 1
    call(simhash.stats(filled))
    call(simhash.check_sample(filled))
    assert [each.answer for each in call(simhash.screen(filled, [NEAR, FAR]))] == ["near", "new"]
    brought = document_fields(FAR)["simhash"] | {"fingerprint": "yyy"}
    documents = [
        {"_id": "near", "body": NEAR},
        {"_id": "brought", "body": FAR, "simhash": brought},
        {"_id": "own", "body": FAR, "simhash": {"colour": "red"}},
        {"_op_type": "update", "_id": "a", "doc": {"simhash": brought}},
        {"_op_type": "update", "_id": "a", "doc": {"simhash": {"fingerprint": "yyy"}}},
    ]
    done = [each.action for each in call(simhash.ingest(filled, documents))]
    assert done == ["tagged", "written", "refused", "refused", "refused"]
    server.request("POST", f"/{filled}/_refresh")
    brought = read_all(server, filled)["brought"]["simhash"]
    assert brought["fingerprint"] == document_fields(FAR)["simhash"]["fingerprint"]
    without_block = {"doc": {"simhash": {"block2": None}}}
    server.request("POST", f"/{filled}/_update/b?refresh=true", without_block)
    counted = [fault.found for fault in call(simhash.check(filled))[0].faults if fault.kind == "unreadable_fingerprint"]
    assert counted == ["4"]
    call(simhash.setup(filled))
    stored = read_all(server, filled)
    assert stored["bad"]["simhash"]["fingerprint"] == stored["a"]["simhash"]["fingerprint"]
    assert stored["b"]["simhash"]["block2"] == stored["a"]["simhash"]["block2"]
    assert stored["alone"]["simhash"]["fingerprint"] == brought["fingerprint"]
    assert not (stored["worse"].get("simhash") or {}).get("fingerprint")
    assert not [fault for fault in call(simhash.check(filled))[0].faults if fault.kind == "unreadable_fingerprint"]
    assert call(simhash.find_near_dups(filled, text=NEAR)).complete
