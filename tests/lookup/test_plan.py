"""Lookup plans: the arithmetic behind them, and what they refuse."""

import pytest

from es_simhash.lookup.plan import LookupPlan, explain_plan, pass_share, plan_lookup
from es_simhash.mapping.context import IndexStats


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


def test_a_larger_index_wants_fewer_candidates():
    """What is cheap for a thousand documents is not for a thousand million."""
    small, large = (plan_lookup(10, stats=IndexStats(n), scripts=False) for n in (10**3, 10**8))
    assert small.terms < large.terms
    assert pass_share(small) > pass_share(large)
