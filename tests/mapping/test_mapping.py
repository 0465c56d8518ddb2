"""Mappings and their ``_meta``: what is written can be read, and what would lose near-duplicates is a fault."""

import copy
from contextlib import nullcontext
from typing import get_args

import pytest

from es_simhash import (
    DEFAULT_SCHEME,
    IndexSettings,
    InvalidInputError,
    MappingError,
    SchemeError,
    build_component_template,
    build_index_template,
    build_mapping,
    get_scheme,
    schemes,
)
from es_simhash.mapping.faults import (
    Fault,
    FaultKind,
    find_faults,
    find_group_faults,
    mapping_error,
    refuse_hidden_groups,
)
from es_simhash.mapping.mapping import check_users_mapping
from es_simhash.mapping.meta import (
    META_KEY,
    merge_meta,
    read_settings,
)

SETTINGS = IndexSettings(get_scheme(DEFAULT_SCHEME), ("title", "body"), 8, False, {"grouping": {"rule": "star"}})


def ours(mapping=None, **changes):
    """Return our mapping with the *changes* to its fields; ``None`` takes one out."""
    mapping = copy.deepcopy(mapping or build_mapping())
    fields = mapping["properties"]["simhash"]["properties"]
    for name, change in changes.items():
        fields[name] = fields[name] | change if change is not None else None
        if change is None:
            del fields[name]
    return mapping


def wrong(name, found, wanted):
    return Fault("other_parameter", f"simhash.{name}", found, wanted)


def test_our_own_mapping_has_no_fault():
    """With and without the copy for scripts, and with what a server adds."""
    assert find_faults(build_mapping()) == []
    assert find_faults(build_mapping(value=False, prefix="h"), prefix="h") == []
    harmless = {"ignore_above": 256, "eager_global_ordinals": True, "index": False, "store": True}
    assert find_faults(ours(block0={"ignore_above": 4, "doc_values": False}, fingerprint=harmless)) == []


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"block2": {"type": "text"}}, Fault("wrong_type", "simhash.block2", "text", "keyword")),
        ({"block2": None}, Fault("not_mapped", "simhash.block2", wanted="keyword")),
        ({"block2": {"index": False}}, wrong("block2", "index False", "index True")),
        ({"block2": {"ignore_above": 3}}, wrong("block2", "ignore_above 3", "no ignore_above")),
        ({"block2": {"normalizer": "x"}}, wrong("block2", "normalizer 'x'", "no normalizer")),
        ({"fingerprint": {"doc_values": False}}, wrong("fingerprint", "doc_values False", "doc_values True")),
        ({"fingerprint": {"ignore_above": "15"}}, wrong("fingerprint", "ignore_above '15'", "no ignore_above")),
        ({"value": {"type": "float"}}, Fault("wrong_type", "simhash.value", "float", "long")),
        ({"block3": {"null_value": "0000"}}, Fault("null_value", "simhash.block3", "0000")),
        ({"duplicate_of": {"null_value": "none"}}, Fault("null_value", "simhash.duplicate_of", "none")),
        ({"value": {"coerce": "false"}}, wrong("value", "coerce False", "coerce True")),
        ({"value": {"doc_values": False}}, wrong("value", "doc_values False", "doc_values True")),
        ({"block1": {"script": "x"}}, wrong("block1", "script 'x'", "no script")),
    ],
)
def test_a_field_that_would_lose_documents_is_a_fault(changes, fault):
    """One fault each, whose sentence names the field and what is there."""
    assert find_faults(ours(**changes)) == [fault]
    assert fault.field in str(fault)
    assert fault.found in str(fault)


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"at": None}, Fault("not_mapped", "simhash.at", wanted="date")),
        ({"distance": {"doc_values": False}}, wrong("distance", "doc_values False", "doc_values True")),
        ({"group": {"index": False}}, wrong("group", "index False", "index True")),
        ({"duplicate_of": {"ignore_above": 256}}, wrong("duplicate_of", "ignore_above 256", "no ignore_above")),
        ({"at": {"format": "epoch_second"}}, wrong("at", "format 'epoch_second'", "no format")),
    ],
)
def test_a_field_that_would_lose_groups_prevents_no_lookup(changes, fault):
    """Blocks need no doc values; group fields are read by them, searched, and as long as an id."""
    mapping = ours(block0={"doc_values": False}, group={"ignore_above": 512})
    assert find_group_faults(mapping) == []
    assert find_faults(ours(mapping, **changes)) == []
    assert find_group_faults(ours(mapping, **changes)) == [fault]


@pytest.mark.parametrize("mapping", [{}, {"properties": {"body": {"type": "text"}}}, ours()])
def test_a_mapping_that_indexes_nothing_is_one_fault(mapping):
    """Whatever it maps: nothing of it can be searched, and no other prefix helps."""
    assert find_faults(mapping | {"enabled": False}) == [Fault("not_parsed")]
    assert find_faults(mapping | {"subobjects": False}) == [Fault("no_subobjects")]


def test_a_runtime_field_in_place_of_ours_is_a_fault():
    """Elasticsearch searches it, and not what is indexed."""
    runtime = {"simhash.block1": {"type": "keyword"}, "simhash.other": {"type": "keyword"}}
    assert find_faults(ours() | {"runtime": runtime}) == [Fault("runtime_field", "simhash.block1")]


