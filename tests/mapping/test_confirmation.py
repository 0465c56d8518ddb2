"""Settings that were read before are confirmed: when, against what, and beside other threads."""

import copy

import pytest

from es_simhash import IncompleteSearchError, build_mapping
from es_simhash.mapping.context import MOST_NAMES, STATS_SECONDS, Context, IndexStats
from es_simhash.mapping.mapping import mapping_of
from es_simhash.mapping.meta import is_marked, marker_name, marker_properties, read_settings
from es_simhash.mapping.resolve import (
    SettingsChanged,
    begin_anew,
    confirm,
    narrowed,
    read_index_settings,
    send_confirmed,
)
from es_simhash.removal.make_plan import read_setting
from es_simhash.transport.conversation import refresh
from es_simhash.transport.protocol import Call, names_in
from tests.transport.by_hand import SCRIPTED, ServerError, carry_out, scripted
from tests.transport.fake_server import unmarked

OTHER = "keywords-1"
SEARCH = Call("search", {"index": "i", "body": {}})
MANY = Call("msearch", {"body": [{"index": "i"}, {}, {"index": "i"}, {}]})


def sorts_by(body, mapping):
    """Return the server's refusal to sort as *body* asks for in an index with *mapping*; empty if it can."""
    known = mapping.get("properties", {}).get("simhash", {}).get("properties", {})
    lacks = (name for name in body.get("sort", ()) if name != "_score" and name.removeprefix("simhash.") not in known)
    return "".join(f"No mapping found for [{name}] in order to sort on" for name in lacks)


class Estate:
    """An index behind a clock; answers calls, also several at once."""

    def __init__(self, mapping):
        self.now = 0.0
        self.mapping = mapping
        self.is_partly_refused = False
        self.refuses_sort = False
        self.calls = []
        self.meddle = None
        self.context = Context(clock=lambda: self.now)
        self.settings = self.carry_out(read_index_settings(scripted(self.context), "i"))
        self.calls.clear()

    def answer(self, call):
        self.calls.append(call.api)
        if call.api == "get_mapping":
            answer = {"i": {"mappings": self.mapping}}
            meddle, self.meddle = self.meddle, None
            if meddle is not None:
                meddle()
            return answer
        body = call.arguments["body"]
        if call.api == "msearch":
            return {"responses": list(map(self.answer_search, body[1::2]))}
        answer = self.answer_search(body)
        return ServerError(400, answer["error"]) if "error" in answer else answer

    def answer_search(self, body):
        words = sorts_by(body, {} if self.refuses_sort else self.mapping)
        if words and self.is_partly_refused:
            return {"_shards": {"total": 2, "failed": 1, "failures": [{"reason": {"reason": words}}]}, "hits": {}}
        return {"error": words} if words else {"_shards": {"total": 2, "failed": 0}, "hits": {}}

    def carry_out(self, flow):
        return carry_out(flow, self.answer).result

    def search(self, meddle=None):
        """Search; *meddle* is called when the mapping was answered for the first time."""
        self.meddle = meddle
        return self.carry_out(send_confirmed(scripted(self.context), "i", SEARCH, settings=self.settings))


@pytest.fixture
def estate():
    """An index without a marker."""
    return Estate(unmarked())


@pytest.fixture
def marked():
    return Estate(build_mapping())


@pytest.mark.parametrize("call", [SEARCH, MANY])
def test_settings_are_confirmed_after_each_answer(estate, call):
    """However fresh they are, since an alias may move meanwhile; and where they grew too old before the search."""
    for estate.now in (0.0, 61.0):
        estate.carry_out(send_confirmed(scripted(estate.context), "i", call, settings=estate.settings))
    assert estate.calls == [call.api, "get_mapping"] * 2


