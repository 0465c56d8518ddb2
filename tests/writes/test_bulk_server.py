"""The ingest helper inside the clients' own bulk helpers, and the clients' own errors, on real servers."""

import importlib

import pytest

from es_simhash import SimHashClient, to_hex
from es_simhash.hashing import fingerprint
from tests.estates.wire import Wire
from tests.servers.fixtures import client_through, make_client
from tests.servers.support import ON_BOTH, ONE_SHARD, read_all

TEXT = "The council approved the new bridge over the river on Tuesday after a long debate about its cost."
OTHER = "Shares fell sharply after the company cut its forecast for the coming year."


def helpers_of(client):
    return importlib.import_module(f"{type(client).__module__.partition('.')[0]}.helpers")


def stored(server, index, id_):
    return server.request("GET", f"/{index}/_doc/{id_}", missing_ok=True)["_source"].get("simhash")


def hex_of(text):
    return to_hex(fingerprint(text))


@pytest.mark.parametrize("name", ["bulk", "streaming_bulk", "parallel_bulk"])
def test_the_sync_helpers_take_it(server, index, sync_client, name):
    """Each of the three, wrapped around the actions the user already has."""
    simhash = SimHashClient(sync_client)
    simhash.create_index(index, text_field="body", settings=ONE_SHARD)
    actions = [{"_index": index, "_id": str(n), "body": f"{TEXT} {n}"} for n in range(30)]
    outcome = getattr(helpers_of(sync_client), name)(sync_client, simhash.with_fingerprints(index, actions))
    assert len(list(outcome)) == (2 if name == "bulk" else 30)
    assert stored(server, index, "7")["fingerprint"] == hex_of(f"{TEXT} 7")


@pytest.mark.parametrize("fault", ["lost", "503 after the work"])
@pytest.mark.parametrize("id_from", [None, "random"])
def test_a_request_that_the_client_sends_again(server, index, fault, id_from):
    """Documents without an id are written twice by it; with ids made beforehand each is written once."""
    wire = Wire(script={("bulk", 0): fault})
    client = make_client(server, **wire.options(server.product))
    try:
        simhash = SimHashClient(client)
        simhash.create_index(index, text_field="body", settings=ONE_SHARD)
        actions = simhash.with_fingerprints(index, [{"body": TEXT}, {"body": OTHER}], id_from=id_from)
        assert helpers_of(client).bulk(client, actions, index=index, refresh=True) == (2, [])
        assert wire.log
        assert len(simhash.find_near_dups(index, TEXT)) == (2 if id_from is None else 1)
    finally:
        client.close()


def test_a_missing_index_is_not_created_by_accident(server, index, simhash):
    """Ingest into an index without our mapping would guess its types: it is refused before anything is written."""
    with pytest.raises(Exception, match="no such index"):
        list(simhash.ingest(index, [{"_id": "1", "body": TEXT}], text_field="body"))
    assert server.request("GET", f"/{index}", missing_ok=True) is None


@pytest.mark.parametrize(
    ("op_type", "on_duplicate", "has_ids"),
    [
        *(("index", None, False), ("index", "tag", False)),
        *(("create", None, True), ("create", "tag", True), ("create", "tag", False)),
    ],
)
def test_an_ingest_writes_each_document_once(server, index, sync_simhash, op_type, on_duplicate, has_ids):
    """Whether its request is sent again by us or by the client; each report names the id, and none is refused."""
    sync_simhash.create_index(index, text_field="body", settings=ONE_SHARD)
    written = {}
    for number, fault in enumerate(
        ("503", "503 after the work", "lost", "503 for items after the work", "429 for items"), 1
    ):
        wire = Wire(script={("bulk", 0): fault})
        ids = [{"_id": f"{fault} {n}"} if has_ids else {} for n in range(5)]
        documents = [{"body": f"{TEXT} {fault} {n}", **id_} for n, id_ in enumerate(ids)]
        with client_through(server, wire) as simhash:
            reports = list(simhash.ingest(index, documents, op_type=op_type, on_duplicate=on_duplicate))
        assert wire.log
        assert {each.kind for each in reports} == {None}
        written |= {report.id: document["body"] for report, document in zip(reports, documents, strict=True)}
        assert {id_: source["body"] for id_, source in read_all(server, index).items()} == written, fault
        assert len(written) == 5 * number, fault
        # The clients repeat a whole request by themselves: without a moment of grouping nothing tells whose it is.
        is_hidden = has_ids and fault in ("lost", "503 after the work") and on_duplicate is None
        assert ({each.action for each in reports} == {"unchanged"}) == is_hidden, fault


