"""Hostile documents through the ingest pipeline into a real OpenSearch, alone and beside other processors."""

import os

import pytest

from es_simhash import build_pipeline, fingerprint, to_hex
from tests.servers.support import ONE_SHARD, simulate

TEXT = "The council approved the new bridge over the river on Tuesday after a long debate about its cost."
FRESH = to_hex(fingerprint(TEXT))
# `ES_SIMHASH_PIPELINE_MEGABYTES=50` writes documents as large as docs/pipeline.md says; a server needs a heap of 2 GB.
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
