"""The guard rails of a removal: shares, and what exceeds them."""

from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from es_simhash.errors import GuardRailError
from es_simhash.removal.may_delete import Guards, Share, refuse_excess


@given(st.integers(1, 1000), st.integers(0, 100))
def test_a_share_that_is_exact_is_allowed(hundreds, percent):
    """Also where floating point has another opinion, as for 29 of 100."""
    share = Share(hundreds * percent, hundreds * 100)
    assert not share.exceeds(percent / 100)
    assert replace(share, removals=share.removals + 1).exceeds(percent / 100)


def test_guards():
    """A share of exactly the largest is allowed; of a value too."""
    guards = Guards(0.2, "source", 10, {"a": Share(1, 4), "b": Share(1, 5)})
    assert [(each.field, each.value) for each in guards.find_excess(2)] == [("source", "a")]
    assert [(each.field, each.value) for each in guards.find_excess(3)] == [(None, None), ("source", "a")]
    assert Guards(1.0, None, 3).find_excess(3) == []
    with pytest.raises(GuardRailError) as caught:
        refuse_excess(guards.find_excess(3))
    assert len(caught.value.excess) == 2
