"""Search bodies: what a plan turns into, as plain query DSL."""

import copy
import json

import pytest

from es_simhash import InvalidInputError, build_query
from es_simhash.lookup.plan import LookupPlan
from es_simhash.lookup.query import candidate_clauses, check_source

WANTED = 0x0123_4567_89AB_CDEF


@pytest.mark.parametrize("max_distance", range(4))
def test_the_pigeonhole(max_distance):
    """One term a block; the more blocks must match, the smaller the distance."""
    blocks = enumerate(["0123", "4567", "89ab", "cdef"])
    wanted = [{"terms": {f"simhash.block{number}": [block]}} for number, block in blocks]
    [clause] = candidate_clauses([WANTED], LookupPlan(max_distance, 4))
    assert clause["bool"] == {"should": wanted, "minimum_should_match": 4 - max_distance}


def test_the_whole_body():
    """Filter context, no source, the fingerprint from doc values, and JSON all through."""
    body = build_query(WANTED, prefix="h", filter={"term": {"lang": "en"}}, exclude_ids=["7"], size=10)
    assert set(body) == {"size", "query", "docvalue_fields", "_source", "track_total_hits"}
    assert (body["size"], body["docvalue_fields"], body["_source"]) == (10, ["h.fingerprint"], False)
    assert set(body["query"]["bool"]) == {"filter", "must_not"}
    assert body["query"]["bool"]["filter"][1:] == [{"term": {"lang": "en"}}]
    assert body["query"]["bool"]["must_not"] == [{"ids": {"values": ["7"]}}]
    assert json.loads(json.dumps(body)) == body


def test_a_script_checks_behind_the_block_terms():
    """It lets pass what it cannot judge, and takes the signed value."""
    plan = LookupPlan(8, 12, script=True)
    blocks, script = candidate_clauses([2**64 - 1], plan)
    assert "should" in blocks["bool"]
    assert script["script"]["script"]["params"] == {"wanted": -1, "most": 8}
    assert "doc['simhash.value']" in script["script"]["script"]["source"]


def test_a_scan_asks_for_every_fingerprint():
    """Where no block term excludes anything."""
    body = build_query(WANTED, max_distance=64)
    assert body["query"]["bool"]["filter"] == [{"exists": {"field": "simhash.fingerprint"}}]


def test_what_is_given_is_not_changed():
    """Nor shared with the body."""
    given = [{"range": {"date": {"gte": "now-7d"}}}]
    before = copy.deepcopy(given)
    build_query(WANTED, filter=given)["query"]["bool"]["filter"][1]["range"] = None
    assert given == before


@pytest.mark.parametrize(
    ("source", "asked"), [(False, False), (True, True), ("title", ["title"]), (("a", "b"), ["a", "b"]), ([], [])]
)
def test_source_is_all_nothing_or_fields(source, asked):
    """One name is one field, not its letters."""
    assert check_source(source) == asked
    assert build_query(WANTED, source=source)["_source"] == asked


@pytest.mark.parametrize(
    ("arguments", "words"),
    [({"max_distance": 65}, "65"), ({"filter": {}}, "one query"), ({"filter": {"a": {}, "b": {}}}, "one query")],
)
def test_what_cannot_be_used_is_refused(arguments, words):
    """With the argument named."""
    with pytest.raises(InvalidInputError, match=words):
        build_query(WANTED, **arguments)
