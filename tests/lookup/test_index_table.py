"""Many lookups with the fingerprints of one point in time in memory: the answers of a server that is asked for each."""

import logging

import pytest

from es_simhash import IncompleteSearchError, InvalidInputError, fingerprint_fields
from es_simhash.arguments import PLAIN
from es_simhash.lookup import index_table as reading, lookup_options as request
from es_simhash.lookup.find import find
from es_simhash.lookup.find_many import find_many
from es_simhash.lookup.lookup_options import LookupOptions, LookupRequest, Sizes
from es_simhash.mapping.context import Context, IndexStats
from tests.servers.support import planted
from tests.transport.by_hand import Cancelled, ServerError, carry_out, failures, is_passing, scripted
from tests.transport.fake_server import WHOLE, FakeServer

STORED = planted(60)
ASKED = [*STORED[::2], 5, None, STORED[0], 2**64, *(each ^ 0b111 for each in STORED[::3]), STORED[1]]
MEMORY, SERVER = LookupRequest("memory"), LookupRequest("server")


def filled(fingerprints=STORED, **options):
    return FakeServer(
        {f"{n:03d}": {"n": n, **fingerprint_fields(each)} for n, each in enumerate(fingerprints)}, **options
    )


def look(store, way, asked=ASKED, *, context=None, trouble=None, **options):
    """Return the run of a call that looks all of *asked* up, ten at once."""
    context = context or Context()
    context.stats.learn("i", IndexStats())  # an index as small as this would be scanned
    options = {"max_distance": 8, "sizes": Sizes(batch=10, batch_in_memory=10), **options}
    return carry_out(
        find_many(scripted(context), "i", None, asked, LookupOptions(**options), way), store, **trouble or {}
    )


@pytest.fixture
def eager(monkeypatch):
    """A table is read for one lookup: it would cost more than it saves."""
    monkeypatch.setattr(request, "FEWEST_LOOKUPS", 1)
    monkeypatch.setattr(request, "READ_FINGERPRINT_MS", 0.0)


def found_in(run):
    """Return what the answers of a run say, apart from the way that they were found."""
    return [
        (each.items, [one.source for one in each], each.complete, each.scheme, each.max_distance, each.reasons)
        if hasattr(each, "items")
        else repr(each)
        for each in run.result
    ]


def block_terms(run):
    """Return how many searches asked for block terms of documents."""
    bodies = [body for call in run.calls if call.api == "msearch" for body in call.arguments["body"][1::2]]
    return sum("'simhash.block0': ['" in str(body) and body["size"] > 0 for body in bodies)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"max_distance": 0},
        {"max_distance": 20, "size": 3},
        {"filter": {"range": {"n": {"gte": 30}}}, "exclude_ids": ["031", "032"], "source": ["n"]},
        {"sizes": Sizes(batch_in_memory=7, fingerprints=3, largest_page=4)},
    ],
)
def test_memory_finds_what_the_server_finds(monkeypatch, options):
    """Over several ranges, some of them too full for a page, and several groups of near fingerprints."""
    monkeypatch.setattr(reading, "PAGE", 16)
    store = filled([*STORED, *STORED[:9]])
    memory, server = look(store, MEMORY, **options), look(store, SERVER, **options)
    assert found_in(memory) == found_in(server)
    assert sum(len(each) for each in memory.result if hasattr(each, "items")) > 5
    assert (block_terms(memory) == 0) == ("sizes" not in options)
    assert not store.open


