"""Many lookups in one multi-search, driven by hand: what is asked again, how long, and what is given up."""

import pytest

from es_simhash.hashing import get_scheme
from es_simhash.lookup.find_many_flow import ask_batch, make_batch, take_answer
from es_simhash.lookup.options import Options
from es_simhash.lookup.search_flow import Question, Subject
from es_simhash.mapping.context import Context, IndexStats
from es_simhash.mapping.meta import IndexSettings
from es_simhash.transport.protocol import Call, Wait
from es_simhash.transport.retry_flow import Patience
from tests.transport.by_hand import ServerError

WHOLE = {"_shards": {"total": 2, "successful": 2, "failed": 0}, "timed_out": False, "hits": {"hits": []}}
PARTIAL = WHOLE | {"_shards": {"total": 2, "successful": 1, "failed": 1}}


def questions(number):
    options = Options(max_distance=3, on_incomplete="return")
    subject = Subject(Context(), "i", IndexSettings(get_scheme("words")), IndexStats(), options)
    return [Question(subject, each) for each in range(number)]


def drive(flow, answer):
    """Return the flow's result, how often it waited, and how many requests of each kind it sent."""
    waits, sent, value, error = 0, {}, None, None
    while True:
        try:
            request = flow.send(value) if error is None else flow.throw(error)
        except StopIteration as stop:
            return stop.value, waits, sent
        value = error = None
        if isinstance(request, Wait):
            waits += 1
        elif isinstance(request, Call):
            sent[request.api] = sent.get(request.api, 0) + 1
            one = answer(request)
            if isinstance(one, Exception):
                error = one
            elif request.api == "msearch":
                value = {"responses": [one] * (len(request.arguments["body"]) // 2)}
            else:
                value = one


def test_a_batch_waits_for_a_missing_shard_once():
    """Not once for each of its lookups; the batches after it do not wait at all until the shard is back."""
    patience = Patience(4)
    found, waits, _ = drive(ask_batch(questions(40), patience=patience), lambda _: PARTIAL)
    assert [each.complete for each in found] == [False] * 40
    assert waits == 3
    found, waits, _ = drive(ask_batch(questions(40), patience=patience), lambda _: PARTIAL)
    assert (found[0].complete, waits) == (False, 0)
    found, waits, sent = drive(ask_batch(questions(40), patience=patience), lambda _: WHOLE)
    assert (found[0].complete, waits, sent) == (True, 0, {"msearch": 1})
    _, waits, _ = drive(ask_batch(questions(40), patience=patience), lambda _: PARTIAL)
    assert waits == 3


def test_without_patience_nothing_is_waited_for():
    """The caller gets the exception, or the incomplete answer, at once."""
    found, waits, _ = drive(ask_batch(questions(3)), lambda _: PARTIAL)
    assert ([each.complete for each in found], waits) == ([False] * 3, 0)
    full = ServerError(429, "full")
    found, waits, _ = drive(ask_batch(questions(3)), lambda _: full)
    assert (found, waits) == ([full] * 3, 0)


def test_a_busy_server_is_asked_again():
    """Until it answers."""
    answers = iter([ServerError(503, "starting")] * 3)
    found, waits, _ = drive(ask_batch(questions(3), patience=Patience(8)), lambda _: next(answers, WHOLE))
    assert ([each.complete for each in found], waits) == ([True] * 3, 3)


def test_a_refusal_that_does_not_pass_is_raised():
    """It is no matter of one lookup."""
    batch = make_batch(questions(3))
    with pytest.raises(ServerError, match="no rights"):
        drive(take_answer(batch, ServerError(403, "no rights"), patience=Patience(8)), lambda _: WHOLE)


def test_no_questions_are_no_request():
    """Nothing to ask, nothing to send."""
    assert drive(ask_batch([]), lambda _: WHOLE) == ([], 0, {})