@pytest.mark.parametrize("change", [{"type": "nested"}, {"type": "flattened"}, {"enabled": False}])
def test_an_object_whose_blocks_no_query_reaches_is_a_fault(change):
    """Every lookup would answer that there is nothing."""
    mapping = ours()
    mapping["properties"]["simhash"] |= change
    assert [fault.kind for fault in find_faults(mapping)] == ["not_an_object"]


@pytest.mark.parametrize(
    ("source", "hidden"),
    [
        ({}, None),
        ({"includes": ["h", "body"]}, None),
        ({"includes": ["*.group", "h.duplicate*", "h.at"], "excludes": ["body", "h.gro"]}, None),
        ({"enabled": False}, "h.group"),
        ({"includes": ["body"]}, "h.group"),
        ({"excludes": ["h.d*"]}, "h.duplicate_of"),
        ({"includes": ["*"], "excludes": "h.at"}, "h.at"),
    ],
)
def test_groups_that_a_source_does_not_show(source, hidden):
    """A pattern names a field, or an object around it."""
    with nullcontext() if hidden is None else pytest.raises(MappingError, match=f"show field '{hidden}'"):
        refuse_hidden_groups({"i": {"_source": source}}, prefix="h")


def test_every_kind_of_fault_has_a_sentence_and_an_advice():
    """No placeholder is left over."""
    for kind in get_args(FaultKind):
        fault = Fault(kind, "f", "x", "y")
        assert str(fault)
        assert fault.advice
        assert "{" not in str(fault) + fault.advice


def test_an_error_names_the_first_fault_and_carries_all():
    """With the index, the number of others, and what to do."""
    error = mapping_error("i", find_faults(ours(block0=None, block1=None)))
    assert isinstance(error, MappingError)
    assert "'i'" in str(error)
    assert "1 more" in str(error)
    assert len(error.problems) == 2


@pytest.mark.parametrize("scheme", schemes())
def test_settings_are_read_as_they_were_written(scheme):
    """Of every scheme; equal, so that nothing is lost."""
    plain = IndexSettings(get_scheme(scheme))
    for settings in (plain, SETTINGS):
        assert IndexSettings.from_dict(settings.to_dict()) == settings
    assert read_settings(build_mapping(scheme=scheme)) == plain


def test_what_is_not_recorded_is_nothing():
    """Other prefixes, and other people's ``_meta``."""
    assert read_settings(build_mapping(prefix="other")) is None
    assert read_settings({"_meta": {"owner": "x"}}) is None
    assert read_settings({}) is None


@pytest.mark.parametrize("recorded", ["x", {"scheme": "x"}, {}, {"max_distance": 65}])
def test_a_record_that_is_not_ours_is_refused(recorded):
    """With what to do, and no exception of Python's own."""
    if isinstance(recorded, dict) and "max_distance" in recorded:
        recorded = SETTINGS.to_dict() | recorded
    with pytest.raises((MappingError, SchemeError)):
        read_settings({"_meta": {META_KEY: {"simhash": recorded}}})


def test_merging_keeps_what_others_wrote():
    """Their keys, other prefixes, and the argument itself."""
    existing = {"owner": "x", META_KEY: {"title_hash": {"a": 1}, "simhash": {"old": 1}}}
    before = copy.deepcopy(existing)
    assert merge_meta(existing, SETTINGS) == {
        "owner": "x",
        META_KEY: {"title_hash": {"a": 1}, "simhash": SETTINGS.to_dict()},
    }
    assert merge_meta(existing, None) == {"owner": "x", META_KEY: {"title_hash": {"a": 1}}}
    assert merge_meta({META_KEY: {"simhash": {}}, "owner": 1}, None) == {"owner": 1}
    assert existing == before
    with pytest.raises(MappingError, match="another key"):
        merge_meta({META_KEY: "mine"}, SETTINGS)


def test_templates_carry_the_mapping():
    """The index template names the component."""
    options = {"prefix": "h", "text_field": "body", "max_distance": 5}
    assert build_component_template(**options)["template"]["mappings"] == build_mapping(**options)
    template = build_index_template(["news-*"], component="c", priority=7)
    assert template == {"index_patterns": ["news-*"], "composed_of": ["c"], "priority": 7}


@pytest.mark.parametrize(
    ("mapping", "text_fields"),
    [
        ({"properties": {"simhash": {"type": "keyword"}}}, ()),
        ({"properties": {"simhash.foo": {"type": "keyword"}}}, ()),
        ({"runtime": {"simhash.block0": {"type": "keyword"}}}, ()),
        ({"properties": 5}, ()),
        ({"properties": {"a": {"properties": [1]}}}, ()),
        ({"_meta": 5}, ()),
        ({"dynamic": "strict", "properties": {"title": {"type": "text"}}}, ["body"]),
        ({"properties": {"article": {"dynamic": "strict", "properties": {}}}}, ["article.body"]),
    ],
)
def test_own_mappings_that_leave_no_room_are_refused(mapping, text_fields):
    with pytest.raises(InvalidInputError):
        check_users_mapping(mapping, prefix="simhash", text_fields=text_fields)


def test_own_mappings_that_leave_room_stay_as_they_are():
    mapping = {"dynamic": "strict", "properties": {"article.body": {"type": "text"}, "simhash2": {"type": "keyword"}}}
    assert check_users_mapping(mapping, prefix="simhash", text_fields=["article.body"]) == mapping


@pytest.mark.parametrize("text_field", ["simhash", "simhash.fingerprint"])
def test_a_text_field_below_the_prefix_is_refused(text_field):
    with pytest.raises(InvalidInputError, match="text_field"):
        build_mapping(text_field=text_field)
