"""Lookups of many texts or fingerprints at once: each has its answer or failure; what is asked again, and how long."""

from collections import Counter

import pytest

from es_simhash import IncompleteSearchError
from es_simhash.hashing import get_scheme
from es_simhash.lookup.find import Lookup, Scope, find
from es_simhash.lookup.find_many import ask_together, find_many, make_multi_search, take_answer
from es_simhash.lookup.judge import LookupRule
from es_simhash.lookup.lookup_options import LookupOptions
from es_simhash.lookup.plan import LookupPlan
from es_simhash.mapping.context import Context, IndexStats
from es_simhash.mapping.meta import IndexSettings
from es_simhash.transport.refusals import ATTEMPTS
from tests.lookup.looking import planned
from tests.transport.by_hand import ServerError, carry_out, drive, scripted
from tests.transport.fake_server import Candidates


def test_many_keep_their_order_and_their_failures():
    """No text, no text at all, and a search that is refused, also alone; fingerprints, and what is none."""

    class NotThere(Candidates):
        def msearch(self, body, filter_path=None):
            answers = {"responses": [Candidates.search(self, line) for line in body[1::2]]}
            answers["responses"][-1] = {"error": {"type": "t", "reason": "r"}, "status": 404}
            return answers

        def search(self, body, index=None):
            return ServerError(404, "r")

    context = Context()
    context.stats.learn("i", IndexStats())
    flow = find_many(scripted(context), "i", ["", "one text", None, "two texts"], None, LookupOptions())
    found, _, _ = drive(flow, NotThere([0]))
    assert [type(each).__name__ for each in found] == ["NearDups", "NearDups", "WrongTypeError", "ServerError"]
    found, _, _ = drive(find_many(scripted(), "i", None, [0, None, 2**64, "0"], LookupOptions()), Candidates([0]))
    assert [type(each).__name__ for each in found] == ["NearDups", "NearDups", "InvalidInputError", "WrongTypeError"]
    assert [len(each) for each in found[:2]] == [1, 0]


def test_a_multi_search_that_is_too_much_is_halved():
    """Refused whole for its size or for load, it is asked in parts; what is too much alone fails alone."""

    class Small(Candidates):
        def msearch(self, body, filter_path=None):
            is_shared = "'wanted': [" in str(body)
            return super().msearch(body) if len(body) <= 4 and not is_shared else ServerError(413, "too large")

    found, calls, _ = drive(find_many(scripted(), "i", None, [0, 1, 2, 3, 4], LookupOptions()), Small([0]))
    assert [len(each) for each in found] == [1, 1, 1, 1, 1]
    # The survey, all in one search, and one by one: 5, 2, 3, 1, 2.
    assert [call.api for call in calls].count("msearch") == 7

    class Full(Candidates):
        def msearch(self, body, filter_path=None):
            return ServerError(429, "full")

    found, _, _ = drive(find_many(scripted(), "i", None, [0, 1], LookupOptions()), Full([0]))
    assert [type(each).__name__ for each in found] == ["ServerError"] * 2


def test_a_pattern_that_matches_nothing_is_the_same_for_all_lookups():
    """An error, not one in each place."""

    class Nowhere(Candidates):
        def get_mapping(self, index):
            return {}

    flows = (
        find_many(scripted(), "x*", None, [0], LookupOptions()),
        find(scripted(), "x*", LookupOptions(), id="1"),
        find(scripted(), "x*", LookupOptions(), fingerprint=0),
    )
    for flow in flows:
        with pytest.raises(IncompleteSearchError, match="no index matches"):
            drive(flow, Nowhere([]))


