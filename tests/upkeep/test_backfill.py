"""Backfill under trouble: nobody's text is overwritten, and an interrupted run is taken up without a gap."""

import pytest

from es_simhash import IncompleteSearchError, NoIndexError, fingerprint, fingerprint_fields
from es_simhash.mapping.context import Context, Resolved
from es_simhash.upkeep.backfill import BackfillOptions, backfill
from es_simhash.upkeep.put_fields import refuse_impossible, with_our_fields
from es_simhash.upkeep.remove_fields import remove_fields
from tests.transport.by_hand import (
    CLOSES,
    Cancelled,
    calls_to_fail,
    carry_out,
    closed_all,
    drive,
    failures,
    is_harmless,
    is_passing,
    scripted,
)
from tests.transport.fake_server import INDEX, FakeServer

# The calls that are sent again when the server is busy; the others come before anything is done.
PATIENT = ("bulk", "get_settings", "open_point_in_time", "refresh", "search", *CLOSES)
STALE = fingerprint_fields(7)["simhash"]
RIGHT = fingerprint_fields(fingerprint("the second text, as it is"))["simhash"]


def filled():
    """Return an index with something of every kind; document 5 cannot be fingerprinted."""
    return FakeServer(
        {
            "0": {"body": "a text that has none"},
            "1": {"body": "a text that has another's", "simhash": STALE, "own": 1},
            "2": {"body": "the second text, as it is", "simhash": RIGHT},
            "3": {"body": "another that has none"},
            "4": {"body": " ", "simhash": STALE},
            "5": {"body": {"not": "a text"}},
            "6": {"body": "the last that has none", "simhash": {"group": "6"}},
        }
    )


def run_backfill(store, *, page=2, **trouble):
    flow = backfill(scripted(), INDEX, BackfillOptions())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("es_simhash.upkeep.backfill.PAGE_DOCUMENTS", page)
        return carry_out(flow, store, **trouble)


def wrong(store):
    """Return the ids of documents that do not have the fingerprint of their text; 5 has no text."""

    def is_wrong(source):
        found = fingerprint(source["body"])
        held = source.get("simhash") or {}
        wanted = {"fingerprint": None} if found is None else fingerprint_fields(found)["simhash"]
        return any(held.get(name) != value for name, value in wanted.items())

    return [id_ for id_, each in store.docs.items() if id_ != "5" and is_wrong(each["source"])]


def failed(run):
    """Return the failures that *run* reported."""
    return [failure for each in run.emitted for failure in each.failures]


def test_an_index_that_goes_meanwhile():
    """Its settings are not in the answer for a pattern, which is no error of the server."""
    store = filled()

    def answer(call):
        return {} if call.api == "get_settings" else store(call)

    with pytest.raises(NoIndexError, match=INDEX):
        drive(backfill(scripted(), INDEX, BackfillOptions()), answer)


def test_undisturbed():
    """What is missing or wrong is written once, the unreadable is named, and nothing stays open."""
    store = filled()
    before = store.sequence
    run = run_backfill(store)
    last = run.emitted[-1]
    assert (last.is_done, last.total, last.seen, last.changed, last.stale, last.empty) == (True, 7, 7, 5, 2, 1)
    assert (last.failed, [each.id for each in failed(run)]) == (1, ["5"])
    assert (wrong(store), store.sequence - before, store.open) == ([], 5, {})
    assert store.source("1")["own"] == 1
    assert store.source("6")["simhash"]["group"] == "6"
    assert store.source("6")["simhash"]["at"]


@pytest.mark.parametrize("is_late", [False, True])
@pytest.mark.parametrize("failure", failures()[1:], ids=repr)
def test_a_failure_at_any_call(failure, is_late):
    """A busy server is waited for; all else comes out, and another run goes on without a gap."""
    for number in calls_to_fail(run_backfill(filled()), is_late=is_late):
        store = filled()
        before = store.sequence
        trouble = {"fail_at": number, "failure": failure, "is_late": is_late}
        run = run_backfill(store, **trouble)
        reported = run.emitted[-1].changed if run.emitted else 0
        assert reported <= store.sequence - before
        assert closed_all(run, store, is_late=is_late) or run.hit == "open_point_in_time"
        is_survived = is_harmless(run, number, failure) or (run.hit in PATIENT and is_passing(failure))
        if run.hit in CLOSES or is_survived:
            assert (run.error, run.emitted[-1].is_done, run.emitted[-1].failed) == (None, True, 1)
        else:
            assert run.error is failure
            run = run_backfill(store)
            assert (run.emitted[-1].is_done, run.emitted[-1].failed) == (True, 1)
        assert wrong(store) == []
        assert store.sequence - before == 5


@pytest.mark.parametrize("is_late", [False, True])
def test_a_cancellation_at_any_request(is_late):
    """It comes out, nothing stays open, and another run goes on, also with what was changed in between."""
    for step in range(run_backfill(filled()).steps):
        store = filled()
        run = run_backfill(store, cancel_at=step, is_late=is_late)
        assert isinstance(run.error, Cancelled)
        assert closed_all(run, store, is_late=is_late)
        store.put("0", {**store.source("0"), "body": "changed in between"})
        last = run_backfill(store).emitted[-1]
        assert (last.is_done, last.failed) == (True, 1)
        assert wrong(store) == []


def change_text(store):
    store.put("3", {**store.source("3"), "body": "changed by another", "mine": True})


