"""Lookup plans: the arithmetic behind them, and what they refuse."""

import pytest

from es_simhash.lookup.plan import LookupPlan, estimate, explain_plan, index_stats, mean_length, pass_share, plan_lookup
from es_simhash.mapping.context import ASSUMED, IndexStats
from tests.transport.by_hand import ServerError, carry_out, scripted


@pytest.mark.parametrize(
    ("max_distance", "steps", "name", "terms"),
    [
        (0, 4, "r0 msm4", 4),
        (3, 4, "r0 msm1", 4),
        (3, 8, "r0,1 msm5", 72),
        (4, 5, "r0|0|0|1 msm1", 20),
        (5, 7, "r0|0,1|0,1|0,1 msm2", 55),
        (8, 9, "r1|1|1|2 msm1", 188),
        (8, 12, "r0,1,2 msm4", 620),
        (12, 13, "r2|2|2|3 msm1", 1_108),
        (4, 4, "scan", 0),
        (64, 20, "scan", 0),
    ],
)
def test_worked_examples(max_distance, steps, name, terms):
    """By hand: a radius that the larger ones make unnecessary is left out; no query excludes nothing."""
    plan = LookupPlan(max_distance, steps)
    assert (plan.name, plan.terms, plan.is_scan) == (name, terms, name == "scan")


def test_pass_share_of_the_pigeonhole():
    """One equal block of four: 1 - (1 - 2**-16)**4 of uniform fingerprints; everything passes a scan."""
    assert pass_share(LookupPlan(3, 4)) == pytest.approx(1 - (1 - 2**-16) ** 4)
    assert pass_share(LookupPlan(4, 4)) == pass_share(LookupPlan(0)) == 1


def test_a_plan_exists_for_every_distance():
    """From 0 to 64 bits there is a plan, and where block terms exclude nothing it says that it scans."""
    for max_distance in range(65):
        plan = plan_lookup(max_distance)
        assert plan.max_distance == max_distance
        assert plan.is_scan == (plan.minimum_should_match == 0)
    assert plan_lookup(64).name == "scan + script"
    assert plan_lookup(64, scripts=False).name == "scan"


def test_a_plan_is_explained():
    """All plans with their estimates, the cheapest first, which is the one used."""
    stats = IndexStats(4_000_000)
    estimates = explain_plan(8, stats=stats)
    assert estimates[0].plan == plan_lookup(8, stats=stats)
    assert [each.milliseconds for each in estimates] == sorted(each.milliseconds for each in estimates)
    pigeonhole = next(each for each in explain_plan(3, stats=stats) if each.plan == LookupPlan(3, 4))
    assert pigeonhole.hits == pytest.approx(244, rel=0.01)
    assert pigeonhole.postings == pytest.approx(244, rel=0.01)
    assert sorted({each.plan.steps for each in estimates}) == [0, *range(9, 21)]


@pytest.mark.parametrize(
    ("plan", "postings", "passing", "hits", "milliseconds"),
    [
        (LookupPlan(12, 13, script=True), 3381.348, 3365.416, 0.0, 7.404),
        (LookupPlan(5, 7), 167.847, 9.193, 9.193, 0.690),
        (LookupPlan(0), 0.0, 100_000, 100_000, 3600.0),
    ],
)
def test_what_a_plan_is_expected_to_cost(plan, postings, passing, hits, milliseconds):
    """A hundred thousand documents with twice the postings of chance: a script sends none, and checks all that pass."""
    found = estimate(plan, IndexStats(100_000, 2.0))
    numbers = found.postings, found.passing, found.hits, found.milliseconds
    assert numbers == pytest.approx((postings, passing, hits, milliseconds), rel=1e-3)


@pytest.mark.parametrize(
    ("max_distance", "documents", "with_script", "without"),
    [
        (0, 10**3, "r0 msm4 + script", "r0 msm4"),
        (3, 10**6, "r0 msm1 + script", "r0|0|0,1|0,1 msm3"),
        (8, 10**3, "scan + script", "r1|1|1|2 msm1"),
        (8, 10**6, "r1|1|1|2 msm1 + script", "r0,1,2 msm4"),
        (12, 10**6, "r2|2|2|3 msm1 + script", "r0,1,2,3 msm4"),
        (12, 10**9, "r0,1,2|1,2,3|1,2,3|1,2,3 msm3 + script", "r0,1,2,3|0,1,2,3|0,1,2,3,4|0,1,2,3,4 msm6"),
        (16, 10**9, "r1,2,3|2,3,4|2,3,4|2,3,4 msm3 + script", "r1,2,3,4 msm4"),
        (20, 10**9, "scan + script", "scan"),
    ],
)
def test_the_plan_that_costs_least(max_distance, documents, with_script, without):
    """By the size of the index, and whether a script may check what passes."""
    stats = IndexStats(documents)
    names = [plan_lookup(max_distance, stats=stats, scripts=scripts).name for scripts in (True, False)]
    assert names == [with_script, without]


@pytest.mark.parametrize(
    ("terms", "together", "alone", "length"),
    [
        ("abcd", 8, {}, 2.0),
        ("aabc", 30, {"a": 20}, 12.5),
        ("aabb", 30, {"a": 20, "b": 10}, 15.0),
        ("abcd", 0, {}, 1.0),
    ],
)
def test_how_many_documents_share_a_term(terms, together, alone, length):
    """Terms that are seen again are counted alone; the others share the rest, and each has a document at least."""
    assert mean_length(list(terms), together, alone) == length


def test_a_larger_index_wants_fewer_candidates():
    """What is cheap for a thousand documents is not for a thousand million."""
    small, large = (plan_lookup(10, stats=IndexStats(n), scripts=False) for n in (10**3, 10**8))
    assert small.terms < large.terms
    assert pass_share(small) > pass_share(large)


def test_a_size_that_the_server_does_not_tell_is_assumed():
    """Once in ten minutes; a server that is not there is an error."""
    port = scripted()
    for calls in (1, 0):
        run = carry_out(index_stats(port, "i"), lambda _: ServerError(403))
        assert (run.result, len(run.calls)) == (ASSUMED, calls)
    with pytest.raises(ConnectionError):
        carry_out(index_stats(scripted(), "i"), lambda _: ConnectionError("gone"))
