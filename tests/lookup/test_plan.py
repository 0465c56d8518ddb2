"""Lookup plans: the arithmetic behind them, and what they refuse."""

from itertools import combinations

import pytest

from es_simhash.lookup.plan import estimate, explain_plan, make_plan, minimum_should_match, neighbour_count, plan_lookup
from es_simhash.mapping.context import IndexStats


@pytest.mark.parametrize(("radius", "count"), [(0, 1), (1, 17), (2, 137), (3, 697), (4, 2517)])
def test_neighbour_count_is_the_size_of_a_hamming_ball(radius, count):
    """A block of 16 bits has sum of C(16, i) neighbours within a radius."""
    assert neighbour_count(radius) == count


@pytest.mark.parametrize(
    ("max_distance", "radii", "expected"),
    [
        (0, (0,), 4),
        (1, (0,), 3),
        (2, (0,), 2),
        (3, (0,), 1),
        (4, (0,), 0),
        (3, (0, 1), 5),
        (5, (0, 1), 3),
        (7, (0, 1, 2), 5),
        (8, (2,), 2),
        (8, (0, 1, 2), 4),
        (10, (1, 2, 3), 5),
        (12, (0, 2, 3), 3),
        (12, (2, 4), 4),
        (8, ((1,), (1,), (1,), (2,)), 1),
        (3, ((0,), (0,), (1,), (1,)), 2),
        (10, ((0, 2), (1, 3), (1, 3), (1, 3)), 3),
        (12, ((2,), (2,), (2,), (3,)), 1),
        (3, ((), (), (), (0,)), 0),
        (64, (0, 1, 2, 3, 4), 0),
    ],
)
def test_minimum_should_match_agrees_with_worked_examples(max_distance, radii, expected):
    """The values of the design's table, worked out by hand."""
    assert minimum_should_match(max_distance, radii) == expected


@pytest.mark.parametrize("largest", range(5))
@pytest.mark.parametrize("max_distance", range(21))
def test_consecutive_radii_have_a_closed_form(largest, max_distance):
    """For R = (0, 1, .., r) the count is 4 (r + 1) - k, or nothing."""
    radii = tuple(range(largest + 1))
    assert minimum_should_match(max_distance, radii) == max(0, 4 * (largest + 1) - max_distance)


def test_one_radius_has_the_pigeonhole_form():
    """For one radius r the count is 4 - floor(k / (r + 1)), or nothing."""
    for radius in range(5):
        for max_distance in range(65):
            expected = max(0, 4 - max_distance // (radius + 1))
            assert minimum_should_match(max_distance, (radius,)) == expected


def test_pass_share_of_the_pigeonhole():
    """One equal block of four: 1 - (1 - 2**-16)**4 of uniform fingerprints; everything passes a scan."""
    assert make_plan(3, (0,)).pass_share == pytest.approx(1 - (1 - 2**-16) ** 4)
    assert make_plan(4, (0,)).pass_share == 1


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
    pigeonhole = next(each for each in explain_plan(3, stats=stats) if each.plan == make_plan(3, (0,)))
    assert pigeonhole.hits == pytest.approx(244, rel=0.01)
    assert pigeonhole.postings == pytest.approx(244, rel=0.01)


def test_a_larger_index_wants_fewer_candidates():
    """What is cheap for a thousand documents is not for a thousand million."""
    small, large = (plan_lookup(10, stats=IndexStats(n), scripts=False) for n in (10**3, 10**8))
    assert small.terms < large.terms
    assert small.pass_share > large.pass_share


def test_radii_that_exclude_nothing_become_a_scan():
    """Forcing the pigeonhole at distance 4 gives a scan, not a query that loses documents."""
    assert make_plan(4, (0,)).is_scan


def test_names_tell_the_radii():
    """Once where all blocks have the same ones."""
    assert make_plan(5, (0, 1)).name == "r0,1 msm3"
    assert make_plan(4, ((0,), (0, 1), (0, 1), (0, 1))).name == "r0|0,1|0,1|0,1 msm3"


@pytest.mark.parametrize("max_distance", range(17))
@pytest.mark.parametrize("scripts", [True, False])
def test_radii_that_differ_by_block_never_cost_more(max_distance, scripts):
    """The best plan costs no more than the best with one set of radii for all blocks."""
    stats = IndexStats(4_000_000)
    sets = [radii for count in range(1, 6) for radii in combinations(range(5), count)]
    plans = [make_plan(max_distance, radii, script=scripts) for radii in sets]
    uniform = min(estimate(plan, stats).milliseconds for plan in plans)
    assert explain_plan(max_distance, stats=stats, scripts=scripts)[0].milliseconds <= uniform
