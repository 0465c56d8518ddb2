"""Soundness of lookup plans: no pair within the distance is ever excluded."""

from math import inf

from hypothesis import given, strategies as st

from es_simhash.hashing import block_terms
from es_simhash.lookup.plan import LookupPlan, explain_plan, pass_share
from es_simhash.lookup.query import candidate_clauses
from es_simhash.transport.protocol import MAX_CLAUSES

fingerprints = st.integers(0, 2**64 - 1)


def matches(clause, fingerprint):
    """Evaluate one of the candidate clauses as a server does."""
    if "exists" in clause:
        return True
    if "script" in clause:
        parameters = clause["script"]["script"]["params"]
        wanted = parameters["wanted"] if isinstance(parameters["wanted"], list) else [parameters["wanted"]]
        return any(((each ^ fingerprint) & (2**64 - 1)).bit_count() <= parameters["most"] for each in wanted)
    if any("bool" in each for each in clause["bool"]["should"]):
        return any(matches(each, fingerprint) for each in clause["bool"]["should"])
    terms = dict(zip((f"simhash.block{i}" for i in range(4)), block_terms(fingerprint)))
    counts = 0
    for each in clause["bool"]["should"]:
        [(field, values)] = each["terms"].items()
        counts += terms[field] in values
    return counts >= clause["bool"]["minimum_should_match"]


@given(data=st.data(), fingerprint=fingerprints, max_distance=st.integers(0, 24))
def test_no_plan_excludes_a_fingerprint_within_its_distance(data, fingerprint, max_distance):
    """Flip at most max_distance bits, chosen anyhow: the clause of every plan still matches."""
    flips = data.draw(st.sets(st.integers(0, 63), max_size=max_distance))
    other = fingerprint
    for bit in flips:
        other ^= 1 << bit
    plan = data.draw(st.sampled_from([each.plan for each in explain_plan(max_distance)]))
    strangers = data.draw(st.lists(fingerprints, max_size=2))
    for clause in (*candidate_clauses([fingerprint], plan), *candidate_clauses([*strangers, fingerprint], plan)):
        assert matches(clause, other), plan.name


@given(st.integers(4, 20), st.integers(0, 20))
def test_the_fewest_clauses_that_match(steps, max_distance):
    """Over every way to spend the distance, block after block."""
    plan = LookupPlan(max_distance, steps)
    fewest = [0] + [inf] * max_distance  # by what is spent
    for radii in plan.radii:
        matched = [sum(distance <= radius for radius in radii) for distance in range(17)]
        fewest = [
            min(fewest[spent - own] + matched[own] for own in range(min(spent, 16) + 1))
            for spent in range(max_distance + 1)
        ]
    assert plan.minimum_should_match == min(fewest)
    assert 0 < pass_share(plan) <= 1


@given(st.integers(0, 24))
def test_default_limits_are_kept(max_distance):
    """Where scripts are refused there is still a plan, if need be the scan; none has long lists or many clauses."""
    for estimate in explain_plan(max_distance, scripts=False):
        plan = estimate.plan
        assert not plan.script
        assert plan.clauses < MAX_CLAUSES / 20
        assert plan.terms < 65_536  # index.max_terms_count, by default
