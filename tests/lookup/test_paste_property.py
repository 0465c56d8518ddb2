"""Searches to paste find what an exhaustive comparison finds; the languages are models."""

import json
import re

import pytest
from hypothesis import given, settings, strategies as st

from es_simhash import InvalidInputError, build_query, fingerprint_fields, hamming_distance
from es_simhash.lookup.paste import MOST_KQL_BITS, MOST_KQL_TERMS, block_condition, paste_lookup
from es_simhash.lookup.plan import explain_plan
from es_simhash.lookup.query import candidate_clauses
from tests.languages import kql, run_esql
from tests.lookup.test_plan_property import fingerprints, matches

PREFIX = "my-hash"
ids = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6)


def near(fingerprint, flips):
    """Return *fingerprint* with some bits changed."""
    for bit in flips:
        fingerprint ^= 1 << bit
    return fingerprint


some_flips = st.lists(st.sets(st.integers(0, 63), max_size=20), max_size=8)


def document(number, fingerprint, *, prefix="simhash", index="news", **more):
    """Return what a server knows of a document, with dotted names."""
    fields = fingerprint_fields(fingerprint, prefix=prefix)[prefix]
    return {"_index": index, "_id": str(number), **{f"{prefix}.{name}": each for name, each in fields.items()}, **more}


@settings(max_examples=30)
@given(data=st.data(), wanted=fingerprints, flips=some_flips, max_distance=st.integers(0, 14))
def test_the_condition_is_the_clause_of_the_plan(data, wanted, flips, max_distance):
    """Without minimum_should_match, for every plan, and in both languages, exactly the same fingerprints match."""
    plans = [each.plan for each in explain_plan(max_distance, scripts=False)]
    plan = data.draw(st.sampled_from([each for each in plans if each.terms < 3_000 and not each.is_scan]))
    [clause] = candidate_clauses([wanted], plan)
    documents = [document(number, near(wanted, each)) for number, each in enumerate(flips)]
    matching = [str(number) for number, each in enumerate(flips) if matches(clause, near(wanted, each))]
    text = f'FROM "news" METADATA _index, _id\n| WHERE {block_condition(wanted, plan, "esql")}'
    assert [row["_id"] for row in run_esql(text, documents)] == matching
    if plan.terms < 1_000:
        shows = kql(block_condition(wanted, plan, "kql"))
        assert [each["_id"] for each in documents if shows(each)] == matching


@settings(max_examples=20)
@given(wanted=fingerprints, flips=some_flips, max_distance=st.integers(0, 64), excluded=ids)
def test_esql_returns_what_is_near(wanted, flips, max_distance, excluded):
    """Exactly the documents within max_distance, with their distance, nearest first."""
    held = [near(wanted, each) for each in flips]
    documents = [document(number, each, prefix=PREFIX) for number, each in enumerate(held)]
    documents += [document(9, wanted, prefix=PREFIX, index="other"), {"_index": "news", "_id": "x"}]
    documents.append(document(0, wanted, prefix=PREFIX) | {"_id": f"x{excluded}"})
    how = {"max_distance": max_distance, "prefix": PREFIX, "exclude_ids": [f"x{excluded}"]}
    text = paste_lookup("esql", "news,more", wanted, **how)
    rows = [(row["near_dup_distance"], row["_id"]) for row in run_esql(text, documents)]
    near_ones = [(hamming_distance(each, wanted), str(n)) for n, each in enumerate(held)]
    assert rows == sorted(each for each in near_ones if each[0] <= max_distance)


def test_no_row_is_lost_in_silence():
    """The text has a LIMIT, the largest there is, where Elasticsearch would take 1,000."""
    documents = [document(n, 0) for n in range(1_200)]
    assert len(run_esql(paste_lookup("esql", "news", 0, max_distance=3), documents)) == 1_200


@settings(max_examples=20)
@given(wanted=fingerprints, flips=some_flips, max_distance=st.integers(0, 11), id_=ids)
def test_a_query_bar_loses_nothing(wanted, flips, max_distance, id_):
    """Its candidates have every near-duplicate but the document itself."""
    shows = kql(paste_lookup("kql", "news", wanted, max_distance=max_distance, exclude_ids=[id_]))
    for n, each in enumerate(flips):
        other = near(wanted, each)
        assert shows(document(f"{id_}{n}", other)) or hamming_distance(other, wanted) > max_distance
        assert not shows(document(id_, other))


def test_a_query_bar_takes_no_more_terms_than_the_servers_allow():
    """Where more would be needed it is an error, which names the distance."""
    with pytest.raises(InvalidInputError, match="max_distance 12 needs more"):
        paste_lookup("kql", "news", 0, max_distance=MOST_KQL_BITS + 1)
    for max_distance in range(MOST_KQL_BITS + 1):
        terms = re.findall(r"\b[0-9a-f]{4}\b", paste_lookup("kql", "index", 0, max_distance=max_distance))
        assert 0 < len(terms) <= MOST_KQL_TERMS
    assert "block0" in paste_lookup("esql", "news", 0, max_distance=16)


def test_dev_tools_take_a_request_and_its_body():
    """The search of build_query."""
    how = {"max_distance": 8, "filter": {"term": {"lang": "en"}}, "exclude_ids": ["7"], "size": 5, "source": ["title"]}
    line, body = paste_lookup("dev-tools", "news", 255, **how).split("\n", 1)
    assert (line, json.loads(body)) == ("POST /news/_search", build_query(255, **how))
