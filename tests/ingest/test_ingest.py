"""Ingest with grouping under trouble: reports say what the index holds, and no group hangs on what was not written."""

import sqlite3
from asyncio import CancelledError

import pytest

from es_simhash.errors import InvalidInputError, MappingError
from es_simhash.ingest import near
from es_simhash.lookup.lookup_options import LookupRequest
from tests.ingest.ingesting import (
    NEW,
    PATIENT,
    A,
    B,
    C,
    D,
    assert_grouped,
    assert_told_truly,
    filled,
    grouped,
    is_writing,
    run_ingest,
)
from tests.transport.by_hand import (
    CLOSES,
    Cancelled,
    ServerError,
    calls_to_fail,
    closed_all,
    failures,
    is_harmless,
    is_passing,
)
from tests.transport.fake_server import INDEX, FakeServer

WAYS = [{"on_duplicate": "tag"}, {"on_duplicate": "skip"}]
# By text alone: the distance would make one group of all.
WAYS += [{"on_duplicate": each, "verify": 0.8, "max_distance": 64} for each in ("tag", "skip")]
TAG, SKIP = WAYS[0], WAYS[3]
MEMORY = {"on_duplicate": "tag", "lookup": LookupRequest("memory")}


def named(value):
    return "-".join(map(str, value.values())) if isinstance(value, dict) else repr(value)


ways = pytest.mark.parametrize("way", WAYS, ids=named)
# Those that have least in common, for what is tried at every request.
two_ways = pytest.mark.parametrize("way", [TAG, SKIP], ids=named)
late = pytest.mark.parametrize("is_late", [False, True])
# One failure that a busy server tells, and one for good, where the way of asking is another one.
FAILURES = [(TAG, each) for each in failures()]
FAILURES += [(way, each) for way in (SKIP, MEMORY) for each in failures()[1::2]]


@ways
def test_undisturbed(way):
    """Every document is reported, and the groups are right."""
    store = filled()
    run = run_ingest(store, way)
    tagged = {"tag": "tagged", "skip": "skipped"}[way["on_duplicate"]]
    assert [each.action for each in run.emitted] == [
        tagged if id_ in ("a2", "a3", "b1", "b2", "c1") else "written" for id_ in NEW
    ]
    assert_told_truly(run, store)
    assert_grouped(store, way)
    assert not store.open


@late
@pytest.mark.parametrize(("way", "failure"), FAILURES, ids=named)
def test_a_failure_at_any_call(way, failure, is_late):
    """A busy server is waited for, and the groups are right; all else comes out, and what was told is true."""
    for number in calls_to_fail(run_ingest(filled(), way), is_late=is_late):
        store = filled()
        run = run_ingest(store, way, fail_at=number, failure=failure, is_late=is_late)
        assert_told_truly(run, store)
        assert closed_all(run, store, is_late=is_late) or run.hit == "open_point_in_time"
        is_survived = is_harmless(run, number, failure) or (run.hit in PATIENT and is_passing(failure))
        if run.hit in CLOSES or is_survived:
            assert run.error is None
            assert len(run.emitted) == len(NEW)
            assert_grouped(store, way)
            assert {each.reason for each in run.emitted} == {None}
        else:
            assert run.error is failure or (way is MEMORY and isinstance(run.error, InvalidInputError))


@pytest.mark.parametrize("on_duplicate", ["tag", "skip"])
@late
def test_a_lost_answer_to_what_creates_documents(on_duplicate, is_late):
    """Each is recognised as our own when it exists at the second attempt; nothing is reported as refused."""
    way = {"on_duplicate": on_duplicate, "op_type": "create"}
    calm = run_ingest(filled(), way)
    _, *bulks = [number for number, call in enumerate(calm.calls) if call.api == "bulk"]  # the first writes nothing
    assert bulks
    for number in bulks:
        store = filled()
        run = run_ingest(store, way, fail_at=number, failure=ServerError(503), is_late=is_late)
        assert [each.to_dict() for each in run.emitted] == [each.to_dict() for each in calm.emitted]
        assert ("mget" in run.apis) == is_late
        assert_grouped(store, way)


def test_what_exists_is_not_created():
    """It is reported, nothing is a duplicate of it, and what is there stays."""
    store = filled()
    store.put("b1", {"body": D})
    store.refresh(INDEX)
    run = run_ingest(store, {"on_duplicate": "tag", "op_type": "create"})
    kinds = {each.id: each.kind for each in run.emitted}
    assert kinds == {**dict.fromkeys(NEW), "b1": "exists"}
    assert store.source("b1") == {"body": D}
    assert store.source("b2")["simhash"]["group"] == "b0"
    again = run_ingest(store, {"on_duplicate": "tag", "op_type": "create"})
    assert {each.id: each.action for each in again.emitted} == {**dict.fromkeys(NEW, "unchanged"), "b1": "refused"}


