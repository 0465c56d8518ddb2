"""An index that allows small requests: every operation does what it does where servers allow as much as usual."""

import json
from datetime import UTC, datetime

import pytest

from tests.servers.support import numbered, put, send_lines, texts

NARROW = {"index.max_result_window": 50, "index.max_terms_count": 10}
# One text stands for more documents than a page holds.
COPIED = "the council voted for the harbour bridge on tuesday evening after a long debate"
TEXTS = [*texts(90, seed=7), *[COPIED] * 55]
SETTINGS = {"number_of_shards": 2, "number_of_replicas": 0}


@pytest.fixture
def pair(index, server, simhash):
    """Names of two indices with the same documents: one allows little, the other as much as usual."""
    names = {f"{index}-narrow": NARROW, f"{index}-usual": {}}
    for name, limits in names.items():
        settings = {**SETTINGS, **limits}
        how = {"settings": settings, "mappings": {"properties": {"n": {"type": "keyword"}}}}
        simhash.create_index(name, text_field="body", passages=True, max_distance=6, **how)
        written = simhash.ingest(name, numbered(TEXTS), max_distance=6, verify=0.5)
        assert {each.action for each in written} == {"written", "tagged"}
        server.request("POST", f"/{name}/_refresh")
    return tuple(names)


def plain(found, index):
    """Return *found* as plain values that do not name the *index*."""

    def convert(value):
        return value.to_dict() if hasattr(value, "to_dict") else str(value)

    return json.loads(json.dumps(found, default=convert).replace(index, "the-index"))


def near(found):
    return [[each.id, each.distance, each.similarity] for each in found]


def shared(found):
    assert found.complete
    return sorted([each.id, each.contained] for each in found)


LOOKUPS = {
    "text": lambda one, index: near(one.find_near_dups(index, TEXTS[-1], max_distance=8)),
    "verified": lambda one, index: near(one.find_near_dups(index, TEXTS[-1], verify=0.5)),
    "few": lambda one, index: near(one.find_near_dups(index, TEXTS[-1], size=53)),
    "without": lambda one, index: near(
        one.find_near_dups(index, TEXTS[-1], exclude_ids=[f"{n:05d}" for n in range(0, 12_000, 2)])
    ),
    "filtered": lambda one, index: near(
        one.find_near_dups(index, TEXTS[-1], filter={"terms": {"n": [*range(92, 200)]}})
    ),
    "document": lambda one, index: near(one.find_near_dups_of(index, "00144", max_distance=8)),
    "document, verified": lambda one, index: near(one.find_near_dups_of(index, "00144", verify=0.5)),
    "many": lambda one, index: [*map(near, one.find_near_dups_many(index, TEXTS, max_distance=7, lookups="server"))],
    "memory": lambda one, index: [*map(near, one.find_near_dups_many(index, TEXTS, max_distance=7, lookups="memory"))],
    "many, verified": lambda one, index: [*map(near, one.find_near_dups_many(index, TEXTS[-20:], verify=0.9))],
    "pairs": lambda one, index: sorted([each.id, each.other_id] for each in one.pairs(index)),
    "groups": lambda one, index: [each.to_dict() for each in one.groups(index)],
    "passages": lambda one, index: shared(one.find_passages(index, TEXTS[-1])),
    "passages of": lambda one, index: shared(one.find_passages_of(index, "00000")),
    "passages of a short text": lambda one, index: shared(one.find_passages(index, TEXTS[-1][:50])),
}


def test_lookups(pair, simhash):
    """Each finds the same in both, whatever the server refuses."""
    narrow, usual = pair
    for name, look_up in LOOKUPS.items():
        found = plain(look_up(simhash, narrow), narrow)
        assert found == plain(look_up(simhash, usual), usual), name
        assert found, name
    both = [simhash.find_near_dups([narrow, name], TEXTS[-1], verify=0.5) for name in (usual, narrow)]
    assert [(len(each), each.unverified) for each in both] == [(110, ()), (55, ())]  # only some shards refuse


