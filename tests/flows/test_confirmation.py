"""Settings that were read before are confirmed: when, against what, and beside other threads."""

import pytest

from es_simhash import IncompleteSearchError, build_mapping
from es_simhash.flows.confirmation import SettingsChanged, confirm, send_confirmed, with_settings
from es_simhash.flows.context import Context
from es_simhash.flows.protocol import Call, Together
from es_simhash.flows.resolve import read_index_settings

OTHER = "shingles-1"
SEARCH = Call("search", {"index": "i", "body": {}})


class Estate:
    """An index behind a clock; answers calls, also several at once."""

    def __init__(self):
        self.now = 0.0
        self.mapping = build_mapping()
        self.search_seconds = 0.0
        self.calls = []
        self.context = Context(clock=lambda: self.now)
        self.settings = self.carry_out(read_index_settings(self.context, "i"))
        self.calls.clear()

    def answer(self, call):
        self.calls.append(call.api)
        if call.api == "get_mapping":
            return {"i": {"mappings": self.mapping}}
        self.now += self.search_seconds
        return {"hits": {}}

    def carry_out(self, flow, meddle=None):
        answer = None
        while True:
            try:
                request = flow.send(answer)
            except StopIteration as stop:
                return stop.value
            calls = request.calls if isinstance(request, Together) else [request]
            answers = [self.answer(each) for each in calls]
            answer = answers if isinstance(request, Together) else answers[0]
            if meddle is not None:
                meddle()

    def search(self, meddle=None):
        return self.carry_out(send_confirmed(self.context, "i", SEARCH, settings=self.settings), meddle)


@pytest.fixture
def estate():
    return Estate()


def test_settings_are_confirmed_when_they_are_not_fresh(estate):
    """Not within 25 milliseconds of the last time; then beside the search."""
    estate.search()
    assert estate.calls == ["search"]
    estate.now = 0.03
    estate.search()
    estate.search()
    assert estate.calls == ["search", "search", "get_mapping", "search"]


def test_an_index_made_again_is_noticed(estate):
    """By its scheme, also after an answer that confirmed the old one."""
    for estate.now in (1.0, 2.0):
        estate.search()
    estate.mapping = build_mapping(scheme=OTHER)
    estate.now = 3.0
    with pytest.raises(SettingsChanged):
        estate.search()
    with pytest.raises(SettingsChanged):
        estate.carry_out(confirm(estate.context, "i", settings=estate.settings))


def test_a_slow_search_is_confirmed_after_its_answer(estate):
    """The client may have sent it a second time, to an index that was made again meanwhile."""
    estate.now, estate.search_seconds = 1.0, 0.2
    estate.search()
    assert estate.calls == ["search", "get_mapping", "get_mapping"]
    old, new = build_mapping(), build_mapping(scheme=OTHER)
    estate.now, estate.mapping = 2.0, old
    with pytest.raises(SettingsChanged):
        estate.search(lambda: setattr(estate, "mapping", new))


def test_what_another_thread_learns_is_not_taken_for_what_was_used(estate):
    """The index was made again, and another thread has read its new settings before this one searches."""
    estate.mapping = build_mapping(scheme=OTHER)
    estate.context.unlearn("i", estate.settings)
    with pytest.raises(SettingsChanged):
        estate.search()
    fresh = estate.carry_out(read_index_settings(estate.context, "i"))
    with pytest.raises(SettingsChanged):
        estate.search()
    estate.context.unlearn("i", estate.settings)  # what this thread gives up is not what the other has learned
    assert estate.context.recall("i")[0] is fresh


def test_what_another_thread_learns_during_the_search(estate):
    """The new mapping confirms the new settings, and not those of the search."""

    def learn():
        estate.mapping = build_mapping(scheme=OTHER)
        estate.context.unlearn("i", estate.settings)
        estate.carry_out(read_index_settings(estate.context, "i"))

    estate.now = 1.0
    with pytest.raises(SettingsChanged):
        estate.search(learn)


def test_what_was_remembered_too_long_is_confirmed_all_the_same(estate):
    """A lookup may begin with settings that grow too old before it searches."""
    estate.now = 61.0
    estate.search()
    assert estate.calls == ["search", "get_mapping"]


def test_an_index_that_changes_again_and_again_is_an_error(estate):
    """Some lookups are tried again, and not for ever."""

    def never(settings):
        yield SEARCH
        raise SettingsChanged

    with pytest.raises(IncompleteSearchError, match="changed during the lookup"):
        estate.carry_out(with_settings(estate.context, "i", never))
    assert estate.calls.count("search") == 5