def test_creations_over_other_contents_upset_no_group(monkeypatch):
    """Nothing else was decided by them, so nothing is grouped again for them."""
    store = filled()
    run_ingest(store, {"on_duplicate": "tag"})
    store.refresh(INDEX)
    monkeypatch.setattr("es_simhash.ingest.ingest.reconcile", None)
    changed = [{"_id": id_, "body": D, "n": 2} for id_ in NEW]
    run = run_ingest(store, {"on_duplicate": "tag", "op_type": "create", "batch": 2}, changed)
    assert (run.error, {each.kind for each in run.emitted}) == (None, {"exists"})
    assert_grouped(store, WAYS[0])


@pytest.mark.parametrize("kind", ["update", "delete"])
def test_only_creations_where_documents_are_created(kind):
    """Another action is refused by itself."""
    documents = [{"_op_type": kind, "_id": "a0", "doc": {"body": B}}, {"_id": "b0", "body": B}]
    run = run_ingest(filled(), {"on_duplicate": "tag", "op_type": "create"}, documents)
    assert [each.action for each in run.emitted] == ["refused", "written"]


@pytest.mark.parametrize("way", [SKIP, MEMORY], ids=named)
@late
def test_a_cancellation_at_any_request(way, is_late):
    """It comes out, what was told is true, and nothing stays open."""
    for step in range(run_ingest(filled(), way).steps):
        store = filled()
        run = run_ingest(store, way, cancel_at=step, is_late=is_late)
        assert isinstance(run.error, Cancelled)
        assert_told_truly(run, store)
        assert closed_all(run, store, is_late=is_late)


@two_ways
@pytest.mark.parametrize(("status", "action", "batch"), [(400, "refused", 2), (403, "refused", 8), (200, "dropped", 8)])
def test_a_document_that_is_refused(way, status, action, batch):
    """It is told, nothing is a duplicate of it, also in one batch, and what it would have replaced stands again."""
    for id_ in NEW:
        store = filled()
        store.refuse = lambda header, id_=id_: status if header["_id"] == id_ else None
        run = run_ingest(store, {**way, "batch": batch})
        refused = [each for each in run.emitted if each.action == action]
        assert [each.id for each in refused] == ([id_] if id_ not in store.docs and refused else [])
        assert refused or way["on_duplicate"] == "skip"
        assert id_ not in store.docs
        assert_told_truly(run, store)
        assert_grouped(store, way)


@two_ways
def test_lookups_refused_for_load_are_asked_again(way):
    """One by one, until they are answered; none counts as a document without near-duplicates."""

    class Full(FakeServer):
        searches = 0

        def msearch(self, body, filter_path=None):
            error = {"error": {"type": "rejected", "reason": "full"}, "status": 429}
            return {"responses": [error for _ in body[1::2]]}

        def search(self, body, index=None):
            self.searches += 1
            return ServerError(429) if self.searches % 3 == 1 else super().search(body, index)

    store = Full({id_: each["source"] for id_, each in filled().docs.items()})
    run, calm = run_ingest(store, way), run_ingest(filled(), way)
    assert [each.action for each in run.emitted] == [each.action for each in calm.emitted]
    assert_grouped(store, way)


def test_new_groups_that_are_refused_are_told():
    """Of a document whose canonical was refused after it had been written as a duplicate itself."""
    store = FakeServer()
    store.refuse = lambda header: 400 if header["_id"] == "b0" or "if_seq_no" in header else None
    run = run_ingest(store, WAYS[0], [{"_id": id_, "body": B} for id_ in ("b0", "b1")])
    assert [(each.action, each.canonical) for each in run.emitted] == [("refused", None), ("tagged", "b0")]
    assert "run reconcile" in run.emitted[1].reason


@two_ways
def test_a_leader_that_was_refused_before_the_server_went_away(way):
    """What is tagged says so; of what was skipped for it nothing is told, since nobody knows what has its place."""
    bodies = [{"_id": "b0", "body": B}, {"_id": "b1", "body": B}, {"_id": "c0", "body": C}]
    # The update of the same document goes into a request of its own.
    documents = [*bodies, {"_op_type": "update", "_id": "c0", "doc": {"n": 2}}]

    def run(**trouble):
        store = FakeServer()
        store.refuse = lambda header: 400 if header["_id"] == "b0" else None
        return run_ingest(store, {**way, "batch": 8}, documents, **trouble)

    bulks = [number for number, call in enumerate(run().calls) if is_writing(call)]
    broken = run(fail_at=bulks[1], failure=ConnectionError("gone"))
    assert isinstance(broken.error, ConnectionError)
    told = {each.id: (each.action, each.reason) for each in broken.emitted}
    assert told.pop("b0")[0] == "refused"
    doubt = "'b0' was not written, as far as is known: run reconcile"
    assert told == {"c0": ("written", None)} | ({"b1": ("tagged", doubt)} if way is TAG else {})


