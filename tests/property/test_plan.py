"""Soundness of lookup plans: no pair within the distance is ever excluded."""

from hypothesis import given, strategies as st

from es_simhash.hashing import block_neighbours, split_blocks
from es_simhash.index.plan import _plans, candidate_share, make_plan
from es_simhash.index.query import candidate_clause

fingerprints = st.integers(0, 2**64 - 1)


def matches(clause, fingerprint):
    """Evaluate a candidate clause as a server does."""
    if "exists" in clause:
        return True
    terms = dict(zip((f"simhash.block{i}" for i in range(4)), (f"{b:04x}" for b in split_blocks(fingerprint))))
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
    plan = data.draw(st.sampled_from(_plans(max_distance)))
    assert matches(candidate_clause(fingerprint, plan), other), plan.name


@given(fingerprint=fingerprints, block=st.integers(0, 65535), radius=st.integers(0, 4))
def test_neighbours_are_exactly_the_blocks_within_the_radius(fingerprint, block, radius):
    """The terms of a clause are the Hamming ball, each once."""
    neighbours = block_neighbours(block, radius)
    assert len(set(neighbours)) == len(neighbours)
    other = fingerprint & 0xFFFF
    assert (other in neighbours) == ((other ^ block).bit_count() <= radius)


@given(st.sets(st.integers(0, 4), min_size=1), st.integers(0, 20))
def test_candidate_share_is_a_share(radii, max_distance):
    """Between 0 and 1, and smaller where more clauses must match."""
    plan = make_plan(max_distance, tuple(sorted(radii)))
    assert 0 < plan.candidate_share <= 1
    if plan.minimum_should_match > 1:
        assert plan.candidate_share <= candidate_share(plan.radii, plan.minimum_should_match - 1)
