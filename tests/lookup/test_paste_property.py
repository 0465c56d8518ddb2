"""
Queries to paste find what an exhaustive comparison finds: the languages are models, the oracle compares
every bit.
"""

import json
import re

import jsonschema
import pytest
from hypothesis import given, settings, strategies as st

from es_simhash import (
    InvalidInputError,
    build_esql,
    build_esql_tool,
    build_query_bar,
    fingerprint_fields,
    hamming_distance,
    make_plan,
)
from es_simhash.lookup.paste import block_condition, plan_to_paste, write
from es_simhash.lookup.plan import explain_plan
from es_simhash.lookup.query import candidate_clauses
from es_simhash.transport.limits import Limits
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


@settings(max_examples=40)
@given(data=st.data(), wanted=fingerprints, flips=some_flips, max_distance=st.integers(0, 24))
def test_the_condition_is_the_clause_of_the_plan(data, wanted, flips, max_distance):
    """Without minimum_should_match, and for every plan, exactly the same fingerprints match."""
    plans = [each.plan for each in explain_plan(max_distance, limits=Limits(scripts=False))]
    plan = data.draw(st.sampled_from([each for each in plans if each.terms < 3_000]))
    [clause] = candidate_clauses([wanted], plan)
    written = write(block_condition(wanted, plan), "esql")
    held = [near(wanted, each) for each in flips]
    documents = [document(number, each) for number, each in enumerate(held)]
    found = run_esql(f'FROM "news" METADATA _index, _id\n| WHERE {written}', documents)
    assert [row["_id"] for row in found] == [str(n) for n, each in enumerate(held) if matches(clause, each)]


@settings(max_examples=40)
@given(
    st.tuples(*[st.lists(st.integers(0, 3), max_size=3).map(tuple)] * 4), st.integers(0, 9), fingerprints, some_flips
)
def test_any_radii_become_the_same_condition(radii, max_distance, wanted, flips):
    """Also radii that differ by block, stand twice, or are missing."""
    plan = make_plan(max_distance, radii)
    [clause] = candidate_clauses([wanted], plan)
    shows = kql(write(block_condition(wanted, plan), "kql"))
    for each in flips:
        other = near(wanted, each)
        assert shows(document(0, other)) == matches(clause, other)


@settings(max_examples=40)
@given(wanted=fingerprints, flips=some_flips, max_distance=st.integers(0, 64), excluded=ids)
def test_esql_returns_what_is_near(wanted, flips, max_distance, excluded):
    """Exactly the documents within max_distance, with their distance, nearest first."""
    held = [near(wanted, each) for each in flips]
    documents = [document(number, each, prefix=PREFIX) for number, each in enumerate(held)]
    documents += [document(9, wanted, prefix=PREFIX, index="other"), {"_index": "news", "_id": "x"}]
    documents.append(document(0, wanted, prefix=PREFIX) | {"_id": f"x{excluded}"})
    text = build_esql("news,more", wanted, max_distance=max_distance, prefix=PREFIX, exclude_ids=[f"x{excluded}"])
    rows = [(row["near_dup_distance"], row["_id"]) for row in run_esql(text, documents)]
    near_ones = [(hamming_distance(each, wanted), str(n)) for n, each in enumerate(held)]
    assert rows == sorted(each for each in near_ones if each[0] <= max_distance)


@settings(max_examples=40)
@given(wanted=fingerprints, flips=some_flips, max_distance=st.integers(0, 64), one_per_group=st.booleans())
def test_a_tool_asks_what_esql_asks(wanted, flips, max_distance, one_per_group):
    """Whatever fingerprint the agent gives: its rows are those of the text for that fingerprint."""
    documents = [document(number, near(wanted, each), prefix=PREFIX) for number, each in enumerate(flips)]
    choice = {"max_distance": max_distance, "one_per_group": one_per_group, "prefix": PREFIX}
    query = build_esql_tool("news", **choice)["configuration"]["query"]
    for n in range(4):  # what the server computes of the parameter
        term = f"{wanted:016x}"[4 * n : 4 * n + 4]
        query = query.replace(f"== TO_LOWER(SUBSTRING(?fingerprint, {4 * n + 1}, 4))", f'IN ("{term}")')
    query = query.replace("?fingerprint", f'"{wanted:016X}"')
    assert "?" not in query
    rows = run_esql(build_esql("news", wanted, size=100, **choice), documents)
    assert run_esql(f"{query}, *", documents) == rows


# What Kibana accepts, in our words; beside it, the parameters must be those of the query.
TOOL = {
    "type": "object",
    "required": ["id", "type", "configuration"],
    "additionalProperties": False,
    "properties": {
        "id": {
            "type": "string",
            "maxLength": 64,
            "pattern": r"^[a-z0-9](?:[a-z0-9_-]*[a-z0-9])?$",
            "not": {"const": "new"},
        },
        "type": {"const": "esql"},
        "description": {"type": "string", "minLength": 1},
        "tags": {"type": "array", "items": {"type": "string"}},
        "configuration": {
            "type": "object",
            "required": ["query", "params"],
            "additionalProperties": False,
            "properties": {
                "query": {"type": "string"},
                "params": {
                    "additionalProperties": {
                        "type": "object",
                        "required": ["type", "description"],
                        "additionalProperties": False,
                        "properties": {
                            "type": {"enum": ["string", "integer", "float", "boolean", "date"]},
                            "description": {"type": "string"},
                        },
                    }
                },
            },
        },
    },
}