@pytest.mark.parametrize("answer", [{"_shards": {"total": 2, "failed": 0}, "hits": {}}, {"error": "no such field"}])
def test_an_index_that_is_made_again_during_the_search(estate, answer):
    """Also where the search is then refused: the caller begins anew, and gets the answer by the new settings."""

    def make_again(body):
        estate.mapping = unmarked(scheme=OTHER)
        return answer

    estate.search()
    estate.answer_search = make_again
    with pytest.raises(SettingsChanged):
        estate.search()
    with pytest.raises(SettingsChanged):
        estate.carry_out(confirm(scripted(estate.context), "i", settings=estate.settings))


def test_what_another_thread_learns_is_not_taken_for_what_was_used(estate):
    """The index was made again, and another thread has read its new settings before this one searches."""
    estate.mapping = unmarked(scheme=OTHER)
    old = estate.context.known.recall("i")[1]
    estate.context.unlearn("i", old)
    with pytest.raises(SettingsChanged):
        estate.search()
    fresh = estate.carry_out(read_index_settings(scripted(estate.context), "i"))
    with pytest.raises(SettingsChanged):
        estate.search()
    estate.context.unlearn("i", old)  # what this thread gives up is not what the other has learned
    assert estate.context.known.recall("i")[0] is fresh


def test_what_another_thread_learns_during_the_search(estate):
    """The new mapping confirms the new settings, and not those of the search."""

    def learn():
        estate.mapping = unmarked(scheme=OTHER)
        estate.context.unlearn("i", estate.context.known.recall("i")[1])
        estate.carry_out(read_index_settings(scripted(estate.context), "i"))

    estate.now = 1.0
    with pytest.raises(SettingsChanged):
        estate.search(learn)


LONG = [f"news-{number}-{'x' * 200}" for number in range(40)]


async def read_and_confirm(server, names):
    settings = await read_index_settings(server, names)
    await confirm(server, names, settings=settings)


@pytest.mark.parametrize(
    ("work", "times"),
    [
        (read_and_confirm, 2),
        (refresh, 1),
        (narrowed, 1),
        (lambda server, names: read_setting(server, names, "uuid"), 1),
    ],
)
def test_many_long_names_are_sent_in_parts(work, times):
    """A server takes 4,096 bytes as the first line of a request."""
    sent = {}

    def answer(call):
        names = names_in(call.arguments["index"])
        sent.setdefault(call.api, []).append(names)
        if call.api == "get_mapping":
            return {name: {"mappings": unmarked()} for name in names}
        return {"_shards": {"total": 1, "successful": 1, "failed": 0}}

    carry_out(work(scripted(), LONG), answer)
    assert sent
    for parts in sent.values():
        assert [name for part in parts for name in part] == LONG * times
        assert max(len(",".join(part)) for part in parts) < 4_000


def test_one_of_several_indices_that_is_gone():
    """A server answers 404 for all, and does not say which: the others have their UUID all the same."""

    def answer(call):
        names = names_in(call.arguments["index"])
        return ServerError(404) if "gone" in names else {name: {"settings": {"index": {"uuid": "u"}}} for name in names}

    found = carry_out(read_setting(scripted(), ["a", "gone", "b"], "uuid"), answer).result
    assert found == {"a": "u", "b": "u"}


def test_an_index_that_changes_again_and_again_is_an_error(estate):
    """Some lookups are tried again, and not for ever."""

    async def never():
        await SCRIPTED.send(SEARCH)
        raise SettingsChanged("i")

    with pytest.raises(
        IncompleteSearchError, match="settings of 'i' changed during the lookup, or could not be read, 5 times"
    ):
        estate.carry_out(begin_anew(never))
    assert estate.calls.count("search") == 5


@pytest.mark.parametrize("call", [SEARCH, MANY])
def test_a_marker_takes_the_place_of_the_mapping(marked, call):
    """Each search insists on it, however long ago the mapping was read."""
    for marked.now in (0.0, 1.0, 50.0):
        marked.carry_out(send_confirmed(scripted(marked.context), "i", call, settings=marked.settings))
    assert marked.calls == [call.api] * 3
    assert marked.context.confirmed.find("i")[0] == marked.now


