"""Lines of our own files are told from documents of users."""

from typing import get_args

import pytest
from hypothesis import given, strategies as st

from es_simhash.ingest.actions import find_own_record
from es_simhash.ingest.item import Container
from es_simhash.ingest.written import Written
from es_simhash.removal.records import (
    DuplicateAction,
    DuplicateResult,
    PlannedDocument,
    PlannedRemoval,
    Restored,
    RestoredAction,
)

DOCUMENT = PlannedDocument("1", "i", None, 1, 1, "d")
OWN = [
    (PlannedRemoval(DOCUMENT, DOCUMENT, 3, None).to_dict(), "removal"),
    ({"file": "f", "line": 1, "id": "1", "action": "tagged", "reason": None, "canonical": "2"}, "report"),
    (Written(0, "1", "i", "written").to_dict(), "report"),
    (Restored("1", "i", "restored", "r").to_dict(), "report"),
    (
        {"id": "1", "index": "i", "canonical": "2", "distance": 0, "action": "deleted", "reason": None, "source": {}},
        "report",
    ),
]
USERS = [
    {"id": "1", "index": "i", "canonical": "https://e.org/1", "body": "a page with a canonical URL"},
    {"_id": "1", "_source": {"plan": "b", "canonical": {"id": 1}}},
    {"id": "1", "action": "deleted", "reason": "spam", "user": "an audit log"},
    {"id": "1", "action": "shipped", "reason": "sold"},
    {"_source": {}, "canonical": "a string", "plan": "x"},
]


@pytest.mark.parametrize(("line", "kind"), OWN)
def test_lines_of_ours(line, kind):
    """Of every file that a command writes."""
    assert find_own_record(line) == kind


def test_every_report_has_words_that_are_known():
    """The words stand in a room above this one, so they are written down twice."""
    removal = PlannedRemoval(DOCUMENT, DOCUMENT, 3, None)
    lines = [DuplicateResult.of(removal, action) for action in get_args(DuplicateAction)]
    lines += [Restored("1", "i", action, "r") for action in get_args(RestoredAction)]
    lines += [Written(0, "1", "i", "unchanged"), Written(0, "1", "i", "tagged", contained_in=Container("2", "i", 1.0))]
    assert {find_own_record(line.to_dict()) for line in lines} == {"report"}


@pytest.mark.parametrize("document", USERS)
def test_documents_of_users(document):
    """Names that we use too."""
    assert find_own_record(document) is None


@given(
    st.recursive(st.none() | st.booleans() | st.text(), lambda each: st.lists(each) | st.dictionaries(st.text(), each))
)
def test_any_value(value):
    """Whatever JSON a line holds."""
    assert find_own_record(value) is None
