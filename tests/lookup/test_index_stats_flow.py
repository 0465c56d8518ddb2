"""The size and skew of an index, which decide about plans."""

import pytest

from es_simhash import fingerprint_fields
from es_simhash.lookup.find_flow import SAMPLE, index_stats, mean_length
from es_simhash.mapping.context import Context
from tests.servers.support import planted
from tests.transport.by_hand import carry_out
from tests.transport.fake_server import FakeServer


def stats_of(fingerprints):
    store = FakeServer({f"{n:05d}": fingerprint_fields(each) for n, each in enumerate(fingerprints)})
    return carry_out(index_stats(Context(), "i"), store).result


def test_two_near_duplicates_in_the_sample_are_no_crowd():
    """Their block terms are in two documents of 40, and in two of the index: there is no skew."""
    fingerprints = planted(2_000)
    fingerprints[SAMPLE // 2] = fingerprints[0] ^ 1
    found = stats_of(fingerprints)
    assert found.documents == 2_000
    assert found.density < 2  # planted fingerprints have neighbours, too


def test_a_term_of_a_tenth_of_the_index_is_seen():
    """Whether the sample has many of its documents or two."""
    for hot in (range(0, 2_000, 10), [0, 1, *range(1_000, 1_198)]):
        fingerprints = planted(2_000)
        for n in hot:
            fingerprints[n] = fingerprints[n] >> 16 | 0xABCD << 48
        found = stats_of(fingerprints)
        share = sum(n < SAMPLE for n in hot) / SAMPLE
        assert found.density == pytest.approx((3 + share * 200 + 1 - share) / 4, rel=0.2)


def test_the_mean_length():
    """Of one list of five documents for two, and of three lists of one together."""
    assert mean_length(["a", "a", "b", "c", "d"], 8, {"a": 5}) == (5 + 5 + 1 + 1 + 1) / 5
    assert mean_length(["a", "a"], 9, {"a": 9}) == 9
