"""
Text that people paste, as the servers take it: the Lucene language on both products, Painless on OpenSearch.

KQL and ES|QL are languages of products that cannot run here: ``test_paste_property.py`` has models of them.
"""

import itertools
import json
import uuid

import pytest

from es_simhash import (
    SimHashClient,
    build_distance_field,
    build_esql,
    build_esql_tool,
    build_mapping,
    build_query,
    build_query_bar,
    fingerprint,
    fingerprint_fields,
    hamming_distance,
    to_hex,
)
from es_simhash.lookup.plan import LookupPlan
from es_simhash.lookup.query import distance_source, with_distances
from tests.servers.command_line import TEXT, failed
from tests.servers.support import ONE_SHARD, fill, planted, put, truth

HOSTILE = [
    '"',
    "\\",
    '\\"',
    "a OR b",
    "*",
    "a:b)",
    "\\u0041",
    "line\nbreak",
    "\u202ex",
    "😀",
    '" OR *',
    "NOT",
    "/a/",
    "[a TO b]",
]


def filled(server, index):
    """Return fingerprints, some of them near one another, which *index* then has."""
    mapping = {"settings": ONE_SHARD, "mappings": build_mapping()}
    server.request("PUT", f"/{index}", mapping)
    fingerprints = [2**64 - 1, 2**63, *planted(60)]
    fill(server, index, fingerprints)
    return fingerprints


@pytest.fixture
def held(server, index):
    """The fingerprints that the index has."""
    return filled(server, index)


@pytest.fixture
def held_by_opensearch(opensearch):
    """An index of OpenSearch, and the fingerprints that it has."""
    name = f"test-{uuid.uuid4().hex}"
    yield name, filled(opensearch, name)
    opensearch.remove(name)


def in_bar(server, index, text):
    """Return the ids of the documents that *text* shows in a query bar whose language is Lucene."""
    # As Kibana and Dashboards send it.
    query = {"query_string": {"query": text, "analyze_wildcard": True}}
    hits = server.request("POST", f"/{index}/_search", {"size": 1_000, "query": query})["hits"]["hits"]
    return sorted(hit["_id"] for hit in hits)


def test_candidates_in_a_bar(server, index, held):
    """Every near-duplicate is among them, and the servers take the longest of these texts."""
    for wanted, max_distance in itertools.product((held[0], held[20]), (0, 2, 8, 11)):
        shown = in_bar(server, index, build_query_bar("lucene", fingerprint=wanted, max_distance=max_distance))
        assert {id_ for _, id_ in truth(held, wanted, max_distance)} <= set(shown)
        assert len(shown) < len(held)


def test_groups_and_kinds_in_a_bar(server, index, held):
    """Names of groups may hold every sign that the language knows."""
    put(server, index, [{"_id": f"g{n}", "simhash": {"group": name}} for n, name in enumerate(HOSTILE)])
    duplicate = fingerprint_fields(7)["simhash"] | {"group": "g", "duplicate_of": "g", "distance": 1}
    put(server, index, [{"_id": "d", "simhash": duplicate}])
    for number, name in enumerate(HOSTILE):
        assert in_bar(server, index, build_query_bar("lucene", group=name)) == [f"g{number}"]
    canonicals = sorted(f"g{n}" for n in range(len(HOSTILE)))
    assert in_bar(server, index, build_query_bar("lucene", only="canonicals")) == canonicals
    assert in_bar(server, index, build_query_bar("lucene", only="without-fingerprint")) == canonicals
    assert in_bar(server, index, build_query_bar("lucene", only="duplicates")) == ["d"]


