"""Ingest with the fingerprints of the index in memory, on real servers: it finds what asking the server finds."""

import queue
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, nullcontext

import pytest

from es_simhash import InvalidInputError, SimHashClient, fingerprint, fingerprint_fields
from es_simhash.ingest import near
from es_simhash.ingest.near import NearLookup
from es_simhash.lookup import index_table as reading
from tests.servers.batches import ingest_in_batches
from tests.servers.fixtures import make_client
from tests.servers.support import ONE_SHARD, document, fill, planted, put, random_texts, texts

EMPTY = {"number_of_shards": 1, "number_of_replicas": 0, "refresh_interval": "-1"}


def create(server, index):
    """Create an index as another program would."""
    with closing(make_client(server)) as client:
        SimHashClient(client).create_index(index, text_field="body", settings=EMPTY)


@contextmanager
def only_made_by_request(server, index):
    """Let no bulk request that is on its way make an index of that name with other fields."""
    made_by_writes = "action.auto_create_index"
    server.request("PUT", "/_cluster/settings", {"persistent": {made_by_writes: f"-{index},+*"}})
    try:
        yield
    finally:
        server.request("PUT", "/_cluster/settings", {"persistent": {made_by_writes: None}})


def tagged(reports):
    return {each.id: each.canonical for each in reports if each.action == "tagged"}


def in_both_ways(client, call, index, given, make_index, **options):
    """Return the reports of an ingest into two indices alike, by asking the server and by the table."""
    found = {}
    for way in ("server", "memory"):
        make_index(name := f"{index}-{way}")
        found[way] = ingest_in_batches(client, call, name, given, lookups=way, **options)
    told = {way: [{**each.to_dict(), "index": None} for each in found[way]] for way in found}
    assert told["memory"] == told["server"]
    return found["memory"]


def test_memory_finds_what_the_server_finds(server, index, simhash, client, call, monkeypatch):
    """Over several shards, batches and refreshes, with documents that were there before: the reports are the same."""
    monkeypatch.setattr(reading, "PAGE", 16)  # several ranges, some of them too full for one page

    def make_index(name):
        simhash.create_index(name, text_field="body", settings={**EMPTY, "number_of_shards": 2})
        fill(server, name, [*planted(60), *(fingerprint(each) for each in texts(40, seed=1)[::3])])

    given = [{"_id": f"n{number:03d}", "body": text} for number, text in enumerate(texts(90))]
    assert tagged(in_both_ways(client, call, index, given, make_index, max_distance=8, batch=18, in_flight=40))


@pytest.mark.parametrize("most", [2_000, 3])
def test_texts_come_with_the_rest(index, simhash, client, call, monkeypatch, most):
    """In one search or page by page; the reports are the same."""
    rule = {"max_distance": 12, "verify": 0.8}
    monkeypatch.setattr(near, "DOCUMENTS", most)
    known = [{"_id": f"k{number:03d}", "body": text} for number, text in enumerate(texts(40, seed=1))]
    given = [{"_id": f"n{number:03d}", "body": f"{each['body']} also"} for number, each in enumerate(known)]

    def make_index(name):
        simhash.create_index(name, text_field="body", settings=EMPTY)
        ingest_in_batches(client, call, name, known, batch=50, **rule)

    assert len(tagged(in_both_ways(client, call, index, given, make_index, batch=20, **rule))) > 30


def test_a_document_without_the_signed_copy_is_read(server, index, simhash, client, call, monkeypatch):
    """Another program may leave it out; where a document has no fingerprint but blocks, the server is asked."""
    monkeypatch.setattr(reading, "PAGE", 16)
    simhash.create_index(index, text_field="body", settings={**EMPTY, "number_of_shards": 2})
    found = texts(40, seed=3)
    fill(server, index, [fingerprint(each) for each in found[:20]])
    documents = [fingerprint_fields(fingerprint(each), value=False) for each in found[20:]]
    put(server, index, [{"_id": f"bare{number}", **each} for number, each in enumerate(documents)])
    given = [{"_id": f"n{number:03d}", "body": text} for number, text in enumerate(found)]
    options = {"max_distance": 3, "batch": 10, "lookups": "memory"}
    assert len(tagged(ingest_in_batches(client, call, index, given, **options))) == 40
    del documents[0]["simhash"]["fingerprint"]
    put(server, index, [{"_id": "broken", **documents[0]}])
    again = [{"_id": f"again{number}", "body": text} for number, text in enumerate(found)]
    reports = ingest_in_batches(client, call, index, again, **options)
    assert [each.action for each in reports] == ["tagged"] * 40
    assert [number for number, each in enumerate(reports) if "'broken'" in (each.reason or "")] == [20]
    assert all(call(simhash.find_near_dups_many(index, found[21:], max_distance=3, lookups="memory")))


