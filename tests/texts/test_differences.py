"""The kind of difference that a person is told: what one passage, a figure or other words make of a text."""

import pytest
from hypothesis import assume, given, strategies as st

from es_simhash.texts.measures import difference_of, prepare_text

TEXT = (
    "The office moved its counter to the second floor on Monday, and opens it at nine from now on. It was closed for "
    "two weeks after the flood of the river in May. The mayor said that the costs of 1.5 million are paid by the city."
)
OTHER = "Nobody was hurt, and the library next door lent its rooms to the staff until the end of the summer."
OPPOSITE = {"cut": "added", "added": "cut"}


def kind(first, second):
    return difference_of(prepare_text(first), prepare_text(second))


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        (TEXT, "same"),
        (TEXT.upper().replace(",", " --"), "same"),
        (TEXT.replace("second floor", "sec-\nond floor"), "same"),
        (TEXT.replace("1.5", "2.5"), "numbers"),
        (TEXT.replace("1.5", "1,5"), "same"),
        (TEXT + " (Agency)", "added"),
        ("BREAKING: " + TEXT, "added"),
        (TEXT.replace(" It was", f" {OTHER} It was"), "added"),
        (f"{OTHER[:40]} {TEXT} {OTHER}", "added"),
        (TEXT[:90] + TEXT[170:], "cut"),
        ("", "cut"),
        (TEXT.replace("Monday", "Tuesday"), "rewritten"),
        (TEXT.replace("1.5 million", "1.6 million").replace("Monday", "Friday"), "rewritten"),
        (OTHER, "rewritten"),
    ],
)
def test_kinds(changed, expected):
    """Seen from the other text, a cut is an addition, and the others stay what they are."""
    assert kind(changed, TEXT) == expected
    assert kind(TEXT, changed) == OPPOSITE.get(expected, expected)


def test_chinese():
    """Characters without spaces between them, and their numbers."""
    text = "港务局周一早上把柜台搬到了二楼，今后上午九点开门。市长说工程还要进行两年，费用1.5亿元由市政府承担。"
    assert kind(text.replace("1.5", "3.5"), text) == "numbers"
    assert kind(text.replace("周一早上", ""), text) == "cut"
    assert kind(text.replace("周一", "周二"), text) == "rewritten"


@given(st.text(max_size=60), st.text(max_size=60), st.text(max_size=60))
def test_one_passage_more(before, passage, after):
    """Whatever the letters are, a text with one passage more is the same or has something added."""
    longer, shorter = prepare_text(f"{before} {passage} {after}"), prepare_text(f"{before} {after}")
    assume(longer.letters.size > shorter.letters.size)
    assert difference_of(longer, shorter) == "added"
    assert difference_of(shorter, longer) == "cut"
