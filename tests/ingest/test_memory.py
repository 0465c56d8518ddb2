"""Ingest with lookups in memory under trouble: the same reports and groups as by asking the server."""

import pytest

from es_simhash import InvalidInputError
from es_simhash.lookup import lookup_options as request
from es_simhash.lookup.lookup_options import LookupRequest
from tests.ingest.ingesting import PATIENT, assert_grouped, assert_told_truly, filled, run_ingest
from tests.transport.by_hand import Cancelled, ServerError, calls_to_fail, failures, is_harmless, is_passing
from tests.transport.fake_server import WHOLE

MEMORY = {"on_duplicate": "tag", "lookup": LookupRequest("memory")}


def test_lookups_in_memory():
    """The reports are those of an ingest that asks the server, and no block terms are sent."""
    run, asking = run_ingest(filled(), MEMORY), run_ingest(filled(), {"on_duplicate": "tag"})
    assert [each.to_dict() for each in run.emitted] == [each.to_dict() for each in asking.emitted]
    asked = [str(call.arguments["body"]) for call in run.calls if call.api == "msearch"]
    assert sum("simhash.block0': ['" in each and "minimum_should_match" in each for each in asked) == 0


def test_an_only_writer_reads_nothing_twice():
    """While all operations are its own, no search asks for new ones; after a refresh, one does."""
    run = run_ingest(filled(), MEMORY)
    lines = [line for call in run.calls if call.api == "msearch" for line in call.arguments["body"]]
    refreshes = [call for call in run.calls if call.api == "refresh"]
    assert sum("fingerprints" in each.get("aggs", ()) for each in lines) == 1
    assert len(refreshes) == 2


@pytest.mark.parametrize("is_late", [False, True])
@pytest.mark.parametrize("failure", failures(), ids=repr)
def test_a_failure_at_any_call_with_lookups_in_memory(failure, is_late):
    """A busy server is waited for; any other refusal ends the ingest, and what was told is true."""
    for number in calls_to_fail(run_ingest(filled(), MEMORY), is_late=is_late):
        store = filled()
        run = run_ingest(store, MEMORY, fail_at=number, failure=failure, is_late=is_late)
        assert_told_truly(run, store)
        if is_harmless(run, number, failure) or (run.hit in (*PATIENT, "index_stats") and is_passing(failure)):
            assert run.error is None
            assert_grouped(store, MEMORY)
        else:
            assert run.error is failure or isinstance(run.error, InvalidInputError)


def test_an_ingest_that_is_ended_leaves_nothing_open():
    """At whatever step, reading the fingerprints included."""
    for step in range(run_ingest(filled(), MEMORY).steps):
        store = filled()
        run = run_ingest(store, MEMORY, cancel_at=step)
        assert isinstance(run.error, Cancelled)
        assert not store.open
        assert_told_truly(run, store)


@pytest.mark.parametrize("api", ["index_stats", "get_settings", "msearch"])
@pytest.mark.parametrize("status", [400, 403])
def test_auto_asks_the_server_where_fingerprints_cannot_be_read(monkeypatch, api, status):
    """Such as a user who may not see the numbers of the shards; where memory is demanded, that is an error."""
    monkeypatch.setattr(request, "FEWEST", 1)
    monkeypatch.setattr(request, "READING", 0.0)
    auto = {"on_duplicate": "tag"}
    calls = run_ingest(filled(), auto).calls
    begin = next(number for number, call in enumerate(calls) if call.api == "index_stats")
    number = next(number for number, call in enumerate(calls) if number >= begin and call.api == api)
    store = filled()
    run = run_ingest(store, auto, fail_at=number, failure=ServerError(status, "no"))
    assert (run.error, run.hit, run.apis.count("index_stats")) == (None, api, 1)
    assert_grouped(store, auto)
    demanded = [call.api for call in run_ingest(filled(), MEMORY).calls]
    number = demanded.index(api, demanded.index("index_stats"))
    run = run_ingest(filled(), MEMORY, fail_at=number, failure=ServerError(status, "no"))
    assert isinstance(run.error, InvalidInputError)
    assert not run.emitted


@pytest.mark.parametrize("before", range(1, 12, 2))
def test_shards_that_do_not_answer_for_a_while_with_lookups_in_memory(before):
    """What they did not show is asked for again, of the table too."""
    store = filled()
    store.shards = [WHOLE] * before + [{"total": 2, "successful": 1, "failed": 0}] * 3 + [WHOLE]
    run = run_ingest(store, MEMORY)
    assert run.error is None
    assert_grouped(store, MEMORY)
