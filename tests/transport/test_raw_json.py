"""JSON keeps its text: what is not changed is split, joined and written again without reading numbers."""

import json

import pytest
from hypothesis import given, settings, strategies as st

from es_simhash.removal.fits import read_exactly
from es_simhash.transport.raw_json import JsonText, join_members, keep_text, read_json, split_items, split_members

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=60)
@given(st.dictionaries(st.text(max_size=5), JSON, max_size=4), st.lists(JSON, max_size=4), st.sampled_from([None, 1]))
def test_json_is_split_and_joined(members, items, indent):
    """The parts mean what the whole means."""
    text = json.dumps(members, indent=indent)
    parts = split_members(text)
    assert {key: json.loads(value) for key, value in parts.items()} == members
    assert json.loads(join_members(parts)) == members
    assert "\n" not in join_members(parts)
    assert [json.loads(each) for each in split_items(json.dumps(items, indent=indent))] == items


@pytest.mark.parametrize("text", ["", "{", "[]", '{"a"}', '{"a": 1', '{"a": 1,}', '{"a": 01x}', "1", "{a: 1}"])
def test_json_that_is_broken(text):
    """A ValueError, wherever it breaks."""
    with pytest.raises(ValueError, match=r".*"):
        split_members(text)
    with pytest.raises(ValueError, match=r".*"):
        list(split_items(text[:1] + text[1:].replace("]", "")))


NUMBERS = st.sampled_from(["1.10", "0", "-0.0", "1E5", "1e999", "1234567890.123456789012", "123456789012345678901"])
KEYS = st.text('ab. "\\{}', max_size=3)
LEAVES = NUMBERS | st.text('a"\\{},\n你', max_size=4).map(json.dumps) | st.sampled_from(["null", "true", "[ ]", "{ }"])


def joined(members, gap):
    return "{" + gap + ("," + gap).join(f"{json.dumps(key)}{gap}:{value}" for key, value in members.items()) + gap + "}"


OBJECTS = st.recursive(
    st.builds(joined, st.dictionaries(KEYS, LEAVES, max_size=4), st.sampled_from(["", " ", "\n"])),
    lambda inner: st.builds(joined, st.dictionaries(KEYS, LEAVES | inner, max_size=3), st.just(" ")),
    max_leaves=4,
)


@settings(max_examples=200)
@given(OBJECTS, st.data())
def test_only_what_was_changed_is_written_anew(text, data):
    """Keys may be left out, put in and replaced, at the top and below it; every other value keeps its digits."""
    first = read_json(text)
    exact = read_exactly(text)
    now = dict(first)
    for key in data.draw(st.lists(st.sampled_from(sorted(first)), unique=True)) if first else ():
        way = data.draw(st.sampled_from(["drop", "replace", "extend"]))
        if way == "drop":
            del now[key], exact[key]
        elif way == "replace" or not isinstance(first[key], dict):
            now[key], exact[key] = {"own": "x"}, {"own": "x"}
        else:
            now[key], exact[key] = {**first[key], "own": "x"}, {**exact[key], "own": "x"}
    if data.draw(st.booleans()):
        now["simhash"], exact["simhash"] = {"value": "1"}, {"value": "1"}
    line = keep_text(first, now).to_json()
    assert read_exactly(line) == exact
    assert "\n" not in line
    assert isinstance(line, JsonText)


def test_an_untouched_object_is_its_text():
    """White space included, line feeds excepted."""
    assert read_json(' {"a" :1.10 ,\n"b":[ ]}\n').to_json() == '{"a" :1.10 , "b":[ ]}'
    assert read_json('{"a": {"b": 1.10}}'.encode("utf-16")).part("a").to_json() == '{"b": 1.10}'


@pytest.mark.parametrize("text", ['{"a": 1, "a": 1}', '{"a": [{"b": 1, "c": 2, "b": 3}]}', '{"a": NaN}', "[-Infinity]"])
def test_what_a_server_refuses_is_refused(text):
    """Python would keep one of two values, and write a number that is none."""
    with pytest.raises(ValueError, match="twice|not a JSON number"):
        read_json(text)
