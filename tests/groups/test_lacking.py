"""Counting the documents that lack a fingerprint or a group, by hand."""

import pytest

from es_simhash.groups.lacking import count_lacking
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
        drive(count_lacking(scripted(), "news", settings, attempts=1), refuse)
    assert len(calls) == 1
