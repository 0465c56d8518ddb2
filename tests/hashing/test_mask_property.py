"""What a mask leaves out, against a slow oracle that looks at every gram as a string."""

from hypothesis import assume, example, given, settings, strategies as st

from es_simhash.hashing.mask import Cutter
from tests import reference, reference_passages

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
        gram = reference_passages.run_of(text[start : start + 25], reference_passages.GRAM)
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
            if sum(map(reference_passages.worth, letters[start:stop])) >= 12 * 50:
                covered[start:stop] = [True] * (stop - start)
            start = None
    return "".join(letter for letter, is_covered in zip(letters, covered, strict=True) if not is_covered)


@st.composite
def texts(draw):
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


@given(st.lists(st.one_of(texts(), st.text()), max_size=4))
@example([PASSAGES[0], "", PASSAGES[0][:-1], "\u0301" + PASSAGES[3], PASSAGES[2] * 2])
@settings(max_examples=100)
def test_what_is_left_is_that_of_the_oracle(found):
    """Of texts of any kind, many at once, the letters are left that stand in no run of the oracle."""
    # A character of which a run covers a part stays whole, and the oracle knows letters only.
    assume(not any("ß\u0301" in text.lower() for text in found))
    left = MASK.cut(found)
    assert [reference.normalise(text).replace(" ", "") for text in left] == list(map(left_of, found))
    assert left == [MASK.cut([text])[0] for text in found]


@given(st.lists(texts(), min_size=1, max_size=5), st.integers(10, 90))
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
    # The second passage goes on where the first one says "while": its last letters would be masked, too.
    assume(not reference.normalise(before).endswith("e"))
    bare = passage.rstrip(".")
    assert MASK.cut([f"{before}\n{bare}\n{after}"]) == [f"{before}\n \n{after}"]


def test_a_character_that_is_partly_covered_stays():
    """A passage that begins inside a ligature or ends inside a unit leaves these characters where they are."""
    inside = PASSAGES[0][:-1]
    assert Cutter(["i" + inside + "k"]).cut(["\ufb01" + inside + "\u338f."]) == ["\ufb01 \u338f."]