def test_a_script_field_shows_the_distance(opensearch, held_by_opensearch):
    """In the search of a lookup, from parameters; and alone, as the editor of an index pattern takes it."""
    index, held = held_by_opensearch
    put(opensearch, index, [{"_id": "none", "n": -1}])
    for wanted in (held[0], held[1], held[30]):
        body = build_query(wanted, max_distance=8, size=100)
        hits = opensearch.request("POST", f"/{index}/_search", with_distances(body, "script", wanted))["hits"]["hits"]
        assert {hit["_id"]: hit["fields"]["near_dup_distance"] for hit in hits} == {
            hit["_id"]: [hamming_distance(int(hit["fields"]["simhash.fingerprint"][0], 16), wanted)] for hit in hits
        }
        source = distance_source("script", wanted)
        everything = LookupPlan(64, (), 0)
        body = build_query(wanted, max_distance=64, plan=everything, size=100)
        body["query"] = {"match_all": {}}
        body["script_fields"] = {"bits": {"script": {"source": source}}}
        hits = opensearch.request("POST", f"/{index}/_search", body)["hits"]["hits"]
        bits = {hit["_id"]: hit["fields"]["bits"][0] for hit in hits}
        assert bits.pop("none") is None
        assert sorted((found, id_) for id_, found in bits.items()) == truth(held, wanted, 64)


def test_a_runtime_field_computes_the_distance(opensearch, held_by_opensearch):
    """As a derived field, which is what OpenSearch calls it: the same definition and the same script."""
    index, held = held_by_opensearch
    put(opensearch, index, [{"_id": "none", "n": -1}])
    for wanted in (held[0], held[1], held[30]):
        definition = build_distance_field("runtime", wanted)
        plain = {"type": "long", "script": {"source": distance_source("runtime", wanted)}}
        for field in (definition, plain):
            near = {"range": {"bits": {"lte": 8}}}
            body = {"size": 100, "query": near, "derived": {"bits": field}, "fields": ["bits"], "_source": False}
            hits = opensearch.request("POST", f"/{index}/_search", body)["hits"]["hits"]
            assert sorted((hit["fields"]["bits"][0], hit["_id"]) for hit in hits) == truth(held, wanted, 8)


def test_the_printed_text_is_all_of_stdout(run, index, held):
    """It can be piped into a file; a fingerprint comes from a document of the index."""
    printed = run("query", "--id", "00020", "--index", index, "--lucene", "-d", 2).stdout
    assert printed == build_query_bar("lucene", fingerprint=held[20], max_distance=2) + "\n"
    printed = run("query", "--id", "00020", "--index", index, "--script-field", "--console").stdout
    assert json.loads(printed.partition("/_search")[2])["script_fields"]


def in_dev_tools(server, printed):
    """Return the comments of *printed* text, and the hits that Dev Tools show for it."""
    lines = printed.splitlines()
    comments = [line.removeprefix("# ") for line in lines if line.startswith("#")]
    request, body = "\n".join(lines[len(comments) :]).split("\n", 1)
    method, path = request.split(" ", 1)
    return comments, server.request(method, f"/{path}", json.loads(body))["hits"]["hits"]


@pytest.fixture
def recorded(server, index, sync_client):
    """An index that records 12 bits and compares texts, the fingerprints that it has, and a client for it."""
    simhash = SimHashClient(sync_client)
    simhash.create_index(index, text_field="body", max_distance=12, settings=ONE_SHARD)
    held = planted(60)
    fields = [fingerprint_fields(each) for each in held]
    put(server, index, [{"_id": f"{n:05d}", "body": f"text {n}"} | each for n, each in enumerate(fields)])
    assert simhash.reconcile(index, verify=0.7).is_settled
    return index, held, simhash


# Elasticsearch here has no Painless.
def no_scripts(server):
    return [] if server.product == "opensearch" else ["--no-scripts"]


