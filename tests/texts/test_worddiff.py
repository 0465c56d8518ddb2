"""The words that differ between two texts are found and shown briefly, in any two texts."""

import pytest
from hypothesis import given, strategies as st

from es_simhash.errors import InvalidInputError
from es_simhash.texts.worddiff import Change, word_diff

SHORT = [
    ("如今四十分钟就够了", "如今五十五分钟就够了", "如今 -四十 +五十五 分钟就够了"),
    ("Rent_is_1,450.50", "Rent_is_1,395", "Rent_is_ -1,450.50 +1,395"),
    ("新闻：完成2万标箱", "新闻\n：完成2亿标箱", "新闻：完成2 -万 +亿 标箱"),
]


@pytest.mark.parametrize(("before", "after", "shown"), SHORT)
def test_one_change(before, after, shown):
    """Chinese is compared by character, a number with its separators is one word, line breaks are no change."""
    (excerpt,) = word_diff(before, after).excerpts
    signs = {Change.SAME: "", Change.REMOVED: "-", Change.ADDED: "+"}
    assert "".join(signs[part.change] + part.text for part in excerpt).split() == "".join(shown.split(" ")).split()


def test_equal_texts():
    """They have no excerpts, however long they are."""
    for text in ("", "a", "天地" * 500_000):
        assert word_diff(text, text) == word_diff("", "")


def test_distant_changes():
    """They make separate excerpts with ellipses; those beyond the limit are counted."""
    before = " ".join(f"w{i}" for i in range(100))
    after = before.replace("w10 ", "x ").replace("w90 ", "y ")
    first, second = word_diff(before, after, context=2).excerpts
    assert [segment.text for segment in first] == ["…w9 ", "w10", "x", " w11…"]
    assert [segment.text for segment in second] == ["…w89 ", "w90", "y", " w91…"]
    diff = word_diff(before, after, max_changes=1)
    assert (diff.omitted, diff.excerpts[-1][-1].text[-1]) == (1, "…")
    with pytest.raises(InvalidInputError, match="max_changes"):
        word_diff("a", "b", max_changes=0)


def test_a_moved_sentence():
    """It stays whole; a long change loses its middle."""
    diff = word_diff("One is here. Two is there. Three follows.", "Two is there. Three follows. One is here.")
    assert "One is here. " in [part.text for run in diff.excerpts for part in run if part.change is not Change.SAME]
    (excerpt,) = word_diff("a", "a " + "b" * 5000).excerpts
    assert max(len(part.text) for part in excerpt) < 100


@given(st.text(max_size=200), st.text(max_size=200))
def test_excerpts_where_texts_differ(before, after):
    """There are excerpts where more than blanks differs, and none of equal texts."""
    diff = word_diff(before, after)
    assert diff.excerpts or "".join(before.split()) == "".join(after.split())
    assert before != after or not diff.excerpts
    assert not diff.is_cut


@given(st.text(alphabet="ab .。天", max_size=40), st.text(alphabet="ab .。天", max_size=40))
def test_excerpts_hold_both_texts(before, after):
    """With room enough, the excerpts hold both texts to the last character that is no blank."""
    diff = word_diff(before, after, max_changes=100, context=100)
    for text, gone in ((before, Change.ADDED), (after, Change.REMOVED)):
        kept = "".join(part.text for run in diff.excerpts for part in run if part.change is not gone)
        assert not diff.excerpts or "".join(kept.split()) == "".join(text.split())


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("ab" * 1_000_000, "ba" * 1_000_000),
        ("a. " * 100_000, "a. b. " * 100_000),
        ("".join(map(chr, range(0x4E00, 0x9000))), "".join(map(chr, range(0x9000, 0x4E00, -1))) * 2),
    ],
)
def test_long_repetitive_texts(before, after):
    """Long texts that repeat themselves are compared in part, and the result says so."""
    diff = word_diff(before, after)
    assert diff.is_cut
    assert sum(len(part.text) for run in diff.excerpts for part in run) < 2000
