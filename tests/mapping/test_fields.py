"""Names and fields of a document, its text, and what a partial update decides."""

import copy

import pytest

from es_simhash import InvalidInputError, document_fields, fingerprint_fields
from es_simhash.mapping.fields import Fields, carries, read_text, with_fields, without_fingerprint
from es_simhash.mapping.mapping import FIELD_TYPES


def test_the_fields_of_a_fingerprint():
    """Hex digits, four blocks from the most significant, and the signed copy."""
    assert fingerprint_fields(0xFEDC_BA98_7654_3210) == {
        "simhash": {
            "fingerprint": "fedcba9876543210",
            "block0": "fedc",
            "block1": "ba98",
            "block2": "7654",
            "block3": "3210",
            "value": str(-0x0123_4567_89AB_CDF0),
        }
    }
    assert "value" not in fingerprint_fields(1, value=False)["simhash"]
    assert fingerprint_fields(None) == {}
    for fingerprint, signed in ((0, 0), (2**63 - 1, 2**63 - 1), (2**63, -(2**63)), (2**64 - 1, -1)):
        assert fingerprint_fields(fingerprint)["simhash"]["value"] == str(signed)


def test_every_name_is_mapped():
    """And is spelt as the mapping spells it."""
    named = vars(Fields("p"))
    assert named.pop("prefix") == "p"
    blocks = named.pop("blocks")
    assert {*blocks, *named.values()} == {f"p.{name}" for name in FIELD_TYPES}
    assert named == {name: f"p.{name}" for name in named}
    assert fingerprint_fields(1, prefix="p")["p"].keys() <= FIELD_TYPES.keys()


@pytest.mark.parametrize(
    ("document", "rest"),
    [
        ({"a": 1, **fingerprint_fields(7)}, {"a": 1}),
        ({"a": 1, "simhash.block0": "0000", "simhash.fingerprint": "0"}, {"a": 1}),
        ({"simhash": {**fingerprint_fields(7)["simhash"], "group": "g"}}, {"simhash": {"group": "g"}}),
        ({"simhash": "the user's own", "simhash.else": 1}, {"simhash": "the user's own", "simhash.else": 1}),
    ],
)
def test_an_earlier_fingerprint_is_taken_out(document, rest):
    """Nested or dotted; what is beside it stays, and the document given is not changed."""
    before = copy.deepcopy(document)
    assert without_fingerprint(document) == rest
    assert document == before


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
    algo = {"group": "g", "at": "x", "algo": "x"}
    for own in ({"algo": "x"}, {"value": 7}, algo, {"fingerprint": "7"}, ["mine"], 0, False):
        with pytest.raises(InvalidInputError, match="another prefix"):
            with_fields({"simhash": own}, document_fields("some text"), prefix="simhash")
    theirs = {"group": "g", "algo": "x", **document_fields("other text")["simhash"]}
    kept = with_fields({"simhash": theirs}, document_fields("some text"), prefix="simhash")
    assert kept["simhash"] == {**theirs, **document_fields("some text")["simhash"]}
    document = {"simhash": {"group": "g", "error": "ffff"}}
    merged = with_fields(document, document_fields("some text"), prefix="simhash")
    assert merged["simhash"] == {"group": "g", **document_fields("some text")["simhash"]}
    assert document == {"simhash": {"group": "g", "error": "ffff"}}
