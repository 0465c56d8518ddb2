"""The ingest pipeline with features, hostile documents and other processors, and the stored search template."""

import json
import os
import random
import re
import uuid
from pathlib import Path

import pytest

from es_simhash import (
    Scheme,
    SimHashClient,
    build_pipeline,
    build_search_template,
    fingerprint,
    fingerprint_features,
    fingerprint_fields,
    get_scheme,
    hamming_distance,
    to_hex,
)
from es_simhash.errors import has_lone_surrogate
from es_simhash.pipeline.script_source import LONGEST
from tests.pipeline.hostile import expected_of, hostile_features
from tests.servers.fixtures import get_templates, make_client
from tests.servers.servers import send
from tests.servers.support import ONE_SHARD, fill, found_in, simulate

VECTORS = json.loads((Path(__file__).parents[1] / "vectors.json").read_text(encoding="utf-8"))["features"]
COMPUTED = [each for each in VECTORS if each["scheme"]["parameters"]["hash"] == "xxh3_64"]
# `ES_SIMHASH_PIPELINE_FEATURES=40000` compares as many as docs/fingerprinting.md says.
HOSTILE = int(os.environ.get("ES_SIMHASH_PIPELINE_FEATURES", "1000"))


def outcomes(documents):
    """Return the fingerprint of each document, or its error, or None."""
    ours = [each.get("simhash") or {} for each in documents]
    return [each.get("fingerprint") or each.get("error") for each in ours]


@pytest.mark.parametrize("vectors", COMPUTED, ids=[str(Scheme.from_dict(each["scheme"])) for each in COMPUTED])
def test_golden_vectors(opensearch, vectors):
    """Bit for bit. A server refuses half a character in a name, not in a list: there a feature of weight 2 is twice."""
    pipeline = build_pipeline(scheme=Scheme.from_dict(vectors["scheme"]), text_field="tags")
    features = vectors["features"]
    if any(map(has_lone_surrogate, features)):
        features = [name for name, weight in features.items() for _ in range(weight)]
    assert found_in(simulate(opensearch, pipeline, [{"tags": features}])) == [vectors["fingerprint"]]


