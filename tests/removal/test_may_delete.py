"""Whether a document may be deleted: how texts are compared, and the guard rails."""

import json

import pytest
from hypothesis import given, strategies as st

from es_simhash.groups.table import Row
from es_simhash.removal.guard_rails import Guards, OneStays
from es_simhash.removal.make_plan import decisive_fields
from es_simhash.removal.may_delete import Comparer, digest_of, may_delete, read_document, source_of, state_of
from es_simhash.removal.records import PlannedDocument, PlannedRemoval
from es_simhash.texts.measures import WORD_SHINGLES, TextMeasure

TEXTS = {id_: " ".join(f"word{n}of{id_}" for n in range(9)) for id_ in "abcx"} | {"short": "N/A"}


def test_texts_are_prepared_one_by_one(monkeypatch):
    """A prepared text may take 40 times its memory, so a batch of long ones must not be prepared as a whole."""
    rows = {id_: Row(id_, "news", 1, None) for id_ in ("a", "a1", "a2", "b", "b1", "c1", "x", "short", "lost")}
    there = {"found": True, "_seq_no": 1, "_primary_term": 1}
    texts = {id_: TEXTS.get(id_) or TEXTS.get(id_[0]) for id_ in rows}
    items = {row.key: {**there, "_source": {"body": texts[id_]}} for id_, row in rows.items()}
    items[rows["lost"].key] = {"found": False}
    prepare, prepared = TextMeasure.prepare, []

    def noted(self, texts):
        prepared.append(len(texts))
        return prepare(self, texts)

    monkeypatch.setattr(TextMeasure, "prepare", noted)
    measure = WORD_SHINGLES.for_bound(0.8)
    comparer = Comparer({"news": ["body"]}, 0.8, {"news": {"body": False}}, measure=measure)
    pairs = [("a1", "a"), ("lost", "a"), ("a2", "a"), ("x", "b"), ("short", "b"), ("b1", "b"), ("c1", "lost")]
    judged = comparer.compare([(rows[one], rows[other], 3) for one, other in pairs], items)
    found = [each if isinstance(each, str) else (each.document.id, each.canonical.id) for each in judged]
    assert found == [("a1", "a"), "changed", ("a2", "a"), "not_similar", "too_short", ("b1", "b"), "changed"]
    assert prepared == [1] * 8


def test_a_null_counts_where_the_mapping_has_a_value_for_it():
    """Of a field that decides, or that is copied to one; what has no value is as if it were not there."""
    mapping = {
        "properties": {
            "day": {"type": "date", "null_value": "2000-01-01"},
            "lang": {"type": "keyword"},
            "o": {"properties": {"city": {"type": "keyword", "copy_to": ["lang"]}}},
            "title": {"type": "text", "copy_to": "body"},
        }
    }
    fields = decisive_fields(mapping, ["body", "day", "lang"], ["day", "lang", "views"])
    assert fields == {"body": False, "day": True, "lang": False, "o.city": False}
    none = digest_of({"body": "x"}, fields)
    assert none == digest_of({"body": ["x"], "lang": None, "o": {"city": []}}, fields)
    others = [digest_of({"body": "x", **more}, fields) for more in ({"day": None}, {"day": ["1", None]}, {"day": "1"})]
    assert len({none, *others}) == 4
    assert digest_of({"body": "x"}, {"body": False}) == none
    assert digest_of({"n": 2**53}, {"n": False}) != digest_of({"n": 2**53 + 1}, {"n": False})


@pytest.mark.parametrize(("digits", "kind"), [(4_300, int), (4_301, str)])
def test_a_number_that_python_does_not_read_is_kept_as_it_was_sent(digits, kind):
    number = "7" * digits
    value = source_of({"_source": f'{{"n": {number}}}'})["n"]
    assert isinstance(value, kind)
    assert json.dumps(value).strip('"') == number


@pytest.mark.parametrize(("body", "is_read"), [("x", True), (None, False), (7, False), ({"x": "y"}, False)])
def test_a_text_that_cannot_be_read_is_no_document(body, is_read):
    assert (read_document({"body": body}, ["body"], []) is not None) == is_read


@pytest.mark.parametrize(
    ("source", "state"),
    [({}, "same"), ({"_source": '{"body": "x", "n": 1}'}, "same"), ({"_source": '{"n": 1}'}, "changed")],
)
def test_a_source_that_came_without_its_text_is_not_archived(source, state):
    """Its version is that of the plan, and what stands between the server and us has cut it."""
    decided_by = {"news": {"body": False}}
    planned = PlannedDocument("a", "news", None, 3, 1, digest_of({"body": "x"}, decided_by["news"]), {}, ())
    assert state_of(planned, {"found": True, "_seq_no": 3, "_primary_term": 1, **source}, decided_by) == state


