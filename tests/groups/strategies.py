"""Strategies that several property tests draw from."""

from hypothesis import strategies as st


@st.composite
def related_fingerprints(draw, most=40):
    """Fingerprints of which many are copies of, or a few bits from, one before them."""
    found = []
    for _ in range(draw(st.integers(0, most))):
        value = draw(st.sampled_from(found)) if found and draw(st.booleans()) else draw(st.integers(0, 2**64 - 1))
        for bit in draw(st.lists(st.integers(0, 63), max_size=5)):
            value ^= 1 << bit
        found.append(value)
    return found
