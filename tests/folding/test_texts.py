"""A list of texts without near-duplicates, against each text compared with all that stay."""

import functools
import random

import pytest
from hypothesis import given, strategies as st

from es_simhash import InvalidInputError, distinct_texts, fingerprint, hamming_distance
from es_simhash.texts.measures import PRESETS
from tests.servers.support import texts

ARTICLE = "The council approved the new bridge over the river on Tuesday after a long debate about its cost. "


once = functools.cache(fingerprint)


@functools.cache
def prepared(text, name):
    [only] = PRESETS[name].text_measure().prepare([text])
    return only


def near(first, second, preset):
    a, b = once(first), once(second)
    if a is None or b is None or hamming_distance(a, b) > preset.max_distance:
        return False
    texts_of_two = prepared(first, preset.name), prepared(second, preset.name)
    return preset.text_measure().compare(*texts_of_two).similarity >= preset.similarity


def kept_by_reading(every, preset, order):
    """The positions that stay: in the order of preference each that is near none that stays."""
    kept = []
    for position in order:
        if not any(near(every[position], every[other], preset) for other in kept):
            kept.append(position)
    return tuple(sorted(kept))


@pytest.mark.parametrize("name", PRESETS)
def test_what_stays(name):
    every = [*texts(60, seed=len(name)), "", " - ", ""]
    random.Random(name).shuffle(every)
    first = distinct_texts(every, preset=name)
    assert first.kept == kept_by_reading(every, PRESETS[name], range(len(every)))
    longest = distinct_texts(every, preset=name, keep="longest")
    order = sorted(range(len(every)), key=lambda each: -len(every[each]))
    assert longest.kept == kept_by_reading(every, PRESETS[name], order)
    assert distinct_texts(every, preset=name, keep=len) == longest
    dropped = [text.position for group in first.groups for text in group.dropped]
    assert sorted([*first.kept, *dropped]) == list(range(len(every)))
    for group in first.groups:
        for each in group.dropped:
            assert near(every[group.kept], every[each.position], PRESETS[name])
            assert PRESETS[name].similarity <= each.similarity <= 1


def test_one_default_finds_reposts():
    """An agency's line, a weekday, a word before, two of these, and a sentence more."""
    article = (
        "The council approved the new bridge over the river on Tuesday after a long debate about its cost and height. "
        "Work begins in March and takes two years, the mayor said, and the ferry goes on until the first cars cross. "
        "Shop owners by the harbour fear for their customers, while the bus company plans a line to the other bank. "
        "The city pays a third of the sum, the state the rest, and a toll was ruled out by all of the parties."
    )
    copies = [f"{article} (Agency)", article.replace("Tuesday", "Wednesday"), f"BREAKING: {article}"]
    copies += [f"BREAKING: {article} (Agency)", f"{article} Tickets for the ferry cost two euros."]
    assert distinct_texts([article, *copies]).kept == (0,)


def test_chinese():
    first = "国务院总理主持召开常务会议，部署进一步稳定和扩大就业的措施，决定延长有关政策的期限。" * 3
    assert distinct_texts([first, first.replace("，", "。"), first[::-1]]).kept == (0, 2)


@given(st.lists(st.text(max_size=40), max_size=12))
def test_any_texts(every):
    found = distinct_texts(every, preset="similar")
    members = [*found.kept, *(text.position for group in found.groups for text in group.dropped)]
    assert sorted(members) == list(range(len(every)))


def test_arguments():
    assert distinct_texts([]).kept == ()
    many = distinct_texts([*map(str, range(4_000)), ARTICLE, ARTICLE.upper()])
    assert (len(many.texts), many.texts[-1], repr(many)) == (4_001, ARTICLE, "<4,001 of 4,002 texts stay>")
    assert len(many._repr_html_()) < 5_000
    assert many.to_dicts() == [{"position": 4_001, "kept": 4_000, "similarity": 1.0, "text": ARTICLE}]
    assert distinct_texts(iter([ARTICLE])).kept == (0,)
    with pytest.raises(TypeError, match=r"texts\[0\] must be a string, not NoneType"):
        distinct_texts([None])
    with pytest.raises(InvalidInputError, match="keep must return values that can be compared"):
        distinct_texts(["a b c", "d e f"], keep=lambda text: None if text == "a b c" else 1)
