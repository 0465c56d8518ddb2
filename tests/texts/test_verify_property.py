"""Similarity of texts in arrays against sets of words, spelt out."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from es_simhash.texts.measures import compare_pairs, compare_texts
from es_simhash.texts.shingles import shingle_set, shingle_sets
from tests import reference

TEXTS = st.one_of(
    st.text(max_size=40),
    st.text(st.sampled_from("ab c 长江. は7ไ\n"), max_size=60),
    st.lists(st.sampled_from(["the", "cat", "sat", "on", "a", "mat", "北京", "2024", "北", "。"]), max_size=30).map(
        " ".join
    ),
)


@given(TEXTS, TEXTS)
def test_similarity_is_that_of_sets_of_runs_of_words(first, second):
    """Jaccard and containment of the hashed shingles are those of the words themselves."""
    one, other = reference.shingle_runs(first), reference.shingle_runs(second)
    found = compare_texts(first, second)
    assert len(shingle_set(first)) == len(one)
    assert found.jaccard == pytest.approx(len(one & other) / max(1, len(one | other)))
    assert found.containment == pytest.approx(len(one & other) / max(1, min(len(one), len(other))))


@given(st.lists(TEXTS, min_size=1, max_size=6), st.data())
def test_many_pairs_at_once(texts, data):
    """Pairs compared together have the similarity of each pair alone."""
    place = st.integers(0, len(texts) - 1)
    pairs = data.draw(st.lists(st.tuples(place, place), max_size=12))
    left, right = (np.array([pair[side] for pair in pairs], np.int64) for side in (0, 1))
    jaccard, containment = compare_pairs(texts, left, right)
    expected = [compare_texts(texts[a], texts[b]) for a, b in pairs]
    assert jaccard.tolist() == [each.jaccard for each in expected]
    assert containment.tolist() == [each.containment for each in expected]


@given(st.lists(TEXTS, max_size=8), st.integers(1, 100))
def test_many_texts_are_cut_like_each_alone(texts, batch):
    """However many are cut together."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("es_simhash.texts.shingles._BATCH", batch)
        found = shingle_sets(texts)
    assert [each.tolist() for each in found] == [shingle_set(text).tolist() for text in texts]


@given(TEXTS, st.integers(1, 9))
def test_long_texts_are_read_in_pieces(text, piece):
    """Where a long text is cut into pieces does not matter."""
    whole = shingle_set(text * 3).tolist()
    assert shingle_set(text * 3, piece=piece).tolist() == whole