@pytest.mark.parametrize("settings", [{}, {"levels": 5}, {"seed": 2**64 - 1}, {"seed": 1_234_567_890_123}], ids=str)
def test_hostile_features(opensearch, settings):
    """No differing bit, and what Python refuses is marked."""
    scheme = get_scheme("weighted", **settings)
    pipeline = build_pipeline(scheme=scheme, text_field="tags")
    for seed in range(0, HOSTILE // 4, 500):
        given = hostile_features(min(500, HOSTILE // 4 - seed), seed=seed)
        made = outcomes(simulate(opensearch, pipeline, [{"tags": each} for each in given]))
        expected = [expected_of(each, scheme) for each in given]
        assert [each for each in zip(given, made, expected, strict=True) if each[1] != each[2]] == []


def test_values_of_other_forms(opensearch):
    """A single value is a list of one, as for a server. What is no features is marked, and nothing is refused."""
    pipeline = build_pipeline(scheme="weighted", text_field="tags")
    one, two = to_hex(fingerprint_features(["a"])), to_hex(fingerprint_features({"a": 1, "b": 2}))
    cases = [
        ("a", one),
        (["a"], one),
        ({"a": 1, "b": 2}, two),
        (["a", "b", "b"], two),
        (["a", None], "not_features"),
        ([{"a": 1, "b": 2}], "not_features"),
        ([["a", 1], ["b", 2]], "not_features"),
        (["a", ["b", "b"]], "not_features"),
        ({}, None),
        ({"a": 0}, None),
        ([], "0" * 16),
        (None, "0" * 16),
        (5, "not_features"),
        (["a", 5], "not_features"),
        ([{"a": 1}, {"b": 2}], "not_features"),
        (["a", {"b": 2}], "not_features"),
        ({"a": 1e-9}, "not_features"),
        (["a" * 300_000] * 4, "too_long"),
        (["a" * (LONGEST - 1)], to_hex(fingerprint_features(["a" * (LONGEST - 1)]))),
        (["", *map(str, range(100_000))], to_hex(fingerprint_features(["", *map(str, range(100_000))]))),
    ]
    stale = {"simhash": {"fingerprint": "0" * 16}}
    made = outcomes(simulate(opensearch, pipeline, [{"tags": value, **stale} for value, _ in cases]))
    assert made == [expected for _, expected in cases]


@pytest.mark.parametrize("server", ["opensearch"], indirect=True)
def test_any_program_writes_features(server, index, simhash, call, pipeline_name):
    """An index records its field of features; a written document is found by another one's fingerprint."""
    mappings = {"properties": {"tags": {"type": "object", "enabled": False}}}
    simhash.create_index(index, scheme="weighted", text_field="tags", settings=ONE_SHARD, mappings=mappings)
    installed = simhash.put_pipeline(index, name=pipeline_name, use_as="final")
    assert (installed.scheme, installed.text_fields) == ("weighted-1", ("tags",))
    tags = {f"tag {number}": number % 7 + 0.5 for number in range(40)}
    near = tags | {"tag 1": 1.6}
    for id_, features in (("a", tags), ("b", near), ("c", {"another": 1}), ("d", {"bad": "1"})):
        server.request("PUT", f"/{index}/_doc/{id_}?refresh=true", {"tags": features})
    asked = fingerprint_features(tags)
    found = {hit.id: hit.distance for hit in call(simhash.find_near_dups(index, fingerprint=asked, max_distance=8))}
    assert found == {"a": 0, "b": (asked ^ fingerprint_features(near)).bit_count()}
    assert [fault.found for fault in call(simhash.check(index))[0].faults if fault.kind == "pipeline_errors"] == ["1"]


TEXT = "The council approved the new bridge over the river on Tuesday after a long debate about its cost."
FRESH = to_hex(fingerprint(TEXT))
# `ES_SIMHASH_PIPELINE_MEGABYTES=50` writes documents as large as docs/fingerprinting.md says, with a heap of 2 GB.
MEGABYTES = int(os.environ.get("ES_SIMHASH_PIPELINE_MEGABYTES", "5"))


@pytest.fixture
def written(opensearch, pipeline_name):
    """Return a function that writes a document through a final pipeline, and returns it with the object of ours."""
    opensearch.request("PUT", f"/_ingest/pipeline/{pipeline_name}", build_pipeline(text_field="body"))
    settings = {**ONE_SHARD, "index.final_pipeline": pipeline_name}
    mappings = {"properties": {"body": {"type": "object", "enabled": False}}}
    opensearch.request("PUT", f"/{pipeline_name}", {"settings": settings, "mappings": mappings})

    def write(document, pipeline="_none"):
        answer = opensearch.request("POST", f"/{pipeline_name}/_doc?pipeline={pipeline}", document)
        kept = opensearch.request("GET", f"/{pipeline_name}/_doc/{answer['_id']}")["_source"]
        return kept, kept.get("simhash")

    return write


@pytest.mark.parametrize("server", ["opensearch"], indirect=True)
def test_text_that_is_hardly_one(written):
    """Half a character is kept, and left out of the fingerprint, as is what Unicode 14.0 does not know."""
    kept, ours = written({"body": f"\ud800{TEXT}\udc00"})
    assert (kept["body"], ours["fingerprint"]) == (f"\ud800{TEXT}\udc00", FRESH)
    assert written({"body": f"{TEXT}\U0001e4d0\U0001e4d1"})[1]["fingerprint"] == FRESH
    assert written({"body": "\U0001e4d0\U0001e4d1"})[1] is None


@pytest.mark.parametrize("server", ["opensearch"], indirect=True)
def test_what_is_too_much(written):
    """A text of megabytes, and more values than a loop may take: written whole, and marked."""
    kept, ours = written({"body": "a text " * (MEGABYTES * 150_000)})
    assert (len(kept["body"]), ours) == (MEGABYTES * 1_050_000, {"error": "too_long"})
    kept, ours = written({"body": [None] * 1_000_001})
    assert (len(kept["body"]), ours) == (1_000_001, {"error": "failed"})


TRIM = {"foreach": {"field": "body", "processor": {"trim": {"field": "_ingest._value"}}}}


@pytest.mark.parametrize("server", ["opensearch"], indirect=True)
def test_beside_other_processors(opensearch, written, pipeline_name, request):
    """The final pipeline reads the text that they leave."""
    name = f"{pipeline_name}-first"
    request.addfinalizer(lambda: opensearch.request("DELETE", f"/_ingest/pipeline/{name}"))
    cases = [
        ({"html_strip": {"field": "body"}}, {"body": f"<p>{TEXT}</p>"}),
        ({"rename": {"field": "html", "target_field": "body"}}, {"html": TEXT}),
        ({"set": {"field": "body", "value": TEXT}}, {"body": "Another text.", "simhash": {"fingerprint": "0" * 16}}),
        (TRIM, {"body": [f"  {TEXT}  "]}),
    ]
    for processor, document in cases:
        opensearch.request("PUT", f"/_ingest/pipeline/{name}", {"processors": [processor]})
        assert written(document, name)[1]["fingerprint"] == FRESH, processor


@pytest.mark.parametrize("server", ["opensearch"], indirect=True)
def test_failures_of_others(opensearch, pipeline_name):
    """What another processor's on_failure leaves is read; ours calls nobody's on_failure."""
    opensearch.request("PUT", f"/_ingest/pipeline/{pipeline_name}", build_pipeline(text_field="body"))
    failed = [{"set": {"field": "body", "value": TEXT}}]
    caught = [{"set": {"field": "caught", "value": True}}]
    processors = [
        {"fail": {"message": "no", "on_failure": failed}},
        {"pipeline": {"name": pipeline_name, "on_failure": caught}},
    ]
    [first, second] = simulate(opensearch, {"processors": processors}, [{}, {"simhash": "somebody else's"}])
    assert (first["simhash"]["fingerprint"], "caught" in first) == (FRESH, False)
    assert second == {"body": TEXT, "simhash": "somebody else's"}
    assert simulate(opensearch, {"processors": processors[1:]}, [{"body": 5}]) == [
        {"body": 5, "simhash": {"error": "not_text"}}
    ]


SOURCE = build_search_template()["script"]["source"]


def rendered(parameters):
    """Return the search that the template becomes, without its server: each name replaced, each check left out."""
    plain = re.sub(r"\{\{\^(\w+)\}\}(.*?)\{\{/\1\}\}", lambda found: "" if found[1] in parameters else found[2], SOURCE)
    return re.sub(r"\{\{(\w+)\}\}", lambda found: str(parameters.get(found[1], "")), plain)


def test_every_near_duplicate_is_a_candidate(server, index):
    """Compared with all others; the search is the one that a template becomes, so it needs no template engine."""
    chance = random.Random(1)
    bases = [chance.getrandbits(64) for _ in range(30)]
    prints = [base ^ sum(1 << bit for bit in chance.sample(range(64), n)) for base in bases for n in range(6)]
    with make_client(server) as client:
        SimHashClient(client).create_index(index, settings=ONE_SHARD)
    fill(server, index, prints)
    for asked in prints[::7]:
        body = json.loads(rendered(fingerprint_fields(asked)["simhash"]))
        answer = server.request("POST", f"/{index}/_search", body)
        hits = [int(hit["fields"]["simhash.fingerprint"][0], 16) for hit in answer["hits"]["hits"]]
        near = sorted(each for each in hits if hamming_distance(asked, each) <= 3)
        assert near == sorted(each for each in prints if hamming_distance(asked, each) <= 3)
        assert answer["hits"]["total"] == {"value": len(hits), "relation": "eq"}


def test_the_template_on_a_server(request):
    """It becomes the same search; without a block it is an error, not an answer with fewer hits."""
    templates, name = get_templates(request), f"test-{uuid.uuid4().hex}"
    templates.request("PUT", f"/_scripts/{name}", build_search_template())
    request.addfinalizer(lambda: templates.request("DELETE", f"/_scripts/{name}"))
    ours = fingerprint_fields(0x00AA_0000_FFFF_1234)["simhash"]
    for parameters in (ours, ours | {"size": 5}):
        answer = templates.request("POST", "/_render/template", {"id": name, "params": parameters})
        assert answer["template_output"] == json.loads(rendered(parameters))
    for block in ("block0", "block3"):
        asked = {"id": name, "params": {key: value for key, value in ours.items() if key != block}}
        assert send(templates.url, "POST", "/_search/template", asked)[0] == 400
