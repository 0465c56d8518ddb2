"""The text in a document, and what a partial update decides."""

import pytest

from es_simhash import InvalidInputError, document_fields
from es_simhash.mapping.documents import carries, read_text, with_fields


@pytest.mark.parametrize(
    ("document", "fields", "text"),
    [
        ({"body": "a"}, ["body"], "a"),
        ({"title": "t", "body": "b"}, ["body", "title"], "b\nt"),
        ({"article": {"body": "a"}}, ["article.body"], "a"),
        ({"article.body": "a"}, ["article.body"], "a"),
        ({"a": {"b.c": "x"}}, ["a.b.c"], "x"),
        ({"parts": [{"text": "a"}, {"text": ["b", None]}, {}]}, ["parts.text"], "a\nb"),
        ({"body": ""}, ["body"], ""),
        ({"body": None, "other": "x"}, ["body"], None),
        ({"body": []}, ["body"], None),
        ({}, ["body"], None),
    ],
)
def test_text_is_read_in_the_order_of_the_fields(document, fields, text):
    """Nested, dotted, in lists; nothing is different from an empty text."""
    assert read_text(document, fields) == text


@pytest.mark.parametrize("value", [3, True, 1.5, b"x", {"a": "b"}, ["a", 3]])
def test_what_is_no_text_is_named(value):
    """With the field and the value."""
    with pytest.raises(InvalidInputError, match="field 'body' holds"):
        read_text({"body": value}, ["body"])


@pytest.mark.parametrize(
    ("partial", "decides"),
    [
        ({"a": {"b": "x"}}, True),
        ({"a.b": "x"}, True),
        ({"a": {"b": None}}, True),
        ({"a": None}, True),
        ({"a": []}, True),
        ({"a": {}}, False),
        ({"a": {"c": "x"}}, False),
        ({"a.c": "x"}, False),
        ({}, False),
    ],
)
def test_what_a_partial_update_decides(partial, decides):
    """Objects are merged, all else replaces what was there."""
    assert carries(partial, "a.b") is decides


def test_fields_of_the_users_own_are_not_overwritten():
    """A clash of names is an error, what stands beside our fields is kept."""
    with pytest.raises(InvalidInputError, match="already holds 'mine'"):
        with_fields({"simhash": "mine"}, document_fields("some text"), prefix="simhash")
    document = {"simhash": {"group": "g", "block0": "ffff"}}
    merged = with_fields(document, document_fields("some text"), prefix="simhash")
    assert merged["simhash"] == {"group": "g", **document_fields("some text")["simhash"]}
    assert document == {"simhash": {"group": "g", "block0": "ffff"}}
