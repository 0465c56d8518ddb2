"""Results as tables: rows that lose nothing, HTML in which texts stay texts, and data frames of the real libraries."""

from __future__ import annotations

import json
import random
import re

import pytest

from es_simhash import MissingDependencyError, NearDup, NearDups
from es_simhash.groups.pairs_and_groups import Group
from es_simhash.quality.explanation import explain
from es_simhash.quality.health import Diagnosis, Finding
from es_simhash.quality.stats import GroupCounts, GroupSize, Stats
from es_simhash.quality.tune import PresetFigures, Tuning
from es_simhash.tables.hidden import escape_in_json, shown, visible
from es_simhash.tables.notebook import SHOWN_CHARACTERS, SHOWN_ROWS
from es_simhash.tables.tabular import to_columns, to_frame
from tests.pages import HOSTILE, Page

# What our own markup has; a text of a user adds nothing to it.
TAGS = {
    *("div", "style", "p", "strong", "table", "caption", "thead", "tbody", "tr", "th", "td", "bdi", "span"),
    *("svg", "rect"),
}
ATTRIBUTES = {"class", "scope", "dir", "width", "height", "viewbox", "preserveaspectratio", "aria-hidden"}


def read(result):
    """Return what a notebook shows of *result*, after checking that it can do nothing but be looked at."""
    reader = Page(result._repr_html_())
    assert {*reader.tags} <= TAGS | {"ins", "del"}
    assert reader.attributes <= ATTRIBUTES
    assert not re.search(r"url\(|@import", "".join(reader.styles))
    return reader.texts


def near_dup(number, **more):
    """Return a near-duplicate with a fingerprint whose hex digits begin with zeros."""
    return NearDup(f"n{number}", "news", number, number + 1, **more)


def test_texts_stay_texts():
    """In ids, names of fields, values, titles and notes."""
    items = tuple(NearDup(each, each, 1, 1, source={each: each}) for each in HOSTILE)
    shown = read(NearDups(items, complete=False, reasons=tuple(HOSTILE)))
    assert sum("<script>document" in each for each in shown) >= 4
    assert not any("\u202e" in each or "\x1b" in each for each in shown)
    read(Group(HOSTILE[0], items))
    read(
        Diagnosis(
            HOSTILE[0],
            findings=tuple(
                Finding("error", "mapping", {"index": each, "fault": each, "advice": each}) for each in HOSTILE
            ),
        )
    )
    read(explain(" ".join(HOSTILE), " ".join(reversed(HOSTILE))))


def test_long_tables_and_texts_say_what_they_cut():
    """A notebook with a million rows would not open."""
    many = NearDups(tuple(near_dup(n, source={"body": "x" * 1_000}) for n in range(SHOWN_ROWS + 5)))
    shown = read(many)
    assert "and 5 more rows: to_dicts() has all" in shown
    assert max(map(len, shown)) == SHOWN_CHARACTERS
    assert len(many.to_dicts()) == SHOWN_ROWS + 5
    assert "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, … 4,000 values]" in read(
        NearDups((near_dup(0, source={"n": [*range(4_000)]}),))
    )


def test_figures_are_tables():
    """Diagnosis, tuning and explanation, each with what matters in its title."""
    finding = Finding("warning", "mapping", {"index": "news", "fault": "no text", "advice": "run it"})
    assert "news: healthy; 3 of 4 documents have a fingerprint" in read(Diagnosis("news", 4, 3, 3, (finding,)))
    presets = (PresetFigures("near", 10, 0.8, 0.9, 0.95),)
    tuning = Tuning("news", 100, 10, presets, "near", reasons=("few texts",))
    shown = read(tuning)
    assert "news: recommended preset: near, from a sample of 10 of 100 documents" in shown
    assert {"few texts", "95.0 %"} <= set(shown)
    assert [(row["preset"], row["recall"]) for row in tuning.to_dicts()] == [("near", 0.9)]
    explained = explain("the quick brown fox jumps", "the quick red fox jumps")
    assert {"brown", "red"} <= {each.strip() for each in read(explained)}


def test_stats_are_a_row_for_each_number():
    """Sizes and distances in one table of rows, and a table each in a notebook."""
    stats = Stats(
        "news", 10, 10, duplicates=5, groups=GroupCounts({2: 5}, (GroupSize(HOSTILE[0], 2),)), distances={3: 5}
    )
    assert stats.to_dicts() == [
        {"by": "size", "value": 2, "groups": 5},
        {"by": "distance", "value": 3, "duplicates": 5},
    ]
    assert {"news: 10 documents, 5 duplicates (50.0 %), 5 groups", HOSTILE[0], "Duplicates by distance"} <= set(
        read(stats)
    )


def test_columns_lose_nothing():
    """A column of several types becomes text, and so do numbers that a data frame would round."""
    rows = [{"n": 1, "mixed": 1, "big": 2**64, "list": ["x"]}, {"n": 2.5, "mixed": "a", "big": 1, "flag": True}]
    assert to_columns(rows) == {
        "n": [1.0, 2.5],
        "mixed": ["1", "a"],
        "big": [str(2**64), "1"],
        "list": ['["x"]', None],
        "flag": [None, True],
    }


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_data_frames(library):
    """The same rows; fingerprints keep their zeros; an empty answer has its columns."""
    pytest.importorskip(library)
    chance = random.Random(1)
    items = tuple(near_dup(n, similarity=chance.random(), source={"n": n, "v": [n, "x"][n % 2]}) for n in range(5))
    found = NearDups(items)
    frame = getattr(found, f"to_{library}")()
    assert frame["fingerprint"].to_list() == [f"{n + 1:016x}" for n in range(5)]
    assert frame["similarity"].to_list() == [each.similarity for each in items]
    assert frame["source.v"].to_list() == ["0", "x", "2", "x", "4"]
    assert frame["distance"].sum() == 10
    empty = getattr(NearDups(), f"to_{library}")()
    assert (len(empty), list(empty.columns)) == (0, list(NearDups._COLUMNS))


def test_a_library_that_is_not_installed_is_named():
    """In one line, with what to do."""
    with pytest.raises(MissingDependencyError) as caught:
        to_frame("no_such_frames", [])
    assert str(caught.value) == "no_such_frames is not installed: pip install no_such_frames"


def test_what_nobody_sees_is_an_escape():
    """On a terminal, in a page, and in JSON, where it means the same."""
    for sign in "\x00\x1b\x9b\xad\u061c\u115f\u200b\u200e\u202e\u2060\u2069\u3164\ufeff\ufff9\U000e0041\U000e01ef":
        escape = sign.encode("unicode_escape").decode()
        assert shown(f"a{sign}b") == visible(f"a{sign}b") == f"a{escape}b"
        text = json.dumps(f"北{sign}京", ensure_ascii=False)
        assert sign not in escape_in_json(text)
        assert json.loads(escape_in_json(text)) == f"北{sign}京"


@pytest.mark.parametrize(
    ("text", "stays"),
    [
        *(
            (text, True)
            for text in ("می\u200cخواهم", "👩\u200d🚀", "❤\ufe0f\u200d🔥", "1\ufe0f\u20e3", "葛飾", "a\tb\nc")
        ),
        *((text, False) for text in ("pay\u200cpal", "\u200d", "北\ufe0f\ufe01", "👩\u200d\u200d", "a\ufe00")),
    ],
)
def test_what_shapes_a_letter_or_a_picture_stays(text, stays):
    """Not a joiner in a word of ASCII, nor one after another: so texts are made to differ, or to carry others."""
    assert (shown(text) == text, "\\u" in shown(text)) == (stays, not stays)