# The embedded Elasticsearch has no ingest processors.
@pytest.mark.parametrize("server", ["opensearch"], indirect=True)
def test_an_ingest_pipeline_that_drops_or_renames(server, index, sync_client):
    """What is dropped is not reported as written; what is renamed is reported by the id that it has."""
    processors = [
        {"drop": {"if": "ctx.kind == 'spam'"}},
        {"set": {"field": "_id", "value": "fixed", "if": "ctx.kind == 'id'"}},
    ]
    server.request("PUT", f"/_ingest/pipeline/{index}", {"processors": processors})
    try:
        simhash = SimHashClient(sync_client)
        settings = {**ONE_SHARD, "index.default_pipeline": index}
        simhash.create_index(index, text_field="body", settings=settings)
        documents = [
            {"_id": "1", "kind": "spam", "body": TEXT},
            {"kind": "spam", "body": TEXT},
            {"kind": "id", "body": TEXT},
            {"kind": "id", "body": OTHER},
        ]
        reports = list(simhash.ingest(index, documents, on_duplicate=None))
        assert [report.id for report in reports[2:]] == ["fixed", "fixed"]
        assert [report.action == "written" for report in reports] == [False, False, True, True]
        assert server.request("GET", f"/{index}/_doc/fixed")["_source"]["body"] == OTHER
        server.request("POST", f"/{index}/_refresh")
        assert simhash.check(index)[0].documents == 1
    finally:
        server.request("DELETE", f"/_ingest/pipeline/{index}")


ENDLESS = []
ENDLESS.append(ENDLESS)
NOT_SENT = [
    {"_id": ""},
    {"n": ENDLESS},
    {"_id": "x" * 513},  # servers refuse the whole request
    {"_id": "\ud800"},
    {"_routing": "\ud800"},
    {"_id": ["a"]},
    {"_id": True},
    {"_version": "x"},
    {"_if_seq_no": 1.5},
    {"n": {1, 2}},
    {"n": object()},
]


@pytest.mark.parametrize("on_duplicate", [None, "tag"])
def test_one_document_that_no_request_can_hold(server, index, simhash, on_duplicate):
    """It is reported as refused, and the others are written."""
    simhash.create_index(index, text_field="body", settings=ONE_SHARD)
    first, last = ({"_id": name, "body": text} for name, text in (("first", TEXT), ("last", OTHER)))
    documents = [first, *({"body": "a few others", **bad} for bad in NOT_SENT), last]
    reports = list(simhash.ingest(index, documents, on_duplicate=on_duplicate))
    assert [each.action for each in reports] == ["written", *["refused"] * len(NOT_SENT), "written"]
    assert not [each.reason for each in reports if "\n" in (each.reason or "")]
    assert sorted(read_all(server, index)) == ["first", "last"]


@ON_BOTH
def test_a_refusal_does_not_quote_the_document(simhash, call, index):
    """What is no JSON, since Python writes numbers that JSON lacks; Elasticsearch would show where it begins."""
    call(simhash.create_index(index, text_field="body", settings=ONE_SHARD))
    [report] = call(simhash.ingest(index, [{"_id": "a", "body": 'between "you"; and me ' * 40, "n": float("nan")}]))
    assert (report.action, "'NaN'" in report.reason, "between" in report.reason) == ("refused", True, False)