def test_the_pasted_search_goes_as_far_as_the_index_records(server, run, recorded):
    """By id: what `find --id -d 12` finds, without the document itself; the comments tell what else find does."""
    index, _, simhash = recorded
    near = {each.id: each.distance for each in simhash.find_near_dups_of(index, "00021")}
    assert max(near.values()) > 3
    done = run("query", "--id", "00021", "--console", "--index", index, "--source", "body", *no_scripts(server))
    comments, hits = in_dev_tools(server, done.stdout)
    assert comments[0].startswith('candidates of document "00021", fingerprint ')
    assert "; within 12 bits, texts not compared, as the index records; " in comments[0]
    assert comments[1].startswith("the rule of the index is within 12 bits, at least 70 % of ")
    assert comments[1].endswith(f"es-simhash find {index} goes by it")
    assert comments[2] == 'the document "00021" itself is left out'
    assert {hit["_id"]: hit["_source"] for hit in hits}.items() >= {
        id_: {"body": f"text {int(id_)}"} for id_ in near
    }.items()
    assert "00021" not in {hit["_id"] for hit in hits}
    if server.product == "opensearch":
        assert {hit["_id"]: hit["fields"]["near_dup_distance"] for hit in hits} == {i: [d] for i, d in near.items()}
    given = run("query", "--id", "00021", "--console", "--index", index, "-d", 2).stdout
    comments, hits = in_dev_tools(server, given)
    assert comments[0] == 'candidates of document "00021"; within 2 bits, texts not compared; terms lookup'
    assert "00021" in {hit["_id"] for hit in hits}


def test_every_form_goes_as_far_as_the_index_records(server, run, recorded):
    """ES|QL, a tool, and lines; a query bar cannot go so far, and says what can."""
    index, held, _ = recorded
    text = run("query", "--id", "00021", "--esql", "--index", index).stdout
    assert text.startswith(
        "// within 12 bits, texts not compared, as the index records\n// the rule of the index is within 12 bits, "
    )
    assert text.endswith(build_esql(index, held[21], max_distance=12, exclude_ids=["00021"]) + "\n")
    assert json.loads(run("query", "--tool", "--index", index).stdout) == build_esql_tool(index, max_distance=12)
    lines = run("query", "--lines", "--index", index, *no_scripts(server), stdin="a line of words\n")
    assert json.loads(lines.stdout) == json.loads(run("query", "a line of words", "-d", 12, *no_scripts(server)).stdout)
    assert "within 12 bits, texts not compared, as the index records" in lines.stderr
    failed(
        run("query", "--id", "00021", "--lucene", "--index", index), "--max-distance 12", "a field with the distance"
    )


def test_the_pasted_search_has_the_scheme_and_fields_of_the_index(server, run, index, sync_client):
    """The fingerprint of a text is that of the recorded scheme; without the field of scripts no script is printed."""
    SimHashClient(sync_client, scheme="words").create_index(index, text_field="body", value=False, settings=ONE_SHARD)
    done = run("query", TEXT, "--console", "--index", index)
    found = to_hex(fingerprint(TEXT, scheme="words"))
    said = f"# candidates of fingerprint {found}; within 12 bits, texts not compared, the default: "
    assert done.stdout.startswith(said)
    assert "script" not in done.stdout.partition("GET ")[2]
    assert run("query", TEXT, "--index", index, "--scheme", "shingles").exit_code == 1


def test_of_several_indices_the_largest_distance_counts(run, index, sync_client):
    """As find does: a smaller one would lose what one of them promises."""
    for n, distance in enumerate((8, 12)):
        SimHashClient(sync_client).create_index(f"{index}-{n}", max_distance=distance, settings=ONE_SHARD)
    done = run("query", "--fingerprint", "0" * 16, "--console", "--index", f"{index}-*")
    assert "; within 12 bits, texts not compared, as the index records; " in done.stdout
    # Each index has a rule of its own, so a hit may be farther away than its own index says.
    assert done.stdout.startswith("# candidates of ")


def test_the_group_of_a_document(run, index, sync_client):
    """Of a duplicate and of a canonical; a document alone is in none."""
    simhash = SimHashClient(sync_client)
    simhash.create_index(index, text_field="body", settings=ONE_SHARD)
    text = "The council approved the new bridge over the river on Tuesday."
    bodies = {"a": text, "b": text, "c": "Shares of the chip maker fell by a tenth."}
    list(simhash.ingest(index, [{"_id": id_, "body": body} for id_, body in bodies.items()]))
    sync_client.indices.refresh(index=index)
    for id_ in ("a", "b"):
        assert run("query", "--kql", "--group-of", id_, "--index", index).stdout == 'simhash.group: "a"\n'
    done = run("query", "--kql", "--group-of", "c", "--index", index)
    assert (done.exit_code, done.stdout) == (1, "")