def test_all_answers_are_of_one_moment():
    """A document that changes from one near fingerprint to another during the call is found with the first."""
    far = 2**64 - 1
    asked = [0] * 25
    quiet = look(filled([1, 2]), MEMORY, asked)
    reads = [n for n, call in enumerate(quiet.calls) if "'fingerprints':" in str(call.arguments)]

    def meddle(store):
        store.put("000", {"n": 0, **fingerprint_fields(4)})
        store.put("001", {"n": 0, **fingerprint_fields(far)})
        store.put("002", {"n": 0, **fingerprint_fields(0)})
        store.refresh("i")

    for number in range(reads[0], len(quiet.calls)):
        run = look(filled([1, 2]), MEMORY, asked, trouble={"meddle_at": number, "meddle": meddle})
        assert found_in(run) == found_in(quiet)


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("failure", failures(), ids=repr)
def test_a_failure_at_any_call(failure):
    """With "auto" the server is asked instead; where memory is demanded, that is an error, or waited for."""
    quiet = look(filled(), LookupRequest())
    expected = found_in(quiet)
    opened = quiet.apis.index("open_point_in_time")
    assert block_terms(quiet) == 0
    for number in range(opened, len(quiet.calls)):
        store = filled()
        run = look(store, LookupRequest(), trouble={"fail_at": number, "failure": failure})
        if run.error is None:
            assert found_in(run) == expected
        else:
            assert run.error is failure
            assert not hasattr(failure, "status_code")
        assert not store.open or run.hit == "close_point_in_time"
        demanded = look(filled(), MEMORY, trouble={"fail_at": number, "failure": failure})
        if demanded.error is None:
            assert found_in(demanded) == expected
            assert is_passing(failure) or demanded.hit in ("close_point_in_time", "get_mapping")
        else:
            assert demanded.error is failure or isinstance(demanded.error, (InvalidInputError, IncompleteSearchError))


def test_a_call_that_is_ended_leaves_nothing_open():
    """At whatever step."""
    for step in range(look(filled(), MEMORY).steps):
        store = filled()
        run = look(store, MEMORY, trouble={"cancel_at": step})
        assert isinstance(run.error, Cancelled)
        assert not store.open or run.hit == "close_point_in_time"


def broken(documents):
    return FakeServer({f"{n:03d}": {"simhash": each} for n, each in enumerate(documents)})


def own(value, **more):
    return fingerprint_fields(value)["simhash"] | more


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize(
    ("store", "memory_bytes", "word"),
    [
        (lambda: filled(has_pit=False), None, "point in time"),
        (filled, 100, "memory_bytes"),
        (lambda: broken([own(1), own(2, fingerprint=None)]), None, "no fingerprint"),
        (lambda: broken([own(1), own(2, fingerprint="000000000000000G")]), None, "000G"),
        (lambda: broken([own(1), own(2, fingerprint="00000000ABCDEF01")]), None, "ABCDEF"),
    ],
)
def test_what_cannot_be_in_memory(caplog, store, memory_bytes, word):
    """It is an error of one line where memory is demanded, unless one document is the cause; the log says why."""
    asked = [1 << 40, 5, None]
    wanted = found_in(look(store(), SERVER, asked))
    if word not in ("point in time", "memory_bytes"):
        assert found_in(look(store(), LookupRequest("memory", memory_bytes), asked)) == wanted
    else:
        with pytest.raises(InvalidInputError, match=word) as caught:
            look(store(), LookupRequest("memory", memory_bytes), asked)
        assert "\n" not in str(caught.value)
    with caplog.at_level(logging.INFO, "es_simhash"):
        run = look(store(), LookupRequest("auto", memory_bytes), asked)
    assert found_in(run) == wanted
    [said] = [each.getMessage() for each in caplog.records]
    assert word in said


def test_shards_that_do_not_answer():
    """While the point in time is read they are waited for; then the answers are those of the server, incomplete."""
    store = filled()
    silent = {"total": 2, "successful": 1, "failed": 0}
    store.shards = [WHOLE, WHOLE, silent, silent, WHOLE]
    assert found_in(look(store, MEMORY)) == found_in(look(filled(), SERVER))
    store.shards = [silent]
    with pytest.raises(IncompleteSearchError, match="memory"):
        look(store, MEMORY)


def test_auto_reads_at_once_or_after_some(monkeypatch):
    """At once where it knows how many texts there are; of a generator after it has asked for as many as that costs."""
    monkeypatch.setattr(request, "FEWEST_LOOKUPS", 25)
    monkeypatch.setattr(request, "READ_FINGERPRINT_MS", 0.0)
    for asked in (ASKED[:20], (each for each in ASKED[:20])):
        assert "open_point_in_time" not in look(filled(), LookupRequest(), asked).apis
    for asked, before in ((ASKED[:30], 0), ((each for each in ASKED[:40]), 3)):
        run = look(filled(), LookupRequest(), asked)
        assert run.apis[: run.apis.index("open_point_in_time")].count("msearch") == before


