"""Ingest with ``contained``, under trouble: nothing is left out, or tagged, that no document of the index contains."""

import pytest

from es_simhash import build_mapping
from es_simhash.groups.grouping_request import GroupingRequest
from es_simhash.ingest.ingest import ingest
from es_simhash.ingest.reading import IngestOptions, IngestSizes
from es_simhash.mapping.fields import document_fields
from tests.ingest.ingesting import PATIENT
from tests.removal.test_tags import LONG, words
from tests.transport.by_hand import CLOSES, ServerError, calls_to_fail, carry_out, is_harmless, scripted
from tests.transport.fake_server import INDEX, WHOLE, FakeServer

NEW = {"part": LONG[100:500], "other": words(2, 60), "late": words(3, 60), "first": LONG[:300]}
NEW["early"] = NEW["late"][:200]
NEW |= {"more": words(5, 60), "end": words(4, 90)[-200:], "whole": words(4, 90)}
RIGHT = {"part": "long", "first": "long", "early": "late", "end": "whole"}


def make_store():
    store = FakeServer(mapping=build_mapping(text_field="body", passages=True))
    store.put("long", {"body": LONG} | document_fields(LONG, passages=True))
    store.refresh(INDEX)
    return store


def run_ingest(store, policy, **trouble):
    documents = [{"_id": id_, "body": text} for id_, text in NEW.items()]
    options = IngestOptions(on_duplicate=policy, contained=0.95, batch=2)
    return carry_out(ingest(scripted(), INDEX, documents, options), store, **trouble)


def containers(run):
    return {each.id: each.contained_in.id for each in run.emitted if each.contained_in is not None}


def assert_true(store, policy, run):
    """What the index has tagged stands in that document, and so does what was skipped."""
    tags = {id_: each["source"]["simhash"].get("contained_in") for id_, each in store.docs.items()}
    assert {id_: tag for id_, tag in tags.items() if tag}.items() <= (RIGHT if policy == "tag" else {}).items()
    # Where the run broke off, a tag of the batch that was being written may name what was not.
    reported = {each.id: each for each in run.emitted}
    for id_, each in reported.items():
        if each.action == "skipped" or (each.contained_in and run.error is None):
            assert store.docs[RIGHT[id_]]["source"]["body"] == ({"long": LONG} | NEW)[RIGHT[id_]]


@pytest.mark.parametrize("policy", ["tag", "skip"])
def test_undisturbed(policy):
    """What the same run wrote counts, in batches before and in the same batch."""
    store = make_store()
    run = run_ingest(store, policy)
    assert containers(run) == RIGHT
    assert store.docs.keys() - {"long"} == (NEW.keys() if policy == "tag" else NEW.keys() - RIGHT.keys())
    assert {each.action for each in run.emitted if each.id in RIGHT} == {"written" if policy == "tag" else "skipped"}
    assert_true(store, policy, run)
    # Each batch costs the lookup of its groups, and that of its passages; refreshes only where they may show something.
    assert sum("passages" in str(call.arguments) for call in run.calls if call.api == "msearch") == 4
    assert run.apis.count("refresh") == (5 if policy == "tag" else 4)


@pytest.mark.parametrize("policy", ["tag", "skip"])
@pytest.mark.parametrize("failure", [ServerError(503), ServerError(500)], ids=str)
def test_a_failure_at_any_call(policy, failure):
    """A busy server is asked again, any other failure comes out, and what was reported is true."""
    for number in calls_to_fail(run_ingest(make_store(), policy), is_late=False):
        store = make_store()
        run = run_ingest(store, policy, fail_at=number, failure=failure)
        assert containers(run).items() <= RIGHT.items()
        assert_true(store, policy, run)
        if is_harmless(run, number, failure) or (run.hit in PATIENT and failure.status_code == 503):
            assert (run.error, containers(run), len(run.emitted)) == (None, RIGHT, len(NEW))
        else:
            assert run.error is failure or run.hit in CLOSES
        gone = {each.id for each in run.emitted if each.action == "skipped"}
        assert {each.id for each in run.emitted if each.action != "refused"} - gone <= store.docs.keys()


def test_a_new_text_of_what_the_index_has_is_written():
    """It adds nothing to another one, and skipped it would keep its old text."""
    store = make_store()
    old = words(8, 60)
    store.put("part", {"body": old} | document_fields(old, passages=True))
    run = run_ingest(store, "skip")
    assert containers(run) == {id_: other for id_, other in RIGHT.items() if id_ != "part"}
    assert store.source("part")["body"] == NEW["part"]


