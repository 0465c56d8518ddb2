"""Reconcile under trouble: groups follow the fingerprints that documents have when they are written."""

import itertools

import pytest

from es_simhash import MappingError, fingerprint_fields
from es_simhash.groups.grouping_request import GroupingRequest
from es_simhash.groups.read import count_lacking
from es_simhash.groups.reconcile import reconcile
from es_simhash.hashing import get_scheme
from es_simhash.mapping.meta import IndexSettings
from es_simhash.mapping.rule import Grouping
from es_simhash.transport.conversation import attempt
from tests.transport.by_hand import (
    CLOSES,
    Cancelled,
    ServerError,
    calls_to_fail,
    carry_out,
    closed_all,
    failures,
    is_harmless,
    is_passing,
    scripted,
)
from tests.transport.fake_server import INDEX, FakeServer

X, Y, Z = 0, 0xFFFF_0000_FFFF_0000, 0x0F0F_0F0F_0F0F_0F0F
PATIENT = ("bulk", "get_settings", "mget", "msearch", "open_point_in_time", "refresh", *CLOSES)
TIMES = [None, "2026-06-01T00:00:00.000Z"]
times = pytest.mark.parametrize("since", TIMES, ids=["all", "since"])


def in_turn(names, *cases):
    """Give the *cases* of *names*, one for all documents, the next for those that changed since."""
    rows = [(since, *case) for since, case in zip(itertools.cycle(TIMES), cases, strict=False)]
    return pytest.mark.parametrize(f"since,{names}", rows)


def grouped(number, **own):
    """Return a document whose text is that of all documents near it."""
    bodies = {
        X: "the first of all the three texts",
        Y: "another text of more words",
        Z: "one more that is just as long",
    }
    body = bodies[number - (number == X + 1)]
    return {"simhash": {**fingerprint_fields(number)["simhash"], **own}, "own": 1, "body": body}


def filled():
    """Return an index in which 0, 1 and 3 belong together, and 2 and 6, but do not say so."""
    new = {"at": "2026-07-01T00:00:00.000Z"}
    return FakeServer(
        {
            "0": grouped(X, at="2026-05-01T00:00:00.000Z"),
            "1": grouped(X, group="1", **new),
            "2": grouped(Y, group="gone", duplicate_of="gone", distance=2),
            "3": grouped(X ^ 1, **new),
            "4": grouped(Z, group="4", at="2026-01-01T00:00:00.000Z"),
            "5": {"own": 1},
            "6": grouped(Y),
        }
    )


def run_reconcile(store, *, since=None, dry_run=False, regroup=False, **trouble):
    options = {"since": since, "dry_run": dry_run, "regroup": regroup, "batch": 2}
    flow = reconcile(scripted(), INDEX, GroupingRequest(), **options)
    return carry_out(flow, store, **trouble)


def wrong(store):
    """Return the ids of documents that say something else than the rule does."""
    canonicals, ids = {}, []
    ours = {id_: own for id_, held in store.docs.items() if (own := held["source"].get("simhash"))}
    for id_, own in sorted(ours.items(), key=lambda pair: (pair[1].get("at", "later"), pair[0])):
        number = int(own["fingerprint"], 16)
        near = [other for other in canonicals if (other ^ number).bit_count() <= 3]
        canonical = canonicals[near[0]] if near else canonicals.setdefault(number, id_)
        duplicate = {"duplicate_of": canonical, "distance": (near[0] ^ number).bit_count()} if near else {}
        wanted = {"group": canonical, "duplicate_of": None, "distance": None, **duplicate}
        if any(own.get(name) != value for name, value in wanted.items()) or not own.get("at"):
            ids.append(id_)
    return ids


@times
def test_undisturbed(since):
    """Only documents that say something else are written, each once, and keep all else they have."""
    store = filled()
    before, fourth = store.sequence, store.docs["4"]["version"]
    result = run_reconcile(store, since=since).result
    assert (result.changed, result.duplicates, result.failures, result.is_settled) == (5, 3, (), True)
    assert (result.documents, result.groups) == ((6, 3) if since is None else (5, 2))
    assert (wrong(store), store.sequence - before, store.docs["4"]["version"]) == ([], 5, fourth)
    assert all(each["source"]["own"] == 1 for each in store.docs.values())
    assert store.source("1")["simhash"]["at"] == "2026-07-01T00:00:00.000Z"
    assert not store.open