@pytest.mark.parametrize("failure", [MappingError("_source leaves fields out"), ServerError(500, "gone")], ids=repr)
def test_groups_that_cannot_be_put_right_are_told(monkeypatch, failure):
    """A rollover may have led to an index that is not updated; an error of the server comes out after the reports."""
    store = FakeServer()
    store.refuse = lambda header: 400 if header["_id"] == "b0" else None

    async def fail(*_, **__):
        raise failure

    monkeypatch.setattr("es_simhash.ingest.ingest.reconcile", fail)
    run = run_ingest(store, WAYS[0], [{"_id": id_, "body": B} for id_ in ("b0", "b1")], cancel_at=10_000)
    assert [each.action for each in run.emitted] == ["refused", "tagged"]
    assert f"its group is out of date ({failure}): run reconcile" in run.emitted[1].reason
    assert run.error is (None if isinstance(failure, MappingError) else failure)


def test_an_old_canonical_that_another_changed_meanwhile_is_left_alone():
    """Before any call: its new text is another document, and not a duplicate of what replaces the old one."""
    way, changed = WAYS[2], grouped(D, "a0")
    for number in range(len(run_ingest(filled(), way).calls)):
        store = filled()
        run_ingest(store, way, meddle_at=number, meddle=lambda store: store.put("a0", changed))
        assert store.source("a0")["body"] == D
        assert store.source("a0")["simhash"]["group"] in ("a0", "d0")
        assert store.source("a0")["simhash"]["duplicate_of"] in (None, "d0")


@two_ways
def test_lookups_that_fail_for_good_lose_no_report(way):
    """The lookups of a batch go out while the batch before it is written: that one is reported first."""

    class Failing(FakeServer):
        asked = 0

        def msearch(self, body, filter_path=None):
            self.asked += 1
            return ServerError(500) if self.asked > 1 else super().msearch(body)

    store = Failing({id_: each["source"] for id_, each in filled().docs.items()})
    run = run_ingest(store, way, cancel_at=10_000)
    assert isinstance(run.error, ServerError)
    written = {id_ for id_ in NEW if id_ in store.docs}
    assert written <= {each.id for each in run.emitted}
    assert_told_truly(run, store)


@two_ways
@pytest.mark.parametrize("error", [OSError, CancelledError, GeneratorExit])
def test_a_source_that_breaks_is_told_last(way, error):
    """What it gave before is written and reported, also before what is no Exception."""

    def documents():
        yield from ({"_id": id_, "body": body} for id_, body in list(NEW.items())[:5])
        raise error

    store = filled()
    run = run_ingest(store, way, documents(), cancel_at=10_000)
    assert isinstance(run.error, error)
    assert len(run.emitted) == 5
    assert_told_truly(run, store)
    assert_grouped(store, way)


def test_the_caller_reads_its_own_source():
    """A cursor of sqlite3 may only be used in its own thread."""
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE news (id TEXT, body TEXT)")
    connection.executemany("INSERT INTO news VALUES (?, ?)", NEW.items())
    rows = ({"_id": id_, "body": body} for id_, body in connection.execute("SELECT id, body FROM news"))
    assert len(run_ingest(FakeServer(), {"on_duplicate": None}, rows).emitted) == len(NEW)
    connection.close()


def test_what_a_refused_write_of_the_same_batch_hid():
    """The text that the same batch wrote under the id is the canonical of what follows."""
    store, written = FakeServer(), []

    def refuse(header):
        written.append(header["_id"])
        return 400 if written.count("b0") == 2 and header["_id"] == "b0" else None

    store.refuse = refuse
    texts = (("b0", B), ("b0", C), ("b1", B), ("b2", B), ("c0", C))
    run = run_ingest(store, {"on_duplicate": "tag", "batch": None}, [{"_id": id_, "body": text} for id_, text in texts])
    assert [each.action for each in run.emitted] == ["written", "refused", "tagged", "tagged", "written"]
    groups = {id_: each["source"]["simhash"]["group"] for id_, each in store.docs.items()}
    assert groups == {"b0": "b0", "b1": "b0", "b2": "b0", "c0": "c0"}
    assert {each.id: each.canonical for each in run.emitted if each.action != "refused"} == groups


def test_what_is_there_is_read_once(monkeypatch):
    """Also where all ids of a batch are there, and they are as many as a page has documents."""
    store = filled()
    monkeypatch.setattr(near, "DOCUMENTS", 2)
    run = run_ingest(store, {"on_duplicate": "tag"}, [{"_id": "a0", "body": A}, {"_id": "a1", "body": A}])
    assert [report.action for report in run.emitted] == ["unchanged"] * 2
    bodies = [call.arguments["body"] for call in run.calls if call.api == "search"]
    assert [body["query"] for body in bodies].count({"ids": {"values": ["a0", "a1"]}}) == 1
