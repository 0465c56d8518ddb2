"""Ingest with lookups in memory under trouble: the same reports and groups as by asking the server."""

import pytest

from es_simhash import InvalidInputError
from es_simhash.ingest.ingest_options import IngestSizes
from es_simhash.lookup import lookup_options as request
from tests.ingest.ingesting import NEW, A, B, assert_grouped, filled, is_writing, run_ingest
from tests.ingest.test_ingest import MEMORY
from tests.transport.by_hand import ServerError
from tests.transport.fake_server import WHOLE


def test_lookups_in_memory():
    """The reports are those of an ingest that asks the server; no block terms are sent, and nothing is read twice."""
    run, asking = run_ingest(filled(), MEMORY), run_ingest(filled(), {"on_duplicate": "tag"})
    assert [each.to_dict() for each in run.emitted] == [each.to_dict() for each in asking.emitted]
    bodies = [call.arguments["body"] for call in run.calls if call.api in ("msearch", "search")]
    assert not any("simhash.block0': ['" in str(each) and "minimum_should_match" in str(each) for each in bodies)
    # While all operations are its own, no search asks for new ones; after a refresh, one does.
    assert sum("'fingerprints'" in str(each) for each in bodies) == 1
    assert run.apis.count("refresh") == 2


def batches_of(way):
    """Return the sizes of the bulk requests of an ingest of 12 documents, and how many came before the table."""
    documents = ({"_id": str(number), "body": f"{A} {number} {B}"} for number in range(12))
    run = run_ingest(filled(), {"batch": None, "sizes": IngestSizes(first=1, asking=2, most=4), **way}, documents)
    assert [each.position for each in run.emitted] == list(range(12))
    calls = [each for each in run.calls if each.api == "index_stats" or is_writing(each)]
    apis = [each.api for each in calls]
    bulks = [len(each.arguments["body"]) // 2 for each in calls if each.api == "bulk"]
    return bulks, apis.index("index_stats") if "index_stats" in apis else None


def test_batches_are_small_first_and_large_where_the_server_need_not_be_asked(monkeypatch):
    """Fewer documents are in a batch while the server is asked about each; the caller's number holds for all."""
    assert batches_of(MEMORY) == ([1, 1, 4, 4, 2], 0)
    assert batches_of({"on_duplicate": None}) == ([1, 1, 4, 4, 2], None)
    assert batches_of({"on_duplicate": "tag"}) == ([1, 1, 2, 2, 2, 2, 2], None)
    assert batches_of({**MEMORY, "batch": 3}) == ([1, 1, 3, 3, 3, 1], 0)
    monkeypatch.setattr(request, "FEWEST_LOOKUPS", 4)
    monkeypatch.setattr(request, "READ_FINGERPRINT_MS", 0.0)
    assert batches_of({"on_duplicate": "tag"}) == ([1, 1, 2, 4, 4], 1)


@pytest.mark.parametrize("given", [list, iter])
@pytest.mark.parametrize("first", [1, 2])
def test_auto_reports_before_it_reads_fingerprints(monkeypatch, given, first):
    """However many documents are known to come, unless reading costs less than asking about the first two batches."""
    monkeypatch.setattr(request, "FEWEST_LOOKUPS", 3)
    monkeypatch.setattr(request, "READ_FINGERPRINT_MS", 0.0)
    documents = given([{"_id": id_, "body": body} for id_, body in NEW.items()])
    calls = run_ingest(filled(), {"on_duplicate": "tag", "sizes": IngestSizes(first=first)}, documents).calls
    apis = [each.api for each in calls if each.api != "bulk" or is_writing(each)]
    assert (apis.index("bulk") < apis.index("index_stats")) == (first == 1)


def number_of(api, run):
    """Return the number of the first call of *api* that reads fingerprints into memory, or what that needs."""
    calls = enumerate(run.calls[(begin := run.apis.index("index_stats")) :], begin)
    return next(n for n, call in calls if call.api == api and (api != "search" or "'fingerprints':" in str(call)))


@pytest.mark.parametrize("api", ["index_stats", "get_settings", "search"])
@pytest.mark.parametrize("status", [400, 403])
def test_auto_asks_the_server_where_fingerprints_cannot_be_read(monkeypatch, api, status):
    """Such as a user who may not see the numbers of the shards; where memory is demanded, that is an error."""
    monkeypatch.setattr(request, "FEWEST_LOOKUPS", 1)
    monkeypatch.setattr(request, "READ_FINGERPRINT_MS", 0.0)
    auto = {"on_duplicate": "tag"}
    store = filled()
    run = run_ingest(store, auto, fail_at=number_of(api, run_ingest(filled(), auto)), failure=ServerError(status, "no"))
    assert (run.error, run.hit, run.apis.count("index_stats")) == (None, api, 1)
    assert_grouped(store, auto)
    number = number_of(api, run_ingest(filled(), MEMORY))
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