def test_what_others_do_meanwhile_is_seen(server, index, simhash, client, call):
    """New documents, changed and deleted ones, an index that a rollover makes, and one that is created again."""
    first, alias = f"{index}-a", f"{index}-alias"
    simhash.create_index(first, text_field="body", settings={**EMPTY, "number_of_shards": 2})
    server.request("PUT", f"/{first}/_alias/{alias}", {"is_write_index": True})
    own = random_texts(40, 2)
    put(server, first, [document("old", own[9]), document("gone", own[10]), document("changed", own[11])])

    def given():
        for number, text in enumerate(own):
            if number == 5:  # the first batches were read, and the table was made
                put(server, first, [document("new", own[20]), document("changed", own[21])])
                server.request("DELETE", f"/{first}/_doc/gone?refresh=true")
                server.request("POST", f"/{first}/_refresh")
            if number == 22:
                create(server, f"{index}-b")
                actions = [
                    {"add": {"index": first, "alias": alias, "is_write_index": False}},
                    {"add": {"index": f"{index}-b", "alias": alias, "is_write_index": True}},
                ]
                server.request("POST", "/_aliases", {"actions": actions})
                put(server, f"{index}-b", [document("rolled", own[33])])
            yield {"_id": f"n{number:03d}", "body": text}

    reports = ingest_in_batches(client, call, alias, given(), batch=2, max_distance=3, lookups="memory")
    assert tagged(reports) == {"n009": "old", "n020": "new", "n021": "changed", "n033": "rolled"}


@pytest.mark.parametrize("is_created", [True, False])
def test_an_index_that_goes(server, index, simhash, client, call, is_created):
    """Created again, its numbers begin anew, so that none of its documents is beyond those that were read."""
    simhash.create_index(index, text_field="body", settings=EMPTY)
    own = random_texts(30, 3)
    fill(server, index, planted(50))

    def given():
        for number, text in enumerate(own):
            if number == 10:
                server.request("DELETE", f"/{index}")
            if number == 10 and is_created:
                create(server, index)
                put(server, index, [document("again", own[25])])
            yield {"_id": f"n{number:03d}", "body": text}

    # Else it is named in the words of the client, as where the server is asked.
    ends = nullcontext() if is_created else pytest.raises(Exception, match="index_not_found")
    with only_made_by_request(server, index), ends:
        reports = ingest_in_batches(client, call, index, given(), batch=2, max_distance=3, lookups="memory")
        assert tagged(reports) == {"n025": "again"}


def test_a_document_that_is_written_again_during_the_lookup(server, index, simhash, client, call, monkeypatch):
    """After the table was asked and before the server is: its known fingerprint is gone, and the new one is near."""
    simhash.create_index(index, text_field="body", settings=EMPTY)
    texts_before = random_texts(8, 3)
    given = [{"_id": f"n{number}", "body": text} for number, text in enumerate(texts_before)]
    near = [fingerprint(text) ^ 0b11 for text in texts_before]
    put(server, index, [{"_id": f"o{number}", **fingerprint_fields(each)} for number, each in enumerate(near)])
    asked, body = [], NearLookup._body

    def rewrite(self, found, *, copies):
        again = [number for number, each in enumerate(near) if each in found]
        asked.extend(again)
        if again:
            put(server, index, [{"_id": f"o{number}", **fingerprint_fields(near[number] ^ 0b100)} for number in again])
        return body(self, found, copies=copies)

    monkeypatch.setattr(NearLookup, "_body", rewrite)
    reports = ingest_in_batches(client, call, index, given, batch=3, max_distance=3, lookups="memory")
    assert tagged(reports) == {f"n{number}": f"o{number}" for number in range(8)}
    assert {*asked} == {*range(8)}  # the server is asked for canonicals, then for copies


def test_several_writers(server, index):
    """
    Two ingests, a program that writes, updates and deletes: a document that a search could show before a document near
    it was read, and that stays, is always found.
    """
    settings = {"number_of_shards": 2, "number_of_replicas": 0, "refresh_interval": "50ms"}
    client = make_client(server, timeout=60) if server.product == "opensearch" else make_client(server)
    simhash = SimHashClient(client)
    simhash.create_index(index, text_field="body", max_distance=3, settings=settings)
    fill(server, index, planted(300))
    shown = [queue.Queue(), queue.Queue()]

    def write():
        for number, text in enumerate(random_texts(24, 5)):
            put(server, index, [document(f"stays{number}", text), document(f"goes{number % 5}", str(number))])
            if number % 4 == 0:
                server.request("DELETE", f"/{index}/_doc/goes{number % 5}?refresh=true")
            shown[number % 2].put((number, text))
        for each in shown:
            each.put(None)

    def ingest(who):
        def given():
            for filler in random_texts(200, 6 + who):
                yield {"body": filler}
                if (one := shown[who].get()) is not None:
                    yield {"_id": f"copy{one[0]}", "body": one[1]}
                else:
                    return

        return tagged(simhash.ingest(index, given(), batch=3, verify=False, lookups="memory"))

    with ThreadPoolExecutor(3) as pool:
        writing, *ingests = pool.submit(write), pool.submit(ingest, 0), pool.submit(ingest, 1)
        writing.result()
        found = {copy: to for each in ingests for copy, to in each.result().items()}
    client.close()
    assert found == {f"copy{number}": f"stays{number}" for number in range(24)}


def test_an_index_without_sequence_numbers(elasticsearch, index):
    """Memory is refused there, and "auto" asks the server."""
    client = make_client(elasticsearch)
    simhash = SimHashClient(client)
    simhash.create_index(index, text_field="body", settings={**ONE_SHARD, "disable_sequence_numbers": True})
    fill(elasticsearch, index, [fingerprint(each) for each in texts(30)])
    given = [{"_id": f"n{number}", "body": text} for number, text in enumerate(texts(30))]
    with pytest.raises(InvalidInputError, match="sequence numbers"):
        list(simhash.ingest(index, given, verify=False, lookups="memory"))
    assert len(tagged(simhash.ingest(index, given, verify=False, batch=5))) == 30
    client.close()