def test_shards_that_do_not_answer():
    """The documents are written, and their reports say that something may have been missed."""

    class Silent(FakeServer):
        def msearch(self, body, filter_path=None):
            answer = super().msearch(body)
            if "passages" in str(body):
                for each in answer["responses"]:
                    each |= {"_shards": {**WHOLE, "total": 2, "failed": 1}, "hits": {"hits": []}}
            return answer

    store = Silent(mapping=build_mapping(text_field="body", passages=True))
    store.docs, store.shown = make_store().docs, make_store().docs
    run = run_ingest(store, "skip")
    assert containers(run) == {"end": "whole"}  # of the same batch
    assert all("may have been missed" in each.reason for each in run.emitted if each.id != "end")
    assert store.docs.keys() == {"long", *NEW} - {"end"}


def test_a_container_that_the_same_run_changes():
    """What it contained is written, in the same batch and after it: the index would lack it."""
    documents = [
        {"_id": "part", "body": NEW["part"]},
        {"_id": "long", "body": words(9, 60)},
        {"_id": "first", "body": NEW["first"]},
    ]
    options = IngestOptions(on_duplicate="skip", contained=0.95, batch=2)
    flow = ingest(scripted(), INDEX, documents, options)
    run = carry_out(flow, make_store())
    assert {each.action for each in run.emitted} == {"written"}


@pytest.mark.parametrize("in_flight", [1, 2, 100])
@pytest.mark.parametrize("update", [{"body": words(9, 60)}, {"lang": "de"}], ids=["text", "per"])
def test_a_container_that_a_partial_update_of_the_same_run_changes(update, in_flight):
    """Searches do not show it yet, and no decision knows of an update that leaves the fingerprint as it was."""
    store = FakeServer(mapping=build_mapping(text_field=["title", "body"], passages=True))
    store.mapping["properties"]["lang"] = {"type": "keyword"}
    store.put("long", {"title": "t", "body": LONG, "lang": "en"} | document_fields(f"t\n{LONG}", passages=True))
    store.refresh(INDEX)
    parts = [{"_id": f"part{n}", "title": "t", "body": LONG[n * 144 : n * 144 + 144], "lang": "en"} for n in range(5)]
    documents = [parts[0], {"_op_type": "update", "_id": "long", "doc": update}, *parts[1:]]
    grouping = GroupingRequest(per="lang", max_distance=0)
    limits = {"batch": 1, "sizes": IngestSizes(in_flight=in_flight)}
    options = IngestOptions(on_duplicate="tag", contained=0.95, grouping=grouping, **limits)
    run = carry_out(ingest(scripted(), INDEX, documents, options), store)
    assert len(store.docs) == 6
    assert containers(run) == {"part0": "long"}


def test_a_request_that_is_too_large():
    """It is sent in halves."""

    class Narrow(FakeServer):
        def msearch(self, body, filter_path=None):
            return ServerError(413) if "passages" in str(body) and len(body) > 2 else super().msearch(body)

    store = Narrow(mapping=build_mapping(text_field="body", passages=True))
    store.docs, store.shown = make_store().docs, make_store().docs
    run = run_ingest(store, "skip")
    assert (run.error, containers(run)) == (None, RIGHT)


@pytest.mark.parametrize("policy", ["tag", "skip"])
@pytest.mark.parametrize("batch", [1, 2, 10])
def test_a_container_that_is_refused(policy, batch):
    """What stands in it is written without a tag, also where a chain of documents goes back to it."""
    store = make_store()
    store.refuse = lambda header: 400 if header["_id"] == "whole" else None
    documents = [
        {"_id": id_, "body": words(4, 90)[-size:]} for id_, size in (("whole", 9999), ("end", 300), ("e", 200))
    ]
    options = IngestOptions(on_duplicate=policy, contained=0.95, batch=batch)
    run = carry_out(ingest(scripted(), INDEX, documents, options), store)
    assert [each.action for each in run.emitted][:2] == ["refused", "written"]
    tags = {id_: each["source"]["simhash"].get("contained_in") for id_, each in store.docs.items()}
    if batch == 1:
        assert containers(run) == {"e": "end"}
    else:
        assert "end" in store.docs
        assert tags["end"] is None
        assert all(tag in (None, "end") for tag in tags.values())
        assert containers(run).items() <= {"e": "end"}.items()
    assert "e" in store.docs or containers(run) == {"e": "end"}
