"""Counting the documents that lack a fingerprint or a group, by hand."""

import pytest

from es_simhash.groups.read import count_lacking
from es_simhash.hashing import get_scheme
from es_simhash.mapping.meta import IndexSettings
from tests.transport.by_hand import ServerError, drive, scripted


def test_a_busy_server_is_asked_once_for_a_remark():
    """A command that only adds a remark does not wait for the server."""
    calls = []

    def refuse(call):
        calls.append(call)
        return ServerError(429, "es_rejected_execution_exception")

    settings = {"news": IndexSettings(get_scheme("shingles"), ("body",))}
    with pytest.raises(ServerError):
        drive(count_lacking(scripted(), "news", settings), refuse)
    assert len(calls) == 1


def test_each_index_has_text_fields_of_its_own():
    """A document with the text field of another index lacks nothing."""
    sent = []

    def answer(call):
        sent.append(call.arguments["body"]["query"])
        return {"_shards": {"total": 1, "failed": 0}, "count": 0, "hits": {"total": {"value": 0, "relation": "eq"}}}

    each = {name: IndexSettings(get_scheme("shingles"), (field,)) for name, field in (("a", "body"), ("b", "text"))}
    drive(count_lacking(scripted(), "a,b", each), answer)
    assert [each["bool"]["filter"][0] for each in sent[0]["bool"]["should"]] == [
        {"terms": {"_index": ["a"]}},
        {"terms": {"_index": ["b"]}},
    ]