@given(st.integers(1, 1000), st.integers(0, 100))
def test_a_share_that_is_exact_is_allowed(hundreds, percent):
    """Also where floating point has another opinion, as for 29 of 100."""
    guards = Guards(percent / 100, hundreds * 100)
    assert guards.find_excess(hundreds * percent) is None
    assert guards.find_excess(hundreds * percent + 1) is not None


def test_both_numbers_of_a_large_group_count():
    """A small index may have one group; a large one may have a group of many thousands."""
    sizes = [(1_000, 1_000), (999, 999), (10_001, 1_000_000), (10_000, 1_000_000)]
    assert [OneStays("a", *each).is_suspicious for each in sizes] == [True, False, True, False]


PLANNED = [PlannedDocument(id_, "news", None, 3, 1, digest_of({"body": "x"}, {"body": False})) for id_ in "ab"]
GOES, STAYS = (planned.key for planned in PLANNED)
SAME = {"found": True, "_seq_no": 3, "_primary_term": 1, "_source": {"body": "x"}}
LATER = {**SAME, "_seq_no": 4}
CHANGED, ELSEWHERE = {**LATER, "_source": {"body": "y"}}, {**LATER, "_routing": "r"}
GONE, FULL = {"found": False}, {"error": {"type": "es_rejected_execution_exception"}}
NO_INDEX, TRIED = {"error": {"type": "index_not_found_exception"}}, {"was_tried": True}
THEN, NOW = (3, 1), (4, 1)


@pytest.mark.parametrize(
    ("changes", "fate"),
    [
        ({}, "delete"),
        ({"item": LATER, "canonical_item": LATER}, "delete"),
        ({"item": FULL, "canonical_item": NO_INDEX}, "unreadable"),
        ({"item": CHANGED, "canonical_item": FULL}, "unreadable"),
        ({"item": NO_INDEX}, "index_replaced"),
        ({"item": GONE, "canonical_item": NO_INDEX, **TRIED}, "index_replaced"),
        ({"item": GONE}, "missing"),
        ({"item": GONE, "is_kept": True, **TRIED}, "deleted_before"),
        (TRIED, "delete"),
        ({"is_kept": True, "canonical_item": GONE}, "decided"),
        ({"item": GONE, "canonical_item": GONE}, "canonical_missing"),
        ({"canonical_item": CHANGED}, "canonical_changed"),
        ({"item": CHANGED}, "changed"),
        ({"item": ELSEWHERE}, "changed"),
        # By the class of the texts as they are now; a person may decide otherwise, of texts that are as they were.
        ({"loss": "few"}, "delete"),
        ({"loss": "title"}, "not_allowed"),
        ({"loss": "unread"}, "not_allowed"),
        ({"loss": "title", "is_decided": True}, "delete"),
        ({"loss": "title", "is_decided": True, "canonical_item": CHANGED}, "canonical_changed"),
        ({"shown": {GOES: THEN, STAYS: THEN}, "matched": {GOES: THEN}}, "delete"),
        ({"shown": {STAYS: THEN}}, "changed"),
        ({"shown": {GOES: THEN}}, "canonical_changed"),
        ({"matched": {STAYS: THEN}}, "changed"),
        ({"shown": {GOES: NOW, STAYS: THEN}}, "unsure"),
        ({"shown": {GOES: THEN, STAYS: NOW}}, "unsure"),
        ({"matched": {GOES: NOW}}, "unsure"),
    ],
)
def test_the_fate_of_a_line(changes, fate):
    known = {"item": SAME, "canonical_item": SAME, "decided_by": {"news": {"body": False}}, "loss": "same"}
    known["allowed"] = {"same", "contained", "few"}
    assert may_delete(PlannedRemoval(*PLANNED, 1, 0.9, "same"), **{**known, **changes}) == fate


def test_what_a_plan_notes_of_a_document():
    """What is to be shown, its text, and what decides; an array of one value is that value, and long ones are cut."""
    row = Row("a", "news", 1, None)
    source = {"body": "a text of words", "day": 1, "tags": ["x"], "more": {"b": "some more words"}, "lang": "en"}
    shown = {"shown": ["tags", "more", "absent"], "longest": 9}
    comparer = Comparer({"news": ["body"]}, 0.8, {"news": {"day": False, "body": False}}, **shown)
    [found] = comparer.compare([(row, row, 0)], {row.key: {**LATER, "_source": source}})
    assert list(found.document.fields.items()) == [
        ("tags", "x"),
        ("more", '{"b": "so'),
        ("body", "a text of"),
        ("day", 1),
    ]
    assert (found.document.cut, found.document.version, found.similarity) == (("more", "body"), NOW, 1.0)