@pytest.mark.usefixtures("eager")
def test_nothing_only_makes_a_plain_client_faster(monkeypatch):
    """It reads no table unless that is demanded, and each lookup has a search of its own; the answers are the same."""
    quick = look(filled(), SERVER)
    monkeypatch.setenv(PLAIN, "1")
    for way in (LookupRequest(), SERVER):
        plain = look(filled(), way)
        assert found_in(plain) == found_in(quick)
        assert "open_point_in_time" not in plain.apis
        assert block_terms(plain) == sum(isinstance(one, int) and one < 2**64 for one in ASKED) > block_terms(quick)
    assert "open_point_in_time" in look(filled(), MEMORY).apis


def test_what_a_server_refuses_is_said_whole():
    """The first cause, in its words, and what to do; not the beginning of all that the exception holds."""
    reason = "[range] queries on [keyword] fields cannot be executed when 'search.allow_expensive_queries' is false."
    error = {"type": "search_phase_execution_exception", "reason": "all shards failed", "phase": "query"}
    refused = ServerError(400, reason)
    refused.body = {"error": {**error, "root_cause": [error], "caused_by": {"type": "exception", "reason": reason}}}

    class Forbidding(FakeServer):
        def search(self, body, **how):
            return refused if "fingerprints" in body.get("aggs", ()) else super().search(body, **how)

    with pytest.raises(InvalidInputError) as caught:
        look(Forbidding({"1": fingerprint_fields(1)}), MEMORY)
    assert str(caught.value) == (
        "lookups='memory' cannot be used for 'i': the server does not search operations by their sequence numbers "
        f"({reason}); change that, or pass 'auto'"
    )


# Elasticsearch says the second of a point in time of an index that was made anew.
ENDED = [(404, "search_context_missing"), (503, "no_shard_available_action_exception")]


@pytest.mark.parametrize("ended", ENDED)
def test_a_point_in_time_that_has_ended_is_opened_again(ended):
    """A caller of the stream may take longer between two batches than the server keeps it; answers are the same."""
    quiet = look(filled(), MEMORY)
    asked = [n for n, call in enumerate(quiet.calls) if call.api == "search" and "pit" in call.arguments["body"]]
    assert len(asked) > 4
    for number in asked:
        store = filled()
        run = look(store, MEMORY, trouble={"fail_at": number, "failure": ServerError(*ended)})
        assert found_in(run) == found_in(quiet)
        assert run.apis.count("open_point_in_time") == 2
        assert not store.open


@pytest.mark.parametrize("ended", ENDED)
def test_pages_are_read_again_where_their_point_in_time_has_ended(ended):
    """Of one lookup that asks the server: nothing of the first reading is in the answer."""

    def run(store, **trouble):
        options = LookupOptions(max_distance=64, sizes=Sizes(first_page=10, next_page=10, largest_page=10))
        return carry_out(find(scripted(), "i", options, fingerprint=STORED[0]), store, **trouble)

    quiet = run(filled())
    pages = [n for n, call in enumerate(quiet.calls) if call.api == "search" and "pit" in call.arguments["body"]]
    assert len(pages) > 2
    store = filled()
    again = run(store, fail_at=pages[2], failure=ServerError(*ended))
    assert again.result.items == quiet.result.items
    assert again.result.candidates == len(STORED)
    assert not store.open


def test_an_index_that_changes_its_scheme_is_read_again():
    """Between two batches: fingerprints of another scheme are not compared with those in memory."""
    from es_simhash import build_mapping

    texts = [f"the council approved the new bridge number {n}" for n in range(30)]
    options = LookupOptions(max_distance=64, sizes=Sizes(batch=10, batch_in_memory=10))

    def run(**trouble):
        times = iter(range(0, 10**6, 20))  # what was read of the mapping is soon too old
        flow = find_many(scripted(Context(clock=lambda: next(times))), "i", texts, None, options, MEMORY)
        return carry_out(flow, filled(), **trouble)

    def meddle(store):
        store.mapping = build_mapping(text_field="body", scheme="keywords")

    lookups = [n for n, call in enumerate(run().calls) if "'terms': {'simhash.fingerprint'" in str(call.arguments)]
    changed = run(meddle_at=lookups[-2] + 1, meddle=meddle)
    assert [each.scheme.name for each in changed.result[::10]] == ["shingles", "shingles", "keywords"]
    assert changed.apis.count("open_point_in_time") == changed.apis.count("close_point_in_time") == 2
