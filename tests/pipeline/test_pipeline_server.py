"""The ingest pipeline on a real OpenSearch, its refusal by an Elasticsearch without Painless; the search template."""

import json
import os
import re
import uuid
from pathlib import Path

import pytest

from es_simhash import (
    InvalidInputError,
    Scheme,
    SchemeError,
    SimHashClient,
    SimHashError,
    build_pipeline,
    build_search_template,
    fingerprint,
    fingerprint_fields,
    fingerprints,
    get_scheme,
    hamming_distance,
    to_hex,
)
from es_simhash.pipeline.script_source import LONGEST
from tests.pipeline.hostile import hostile_texts
from tests.servers.fixtures import get_templates, make_client
from tests.servers.servers import send
from tests.servers.support import ONE_SHARD, fill, found_in, numbered, planted, simulate, texts, truth

VECTORS = json.loads((Path(__file__).parents[1] / "vectors.json").read_text(encoding="utf-8"))
COMPUTED = [
    each
    for each in VECTORS["schemes"]
    if each["scheme"]["name"] == "shingles"
    and each["scheme"]["parameters"]["hash"] == "xxh3_64"
    and not each["scheme"]["preprocess"]
]
# `ES_SIMHASH_PIPELINE_TEXTS=100000` compares more.
HOSTILE = int(os.environ.get("ES_SIMHASH_PIPELINE_TEXTS", "1500"))
TEXT = "The council approved the new bridge over the river on Tuesday after a long debate about its cost."


def hex_of(fingerprint):
    return None if fingerprint is None else to_hex(fingerprint)


@pytest.mark.parametrize("vectors", COMPUTED, ids=[str(Scheme.from_dict(each["scheme"])) for each in COMPUTED])
def test_golden_vectors(opensearch, vectors):
    """Bit for bit, with the other fields."""
    pipeline = build_pipeline(scheme=Scheme.from_dict(vectors["scheme"]), text_field="body")
    names = list(vectors["fingerprints"])
    made = simulate(opensearch, pipeline, [{"body": VECTORS["texts"][name]} for name in names])
    for name, document in zip(names, made, strict=True):
        expected = vectors["fingerprints"][name]
        fields = {} if expected is None else fingerprint_fields(int(expected, 16))
        assert document == {"body": document["body"], **fields}, name


