"""A lookup that a server refuses is made in another way, and the way is remembered."""

import pytest

from es_simhash import build_mapping, get_scheme
from es_simhash.lookup.find import Lookup, Scope
from es_simhash.lookup.find_many import find_many
from es_simhash.lookup.judge import LookupRule
from es_simhash.lookup.lookup_options import LookupOptions
from es_simhash.mapping.context import Context, IndexStats
from es_simhash.mapping.meta import IndexSettings
from tests.lookup.looking import look
from tests.transport.by_hand import ServerError, drive, scripted
from tests.transport.fake_server import Candidates


class Refusing(Candidates):
    """Answers *message* with *status* to a search that *refuses* says it refuses."""

    def __init__(self, fingerprints, refuses, message, status=400):
        super().__init__(fingerprints)
        self.refuses, self.message, self.status = refuses, message, status

    def search(self, body, index=None):
        if self.refuses(str(body)):
            return ServerError(self.status, self.message)
        return super().search(body, index)


EXPENSIVE = "[script] queries cannot be executed when 'search.allow_expensive_queries' is set to false"


@pytest.mark.parametrize(("message", "status"), [(EXPENSIVE, 500), ("script_lang not supported [painless]", 400)])
def test_a_server_that_refuses_scripts_is_asked_without_one(message, status):
    """And remembered: the next lookup is not refused."""
    context = Context()
    context.stats.learn("i", IndexStats(100_000))
    index = Refusing([0, 1], lambda body: "'script'" in body, message, status)
    found, _, _ = look(index, context=context, max_distance=13)
    assert (len(found), found.complete) == (2, True)
    _, calls, _ = look(index, context=context, max_distance=13)
    assert [call.api for call in calls] == ["search"]


def test_a_refusal_for_another_reason_is_raised():
    """The client's own error, at once."""
    with pytest.raises(ServerError, match="parse"):
        look(Refusing([0], lambda _: True, "cannot parse the filter"), max_distance=13)


LOWERED = "The number of terms [697] used in the Terms Query request has exceeded the allowed maximum of [512]."


@pytest.mark.parametrize("message", ["script_exception in the filter", LOWERED])
def test_a_refusal_that_no_plan_mends_teaches_nothing(message):
    """The caller's filter is at fault, or a limit is below its default: the server's own words say which."""
    context = Context()
    with pytest.raises(ServerError, match=message[:20]):
        look(Refusing([0], lambda _: True, message), context=context, max_distance=13)
    assert not context.scriptless.recall("i")


def test_a_script_that_is_refused_for_many_is_left_out():
    """Every element of the batch gets its answer, though all were planned before the first was refused."""

    class RefusingMany(Refusing):
        def msearch(self, body, filter_path=None):
            return {"responses": [self.element(self.search(line)) for line in body[1::2]]}

        def element(self, answer):
            refused = isinstance(answer, ServerError)
            return {"status": 400, "error": {"type": "x", "reason": str(answer)}} if refused else answer

    index = RefusingMany([0, 1], lambda body: "'script'" in body, EXPENSIVE)
    flow = find_many(scripted(), "i", None, [0] * 30, LookupOptions(max_distance=13))
    found, _, _ = drive(flow, index)
    assert [len(each) for each in found] == [2] * 30
    assert len({each.plan for each in found}) == 1


def test_an_index_without_the_copy_for_scripts_is_asked_without_one():
    """A script on a field that is not mapped fails."""
    index = Refusing([0], lambda body: "'script'" in body, "No field found for [simhash.value]")
    index.mapping = build_mapping(value=False)
    _, calls, _ = look(index, max_distance=13)
    assert "'script'" not in str(calls)


def test_a_script_that_fails_on_a_shard_is_left_out():
    """The documents of that shard are asked for without it."""

    class Failing(Candidates):
        def search(self, body, index=None):
            answer = super().search(body, index)
            if "'script'" not in str(body):
                return answer
            failures = [{"reason": {"type": "script_exception", "reason": "runtime error"}}]
            return {**answer, "_shards": {"total": 2, "failed": 1, "failures": failures}}

    found, _, _ = look(Failing([0]), max_distance=13)
    assert (len(found), found.complete, found.plan.script) == (1, True, False)


def test_what_was_refused_long_ago_is_tried_again():
    """A script that was refused for the load of the moment is not given up for ever."""
    now = [0.0]
    context = Context(clock=lambda: now[0])
    context.scriptless.learn("i", value=True)
    assert context.scriptless.recall("i")
    now[0] = 599.0
    scope = Scope(context, "i", IndexSettings(get_scheme()), LookupOptions(), LookupRule(3), stats=IndexStats())
    assert Lookup(scope, 0).result([]).complete  # what others ask meanwhile does not begin the ten minutes anew
    now[0] = 601.0
    assert not context.scriptless.recall("i")
