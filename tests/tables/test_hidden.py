"""Characters that nobody sees become escapes; those that shape the one before them stay."""

import json

import pytest

from es_simhash.tables.hidden import escape_in_json, shown, visible


@pytest.mark.parametrize(
    "sign", "\x00\x1b\x9b\xad\u061c\u115f\u200b\u200e\u202e\u2060\u2069\u3164\ufeff\ufff9\U000e0041\U000e01ef"
)
def test_what_nobody_sees_is_an_escape(sign):
    """On a terminal, in a page, and in JSON, where it means the same."""
    escape = sign.encode("unicode_escape").decode()
    assert shown(f"a{sign}b") == visible(f"a{sign}b") == f"a{escape}b"
    text = json.dumps(f"北{sign}京", ensure_ascii=False)
    assert sign not in escape_in_json(text)
    assert json.loads(escape_in_json(text)) == f"北{sign}京"


@pytest.mark.parametrize(
    "text", ["می\u200cخواهم", "👩\u200d🚀", "❤\ufe0f\u200d🔥", "1\ufe0f\u20e3", "葛飾", "สวัสดี", "a\tb\nc", "\ufffd"]
)
def test_what_shapes_a_letter_or_a_picture_stays(text):
    assert shown(text) == text


@pytest.mark.parametrize("text", ["pay\u200cpal", "\u200d", "北\ufe0f\ufe01", "👩\u200d\u200d", "a\ufe00"])
def test_what_shapes_nothing_is_an_escape(text):
    """A joiner in a word of ASCII, and one after another: so texts are made to differ, or to carry others."""
    assert shown(text) != text
    assert "\\u" in shown(text)