def test_texts_of_all_of_unicode(opensearch):
    """No differing bit."""
    schemes = [
        get_scheme("shingles"),
        get_scheme("shingles", size=7, weighting="linear"),
        get_scheme("shingles", size=1),
    ]
    pipelines = [(each, build_pipeline(scheme=each, text_field="body")) for each in schemes]
    for seed in range(0, HOSTILE, 500):
        scheme, pipeline = pipelines[seed // 500 % len(pipelines)]
        given = hostile_texts(min(500, HOSTILE - seed), seed=seed)
        made = found_in(simulate(opensearch, pipeline, [{"body": each} for each in given]))
        expected = list(map(hex_of, fingerprints(given, scheme=scheme)))
        assert [each for each in zip(given, made, expected, strict=True) if each[1] != each[2]] == []


def test_long_texts(opensearch):
    """A loop may take a million steps, and a text may have a million characters."""
    pipeline = build_pipeline(text_field="body")
    given = [TEXT * 2_500, "".join(map(chr, range(0x4E00, 0x9FF0))) * 12, "ﷺ" * 60_000, "e\u0301\u0323" * 100_000]
    given += ["abcdefg " * 200_000, "x" * (LONGEST - 1), "x" * LONGEST]
    *made, cut = simulate(opensearch, pipeline, [{"body": each} for each in given if len(each) != 1_600_000])
    given = [each for each in given if len(each) < LONGEST]
    assert found_in(made) == list(map(hex_of, fingerprints(given)))
    assert cut["simhash"] == {"error": "too_long"}


def test_where_the_text_stands(opensearch):
    """Nested, dotted, in lists, in several fields, in their order: as Python reads it."""
    pipeline = build_pipeline(text_field=["title", "body.text"], value=False)
    sources = [
        {"title": "A title", "body": {"text": TEXT}},
        {"body.text": TEXT, "title": ["A", "title"]},
        {"body": [{"text": "one part"}, {"text": ["and", None, "another"]}], "title": None},
        {"title": "A title", "body": "not an object"},
    ]
    expected = [f"A title\n{TEXT}", f"A\ntitle\n{TEXT}", "one part\nand\nanother", "A title"]
    assert simulate(opensearch, pipeline, sources) == [
        {**source, **fingerprint_fields(fingerprint(text), value=False)}
        for source, text in zip(sources, expected, strict=True)
    ]


def test_what_is_no_text(opensearch):
    """It is marked, or left alone; nothing is refused, and what others wrote below the prefix stays."""
    pipeline = build_pipeline(text_field="body")
    stale = {"fingerprint": "0" * 16, "block0": "0000", "value": "0", "error": "failed", "group": "a"}
    not_text, fields = {"error": "not_text"}, fingerprint_fields(fingerprint(TEXT))["simhash"]
    made = [
        ({"body": 5}, {"simhash": not_text}),
        ({"body": {"text": TEXT}}, {"simhash": not_text}),
        ({"body": ["text", 5], "simhash": stale}, {"simhash": {"group": "a"} | not_text}),
        ({"other": TEXT}, {}),
        ({"other": TEXT, "simhash": stale}, {"simhash": stale}),
        ({"body": " ... ", "simhash": stale}, {"simhash": {"group": "a"}}),
        ({"body": " ... ", "simhash": {"fingerprint": "0" * 16}}, {}),
        *(({"body": TEXT, "simhash": own}, {"simhash": own}) for own in ("mine", {"algo": "x"}, {"value": 77})),
        ({"body": TEXT, "simhash": None}, {"simhash": fields}),
        ({"body": TEXT, "simhash": stale}, {"simhash": {"group": "a"} | fields}),
    ]
    expected = [{name: source[name] for name in source if name != "simhash"} | own for source, own in made]
    dotted = {"simhash.value": "7"}
    assert simulate(opensearch, pipeline, [{**source, **dotted} for source, _ in made[2:3]]) == expected[2:3]
    assert simulate(opensearch, pipeline, [source for source, _ in made]) == expected


@pytest.mark.parametrize("server", ["opensearch"], indirect=True)
def test_any_program_writes_fingerprints(server, index, simhash, call, pipeline_name):
    """Plain requests write; lookups find the copies, and what has no fingerprint is counted, and filled."""
    simhash.create_index(index, text_field="body", settings=ONE_SHARD)
    installed = simhash.put_pipeline(index, name=pipeline_name, use_as="final")
    assert installed.to_dict() == {
        "name": pipeline_name,
        "indices": [index],
        "use_as": "final",
        "scheme": "shingles-3",
        "text_fields": ["body"],
    }
    documents = numbered(texts(60))
    for each in documents:
        server.request("PUT", f"/{index}/_doc/{each['_id']}", {"body": each["body"]})
    server.request("PUT", f"/{index}/_doc/long?refresh=true", {"body": "x" * LONGEST})
    prints = [fingerprint(each["body"]) for each in documents]
    for document, each in zip(documents[:10], prints, strict=False):
        hits = call(simhash.find_near_dups(index, document["body"], max_distance=8))
        assert sorted((hit.distance, hit.id) for hit in hits) == truth(prints, each, 8)
    assert [fault.found for fault in call(simhash.check(index))[0].faults if fault.kind == "pipeline_errors"] == ["1"]


@pytest.mark.parametrize("server", ["opensearch"], indirect=True)
@pytest.mark.parametrize("other", ["theirs", "ours"])
def test_another_pipeline_keeps_its_name_and_its_place(server, index, simhash, pipeline_name, other):
    """A pipeline of somebody else, or ours for other text fields; the same one may be stored again."""
    theirs = {"description": "theirs", "processors": [{"set": {"field": "a", "value": 1}}]}
    stored = theirs if other == "theirs" else build_pipeline(text_field="title")
    server.request("PUT", f"/_ingest/pipeline/{pipeline_name}", stored)
    simhash.create_index(index, text_field="title", settings=ONE_SHARD)
    simhash.create_index(f"{index}-2", text_field="body", settings=ONE_SHARD)
    if other == "ours":
        assert simhash.put_pipeline(index, name=pipeline_name).text_fields == ("title",)
    with pytest.raises(SimHashError, match="pass another name"):
        simhash.put_pipeline(f"{index}-2", name=pipeline_name, use_as="final")
    server.request("PUT", f"/{index}/_settings", {"index.default_pipeline": pipeline_name})
    with pytest.raises(SimHashError, match="already"):
        simhash.put_pipeline(index, name=f"{pipeline_name}-2", use_as="default")
    assert f"{pipeline_name}-2" not in server.request("GET", "/_ingest/pipeline")
    assert server.request("GET", f"/_ingest/pipeline/{pipeline_name}")[pipeline_name] == stored


BEFORE, AFTER = "The text as it was before anybody changed it.", "Something else was written by another program."
# What docs/services.md says of updates of a document that exists: whether its fingerprint is that of its text then.
UPDATES = {
    "doc": ({"doc": {"body": AFTER}}, False),
    "doc_as_upsert": ({"doc": {"body": AFTER}, "doc_as_upsert": True}, True),
    "upsert": ({"doc": {"body": AFTER}, "upsert": {"body": "The third text, which is not written at all."}}, False),
    "script": ({"script": {"source": "ctx._source.body = params.body", "params": {"body": AFTER}}}, False),
}


def put_behind(server, name, use_as="final", **mappings):
    """Make an index, and a pipeline of the same name that its documents pass."""
    server.request("PUT", f"/_ingest/pipeline/{name}", build_pipeline(text_field="body"))
    settings = {**ONE_SHARD, f"index.{use_as}_pipeline": name}
    server.request("PUT", f"/{name}", {"settings": settings, "mappings": mappings})


@pytest.mark.parametrize("server", ["opensearch"], indirect=True)
@pytest.mark.parametrize("use_as", ["default", "final"])
def test_updates(server, pipeline_name, use_as):
    """An _update passes the pipeline with the whole document; an update in a bulk request passes it in part at most."""
    put_behind(server, pipeline_name, use_as)

    def is_fresh(id_):
        [body, ours] = map(server.request("GET", f"/{pipeline_name}/_doc/{id_}")["_source"].get, ("body", "simhash"))
        return body == AFTER and ours["fingerprint"] == to_hex(fingerprint(body))

    for kind, (update, is_fresh_in_bulk) in UPDATES.items():
        for id_ in (f"one-{kind}", f"bulk-{kind}"):
            server.request("PUT", f"/{pipeline_name}/_doc/{id_}", {"body": BEFORE})
        server.request("POST", f"/{pipeline_name}/_update/one-{kind}", update)
        lines = json.dumps({"update": {"_id": f"bulk-{kind}"}}), json.dumps(update), ""
        server.request("POST", f"/{pipeline_name}/_bulk", "\n".join(lines).encode())
        assert (is_fresh(f"one-{kind}"), is_fresh(f"bulk-{kind}")) == (True, is_fresh_in_bulk), kind
    server.request("POST", f"/{pipeline_name}/_refresh")
    server.request("POST", f"/{pipeline_name}/_update_by_query?refresh=true", {"query": {"match_all": {}}})
    assert all(is_fresh(f"bulk-{kind}") for kind in UPDATES)


def test_an_index_that_cannot_have_one(index, simhash):
    """It records no text field, or a scheme that needs Python; a name or use that is none."""
    simhash.create_index(index, settings=ONE_SHARD)
    with pytest.raises(InvalidInputError, match="does not record which field has the text"):
        simhash.put_pipeline(index)
    simhash.put_mapping(index, text_field="body")
    with pytest.raises(InvalidInputError, match="use_as"):
        simhash.put_pipeline(index, use_as="first")
    simhash.create_index(f"{index}-words", scheme="keywords", text_field="body", settings=ONE_SHARD)
    with pytest.raises(SchemeError, match="cannot compute"):
        simhash.put_pipeline(f"{index}-words")


@pytest.mark.parametrize("server", ["elasticsearch"], indirect=True)
def test_a_server_without_painless(server, index, simhash):
    """It is asked before anything is stored."""
    simhash.create_index(index, text_field="body", settings=ONE_SHARD)
    with pytest.raises(SimHashError, match="does not run the script"):
        simhash.put_pipeline(index, name=index, use_as="default")
    assert index not in (server.request("GET", "/_ingest/pipeline", missing_ok=True) or {})


@pytest.mark.parametrize("server", ["opensearch"], indirect=True)
def test_a_lookup_in_two_requests(server, index):
    """The pipeline returns the search for a text or a fingerprint; its hits are the near-duplicates, with distances."""
    pipeline = build_pipeline(text_field="body")
    documents = numbered(texts(100))
    server.request("PUT", f"/{index}", {"mappings": {}, "settings": ONE_SHARD})
    with make_client(server) as client:
        simhash = SimHashClient(client)
        simhash.put_mapping(index, text_field="body")
        list(simhash.ingest(index, documents))
    prints = [fingerprint(each["body"]) for each in documents]
    server.request("POST", f"/{index}/_refresh")
    for most in (0, 3, 8, 12, 20, 64):
        by_text = {"body": documents[most]["body"], "simhash": {"lookup": {"max_distance": most}}}
        by_print = {"simhash": {"fingerprint": to_hex(prints[most]), "lookup": {"max_distance": most}}}
        for made in simulate(server, pipeline, [by_text, by_print]):
            hits = server.request("POST", f"/{index}/_search", made["simhash"]["lookup"]["body"])["hits"]["hits"]
            found = sorted((hit["fields"]["distance"][0], hit["_id"]) for hit in hits)
            assert found == truth(prints, prints[most], most)


def test_a_lookup_that_cannot_be_made(opensearch):
    """It says why."""
    pipeline = build_pipeline(text_field="body")
    wrong = [(65, {"body": TEXT}), ("3", {"body": TEXT}), (3, {"body": " "}), (3, {}), (3, {"body": 5})]
    asked = [{**document, "simhash": {"lookup": {"max_distance": most}}} for most, document in wrong]
    for given in ("xyz", "x" * 16, ["0" * 16]):
        asked.append({"simhash": {"fingerprint": given, "lookup": {"max_distance": 3}}})
    made = [each["simhash"]["lookup"] for each in simulate(opensearch, pipeline, asked)]
    assert all("body" not in each and each["error"] for each in made)
    assert len({each["error"] for each in made}) == 5


@pytest.mark.parametrize("server", ["opensearch"], indirect=True)
def test_a_lookup_that_is_written_by_mistake(server, pipeline_name):
    """The document keeps no search, and an index without our mapping gets no field for each of its parts."""
    put_behind(server, pipeline_name)
    asked = {"body": TEXT, "simhash": {"lookup": {"max_distance": 12}}}
    server.request("PUT", f"/{pipeline_name}/_doc/1", asked)
    ours = server.request("GET", f"/{pipeline_name}/_doc/1")["_source"]["simhash"]
    assert ours["fingerprint"] == to_hex(fingerprint(TEXT))
    assert sorted(ours["lookup"]) == ["error", "max_distance"]


FRESH = to_hex(fingerprint(TEXT))


@pytest.fixture
def written(opensearch, pipeline_name):
    """Return a function that writes a document through a final pipeline, and returns it with the object of ours."""
    put_behind(opensearch, pipeline_name, properties={"body": {"type": "object", "enabled": False}})

    def write(document):
        answer = opensearch.request("POST", f"/{pipeline_name}/_doc", document)
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
    kept, ours = written({"body": "a text " * 300_000})
    assert (len(kept["body"]), ours) == (2_100_000, {"error": "too_long"})
    kept, ours = written({"body": [None] * 1_000_001})
    assert (len(kept["body"]), ours) == (1_000_001, {"error": "failed"})


SOURCE = build_search_template()["script"]["source"]


def rendered(parameters):
    """Return the search that the template becomes, without its server: each name replaced, each check left out."""
    plain = re.sub(r"\{\{\^(\w+)\}\}(.*?)\{\{/\1\}\}", lambda found: "" if found[1] in parameters else found[2], SOURCE)
    return re.sub(r"\{\{(\w+)\}\}", lambda found: str(parameters.get(found[1], "")), plain)


def test_every_near_duplicate_is_a_candidate(server, index):
    """Compared with all others; the search is the one that a template becomes, so it needs no template engine."""
    prints = planted(150)
    with make_client(server) as client:
        SimHashClient(client).create_index(index, settings=ONE_SHARD)
    fill(server, index, prints)
    for asked in prints[::7]:
        body = json.loads(rendered(fingerprint_fields(asked)["simhash"]))
        answer = server.request("POST", f"/{index}/_search", body)
        hits = [(int(hit["fields"]["simhash.fingerprint"][0], 16), hit["_id"]) for hit in answer["hits"]["hits"]]
        near = sorted((hamming_distance(asked, value), id_) for value, id_ in hits)
        assert [hit for hit in near if hit[0] <= 3] == truth(prints, asked, 3)
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
