"""The measures of texts in arrays against characters and words, spelt out."""

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, strategies as st

from es_simhash.texts import edit
from es_simhash.texts.measures import TextMeasure, compare_pairs, compare_texts
from es_simhash.texts.shingles import shingle_sets
from tests import reference

TEXTS = st.one_of(
    st.text(max_size=20),
    st.text(st.sampled_from("ab c 长江. は7ไ한\n"), max_size=30),
    st.lists(st.sampled_from(["the", "cat", "sat", "mat", "北京", "2024", "。"]), max_size=8).map(" ".join),
)
LONGER = st.one_of(
    st.text(max_size=40),
    st.text(st.sampled_from("ab c 长江. は7ไ\n"), max_size=60),
    st.lists(st.sampled_from(["the", "cat", "sat", "on", "a", "mat", "北京", "2024", "北", "。"]), max_size=30).map(
        " ".join
    ),
)
BOUNDS = st.sampled_from([0.0, 0.3, 0.5, 0.8, 0.9, 1.0])
LETTERS = TextMeasure("edit", "characters")
UNITS = st.lists(st.integers(0, 5), max_size=120).map(lambda units: np.array(units, np.uint64))


@given(LONGER, LONGER)
def test_similarity_is_that_of_sets_of_runs_of_words(first, second):
    """Jaccard and containment of the hashed shingles are those of the words themselves."""
    one, other = reference.shingle_runs(first), reference.shingle_runs(second)
    found = compare_texts(first, second)
    assert len(shingle_sets([first])[0]) == len(one)
    assert found.jaccard == pytest.approx(len(one & other) / max(1, len(one | other)))
    assert found.containment == pytest.approx(len(one & other) / max(1, min(len(one), len(other))))


@given(st.lists(LONGER, min_size=1, max_size=6), st.data())
def test_many_pairs_at_once(texts, data):
    """Pairs compared together have the similarity of each pair alone."""
    place = st.integers(0, len(texts) - 1)
    pairs = data.draw(st.lists(st.tuples(place, place), max_size=12))
    left, right = (np.array([pair[side] for pair in pairs], np.int64) for side in (0, 1))
    jaccard, containment = compare_pairs(texts, left, right)
    expected = [compare_texts(texts[a], texts[b]) for a, b in pairs]
    assert jaccard.tolist() == [each.jaccard for each in expected]
    assert containment.tolist() == [each.containment for each in expected]


@given(st.lists(LONGER, max_size=8), st.integers(1, 100))
def test_many_texts_are_cut_like_each_alone(texts, batch):
    """However many are cut together."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("es_simhash.texts.shingles._BATCH", batch)
        found = shingle_sets(texts)
    assert [each.tolist() for each in found] == [shingle_sets([text])[0].tolist() for text in texts]


@given(LONGER, st.integers(1, 9))
def test_long_texts_are_read_in_pieces(text, piece):
    """Where a long text is cut into pieces does not matter."""
    [whole], [found] = shingle_sets([text * 3]), shingle_sets([text * 3], piece=piece)
    assert found.tolist() == whole.tolist()


@given(TEXTS, TEXTS, BOUNDS, st.sampled_from(["words", "characters"]))
def test_edit_similarity_is_that_of_the_textbook(first, second, bound, unit):
    """Exactly, from the bound on; below it 0."""
    measure = TextMeasure("edit", unit)
    cut = reference.words if unit == "words" else reference.letters_only
    expected = float(reference.edit_similarity(first, second, cut=cut))
    found = measure.compare(*measure.prepare([first, second]), bound=bound)
    assert found.similarity == (pytest.approx(expected) if expected >= bound else 0.0)
    assert found.containment is None


@given(st.lists(TEXTS, min_size=2, max_size=5))
def test_shingles_of_characters_are_runs_of_letters(texts):
    """However many texts are cut together."""
    sets = [reference.letter_runs(text) for text in texts]
    left, right = np.zeros(len(texts), np.int64), np.arange(len(texts))
    for name in ("jaccard", "containment"):
        similarity, containment = compare_pairs(texts, left, right, measure=TextMeasure(name, "characters"))
        for one, found, contained in zip(sets, similarity.tolist(), containment.tolist(), strict=True):
            shared = len(one & sets[0])
            share = shared / max(1, min(len(one), len(sets[0])))
            assert contained == pytest.approx(share)
            whole = share if name == "containment" else shared / max(1, len(one | sets[0]))
            assert found == pytest.approx(whole)


@given(UNITS, UNITS, st.integers(0, 120), BOUNDS)
def test_long_texts_are_never_more_similar_than_they_are(first, second, shared, bound):
    """Where texts are cut at runs that both have, the edits between suffice, and may be more than the fewest."""
    second = np.concatenate([second, first[:shared]])
    exact = edit.edit_similarity(first, second)
    with patch.multiple(edit, EXACT_UNITS=4, _EXACT_PART=64, _RUN=2, _ONE_OF=1, _APART=3):
        found = edit.edit_similarity(first, second, bound=bound)
    assert 0 <= found <= exact
    assert found == 0 or found >= bound


@pytest.mark.parametrize("unit", ["words", "characters"])
def test_a_long_text_with_scattered_errors_is_found(unit):
    """One unit in 20 is another, and some are missing: the similarity is what the edits leave."""
    chance = np.random.default_rng(3)
    size = 3 * edit.EXACT_UNITS
    first, last = (1 << 50, 1 << 60) if unit == "words" else (0x61, 0x7A)
    units = chance.integers(first, last, size).astype(np.uint64)
    changed = units.copy()
    changed[chance.choice(size, size // 20, replace=False)] = 0x2D00
    changed = np.delete(changed, chance.choice(size, 1_000, replace=False))
    found = edit.edit_similarity(units, changed, bound=0.9)
    assert found == pytest.approx(0.95 - 1_000 / size, abs=0.002)
    assert edit.edit_similarity(units, chance.permutation(units), bound=0.5) == 0


def test_what_a_long_text_repeats_needs_no_edit():
    """A text without a run that it has once is cut nowhere, and is still equal to itself."""
    letters = np.full(3 * edit.EXACT_UNITS, 0x61, np.uint64)
    changed = np.insert(letters, 40_000, 0x62)
    assert edit.edit_similarity(letters, letters, bound=1.0) == 1.0
    assert edit.edit_similarity(letters, changed) == 1 - 1 / changed.size


def test_a_long_text_that_repeats_itself_and_has_scattered_errors_is_found():
    """No run stands in it once, and still few edits are found to suffice."""
    chance = np.random.default_rng(5)
    lines = chance.integers(0x61, 0x7A, (6, 90)).astype(np.uint64)
    units = lines[chance.integers(0, 6, 1_200)].ravel()
    changed = units.copy()
    changed[chance.choice(units.size, units.size // 50, replace=False)] = 0x2D00
    changed = np.delete(changed, chance.choice(units.size, 300, replace=False))
    assert edit.edit_similarity(units, changed, bound=0.9) == pytest.approx(0.98 - 300 / units.size, abs=0.005)


def test_letters_leave_out_what_stands_between_words():
    """Space, hyphen and case are no edits, whatever the length of the text."""
    long = "The boat leaves at nine. " * 50_000
    short, other, whole = LETTERS.prepare(["The boat-leaves  at\nNINE!", "the boat leaves at nine", long])
    assert LETTERS.compare(short, other).similarity == 1.0
    assert whole.size == 19 * 50_000
