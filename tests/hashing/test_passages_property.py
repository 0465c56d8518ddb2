"""Kept hashes and their guarantee, against the slow oracle."""

from bisect import bisect

import numpy as np
from hypothesis import assume, example, given, settings, strategies as st

from es_simhash.hashing.winnowing import passage_terms
from tests import reference

# A letter, a logograph, kana, Hangul, and characters that normalisation drops, joins, doubles or takes for separators.
MIXED = "abcdeé 京都中国新ｶﾞがかナ각한ßﬁ½…\u0301\u200d. "
PURE = ["abcdefgh", "京都中国新华社", "がかなのアイ", "각한국어", "ab京か "]


@st.composite
def texts(draw, longest=150, scripts=(*PURE, MIXED)):
    """A text of one script or of several, one after the other; few characters, so that runs repeat."""
    part = st.tuples(st.sampled_from(scripts), st.integers(0, 2**32), st.integers(1, longest))
    parts = draw(st.lists(part, max_size=4))
    return "".join("".join(np.random.default_rng(seed).choice(list(letters), count)) for letters, seed, count in parts)


@given(st.lists(st.one_of(texts(), st.text()), max_size=4))
@example(["京" * 79 + "a", "0", ""])
@settings(max_examples=12)
def test_terms_are_those_of_the_oracle(found):
    """Texts of any scripts, many at once, give the terms of the oracle, which looks at every window."""
    assert passage_terms(found) == [reference.passage_terms(text) for text in found]


@given(texts(), st.lists(texts(300), min_size=4, max_size=4), st.integers(0, 2_000))
@settings(max_examples=8)
def test_texts_that_share_a_run_share_a_term(run, around, start):
    """The shortest run worth 100 letters, in any surroundings and any mixture of scripts, is found."""
    repeated = (run * 20)[start % (len(run) * 20 or 1) :] + run * 20
    end = bisect(range(1, len(repeated)), False, key=lambda end: bool(windows_of(repeated[:end])))
    assume(windows_of(repeated[: end + 1]))
    shared = repeated[: end + 1]
    one, other = (f"{before}.{shared}.{after}" for before, after in (around[:2], around[2:]))
    first, second = passage_terms([one, other])
    assert set(first) & set(second)
    assert set(passage_terms([shared])[0]) == set(passage_terms([shared])[0]) & set(first) & set(second)


def windows_of(text):
    return reference.windows(reference.hashed_letters(text))


def test_lengths_of_the_guarantee():
    """100 letters, 80 characters of Chinese or 75 kana are one window; with one character less they have no window."""
    for letters, count in (("abcdefghijklm", 100), ("京都中国新华社报道", 80), ("あいうえおかきくけこ", 75)):
        text = "".join(np.random.default_rng(7).choice(list(letters), count))
        letters_of_text = reference.hashed_letters(text)
        assert len(reference.windows(letters_of_text)) == 1
        assert not reference.windows(letters_of_text[1:])
        assert len(passage_terms([text])[0]) == 1
