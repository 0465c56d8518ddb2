"""Groups and in-memory neighbours, held to slow and obvious code."""

from tempfile import TemporaryFile

import numpy as np
import pytest
from hypothesis import given, strategies as st

from es_simhash.groups import assign
from es_simhash.groups.assign import group_fingerprints
from es_simhash.groups.pairs_and_groups_flow import distinct
from es_simhash.groups.rule import Resources
from tests.groups.strategies import related_fingerprints
from tests.reference import connected, star

distances = st.integers(0, 64)


@given(related_fingerprints(30), distances, st.sampled_from([0, 3, 1 << 24]), st.sampled_from([1, 2, 50]))
def test_groups_are_those_of_the_rule(values, max_distance, most_edges, most_rounds):
    """With pairs in memory, in a file, and with nowhere to put them; with chains settled in rounds and one by one."""
    array = np.array(values, np.uint64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(assign, "MOST_EDGES", most_edges)
        patch.setattr(assign, "PAIRS_READ", 2)
        patch.setattr(assign, "MOST_ROUNDS", most_rounds)
        patch.setattr(assign, "STEP", 3)
        spilled = Resources(spill=TemporaryFile, threads=2, memory_bytes=1 << 20)
        assert group_fingerprints(array, max_distance).tolist() == star(values, max_distance)
        assert group_fingerprints(array, max_distance, resources=spilled).tolist() == star(values, max_distance)
        found = group_fingerprints(array, max_distance, rule="connected", resources=spilled)
        assert found.tolist() == connected(values, max_distance)


def test_copies_cost_nothing():
    """A million copies of one fingerprint are one group, at once."""
    values = np.full(1_000_000, 7, np.uint64)
    assert not group_fingerprints(values, 64).any()


@given(related_fingerprints(), distances)
def test_distinct_keeps_the_first_of_each(values, max_distance):
    """No two hits kept are near, each dropped hit is near one kept before it, and order stays."""
    hits = [{"_id": str(n), "fields": {"simhash.fingerprint": [f"{value:016x}"]}} for n, value in enumerate(values)]
    kept = [int(hit["_id"]) for hit in distinct(hits, max_distance)]
    assert kept == [place for place, canonical in enumerate(star(values, max_distance)) if canonical == place]


def test_distinct_reads_every_form_and_keeps_what_it_cannot_judge():
    """From ``_source``, nested or dotted; a hit without fingerprint stays."""
    hits = [
        {"_id": "a", "_source": {"simhash": {"fingerprint": "00" * 8}}},
        {"_id": "b", "_source": {"simhash.fingerprint": "00" * 8}},
        {"_id": "c", "_source": {"title": "x"}},
        {"_id": "d"},
    ]
    assert [hit["_id"] for hit in distinct(hits)] == ["a", "c", "d"]
