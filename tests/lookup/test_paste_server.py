"""``find --query``: what is printed, as a server takes it. KQL and ES|QL have models in ``test_paste_property.py``."""

import json

import pytest

from es_simhash import SimHashClient, fingerprint_fields, rescore
from es_simhash.lookup.paste import paste_lookup
from tests.servers.command_line import TEXT
from tests.servers.support import ON_BOTH, ONE_SHARD, planted, put


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


def test_the_pasted_search_goes_as_far_as_the_index_records(server, run, recorded):
    """By id: its candidates have what find finds by bits, without the document itself; a remark says what find does."""
    index, held, simhash = recorded
    near = {each.id for each in simhash.find_near_dups_of(index, "00021", max_distance=12)}
    done = run("find", index, "--id", "00021", "--query", "dev-tools", "--source", "body", "--size", "100")
    line, body = done.stdout.split("\n", 1)
    assert line == f"POST /{index}/_search"
    hits = server.request("POST", f"/{index}/_search", json.loads(body))["hits"]["hits"]
    assert {each.id for each in rescore(hits, held[21], max_distance=12)} == near
    assert all(hit["_source"] == {"body": f"text {int(hit['_id'])}"} for hit in hits)
    said = " ".join(done.stderr.split())
    assert "candidates: near-duplicates, and others; those within 12 bits, texts not compared; es-simhash find" in said


@ON_BOTH
def test_every_form_is_the_librarys(run, recorded, server):
    """Of a document, of a fingerprint, and of a text by the scheme of the index; with what is given in place of it."""
    index, held, _ = recorded
    is_opensearch = server.product == "opensearch"
    for form in ("kql",) if is_opensearch else ("kql", "esql"):
        said = run("find", index, "--id", "00021", "--query", form, "-d", "3").stdout
        assert said == paste_lookup(form, index, held[21], max_distance=3, exclude_ids=["00021"]) + "\n"
        given = run("find", index, "--fingerprint", f"{held[21]:016x}", "--query", form, "--preset", "identical")
        assert given.stdout == paste_lookup(form, index, held[21], max_distance=3) + "\n"
    nearest = run("find", index, "--id", "00021", "--query", "kql")
    assert nearest.stdout == paste_lookup("kql", index, held[21], max_distance=11, exclude_ids=["00021"]) + "\n"
    assert "near-duplicates at more, up to 12, are left out; --query " in nearest.stderr
    esql = run("find", index, TEXT, "--query", "esql", "--json")
    assert ("OpenSearch has no ES|QL: give --query dev-tools" in esql.stderr) == is_opensearch
    assert ("near_dup_distance <= 12" in esql.stdout) != is_opensearch


def test_what_a_search_to_paste_has_not(run, recorded):
    """Options of find that it cannot follow are refused; so is a text without a fingerprint."""
    index, *_ = recorded
    for more in (["--verify", "0.8"], ["--per", "x"], ["--numbers", "same"]):
        assert run("find", index, TEXT, "--query", "dev-tools", *more).exit_code == 2
    assert run("find", index, TEXT, "--query", "kql", "--size", "3").exit_code == 2
    done = run("find", index, "...", "--query", "kql")
    assert (done.exit_code, "no fingerprint" in done.stderr) == (1, True)
