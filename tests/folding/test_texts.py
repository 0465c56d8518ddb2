"""A list of texts without near-duplicates, against each text compared with all that stay."""

import functools
import random

import pytest
from hypothesis import given, strategies as st

from es_simhash import InvalidInputError, distinct_texts, fingerprint, hamming_distance
from es_simhash.texts.measures import PRESETS
from tests import reference
from tests.passages.test_contained_property import PARTS, contains, words
from tests.servers.support import texts

ARTICLE = "The council approved the new bridge over the river on Tuesday after a long debate about its cost. "


once = functools.cache(fingerprint)


def near(first, second, preset):
    measure = preset.text_measure()
    a, b = once(first), once(second)
    if a is None or b is None or hamming_distance(a, b) > preset.max_distance:
        return False
    return measure.compare(*measure.prepare([first, second])).similarity >= preset.similarity


def size(text):
    """By what a text is longer than another."""
    return len(reference.long_runs(text)), len(text)


def kept_by_reading(every, preset, order):
    """The positions that stay: in the order of preference each that is near none that stays."""
    kept = []
    for position in order:
        if not any(near(every[position], every[each], preset) for each in kept):
            kept.append(position)
    return tuple(sorted(kept))


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("seed", range(3))
def test_what_stays(name, seed):
    every = [*texts(60, seed=seed), "", " - ", ""]
    random.Random(seed).shuffle(every)
    first = distinct_texts(every, preset=name)
    assert first.kept == kept_by_reading(every, PRESETS[name], range(len(every)))
    longest = distinct_texts(every, preset=name, keep="longest")
    order = sorted(range(len(every)), key=lambda each: -len(every[each]))
    assert longest.kept == kept_by_reading(every, PRESETS[name], order)
    assert distinct_texts(every, preset=name, keep=len) == longest
    dropped = [each.position for group in first.groups for each in group.dropped]
    assert sorted([*first.kept, *dropped]) == list(range(len(every)))
    for group in first.groups:
        for each in group.dropped:
            assert near(every[group.kept], every[each.position], PRESETS[name])
            assert PRESETS[name].similarity <= each.similarity <= 1


def test_what_another_contains():
    """A text goes that stands in a longer one, with those that it stood for; chains end at the longest."""
    longer = ARTICLE * 2 + " ".join(texts(1))
    longest = longer + " ".join(texts(1, seed=2))
    every = [longer, longer.upper(), "Rain is expected.", longest]
    assert distinct_texts(every).kept == (0, 2, 3)
    found = distinct_texts(every, contained=0.95)
    assert found.kept == (2, 3)
    [group] = found.groups
    assert [each.position for each in group.dropped] == [0, 1]
    assert all(each.contained >= 0.95 for each in group.dropped)
    [group] = distinct_texts(every[:2]).to_dict()["groups"]
    assert group["dropped"][0].keys() == {"position", "similarity"}


def test_what_a_contained_text_stood_for():
    """It goes only where it is contained too; else it stays, and stands for what is near it."""
    words = " ".join(texts(1)).split()
    inner = " ".join(words)
    more = inner + " one two three four five six"
    outer = "Before it. " + inner + " " + " ".join(texts(1, seed=2))
    assert distinct_texts([inner, more, outer], preset="similar").kept == (0, 2)
    found = distinct_texts([inner, more, outer, more.upper()], preset="similar", contained=0.95)
    assert found.kept == (1, 2)
    assert [(group.kept, [each.position for each in group.dropped]) for group in found.groups] == [(1, [3]), (2, [0])]


CORE = words(7, 30)
VARIANTS = (CORE, [*CORE, *words(8, 5)], [*CORE[:14], "other", *CORE[15:]], PARTS[0])
AROUND = (([], []), (PARTS[1], PARTS[2]), (PARTS[3], PARTS[4]), ([], PARTS[2]))


@st.composite
def overlapping(draw):
    """Draw a text: near to others, inside others, or both."""
    (before, after), core = draw(st.sampled_from(AROUND)), draw(st.sampled_from(VARIANTS))
    return " ".join([*before, *core, *after])


@given(
    st.lists(overlapping(), min_size=2, max_size=8),
    st.sampled_from(("near", "similar")),
    st.sampled_from(("first", "longest")),
)
def test_what_stays_is_neither_near_nor_contained(every, name, keep):
    """Of all that stay; and what goes is near the one that stays for it, or stands in it."""
    found = distinct_texts(every, preset=name, keep=keep, contained=0.95)
    for kept in found.kept:
        for other in found.kept:
            if kept != other:
                assert not near(every[kept], every[other], PRESETS[name])
                assert size(every[kept]) > size(every[other]) or not contains(every[kept], every[other])
    for group in found.groups:
        for each in group.dropped:
            if each.contained is None:
                assert near(every[group.kept], every[each.position], PRESETS[name])
            else:
                assert contains(every[each.position], every[group.kept])
    members = [*found.kept, *(each.position for group in found.groups for each in group.dropped)]
    assert sorted(members) == list(range(len(every)))


def test_chinese():
    first = "国务院总理主持召开常务会议，部署进一步稳定和扩大就业的措施，决定延长有关政策的期限。" * 3
    assert distinct_texts([first, first.replace("，", "。"), first[::-1]]).kept == (0, 2)


@given(st.lists(st.text(max_size=40), max_size=12))
def test_any_texts(every):
    found = distinct_texts(every, preset="similar", contained=0.9)
    members = [*found.kept, *(each.position for group in found.groups for each in group.dropped)]
    assert sorted(members) == list(range(len(every)))


def test_arguments():
    assert distinct_texts([]).kept == ()
    assert distinct_texts(iter([ARTICLE])).kept == (0,)
    for wrong, message in (
        ([None], r"texts\[0\] must be a string, not NoneType"),
        ("a text", "texts must be"),
        (3, "texts must be"),
    ):
        with pytest.raises(TypeError, match=message):
            distinct_texts(wrong)
    with pytest.raises(InvalidInputError, match="keep must return values that can be compared"):
        distinct_texts(["a b c", "d e f"], keep=lambda text: None if text == "a b c" else 1)
    with pytest.raises(InvalidInputError, match="unknown preset 'exact'"):
        distinct_texts([], preset="exact")
    with pytest.raises(InvalidInputError, match="keep 'last' is not known"):
        distinct_texts([], keep="last")
    with pytest.raises(InvalidInputError, match="contained 0.5 is out of range"):
        distinct_texts([], contained=0.5)