READS = {
    "groups of some": lambda one, index: [
        each.to_dict() for each in one.groups(index, filter={"range": {"n": {"lt": 200}}})
    ],
    "stats": lambda one, index: one.stats(index, text_field="body", source_field="n").to_dict(),
    "report": lambda one, index: [len(each.members) for each in one.report(index, source_field="n").groups],
    "distinct": lambda one, index: one.search_distinct(index, {"sort": "n"}, size=100, total=True).to_dict(),
    "plan": lambda one, index: one.plan_removal(index, None, max_share=1.0, protect="n").count,
}


@pytest.fixture
def small_cluster(server):
    """Make a cluster allow little, and as much as usual afterwards."""
    limits = {"search.max_buckets": 60, "search.default_keep_alive": "30s", "search.max_keep_alive": "45s"}
    if server.product == "opensearch":
        limits |= {"point_in_time.max_keep_alive": "45s", "indices.query.bool.max_clause_count": 20}

    def limit(*, narrow, only=""):
        settings = {key: value if narrow else None for key, value in limits.items() if only in key}
        server.request("PUT", "/_cluster/settings", {"transient": settings})

    yield limit
    limit(narrow=False)


def test_limits_of_the_cluster(pair, simhash, small_cluster, tmp_path, monkeypatch):
    """Few buckets and clauses, and short lives of points in time and scrolls: each operation does the same."""
    monkeypatch.chdir(tmp_path)
    _, index = pair
    flows = LOOKUPS | READS
    wanted = {name: flow(simhash, index) for name, flow in flows.items()}
    small_cluster(narrow=True)
    for name, flow in flows.items():
        assert plain(flow(simhash, index), index) == plain(wanted[name], index), name


def test_short_lives_and_small_pages(pair, simhash, small_cluster):
    """Pages beyond the window are read by a scroll, which may stay open as long as the server allows."""
    narrow, usual = pair
    small_cluster(narrow=True, only="keep_alive")
    for name, flow in LOOKUPS.items():
        assert plain(flow(simhash, narrow), narrow) == plain(flow(simhash, usual), usual), name


def test_writing(pair, server, simhash, tmp_path):
    """Groups are made right again, duplicates go and come back, and what is counted and drawn is the same."""

    def work(index):
        steps = {"stats": simhash.stats(index, text_field="body").to_dict()["groups"]}
        send_lines(server, [{"update": {"_index": index, "_id": "00144"}}, {"doc": {"simhash": {"group": "wrong"}}}])
        steps["reconcile"] = simhash.reconcile(index, dry_run=True)
        steps["since"] = simhash.reconcile(index, since=datetime(2020, 1, 1, tzinfo=UTC))
        server.request("POST", f"/{index}/_refresh")
        steps["report"] = [len(each.members) for each in simhash.report(index, text_field="body").groups]
        steps["examined"] = simhash.check_sample(index).sampled
        steps["tuned"] = simhash.tune(index, sample=60).sampled
        plan = tmp_path / f"{index}.db"
        planned = simhash.plan_removal(index, plan, verify=0.5, max_share=1.0)
        steps["planned"] = planned.count
        steps["removed"] = sorted([each.id, each.action] for each in simhash.apply_removal(plan))
        steps["restored"] = sorted([each.id, each.action] for each in simhash.restore(plan))
        put(server, index, [{"_id": f"new{n}", "body": TEXTS[-1]} for n in range(60)])
        steps["followed"] = list(simhash.follow(index, once=True, state_index=f"{index}-state"))[-1].written
        server.request("POST", f"/{index}/_refresh")
        put(server, index, [{"_id": f"newer{n}", "body": TEXTS[-1]} for n in range(60)])
        steps["backfilled"] = list(simhash.backfill(index))[-1].changed
        steps["settled"] = simhash.reconcile(index)
        server.request("POST", f"/{index}/_refresh")
        steps["groups"] = [each.to_dict() for each in simhash.groups(index)]
        steps["removed fields"] = simhash.remove_fields(index, groups_only=True)
        return steps

    narrow, usual = pair
    found, wanted = plain(work(narrow), narrow), plain(work(usual), usual)
    for name in found:
        assert found[name] == wanted[name], name