@given(
    index=st.one_of(
        st.sampled_from(["news", "news-*", "a,b", ".x-", "新闻", "n" * 90]),
        ids.filter(lambda each: each.strip() and "," not in each),
    ),
    max_distance=st.integers(0, 64),
    one_per_group=st.booleans(),
)
def test_a_tool_has_the_form_that_kibana_accepts(index, max_distance, one_per_group):
    tool = build_esql_tool(index, max_distance=max_distance, one_per_group=one_per_group)
    jsonschema.validate(json.loads(json.dumps(tool)), TOOL)
    query = tool["configuration"]["query"].partition("\n")[2]  # behind FROM, which has the name of the index
    assert set(re.findall(r"\?(\w+)", query)) == tool["configuration"]["params"].keys()


def test_one_per_group_keeps_the_nearest_and_every_document_without_group():
    """Documents without group are no group."""
    groups = ["a", "a", "b", None, None]
    fields = [{} if group is None else {"simhash.group": group} for group in groups]
    documents = [document(n, near(0, range(3 - n % 3)), **more) for n, more in enumerate(fields)]
    rows = run_esql(build_esql("news", 0, max_distance=3, one_per_group=True), documents)
    assert [(row["near_dup_distance"], row["_id"]) for row in rows] == [(1, "2"), (2, "1"), (2, "4"), (3, "3")]


def test_no_row_is_lost_in_silence():
    """The text has a LIMIT, the largest there is, where Elasticsearch would take 1,000; what it cuts is said in it."""
    documents = [document(n, 0) for n in range(1_200)]
    assert len(run_esql(build_esql("news", 0), documents)) == 1_200
    text = build_esql("news", 0, size=5)
    assert len(run_esql(text, documents)) == 5
    assert "5 rows mean that there may be more" in text


@settings(max_examples=40)
@given(wanted=fingerprints, flips=some_flips, max_distance=st.integers(0, 11))
def test_a_query_bar_loses_nothing(wanted, flips, max_distance):
    """Its candidates have every near-duplicate."""
    shows = kql(build_query_bar("kql", fingerprint=wanted, max_distance=max_distance))
    for each in flips:
        other = near(wanted, each)
        assert shows(document(0, other)) or hamming_distance(other, wanted) > max_distance


def test_a_query_bar_takes_no_more_terms_than_the_servers_allow():
    """Where more would be needed it is an error, which names the distance."""
    with pytest.raises(InvalidInputError, match="max_distance 12 needs more"):
        build_query_bar("kql", fingerprint=0, max_distance=12)
    assert plan_to_paste(16, documents=10**6, most_terms=5_000, is_checked=True).is_scan is False


@given(group=ids, other=ids)
def test_names_of_groups_stay_values(group, other):
    """Whatever a name holds, the text shows that group and no other."""
    shows = kql(build_query_bar("kql", group=group))
    assert shows({"simhash.group": group})
    assert shows({"simhash.group": other}) == (group == other)


HOSTILE = [
    '"',
    "\\",
    '\\"',
    "a or b",
    "*",
    "a:b)",
    "\\u0041",
    "\n",
    "\u202e",
    "😀",
    'x" or simhash.group: *',
    "not",
    "{",
    "<",
]


@pytest.mark.parametrize("group", HOSTILE)
def test_hostile_names_are_seen_in_the_text(group):
    """Nothing in it is invisible, and it is one line."""
    for language in ("kql", "lucene"):
        text = build_query_bar(language, group=group)
        assert all(each.isprintable() for each in text)
    assert kql(build_query_bar("kql", group=group))({"simhash.group": group})
    assert not kql(build_query_bar("kql", group=group))({"simhash.group": "other"})


@pytest.mark.parametrize(("only", "numbers"), [("canonicals", [0]), ("duplicates", [1]), ("without-fingerprint", [3])])
def test_kinds_of_documents(only, numbers):
    """A canonical, a duplicate, a document that is not grouped, and one without fingerprint."""
    documents = [
        document(0, 0, **{"simhash.group": "0"}),
        document(1, 1, **{"simhash.group": "0", "simhash.duplicate_of": "0"}),
        document(2, 2),
        {"_id": "3"},
    ]
    shows = kql(build_query_bar("kql", only=only))
    assert [n for n, each in enumerate(documents) if shows(each)] == numbers


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"language": "sql", "only": "duplicates"}, "language"),
        ({"language": "kql"}, "exactly one"),
        ({"language": "kql", "group": "a", "fingerprint": 1}, "exactly one"),
        ({"language": "kql", "group": ""}, "empty"),
        ({"language": "kql", "only": "all"}, "canonicals"),
        ({"language": "lucene", "fingerprint": -1}, "64 bits"),
    ],
)
def test_what_a_query_bar_cannot_show(arguments, words):
    """With the argument named."""
    with pytest.raises(InvalidInputError, match=words):
        build_query_bar(**arguments)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"index": "a,,b"}, InvalidInputError),
        ({"index": ["a"]}, TypeError),
        ({"index": "a", "size": 10_001}, InvalidInputError),
        ({"index": "a", "exclude_ids": "7"}, TypeError),
        ({"index": "a", "max_distance": 65}, InvalidInputError),
        ({"index": "a", "max_distance": 4, "plan": make_plan(3, (0,))}, InvalidInputError),
    ],
)
def test_what_esql_cannot_say(arguments, error):
    """Before any text is made."""
    with pytest.raises(error):
        build_esql(fingerprint=0, **arguments)
    if "plan" not in arguments and "exclude_ids" not in arguments:
        with pytest.raises(error):
            build_esql_tool(**arguments)