@in_turn(
    "failure,is_late", *[(one, late) for n, one in enumerate(failures()) for late in ((False, True)[:: (-1) ** n])]
)
def test_a_failure_at_any_call(since, failure, is_late):
    """A busy server is waited for where documents are read, written or counted; a run ends what comes out."""
    for number in calls_to_fail(run_reconcile(filled(), since=since), is_late=is_late):
        store = filled()
        before = store.sequence
        run = run_reconcile(store, since=since, fail_at=number, failure=failure, is_late=is_late)
        assert closed_all(run, store, is_late=is_late) or run.hit == "open_point_in_time"
        body = run.calls[number].arguments.get("body") or {}
        is_repeated = run.hit in PATIENT or "aggs" in body or bool(body.get("size"))
        is_survived = is_harmless(run, number, failure) or (is_repeated and is_passing(failure))
        if run.hit in CLOSES or is_survived:
            assert run.error is None
            assert run.result.is_settled
            assert run.result.changed == 5 or (is_late and run.hit == "bulk")
        else:
            assert run.error is failure
            assert run_reconcile(store).result.is_settled
        assert wrong(store) == []
        assert store.sequence - before == 5


@in_turn("is_late", (False,), (True,))
def test_a_cancellation_at_any_request(since, is_late):
    """It comes out, nothing stays open, and another run ends the work."""
    for step in range(run_reconcile(filled(), since=since).steps):
        store = filled()
        run = run_reconcile(store, since=since, cancel_at=step, is_late=is_late)
        assert isinstance(run.error, Cancelled)
        assert closed_all(run, store, is_late=is_late)
        assert run_reconcile(store).result.is_settled
        assert wrong(store) == []


def change_text(store):
    """Write another text's fingerprint, as an ingest does that comes later."""
    store.put("3", {**grouped(Z, at="2026-08-01T00:00:00.000Z"), "mine": True})


def change_all_else(store):
    """Write a field that groups do not depend on."""
    store.put("3", {**store.source("3"), "mine": True})


def delete(store):
    store.docs.pop("0", None)


@in_turn("meddle", (change_text,), (change_text,), (change_all_else,), (delete,))
def test_what_others_change_meanwhile(since, meddle):
    """Before any call: their change stays, and the groups follow from it if a later look at the index can see it."""
    for number in range(len(run_reconcile(filled(), since=since).calls)):
        store = filled()
        run = run_reconcile(store, since=since, meddle_at=number, meddle=meddle)
        if meddle is delete:
            assert "0" not in store.docs
        else:
            assert store.source("3")["mine"]
        if meddle is change_text:
            assert store.source("3")["simhash"]["fingerprint"] == "0f" * 8
            assert store.source("3")["simhash"].get("group") in (None, "4")
        bodies = [call.arguments.get("body") or {} for call in run.calls]
        looks = [n for n, body in enumerate(bodies) if run.apis[n] == "search" and body.get("size")]
        visible = max(n for n, api in enumerate(run.apis[: looks[-1]]) if api == "refresh")
        assert run.result.is_settled
        assert wrong(store) == [] or number > visible


def change_only_the_text(store):
    """Write another text, as a plain update does: the fingerprint stays."""
    store.put("3", {**store.source("3"), "body": "nothing that others have", "mine": store.source("3")["simhash"]})


def test_a_text_that_changes_meanwhile_is_read_again():
    """Before any call: it gets no group by a text that it does not have any more."""
    for number in range(len(run_reconcile(filled()).calls)):
        store = filled()
        result = run_reconcile(store, meddle_at=number, meddle=change_only_the_text).result
        was, now = store.source("3")["mine"].get("group"), store.source("3")["simhash"].get("group")
        assert now in (was, "3")
        assert result.is_settled


def regroup(store, max_distance=4):
    """Record that another grouping is there, as a run with regroup does at its beginning."""
    own = store.mapping["_meta"]["es_simhash"]["simhash"]
    own["grouping"] = Grouping(max_distance, similarity=0.8).to_dict()


def forget_the_grouping(store):
    """Take the record of the grouping out, as ``remove`` does with ``groups_only``."""
    del store.mapping["_meta"]["es_simhash"]["simhash"]["grouping"]


