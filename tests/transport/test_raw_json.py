"""JSON is split into the text of its parts, and joined again, without reading numbers."""

import json

import pytest
from hypothesis import given, settings, strategies as st

from es_simhash.transport.raw_json import join_members, split_items, split_members

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
