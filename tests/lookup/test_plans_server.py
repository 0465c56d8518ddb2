"""Every kind of plan on real servers: the answers of an exhaustive comparison, and the ways around a refusal."""

import random

import pytest

from es_simhash import fingerprint_fields
from es_simhash.client.port import finish, port_of
from es_simhash.lookup import find as module
from es_simhash.lookup.find_many import find_many
from es_simhash.lookup.lookup_options import LookupOptions, Sizes
from es_simhash.lookup.plan import LookupPlan, explain_plan
from es_simhash.mapping.context import IndexStats
from tests.lookup.looking import planned
from tests.servers.support import ON_BOTH, ONE_SHARD, fill, planted, put, truth

PLANTED = planted(1_000)


@pytest.fixture
def filled(server, index, sync_simhash):
    """A sync client of ours, and the index of 1,000 planted fingerprints."""
    sync_simhash.create_index(index, settings=ONE_SHARD)
    fill(server, index, PLANTED)
    return sync_simhash


def answer_of(found):
    return [(each.distance, each.id) for each in found]


@ON_BOTH
def test_every_plan_gives_the_exhaustive_answer(server, index, filled):
    """Six plans for a distance, from the cheapest to the scan, with a script where the server has Painless."""
    scripts = server.product == "opensearch"
    for max_distance in [*range(0, 21, 2), 64]:
        plans = [each.plan for each in explain_plan(max_distance, scripts=scripts)]
        chance = random.Random(max_distance)
        wanted = chance.choice(PLANTED)
        expected = truth(PLANTED, wanted, max_distance)
        for plan in [plans[0], *chance.sample(plans, min(4, len(plans))), plans[-1]]:
            with planned(plan):
                found = filled.find_near_dups(index, fingerprint=wanted, max_distance=max_distance)
            assert (answer_of(found), found.complete, found.plan) == (expected, True, plan), (max_distance, plan.name)


def searches(server, index):
    """Return how many searches the index's one shard has seen."""
    return server.request("GET", f"/{index}/_stats/search")["_all"]["primaries"]["search"]["query_total"]


@pytest.mark.parametrize("max_distance", [3, 8])
def test_lookups_that_share_a_search(server, index, filled, max_distance):
    """They get the answers that they would get alone, for fewer searches than there are lookups."""
    wanted = [*random.Random(3).sample(PLANTED, 118), 0, 2**64 - 1]
    expected = [truth(PLANTED, each, max_distance) for each in wanted]
    for _ in range(2):  # the second time with what was learnt of the server
        filled._context.stats.learn(index, IndexStats(1_000_000))  # a small index would be scanned, one by one
        before = searches(server, index)
        many = filled.find_near_dups_many(index, fingerprints=wanted, max_distance=max_distance)
        assert [answer_of(each) for each in many] == expected
        assert all(each.complete for each in many)
    assert searches(server, index) - before < len(wanted)


@pytest.mark.usefixtures("filled")
def test_a_shared_search_that_does_not_hold_all(index, sync_client):
    """Its lookups are asked again, each for itself."""
    options = LookupOptions(max_distance=8, sizes=Sizes(first_page=10, largest_page=10))
    with planned(LookupPlan(8, 12)):
        many = finish(find_many(port_of(sync_client), index, None, PLANTED[:30], options))
    assert [answer_of(each) for each in many] == [truth(PLANTED, each, 8) for each in PLANTED[:30]]


@pytest.mark.parametrize("max_distance", [3, 64])
def test_a_scan_reads_everything(server, index, simhash, max_distance, monkeypatch):
    """Also what has no block terms, and all that hits carry."""
    simhash.create_index(index, settings=ONE_SHARD)
    fingerprints = planted(700)
    fill(server, index, fingerprints)
    wanted = fingerprints[5]
    bare = {"simhash": {"fingerprint": fingerprint_fields(wanted)["simhash"]["fingerprint"]}, "title": "bare"}
    put(server, index, [{"_id": "bare", **bare}])
    monkeypatch.setattr(module, "plan_lookup", lambda *_, **__: LookupPlan(max_distance))
    asked = {"fingerprint": wanted, "max_distance": max_distance}
    expected = sorted([*truth(fingerprints, wanted, max_distance), (0, "bare")])
    found = simhash.find_near_dups(index, **asked, source=["title"])
    assert (answer_of(found), found.complete, found.candidates) == (expected, True, 701)
    assert next(each for each in found if each.id == "bare").source == {"title": "bare"}
    assert answer_of(simhash.find_near_dups(index, **asked, size=3)) == expected[:3]
    without = simhash.find_near_dups(
        index, **asked, exclude_ids=["bare"], filter={"exists": {"field": "simhash.block0"}}
    )
    assert answer_of(without) == truth(fingerprints, wanted, max_distance)
    many = simhash.find_near_dups_many(
        index, fingerprints=[wanted, wanted ^ 2**64 - 1], max_distance=max_distance, exclude_ids=["bare"]
    )
    opposite = truth(fingerprints, wanted ^ 2**64 - 1, max_distance)
    assert [answer_of(each) for each in many] == [truth(fingerprints, wanted, max_distance), opposite]


only_opensearch = pytest.mark.parametrize("server", ["opensearch"], indirect=True)


@only_opensearch
def test_a_script_lets_only_near_duplicates_travel(server, index, simhash):
    """And a document without the copy for scripts is judged by the client all the same."""
    simhash.create_index(index, settings=ONE_SHARD)
    for number, each in enumerate([0b1, 0b11111]):
        put(server, index, [{"_id": str(number), **fingerprint_fields(each)}])
        put(server, index, [{"_id": f"bare{number}", **fingerprint_fields(each, value=False)}])
    with planned(LookupPlan(3, 4, script=True)):
        found = simhash.find_near_dups(index, fingerprint=0)
    assert [each.id for each in found] == ["0", "bare0"]
    assert found.candidates == 3


@only_opensearch
def test_expensive_queries_forbidden(server, index, filled):
    """The plan with a script is refused once, another one answers, and the answer is the same."""
    server.request("PUT", "/_cluster/settings", {"transient": {"search.allow_expensive_queries": False}})
    try:
        for max_distance in (3, 13, 30):
            expected = truth(PLANTED, PLANTED[0], max_distance)
            [many] = filled.find_near_dups_many(index, fingerprints=PLANTED[:1], max_distance=max_distance)
            found = filled.find_near_dups(index, fingerprint=PLANTED[0], max_distance=max_distance)
            assert (answer_of(found), answer_of(many), found.plan.script) == (expected, expected, False)
    finally:
        server.request("PUT", "/_cluster/settings", {"transient": {"search.allow_expensive_queries": None}})