@in_turn("meddle", (regroup,), (forget_the_grouping,))
def test_a_grouping_that_changes_meanwhile_ends_the_run(since, meddle):
    """At once: after the mapping was read last, one request of writes at most is on its way, and it is an error."""
    whole = run_reconcile(filled(), since=since)
    first = whole.apis.index("put_mapping") + 1  # from here on the grouping is recorded
    last = max(n for n, api in enumerate(whole.apis) if api == "bulk")
    for number in range(first, last + 1):
        store, seen = filled(), []

        def answer(call, store=store, seen=seen):
            seen.append(call.api)
            return store(call)

        flow = reconcile(scripted(), INDEX, GroupingRequest(), since=since, batch=2)
        with pytest.raises(MappingError, match="meanwhile"):
            carry_out(flow, answer, meddle_at=number, meddle=lambda _, store=store: meddle(store))
        late = [n for n, api in enumerate(seen) if api == "bulk" and n >= number]
        assert late in ([], [number])


def test_another_change_of_the_grouping_is_not_undone():
    """Whenever it is recorded: it stays, and this run is an error from then on."""

    def regroup_to_five(store, **trouble):
        regroup(store, max_distance=12)
        flow = reconcile(scripted(), INDEX, GroupingRequest(max_distance=5), regroup=True)
        return carry_out(flow, store, **trouble)

    apis = regroup_to_five(filled()).apis
    assert apis.index("bulk") < apis.index("put_mapping")  # it asks whether this login sees whole documents
    writes = [number for number, api in enumerate(apis) if api == "bulk"]
    assert len(writes) > 1
    for number in range(apis.index("put_mapping") + 1, writes[-1] + 1):
        store = filled()
        with pytest.raises(MappingError, match="meanwhile"):
            regroup_to_five(store, meddle_at=number, meddle=regroup)
        assert store.mapping["_meta"]["es_simhash"]["simhash"]["grouping"]["max_distance"] == 4


@pytest.mark.parametrize(
    ("is_late", "options"), [(False, {"since": "2100-01-01T00:00:00.000Z"}), (True, {"regroup": True})], ids=str
)
def test_a_regroup_that_is_stopped_at_any_request_says_so(is_late, options):
    """
    Until all groups are those of the new grouping, the mapping says that they may not be. The next run looks at all
    documents, whatever it is asked, and finishes.
    """

    def regrouped(**trouble):
        store = filled()
        run_reconcile(store)
        regroup(store, max_distance=12)
        flow = reconcile(scripted(), INDEX, GroupingRequest(max_distance=3), regroup=True, batch=2)
        return store, carry_out(flow, store, **trouble)

    def is_said(store):
        return "regrouping" in store.mapping["_meta"]["es_simhash"]["simhash"]

    for step in range(regrouped()[1].steps):
        store, run = regrouped(cancel_at=step, is_late=is_late)
        assert isinstance(run.error, Cancelled)
        is_recorded = store.mapping["_meta"]["es_simhash"]["simhash"]["grouping"]["max_distance"] == 3
        assert not wrong(store) or is_said(store) or not is_recorded
        if is_recorded:
            assert run_reconcile(store, **options).result.is_settled
            assert (wrong(store), is_said(store)) == ([], False)


@pytest.mark.parametrize("status", [400, 429, 503, 409])
def test_what_cannot_be_written_is_told(status):
    """Named where it was refused; where others keep changing it the report says that not all is settled."""
    store = filled()
    store.refuse = lambda header: status if header["_id"] == "1" else None
    result = run_reconcile(store).result
    assert (result.changed, result.is_settled, wrong(store)) == (4, False, ["1"])
    assert [(each.index, each.id) for each in result.failures] == ([] if status == 409 else [("i", "1")])


def test_a_copy_that_cannot_be_read_is_named():
    """It is not taken for one that is gone."""
    store = filled()
    store.broken = {"1"}
    result = run_reconcile(store).result
    assert (result.changed, result.is_settled) == (4, False)
    [failure] = result.failures
    assert (failure.kind, failure.id) == ("unreadable", "1")
    assert failure.reason.startswith("es_rejected_execution_exception")


@times
def test_a_dry_run_writes_nothing(since):
    """Neither documents nor the rule, and counts what it would write."""
    store = filled()
    before = store.sequence
    run = run_reconcile(store, since=since, dry_run=True)
    assert (run.result.changed, run.result.is_settled, store.sequence) == (5, False, before)
    assert not {"bulk", "put_mapping"} & set(run.apis)


def test_a_busy_server_is_asked_once_for_a_remark():
    """A command that only adds a remark does not wait for the server."""
    full = ServerError(429, "es_rejected_execution_exception")
    work = count_lacking(scripted(), "news", {"news": IndexSettings(get_scheme("shingles"), ("body",))})
    run = carry_out(attempt(work), lambda _: full)
    assert (run.result, len(run.calls)) == (full, 1)
