"""What several tests of groups share: a strategy that they draw from, and the groups of documents by slow code."""

from functools import partial

from hypothesis import strategies as st

from es_simhash.texts.measures import WORD_SHINGLES, TextMeasure
from tests.reference import are_neighbours, canonical_order, edit_similarity, jaccard, star_of


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


MEASURED = {
    WORD_SHINGLES: jaccard,
    TextMeasure("edit", "characters"): edit_similarity,
}
"""Each measure as the reference computes it."""


def neighbours(items, grouping):
    """Return which two documents are neighbours, by slow and obvious code."""
    return partial(
        are_neighbours,
        max_distance=grouping.max_distance,
        similarity=grouping.similarity,
        measure=MEASURED[grouping.measure],
        per=grouping.per,
        within=grouping.within and (grouping.within.field, grouping.within.milliseconds),
    )


def oracle(items, grouping):
    """Return for each place that of its canonical."""
    order, near = canonical_order(items, grouping.order), neighbours(items, grouping)
    places = star_of(len(items), lambda a, b: near(items[order[a]], items[order[b]]))
    return {order[place]: order[canonical] for place, canonical in enumerate(places)}
