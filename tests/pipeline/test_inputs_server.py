"""The ingest pipeline with hostile documents and other processors, and the stored search template."""

import json
import os
import random
import re
import uuid

import pytest

from es_simhash import (
    SimHashClient,
    build_pipeline,
    build_search_template,
    fingerprint,
    fingerprint_fields,
    hamming_distance,
    to_hex,
)
from tests.servers.fixtures import get_templates, make_client
from tests.servers.servers import send
from tests.servers.support import ONE_SHARD, fill, simulate

TEXT = "The council approved the new bridge over the river on Tuesday after a long debate about its cost."
FRESH = to_hex(fingerprint(TEXT))
# `ES_SIMHASH_PIPELINE_MEGABYTES=50` writes documents of that size, with a heap of 2 GB.
MEGABYTES = int(os.environ.get("ES_SIMHASH_PIPELINE_MEGABYTES", "2"))


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