@pytest.mark.parametrize("meddle", [change_text, lambda store: store.docs.pop("3", None)], ids=["change", "delete"])
@pytest.mark.parametrize("page", [2, 10])
def test_what_others_change_meanwhile(meddle, page):
    """Before any call: their change stays, and gets its own fingerprint if a later look at the index can see it."""
    for number in range(len(run_backfill(filled(), page=page).calls)):
        store = filled()
        run = run_backfill(store, page=page, meddle_at=number, meddle=meddle)
        if meddle is change_text:
            assert (store.source("3")["body"], store.source("3")["mine"]) == ("changed by another", True)
        else:
            assert "3" not in store.docs
        assert (run.emitted[-1].failed, store.open) == (1, {})
        last_look = max(n for n, api in enumerate(run.apis) if api == "search")
        visible = max(n for n, api in enumerate(run.apis[:last_look]) if api == "refresh")
        assert wrong(store) == [] or number > visible
        assert all(call.arguments["body"] for call in run.calls if call.api == "bulk")


class Lively(FakeServer):
    """Another program does *work* at each refresh, of which the first is the store's own."""

    def __init__(self, documents, work):
        self._work, self.refreshes = work, 0
        super().__init__(documents)

    def refresh(self, index):
        self.refreshes += 1
        self._work(self)
        return super().refresh(index)


def test_passes_go_on_until_nothing_is_left():
    """What changes while the first one is on its way is for the second, and so on."""

    def change(store):
        if store.refreshes == 3:  # the second comes before the first pass
            change_text(store)
        elif store.refreshes == 4:
            store.put("0", {"body": "changed by another as well"})

    store = Lively({id_: each["source"] for id_, each in filled().docs.items()}, change)
    last = run_backfill(store).emitted[-1]
    assert (wrong(store), last.changed, last.seen, last.is_settled) == ([], 7, 9, True)


def test_what_changes_without_end_is_told():
    """The last pass that is allowed still wrote, so what was changed during it may be stale."""
    store = Lively({}, lambda store: store.put("3", {"body": f"the text number {store.refreshes} of it"}))
    run = run_backfill(store)
    assert (run.emitted[-1].is_done, run.emitted[-1].failed, run.emitted[-1].is_settled) == (True, 0, False)
    assert wrong(store) == ["3"]


def test_fields_that_come_back_without_end_are_told():
    """So their record stays in the mapping."""
    restless = Lively({"3": {"body": ""}}, lambda store: store.put("3", {"body": "a text", "simhash": STALE}))
    for store, is_settled in ((restless, False), (FakeServer({"3": {"simhash": STALE}}), True)):
        removed = carry_out(remove_fields(scripted(), INDEX), store).result
        assert (removed.is_settled, removed.indices, removed.failures) == (is_settled, (INDEX,) * is_settled, ())


def test_the_only_document_to_write_is_tried_again():
    """Though a pass that others got ahead of wrote nothing."""
    bodies = {"3": {"body": "another that has none"}}
    last = max(n for n, api in enumerate(run_backfill(FakeServer(bodies)).apis) if api == "bulk")
    store = FakeServer(bodies)
    run = run_backfill(store, meddle_at=last, meddle=change_text)
    assert (wrong(store), run.emitted[-1].changed, run.emitted[-1].failed) == ([], 1, 0)


def test_a_shard_that_is_silent_while_documents_are_read_is_an_error():
    """What it holds is not taken for right."""

    class Silent(FakeServer):
        def search(self, body, index=None):
            shards = {"_shards": {"total": 2, "successful": 1, "failed": 0}} if "pit" in body else {}
            return super().search(body, index) | shards

    with pytest.raises(IncompleteSearchError, match="1 of 2 shards"):
        run_backfill(Silent({"3": {"body": "another that has none"}}))


@pytest.mark.parametrize("status", [400, 409, 429, 503])
def test_what_cannot_be_written_is_named(status):
    """Refused for what it is, for load, or because others keep changing it: not reported as written, nor as done."""
    store = filled()
    store.refuse = lambda header: status if header["_id"] == "3" else None
    run = run_backfill(store)
    assert {each.id: each.status for each in failed(run)} == {"3": status, "5": None}
    assert (run.emitted[-1].changed, run.emitted[-1].failed, wrong(store)) == (4, 2, ["3"])
    store.refuse = lambda header: None
    assert (run_backfill(store).emitted[-1].changed, wrong(store)) == (1, [])


def test_what_became_unreadable_meanwhile_is_named_again_by_the_next_run():
    """It is no work done, whichever pass has met it."""
    number = run_backfill(filled()).apis.index("bulk")
    store = filled()
    for _ in range(2):
        run = run_backfill(store, meddle_at=number, meddle=lambda store: store.put("0", {"body": {}}))
        assert sorted(each.id for each in failed(run)) == ["0", "5"]
        number = None


def test_a_count_that_lacks_a_shard_proves_no_index_empty():
    """A silent shard may hold the documents for which a field is missing: that is an error, not "no documents"."""
    half = {"_shards": {"total": 2, "successful": 1, "failed": 0}, "hits": {"total": {"value": 0}, "hits": []}}
    resolved = Resolved(mappings={INDEX: {"properties": {"body": {"type": "text"}}}})
    future = with_our_fields(Context(), resolved, ("boddy",))
    with pytest.raises(IncompleteSearchError, match="1 of 2 shards"):
        drive(refuse_impossible(scripted(), resolved, future), lambda _: half)
    whole = half | {"_shards": {"total": 2, "successful": 2, "failed": 0}}
    assert drive(refuse_impossible(scripted(), resolved, future), lambda _: whole)[0] is None
