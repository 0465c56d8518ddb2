"""Kept hashes, their guarantee, and what a mask leaves out, against the slow oracle."""

import numpy as np
from hypothesis import assume, example, given, settings, strategies as st

from es_simhash.hashing.mask import Cutter
from es_simhash.hashing.winnowing import long_text_terms, passage_terms
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
@settings(max_examples=15)
def test_terms_are_those_of_the_oracle(found):
    """Texts of any scripts, many at once, give the terms of the oracle, which looks at every window."""
    assert passage_terms(found) == [reference.passage_terms(text) for text in found]


@given(st.one_of(texts(2_000), st.text()), st.integers(1, 700))
@settings(max_examples=20)
def test_a_long_text_in_pieces_has_the_same_terms(text, piece):
    """However a long text is cut into pieces, its terms stay the same."""
    assert long_text_terms(text, piece=piece) == passage_terms([text])[0]


@given(texts(), st.lists(texts(300), min_size=4, max_size=4), st.integers(0, 2_000))
@settings(max_examples=60)
def test_texts_that_share_a_run_share_a_term(run, around, start):
    """The shortest run worth 100 letters, in any surroundings and any mixture of scripts, is found."""
    normal = reference.normalise(run * 20).replace(" ", "")
    assume(normal)
    shared = reference.run_of(normal[start % len(normal) :] + normal * 20, reference.GUARANTEE)
    one, other = (f"{before}.{shared}.{after}" for before, after in (around[:2], around[2:]))
    assume(all(shared in reference.normalise(text).replace(" ", "") for text in (one, other)))
    first, second = passage_terms([one, other])
    assert set(first) & set(second)
    assert set(passage_terms([shared])[0]) == set(passage_terms([shared])[0]) & set(first) & set(second)


def test_lengths_of_the_guarantee():
    """100 letters, 80 characters of Chinese or 75 kana are one window; with one character less they have no window."""
    for letters, count in (("abcdefghijklm", 100), ("京都中国新华社报道", 80), ("あいうえおかきくけこ", 75)):
        text = "".join(np.random.default_rng(7).choice(list(letters), count))
        assert len(reference.windows(text)) == 1
        assert not reference.windows(text[1:])
        assert len(passage_terms([text])[0]) == 1


PASSAGES = [
    "The quick brown fox jumps over the lazy dog while seven wizards boxed; pack my jugs of liquor quickly.",
    "seven wizards boxed; pack my jugs of liquor quickly. And another line follows it from here to its very end.",
    "本邮件及其附件含有机密信息仅供收件人使用如果您误收了本邮件请立即通知发件人并删除全部内容谢谢配合",
    "版權所有不得轉載ｶﾞかなのアイ각한국어 all rights reserved ﬁnally ㎏ e\u0301t cetera und so weiter bis zum Schluß",
]
MASK = Cutter(PASSAGES)
LETTERS = {passage: reference.normalise(passage).replace(" ", "") for passage in PASSAGES}


def grams_of(text):
    """The gram from each character on, as long as one fits."""
    found = []
    for start in range(len(text)):
        gram = reference.run_of(text[start : start + 25], reference.GRAM)
        if gram is None:
            break
        found.append(gram)
    return found


KNOWN = {gram for letters in LETTERS.values() for gram in grams_of(letters)}


def left_of(text):
    """The letters of *text* that are in no masked run."""
    letters = reference.normalise(text).replace(" ", "")
    covered = [False] * len(letters)
    start = None
    for place, gram in enumerate([*grams_of(letters), None]):
        if gram in KNOWN:
            start = place if start is None else start
            stop = place + len(gram)
        elif start is not None:
            if sum(map(reference.worth, letters[start:stop])) >= 12 * 50:
                covered[start:stop] = [True] * (stop - start)
            start = None
    return "".join(letter for letter, is_covered in zip(letters, covered, strict=True) if not is_covered)


@st.composite
def masked_texts(draw):
    """Parts of passages, some in capitals, between other characters."""
    parts = []
    for _ in range(draw(st.integers(0, 4))):
        passage = draw(st.sampled_from(PASSAGES))
        start = draw(st.sampled_from([0, 0, 0, 1, 5, 20]))
        part = passage[start : start + draw(st.sampled_from([20, 38, 45, 55, 200]))]
        parts.append(part.upper() if draw(st.booleans()) else part)
        parts.append(
            draw(st.one_of(st.text(max_size=6), st.sampled_from(["", " ", "\u0301", "Kilo\u200dgramm", "京都。"])))
        )
    return "".join(parts)


@given(st.lists(st.one_of(masked_texts(), st.text()), max_size=4))
@example([PASSAGES[0], "", PASSAGES[0][:-1], "\u0301" + PASSAGES[3], PASSAGES[2] * 2])
@settings(max_examples=100)
def test_what_is_left_is_that_of_the_oracle(found):
    """Of texts of any kind, many at once, the letters are left that stand in no run of the oracle."""
    # A character of which a run covers a part stays whole, and the oracle knows letters only.
    assume(not any("ß\u0301" in text.lower() for text in found))
    left = MASK.cut(found)
    assert [reference.normalise(text).replace(" ", "") for text in left] == list(map(left_of, found))
    assert left == [MASK.cut([text])[0] for text in found]


@given(st.lists(masked_texts(), min_size=1, max_size=5), st.integers(10, 90))
@settings(max_examples=40)
def test_a_long_text_in_pieces_keeps_the_same(parts, piece):
    """However a long text is cut into pieces, the same of it is left."""
    text = "".join(parts)
    left = Cutter(PASSAGES, piece=piece).cut([text])[0]
    assert reference.normalise(left).split() == reference.normalise(MASK.cut([text])[0]).split()


@given(st.text(), st.sampled_from(PASSAGES), st.text())
@settings(max_examples=60)
def test_a_planted_passage_leaves_the_text(before, passage, after):
    """A passage between separators leaves what was there before, character by character, and a space."""
    # The second passage has "while" before what the first one ends with, and "And" after it: these would be masked too.
    assume(not reference.normalise(before).strip().endswith("e"))
    assume(not reference.normalise(after).strip().startswith("a"))
    bare = passage.rstrip(".")
    assert MASK.cut([f"{before}\n{bare}\n{after}"]) == [f"{before}\n \n{after}"]


def test_a_character_that_is_partly_covered_stays():
    """A passage that begins inside a ligature or ends inside a unit leaves these characters where they are."""
    inside = PASSAGES[0][:-1]
    assert Cutter(["i" + inside + "k"]).cut(["\ufb01" + inside + "\u338f."]) == ["\ufb01 \u338f."]