@pytest.mark.parametrize("call", [SEARCH, MANY])
@pytest.mark.parametrize("is_partly_refused", [False, True])
@pytest.mark.parametrize("new", [build_mapping(scheme=OTHER), unmarked(scheme=OTHER), unmarked()])
def test_an_index_with_another_marker_is_noticed_at_once(marked, call, is_partly_refused, new):
    """Also where only one shard refuses the search, and where the mapping was read this very moment."""
    marked.mapping, marked.is_partly_refused = new, is_partly_refused
    with pytest.raises(SettingsChanged):
        marked.carry_out(send_confirmed(scripted(marked.context), "i", call, settings=marked.settings))


def test_a_marker_that_the_server_does_not_show_to_a_search(marked):
    """The mapping has it and the search is refused all the same: the mapping is compared."""
    marked.refuses_sort = True
    marked.now = 1.0
    marked.search()
    assert marked.calls == ["search", "get_mapping", "search", "get_mapping"]


def test_shards_that_were_skipped_prove_nothing(marked):
    """Elasticsearch sends no search to a shard that can have no hit, and so not to an index without our fields."""
    marked.answer_search = lambda body: {"_shards": {"total": 2, "skipped": 1, "failed": 0}, "hits": {}}
    marked.now = 1.0
    marked.search()
    assert marked.calls == ["search", "get_mapping"]
    marked.now, marked.mapping = 2.0, {}
    with pytest.raises(SettingsChanged):
        marked.search()


def test_another_refusal_is_passed_on(marked):
    """It is the caller's, who may ask in another way."""
    marked.answer_search = lambda body: {"error": "too_many_clauses"}
    with pytest.raises(ServerError, match="too_many_clauses"):
        marked.search()
    answer = marked.carry_out(send_confirmed(scripted(marked.context), "i", MANY, settings=marked.settings))
    assert answer == {"responses": [{"error": "too_many_clauses"}] * 2}


def merged(mapping, body):
    """Return *mapping* after a PUT of *body*."""
    mapping = copy.deepcopy(mapping)
    ours = mapping["properties"]["simhash"]["properties"]
    ours |= body["properties"]["simhash"]["properties"]
    return {**mapping, "_meta": body["_meta"]}


def test_a_marker_of_earlier_settings_is_retired():
    """A mapping keeps its fields for ever; a search that insists on the old marker is refused all the same."""
    mapping = build_mapping()
    old = read_settings(mapping)
    new = read_settings(build_mapping(scheme=OTHER))
    both = merged(mapping, mapping_of(new, mapping=mapping))
    ours = both["properties"]["simhash"]["properties"]
    assert ours[marker_name(old)]["path"] == "simhash.retired"
    assert (ours["retired"]["doc_values"], ours["retired"]["index"]) == (False, False)
    assert is_marked(both, new, prefix="simhash")
    assert not is_marked(both, old, prefix="simhash")
    again = merged(both, mapping_of(old, mapping=both))
    assert is_marked(again, old, prefix="simhash")
    retired = marker_properties(None, prefix="simhash", mapping=again)
    assert retired.keys() == {"retired", marker_name(old), marker_name(new)}


def test_what_a_client_remembers_is_bounded_and_ends():
    """A service with an index for each tenant does not grow for ever, and what is old is asked again."""
    now = [0.0]
    context = Context(clock=lambda: now[0])
    for number in range(2 * MOST_NAMES + 1):
        context.stats.learn(f"tenant-{number}", IndexStats())
    assert len(context.stats) <= MOST_NAMES
    assert context.stats.recall(f"tenant-{number}") == IndexStats()
    now[0] = STATS_SECONDS
    assert context.stats.recall(f"tenant-{number}") is None
