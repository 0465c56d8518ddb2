"""Lookup plans: the arithmetic behind them, and what they refuse."""

from collections import Counter
from itertools import combinations, product
from math import comb

import pytest

from es_simhash.lookup.plan import MS_PER_THOUSAND, LookupPlan, explain_plan, neighbour_count, pass_share, plan_lookup
from es_simhash.mapping.context import IndexStats


@pytest.mark.parametrize(("radius", "count"), [(0, 1), (1, 17), (2, 137), (3, 697), (4, 2517)])
def test_neighbour_count_is_the_size_of_a_hamming_ball(radius, count):
    """A block of 16 bits has sum of C(16, i) neighbours within a radius."""
    assert neighbour_count(radius) == count


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


def least_matches(radii, max_distance):
    """Return the fewest clauses of *radii*, those of each block, that block distances within the distance match."""
    least = {0: 0}  # by what is spent so far
    for of_block in radii:
        ways = [(spent + d, n + sum(d <= r for r in of_block)) for spent, n in least.items() for d in range(17)]
        least = {}
        for spent, matched in ways:
            if spent <= max_distance:
                least[spent] = min(matched, least.get(spent, matched))
    return min(least.values())


def milliseconds_of(radii, max_distance, documents):
    """Return what the cost model says of a plan without a script by any *radii*, of random fingerprints."""
    should_match = least_matches(radii, max_distance)
    passing = {0: 1.0}
    for of_block in radii:
        ways = [
            (n + sum(d <= r for r in of_block), share * comb(16, d) / 2**16)
            for n, share in passing.items()
            for d in range(17)
        ]
        passing = Counter()
        for matched, share in ways:
            passing[matched] += share
    terms = sum(neighbour_count(radius) for of_block in radii for radius in of_block)
    hits = documents * sum(share for matched, share in passing.items() if matched >= should_match)
    amounts = {"terms": terms, "postings": documents * terms / 2**16, "hits": hits}
    return sum(MS_PER_THOUSAND[name] * amount / 1000 for name, amount in amounts.items())


SETS = [radii for count in range(1, 6) for radii in combinations(range(5), count)]


@pytest.mark.parametrize("max_distance", [3, 8, 11, 16])
@pytest.mark.parametrize("documents", [10**4, 4 * 10**6])
def test_no_other_radii_are_much_cheaper(max_distance, documents):
    """Any for all blocks, or another for the last: within a fifth of the chosen plan, by the cost model."""
    best = min(milliseconds_of([one] * 3 + [last], max_distance, documents) for one, last in product(SETS, SETS))
    assert explain_plan(max_distance, stats=IndexStats(documents), scripts=False)[0].milliseconds <= 1.2 * best