def test_one_refused_for_load_is_searched_alone():
    """A full queue hits one element of the batch; the others are not sunk, and it gets its answer."""

    class Busy(Candidates):
        def msearch(self, body, filter_path=None):
            answers = super().msearch(body)
            answers["responses"][0] = {"error": {"type": "rejected", "reason": "full"}, "status": 429}
            return answers

    context = Context()
    context.stats.learn("i", IndexStats())
    flow = find_many(scripted(context), "i", None, [0, 1], LookupOptions(max_distance=3))
    with planned(LookupPlan(3, 4)):
        found, calls, _ = drive(flow, Busy([0]))
    assert [len(each) for each in found] == [1, 1]
    # Together, then each for itself, and then the refused one alone.
    assert [call.api for call in calls] == ["get_mapping", "msearch", "msearch", "search"]


WHOLE = {"_shards": {"total": 2, "successful": 2, "failed": 0}, "timed_out": False, "hits": {"hits": []}}
PARTIAL = WHOLE | {"_shards": {"total": 2, "successful": 1, "failed": 1}}


def lookups(number):
    settings = IndexSettings(get_scheme("keywords"))
    scope = Scope(Context(), "i", settings, LookupOptions(), LookupRule(3), stats=IndexStats())
    return [Lookup(scope, fingerprint) for fingerprint in range(number)]


def answer_each(work, answer):
    """Return what *work* returns, how often it waited, and how many requests of each kind it sent."""

    def answers(call):
        one = answer(call)
        if isinstance(one, Exception) or call.api != "msearch":
            return one
        return {"responses": [one] * (len(call.arguments["body"]) // 2)}

    run = carry_out(work, answers)
    return run.result, len(run.waits), Counter(run.apis)


def test_a_batch_waits_for_a_missing_shard_once():
    """Not once for each of its lookups; the batches after it do not wait at all until the shard is back."""
    port = scripted()
    found, waits, _ = answer_each(ask_together(port, lookups(40), is_patient=True), lambda _: PARTIAL)
    assert [each.complete for each in found] == [False] * 40
    assert waits == ATTEMPTS - 1
    found, waits, _ = answer_each(ask_together(port, lookups(40), is_patient=True), lambda _: PARTIAL)
    assert (found[0].complete, waits) == (False, 0)
    found, waits, sent = answer_each(ask_together(port, lookups(40), is_patient=True), lambda _: WHOLE)
    assert (found[0].complete, waits, sent) == (True, 0, {"msearch": 1})
    _, waits, _ = answer_each(ask_together(port, lookups(40), is_patient=True), lambda _: PARTIAL)
    assert waits == ATTEMPTS - 1


def test_a_document_without_a_fingerprint_is_not_waited_for():
    """It is told at once: only a backfill makes the answer whole."""
    index = Candidates([0, 0])
    index.hits[1]["fields"] = {f"simhash.block{number}": ["0000"] for number in range(4)}
    run = carry_out(ask_together(scripted(), lookups(2), is_patient=True), index)
    assert ([each.complete for each in run.result], run.waits) == ([False] * 2, [])


def test_without_patience_nothing_is_waited_for():
    """The caller gets the exception, or the incomplete answer, at once."""
    found, waits, _ = answer_each(ask_together(scripted(), lookups(3)), lambda _: PARTIAL)
    assert ([each.complete for each in found], waits) == ([False] * 3, 0)
    full = ServerError(429, "full")
    found, waits, _ = answer_each(ask_together(scripted(), lookups(3)), lambda _: full)
    assert (found, waits) == ([full] * 3, 0)


def test_a_busy_server_is_asked_again():
    """Until it answers."""
    answers = iter([ServerError(503, "starting")] * 3)
    found, waits, _ = answer_each(ask_together(scripted(), lookups(3), is_patient=True), lambda _: next(answers, WHOLE))
    assert ([each.complete for each in found], waits) == ([True] * 3, 2)


def test_a_refusal_that_does_not_pass_is_raised():
    """It is no matter of one lookup."""
    batch = make_multi_search(lookups(3))
    with pytest.raises(ServerError, match="no rights"):
        answer_each(take_answer(scripted(), batch, ServerError(403, "no rights"), is_patient=True), lambda _: WHOLE)
