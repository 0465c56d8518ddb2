"""The words that differ between two texts are found and shown briefly, in any two texts."""

import re

import pytest
from hypothesis import given, strategies as st

from es_simhash.errors import InvalidInputError
from es_simhash.texts.worddiff import Change, word_diff


class TestWordDiff:
    """The words that differ are found in any two texts, and shown briefly."""

    def test_equal_texts(self):
        """Equal texts have no excerpts, however long they are."""
        for text in ("", "a", "天地" * 500_000):
            assert word_diff(text, text) == word_diff("", "")
            assert not word_diff(text, text).is_cut

    def test_chinese(self):
        """Chinese is compared by character and joined in runs."""
        (excerpt,) = word_diff("如今四十分钟就够了", "如今五十五分钟就够了").excerpts
        assert [(segment.change, segment.text) for segment in excerpt] == [
            (Change.SAME, "如今"),
            (Change.REMOVED, "四十"),
            (Change.ADDED, "五十五"),
            (Change.SAME, "分钟就够了"),
        ]

    def test_numbers(self):
        """A number with its separators is one word."""
        (excerpt,) = word_diff("Rent is 1,450.50 a month", "Rent is 1,395 a month").excerpts
        assert [segment.text for segment in excerpt] == ["Rent is ", "1,450.50", "1,395", " a month"]

    def test_distant_changes(self):
        """Distant changes make separate excerpts with ellipses."""
        before = " ".join(f"w{i}" for i in range(100))
        after = before.replace("w10 ", "x ").replace("w90 ", "y ")
        first, second = word_diff(before, after, context=2).excerpts
        assert [segment.text for segment in first] == ["…w9 ", "w10", "x", " w11…"]
        assert [segment.text for segment in second] == ["…w89 ", "w90", "y", " w91…"]

    def test_too_many_changes(self):
        """Changes beyond the limit are counted, and the last excerpt ends in an ellipsis."""
        before = " ".join(f"w{i}" for i in range(20))
        after = re.sub(r"w(\d*5)\b", r"x\1", before)
        diff = word_diff(before, after, max_changes=1)
        assert diff.omitted == 1
        assert diff.excerpts[-1][-1].text.endswith("…")
        assert word_diff(before, after, max_changes=2).omitted == 0

    def test_line_breaks_are_no_change(self):
        """A text that was broken into other lines shows the word that differs, and nothing else."""
        [diff] = word_diff("央视网消息（新闻联播）：完成2万标箱", "央视网消息\n（新闻联播）：完成2亿标箱").excerpts
        assert [segment.text for segment in diff if segment.change is not Change.SAME] == ["万", "亿"]

    def test_a_moved_sentence(self):
        """A moved sentence stays whole."""
        diff = word_diff("One is here. Two is there. Three follows.", "Two is there. Three follows. One is here.")
        changed = [segment.text for run in diff.excerpts for segment in run if segment.change is not Change.SAME]
        assert "One is here. " in changed

    def test_a_long_change(self):
        """A long change loses its middle."""
        (excerpt,) = word_diff("a", "a " + "b" * 5000).excerpts
        assert max(len(segment.text) for segment in excerpt) < 100

    def test_no_change_to_show(self):
        with pytest.raises(InvalidInputError, match="max_changes"):
            word_diff("a", "b", max_changes=0)

    @given(st.text(max_size=200), st.text(max_size=200))
    def test_excerpts_where_texts_differ(self, before, after):
        """There are excerpts where more than blanks differs, and none of equal texts."""
        diff = word_diff(before, after)
        assert diff.excerpts or "".join(before.split()) == "".join(after.split())
        assert before != after or not diff.excerpts
        assert not diff.is_cut

    @given(st.text(alphabet="ab .。天", max_size=40), st.text(alphabet="ab .。天", max_size=40))
    def test_excerpts_hold_both_texts(self, before, after):
        """With room enough, the excerpts hold both texts to the last character that is no blank."""
        diff = word_diff(before, after, max_changes=100, context=100)
        for text, gone in ((before, Change.ADDED), (after, Change.REMOVED)):
            kept = "".join(segment.text for run in diff.excerpts for segment in run if segment.change is not gone)
            assert not diff.excerpts or "".join(kept.split()) == "".join(text.split())

    @pytest.mark.parametrize(
        ("before", "after"),
        [
            ("ab" * 1_000_000, "ba" * 1_000_000),
            ("a. " * 100_000, "a. b. " * 100_000),
            ("".join(map(chr, range(0x4E00, 0x9000))), "".join(map(chr, range(0x9000, 0x4E00, -1))) * 2),
            ("x" * 10_000_000, ""),
            ("\n" * 300_000, "\n\r" * 300_000),
        ],
    )
    def test_long_repetitive_texts(self, before, after):
        """Long texts that repeat themselves are compared in part, and the result says so."""
        diff = word_diff(before, after)
        assert diff.is_cut
        assert sum(len(segment.text) for run in diff.excerpts for segment in run) < 2000
