"""The lookup flow: what it asks for, and what it makes of answers that are not whole."""

import pytest

from es_simhash import (
    DEFAULT_SCHEME,
    IncompleteSearchError,
    InvalidInputError,
    MappingError,
    SchemeMismatchError,
    build_mapping,
    get_scheme,
)
from es_simhash.client.drivers import stream
from es_simhash.flows.context import Context
from es_simhash.flows.lookup.find import find, scan
from es_simhash.flows.lookup.find_many import find_many
from es_simhash.flows.lookup.find_of import find_of, read_fingerprint
from es_simhash.flows.lookup.options import Options, Sizes
from es_simhash.flows.lookup.verify import Verification, fetch_text
from es_simhash.flows.resolve import agree, judge_mappings
from es_simhash.index.meta import IndexSettings
from es_simhash.index.plan import Limits, make_plan
from es_simhash.index.plan_cost import IndexStats
from tests.flows.by_hand import ServerError, drive
from tests.flows.fake_server import WHOLE, Candidates
from tests.flows.looking import look

NEXT_PAGE = Sizes().next_page
# More candidates than the first page of any plan for a few documents, and than one page of those that follow.
MANY = NEXT_PAGE + 503


def scored(hits, body):
    """Give *hits* the number of should clauses they match as their score, and put the highest first."""
    must = body["query"]["bool"]["must"]["bool"]["should"]
    for each in hits:
        digits = each["fields"]["simhash.fingerprint"][0]
        terms = {f"simhash.block{i}": digits[4 * i : 4 * i + 4] for i in range(4)}
        each["_score"] = sum(terms[field] in values for part in must for field, values in part["terms"].items())
    return sorted(hits, key=lambda each: (-each["_score"], each["sort"]))


def test_one_search_when_candidates_fit():
    """The mapping once, then one request a lookup."""
    context = Context()
    index = Candidates([0, 1, 2**64 - 1])
    found, calls, _ = look(index, context=context)
    assert [(each.id, each.distance) for each in found] == [("0", 0), ("1", 1)]
    assert [call.api for call in calls] == ["get_mapping", "search"]
    assert found.complete
    assert found.scheme == get_scheme(DEFAULT_SCHEME)
    _, calls, _ = look(index, context=context)
    assert [call.api for call in calls] == ["search"]


def test_the_mapping_is_asked_for_again_after_a_minute():
    """Somebody may have replaced the index."""
    now = [0.0]
    context = Context(clock=lambda: now[0])
    look(Candidates([]), context=context)
    now[0] = 61.0
    _, calls, _ = look(Candidates([]), context=context)
    assert calls[0].api == "get_mapping"


@pytest.mark.parametrize(
    "options", [{}, {"has_shard_doc": False}, {"has_pit": False}, {"window": 7}, {"window": 7, "has_pit": False}]
)
def test_every_candidate_is_read_whatever_the_page(options):
    """Past one page, with or without a point in time, with a small window: the last hit is found."""
    index = Candidates([0] * MANY, **options)
    found, _, _ = look(index)
    assert len(found) == found.candidates == MANY
    assert found.complete
    assert not index.open


def test_the_nearest_are_kept_when_fewer_are_wanted():
    """``size`` cuts after all candidates were rescored."""
    index = Candidates([3] * MANY + [0], has_pit=False)
    found, _, _ = look(index, size=1)
    assert [each.distance for each in found] == [0]


def test_reading_stops_when_nothing_nearer_can_follow():
    """With a size, pages come in order of clauses matched: those that cannot be nearer are not read."""

    class Ranking(Candidates):
        def search(self, body, index=None, scroll=None):
            if "must" not in body["query"]["bool"]:
                return super().search(body, index, scroll)
            ranked = scored(self.hits, body)
            start = 0 if "search_after" not in body else ranked.index(self.last) + 1
            page = ranked[start : start + body["size"]]
            self.last = page[-1]
            return {"_shards": WHOLE, "timed_out": False, "hits": {"hits": page}}

    spread = 1 | 1 << 16 | 1 << 32  # matches fewer clauses than three bits of distance need
    fingerprints = [spread] * (3 * NEXT_PAGE) + [1, 0, 3]
    found, calls, _ = look(Ranking(fingerprints), size=3, max_distance=3, plan=make_plan(3, (0, 1)))
    assert [each.distance for each in found] == [0, 1, 2]
    assert found.complete
    assert [call.api for call in calls].count("search") == 2
    everything, _, _ = look(Ranking(fingerprints), max_distance=3)
    assert len(everything) == len(fingerprints)


def test_a_stream_is_read_page_by_page():
    """Each page's near-duplicates are handed on before the next is asked for."""
    index = Candidates([0] * MANY + [2**64 - 1])
    _, calls, emitted = drive(scan(Context(), "i", None, 0, Options(max_distance=2)), index)
    assert len({each.id for each in emitted}) == MANY
    first = ["get_mapping", "open_point_in_time", "search", "get_mapping"]  # the settings are those of this view
    assert [call.api for call in calls] == [*first, "search", "close_point_in_time"]
    with pytest.raises(InvalidInputError, match="no size"):
        drive(scan(Context(), "i", None, 0, Options(size=1)), index)


def test_a_stream_that_breaks_emits_nothing_twice():
    """Once something was handed on, a failure is raised, whatever another plan might do."""

    class Breaking(Candidates):
        def search(self, body, index=None, scroll=None):
            if "search_after" in body:
                return ServerError(500, "script_exception")
            return super().search(body, index, scroll)

    class Direct:
        @staticmethod
        def call(client, call):
            answer = client(call)
            if isinstance(answer, Exception):
                raise answer
            return answer

    index, emitted = Breaking([0] * MANY), []
    items = stream(scan(Context(), "i", None, 0, Options(max_distance=13)), index, Direct)
    with pytest.raises(ServerError):
        emitted.extend(each for each in items)
    assert len(emitted) == len({each.id for each in emitted}) == NEXT_PAGE
    assert not index.open


class Refusing(Candidates):
    """Answers *message* with *status* to a search that *refuses* says it refuses."""

    def __init__(self, fingerprints, refuses, message, status=400):
        super().__init__(fingerprints)
        self.refuses, self.message, self.status = refuses, message, status

    def search(self, body, index=None, scroll=None):
        if self.refuses(str(body)):
            return ServerError(self.status, self.message)
        return super().search(body, index, scroll)


LONG_LIST = "The number of terms [697] used in the Terms Query request has exceeded the allowed maximum of [512]."


@pytest.mark.parametrize(
    ("refuses", "message", "status"),
    [
        (
            lambda body: "'script'" in body,
            "[script] queries cannot be executed when 'search.allow_expensive_queries'",
            500,
        ),
        (lambda body: "'script'" in body, "script_lang not supported [painless]", 400),
        (lambda body: body.count("'terms'") and len(body) > 18_000, LONG_LIST + " [index.max_terms_count]", 400),
        (lambda body: body.count("'terms'") > 4, "too_many_clauses: maxClauseCount is set to 4", 400),
    ],
)
def test_what_a_server_refuses_is_asked_another_way(refuses, message, status):
    """And remembered: the next lookup is not refused."""
    context = Context()
    context.learn_stats("i", IndexStats(100_000))
    index = Refusing([0, 1], refuses, message, status)
    found, _, _ = look(index, context=context, max_distance=13)
    assert (len(found), found.complete) == (2, True)
    _, calls, _ = look(index, context=context, max_distance=13)
    assert [call.api for call in calls] == ["search"]


def test_a_refusal_for_another_reason_is_raised():
    """The client's own error, at once."""
    with pytest.raises(ServerError, match="parse"):
        look(Refusing([0], lambda _: True, "cannot parse the filter"), max_distance=13)


@pytest.mark.parametrize("message", ["script_exception in the filter", LONG_LIST + " [index.max_terms_count]"])
def test_a_refusal_that_no_plan_mends_teaches_nothing(message):
    """The caller's filter is at fault: lookups without it keep their plan."""
    context = Context()
    with pytest.raises(ServerError):
        look(Refusing([0], lambda _: True, message), context=context, max_distance=13)
    assert context.limits("i") == Limits()


@pytest.mark.parametrize(
    ("refuses", "message"),
    [
        (lambda body: "'script'" in body, "cannot be executed when 'search.allow_expensive_queries' is false"),
        (lambda body: body.count("'terms'") and len(body) > 18_000, LONG_LIST + " [index.max_terms_count]"),
    ],
)
def test_what_a_server_refuses_of_many_is_asked_another_way(refuses, message):
    """Every element of the batch gets its answer, though all were planned before the first was refused."""

    class RefusingMany(Refusing):
        def msearch(self, body):
            return {"responses": [self.element(self.search(line)) for line in body[1::2]]}

        def element(self, answer):
            refused = isinstance(answer, ServerError)
            return {"status": 400, "error": {"type": "x", "reason": str(answer)}} if refused else answer

    index = RefusingMany([0, 1], refuses, message)
    flow = find_many(Context(), "i", None, [0] * 30, Options(max_distance=13))
    found, _, _ = drive(flow, index)
    assert [len(each) for each in found] == [2] * 30
    assert len({each.plan for each in found}) == 1


def test_what_one_shard_refuses_is_asked_another_way():
    """One of several indices has a small window, or allows short lists only."""

    class Partly(Refusing):
        def search(self, body, index=None, scroll=None):
            if isinstance(super().search(body, index, scroll), dict):
                return super().search(body, index, scroll)
            failures = [{"reason": {"type": "illegal_argument_exception", "reason": self.message}}]
            shards = {"total": 2, "failed": 1, "failures": failures}
            return {"_shards": shards, "timed_out": False, "hits": {"hits": []}}

    for refuses, message in [
        (lambda body: "'size': 200" in body, "Result window is too large"),
        (lambda body: "'terms'" in body and len(body) > 18_000, LONG_LIST + " [index.max_terms_count]"),
    ]:
        found, _, _ = look(Partly([0, 1], refuses, message), max_distance=13, filter={"term": {"a": 1}})
        assert (len(found), found.complete) == (2, True)


@pytest.mark.parametrize("options", [{}, {"has_pit": False}])
def test_pages_shrink_to_the_smallest_window_of_several_indices(options):
    """The shards of the others answer, those of the one with the small window fail."""

    class Partly(Candidates):
        def search(self, body, index=None, scroll=None):
            answer = super().search(body, index, scroll)
            if body["size"] > 150:
                reason = {"type": "illegal_argument_exception", "reason": "Result window is too large"}
                answer["_shards"] = {"total": 2, "failed": 1, "failures": [{"reason": reason}]}
                answer["hits"]["hits"] = answer["hits"]["hits"][::2]
            return answer

    index = Partly([0] * 900, **options)
    found, _, _ = look(index)
    assert (len(found), found.complete) == (900, True)
    assert not index.open


def test_an_index_without_the_copy_for_scripts_is_asked_without_one():
    """A script on a field that is not mapped fails."""
    index = Refusing([0], lambda body: "'script'" in body, "No field found for [simhash.value]")
    index.mapping = build_mapping(value=False)
    _, calls, _ = look(index, max_distance=13)
    assert "'script'" not in str(calls)


def test_a_script_that_fails_on_a_shard_is_left_out():
    """The documents of that shard are asked for without it."""

    class Failing(Candidates):
        def search(self, body, index=None, scroll=None):
            answer = super().search(body, index, scroll)
            if "'script'" not in str(body):
                return answer
            failures = [{"reason": {"type": "script_exception", "reason": "runtime error"}}]
            return {**answer, "_shards": {"total": 2, "failed": 1, "failures": failures}}

    found, _, _ = look(Failing([0]), max_distance=13)
    assert (len(found), found.complete, found.plan.script) == (1, True, False)


def test_a_forced_plan_is_kept():
    """Whoever names a plan gets that one, or the server's refusal."""
    plan = make_plan(3, (0, 1))
    found, _, _ = look(Candidates([0]), plan=plan)
    assert found.plan == plan
    with pytest.raises(ServerError):
        look(Refusing([0], lambda body: "'script'" in body, "no script"), plan=make_plan(3, (0,), script=True))


@pytest.mark.parametrize("options", [{}, {"has_shard_doc": False}, {"has_pit": False}])
@pytest.mark.parametrize("failure", [ServerError(500, "boom"), KeyboardInterrupt(), ConnectionError("gone")])
def test_a_failure_at_any_request_leaves_nothing_open(options, failure):
    """Whatever step fails, the error comes out and the point in time or scroll is given back."""
    fresh = Candidates([0] * MANY, **options)
    _, calls, _ = look(fresh)
    steps_that_may_fail_silently = {"close_point_in_time", "clear_scroll"}
    for step, call in enumerate(calls):
        index = Candidates([0] * MANY, **options)
        # Settings that cannot be confirmed are read again, and the lookup is repeated.
        is_silent = call.api in steps_that_may_fail_silently or (call.api == "get_mapping" and step > 0)
        if is_silent and isinstance(failure, Exception):
            found, _, _ = look(index, fail_at=step, failure=failure)
            assert found.complete
            continue
        with pytest.raises(type(failure)):
            look(index, fail_at=step, failure=failure)
        if call.api not in steps_that_may_fail_silently:
            assert not index.open, (step, call.api)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({"_shards": {"total": 2, "failed": 1}}, "1 of 2 shards failed"),
        ({"_shards": {"total": 0, "failed": 0}}, "no shard was searched"),
        ({"_shards": WHOLE, "timed_out": True}, "timed out"),
        ({"_shards": WHOLE, "terminated_early": True}, "terminated early"),
        ({"_shards": WHOLE, "_clusters": {"total": 2, "skipped": 1}}, "1 of 2 clusters did not answer"),
    ],
)
def test_an_answer_that_is_not_whole_is_an_error(answer, words):
    """It carries what was found; a caller may ask for that, marked."""

    class Broken(Candidates):
        def search(self, **arguments):
            return {**super().search(**arguments), **answer}

    with pytest.raises(IncompleteSearchError, match=words) as caught:
        look(Broken([0]))
    assert len(caught.value.results) == 1
    found, _, _ = look(Broken([0]), on_incomplete="return")
    assert (len(found), found.complete) == (1, False)
    assert words in found.reasons[0]


def test_a_shard_that_fails_in_the_middle_of_paging_is_noticed():
    """The first pages were whole, a later one was not."""
    index = Candidates([0] * 12_000)
    index.shards = [WHOLE, WHOLE, {"total": 2, "failed": 1}, WHOLE]
    with pytest.raises(IncompleteSearchError, match="1 of 2 shards failed"):
        look(index)


def test_blocks_without_a_fingerprint_are_told():
    """Such a document cannot be judged, so the answer is not complete."""
    index = Candidates([0, 0])
    del index.hits[1]["fields"]
    with pytest.raises(IncompleteSearchError, match="no simhash.fingerprint"):
        look(index)


def test_a_mapping_without_our_fields_is_refused():
    """With what to do."""
    with pytest.raises(MappingError, match="backfill it"):
        look(Candidates([], mapping={"properties": {"body": {"type": "text"}}}))


def test_dynamic_mapping_is_refused():
    """Blocks mapped as text would lose near-duplicates silently."""
    text = {"type": "text", "fields": {"keyword": {"type": "keyword"}}}
    mapping = build_mapping()
    mapping["properties"]["simhash"]["properties"]["block2"] = text
    with pytest.raises(MappingError, match=r"simhash.block2' is mapped as 'text'"):
        look(Candidates([], mapping=mapping))


def test_another_scheme_is_refused_by_name():
    """Both are named."""
    with pytest.raises(SchemeMismatchError, match=r"keywords-1.*shingles-1") as caught:
        look(Candidates([], mapping=build_mapping(scheme="keywords")), context=Context(wanted="shingles-1"))
    assert (caught.value.index_scheme, caught.value.client_scheme) == ("keywords-1", "shingles-1")


def test_who_may_not_read_the_mapping_names_the_scheme():
    """And is told so."""

    class Closed(Candidates):
        def get_mapping(self, index):
            return ServerError(403, "not you")

    with pytest.raises(ServerError) as caught:
        look(Closed([0]))
    assert "name the scheme" in caught.value.__notes__[0]
    found, _, _ = look(Closed([0]), context=Context(wanted="shingles"))
    assert len(found) == 1


def test_other_clusters_want_a_scheme():
    """Their mappings cannot be read."""
    options = Options(max_distance=2)
    with pytest.raises(InvalidInputError, match="another cluster"):
        drive(find(Context(), "far:i", None, 0, options), Candidates([0]))
    found, calls, _ = drive(find(Context(wanted="shingles"), "far:i", None, 0, options), Candidates([0]))
    assert (len(found), [call.api for call in calls]) == (1, ["search"])


def test_many_keep_their_order_and_their_failures():
    """No text, no text at all, and a search that is refused."""

    class NotThere(Candidates):
        def msearch(self, body):
            answers = super().msearch(body)
            answers["responses"][1] = {"error": {"type": "t", "reason": "r"}, "status": 404}
            return answers

    found, _, _ = drive(find_many(Context(), "i", ["", "one text", None, "two texts"], None, Options()), NotThere([0]))
    assert [type(each).__name__ for each in found] == ["NearDups", "NearDups", "TypeError", "SearchFailedError"]
    assert found[3].status == 404


def test_a_text_that_cannot_be_fingerprinted_is_its_own_failure(monkeypatch):
    """The others of its batch have their answers."""
    from es_simhash.flows.lookup import find_many as module

    def one(text, scheme):
        if text == "bad":
            raise ValueError("bad")
        return 0

    monkeypatch.setattr(module, "compute_fingerprint", one)
    monkeypatch.setattr(module, "compute_fingerprints", lambda texts, scheme: [one(each, scheme) for each in texts])
    found, _, _ = drive(find_many(Context(), "i", ["a", "bad", "b"], None, Options()), Candidates([0]))
    assert [type(each).__name__ for each in found] == ["NearDups", "ValueError", "NearDups"]


def test_several_indices_are_asked_by_what_all_of_them_have():
    """The copy for scripts only if none lacks it, whichever is first."""
    for first, second in [(True, False), (False, True)]:
        answer = {"a": {"mappings": build_mapping(value=first)}, "b": {"mappings": build_mapping(value=second)}}
        assert agree(judge_mappings(answer, Context()), Context()).value is False


def test_a_multi_search_that_is_too_much_is_halved():
    """Refused whole for its size or for load, it is asked in parts; what is too much alone fails alone."""

    class Small(Candidates):
        def msearch(self, body):
            is_shared = "'wanted': [" in str(body)
            return super().msearch(body) if len(body) <= 4 and not is_shared else ServerError(413, "too large")

    found, calls, _ = drive(find_many(Context(), "i", None, [0, 1, 2, 3, 4], Options()), Small([0]))
    assert [len(each) for each in found] == [1, 1, 1, 1, 1]
    # The survey, all in one search, and one by one: 5, 2, 3, 1, 2.
    assert [call.api for call in calls].count("msearch") == 7

    class Full(Candidates):
        def msearch(self, body):
            return ServerError(429, "full")

    found, _, _ = drive(find_many(Context(), "i", None, [0, 1], Options()), Full([0]))
    assert [type(each).__name__ for each in found] == ["ServerError"] * 2


def test_a_pattern_that_matches_nothing_is_the_same_for_all_questions():
    """An error, or for whoever takes incomplete answers one that says so."""

    class Nowhere(Candidates):
        def get_mapping(self, index):
            return {}

    for flow in (find_many, find_of):
        rest = (None, [0]) if flow is find_many else ("1",)
        with pytest.raises(IncompleteSearchError, match="no index matches"):
            drive(flow(Context(), "x*", *rest, Options()), Nowhere([]))
        found, _, _ = drive(flow(Context(), "x*", *rest, Options(on_incomplete="return")), Nowhere([]))
        assert (found[0] if flow is find_many else found).complete is False


def test_what_was_refused_long_ago_is_tried_again():
    """A script that was refused for the load of the moment is not given up for ever."""
    now = [0.0]
    context = Context(clock=lambda: now[0])
    context.learn_limits("i", Limits(scripts=False))
    assert not context.limits("i").scripts
    now[0] = 601.0
    assert context.limits("i").scripts


def test_many_fingerprints():
    """The same by fingerprint; ``None``, as a text without features has it, finds nothing."""
    found, _, _ = drive(find_many(Context(), "i", None, [0, None, 2**64, "0"], Options()), Candidates([0]))
    assert [type(each).__name__ for each in found] == ["NearDups", "NearDups", "InvalidInputError", "TypeError"]
    assert [len(each) for each in found[:2]] == [1, 0]


def test_one_refused_for_load_is_searched_alone():
    """A full queue hits one element of the batch; the others are not sunk, and it gets its answer."""

    class Busy(Candidates):
        def msearch(self, body):
            answers = super().msearch(body)
            answers["responses"][0] = {"error": {"type": "rejected", "reason": "full"}, "status": 429}
            return answers

    options = Options(max_distance=3, plan=make_plan(3, (0,)))
    found, calls, _ = drive(find_many(Context(), "i", None, [0, 1], options), Busy([0]))
    assert [len(each) for each in found] == [1, 1]
    # Together, then each for itself, and then the refused one alone.
    assert [call.api for call in calls] == ["get_mapping", "msearch", "msearch", "search"]


class ById(Candidates):
    """Also finds documents by id, and their candidates by their stored block terms where that *works*."""

    works = True
    matched = tuple(f"simhash.block{i}" for i in range(4))

    def search(self, body, index=None, scroll=None):
        if "'path'" in str(body) and not self.works:
            return ServerError(400, "alias has more than one index")
        answer = super().search(body, index, scroll)
        if wanted := body["query"].get("ids", {}).get("values"):
            answer["hits"]["hits"] = [each for each in self.hits if each["_id"] in wanted]
        if "'path'" in str(body):
            for each in answer["hits"]["hits"]:
                each["matched_queries"] = self.matched
        return answer


class ByIdInTwoSteps(ById):
    """As behind an alias of several indices."""

    works = False


class ByIdOfAnotherVersion(ById):
    """The stored document, where it is found at all, has other terms than the one that searches see."""

    matched = ("simhash.block2",)


@pytest.mark.parametrize(("kind", "searches"), [(ById, 1), (ByIdInTwoSteps, 3), (ByIdOfAnotherVersion, 3)])
def test_of_a_document_leaves_it_out(kind, searches):
    """In one search where the server can look up the terms, also where fewer are wanted than there are."""
    context = Context()
    context.learn_stats("i", IndexStats())
    found, calls, _ = drive(find_of(context, "i", "0", Options(size=1)), kind([0, 1, 3]))
    assert [(each.id, each.distance) for each in found] == [("1", 1)]
    assert [call.api for call in calls] == ["get_mapping", *["search"] * searches]
    assert found.plan.max_distance == 3


def test_of_a_document_an_incomplete_answer_leaves_it_out():
    """Also from what the error carries."""
    index = ByIdInTwoSteps([0, 1])
    index.shards = [WHOLE, {"total": 2, "failed": 1}]
    with pytest.raises(IncompleteSearchError, match="the 1 found") as caught:
        drive(find_of(Context(), "i", "0", Options()), index)
    assert [each.id for each in caught.value.results] == ["1"]


@pytest.mark.parametrize("missing", [{"total": 2, "failed": 1}, {"total": 2, "successful": 1, "failed": 0}])
def test_of_a_document_whose_other_copies_may_differ(missing):
    """Copies of the document may be on shards that did not answer, even where one copy was found."""
    index = ByIdInTwoSteps([0, 1])
    index.shards = [missing, WHOLE]
    with pytest.raises(IncompleteSearchError):
        drive(find_of(Context(), "i", "0", Options()), index)
    index.shards = [missing, WHOLE]
    found, _, _ = drive(find_of(Context(), "i", "0", Options(on_incomplete="return")), index)
    assert ([each.id for each in found], found.complete) == (["1"], False)
    for hits in (index.hits, []):
        index.hits, index.shards = hits, [missing, WHOLE]
        with pytest.raises(IncompleteSearchError):
            drive(read_fingerprint(Context(), "i", "0"), index)
    index.shards = [missing, WHOLE]
    with pytest.raises(IncompleteSearchError):
        drive(find_of(Context(), "i", "0", Options(on_incomplete="return")), index)


def test_of_a_document_whose_text_may_be_another():
    """Verification compares with the text of every copy."""
    answer = {"hits": {"hits": [{"_index": "i", "_id": "0", "_source": {"text": "a"}}]}, "_shards": WHOLE}
    how = {"settings": IndexSettings(get_scheme(DEFAULT_SCHEME), text_fields=("text",)), "verification": Verification()}
    assert drive(fetch_text("i", "0", **how), lambda _: answer)[0] == "a"
    partial = answer | {"_shards": {"total": 2, "successful": 1, "failed": 0}}
    with pytest.raises(IncompleteSearchError):
        drive(fetch_text("i", "0", **how), lambda _: partial)


def test_of_a_document_beyond_the_terms_lookup():
    """At larger distances its fingerprint is asked for first."""
    found, _, _ = drive(find_of(Context(), "i", "0", Options(max_distance=9)), ById([0, 2**9 - 1, 2**10 - 1]))
    assert [each.distance for each in found] == [9]


@pytest.mark.parametrize("kind", [ById, ByIdInTwoSteps])
def test_of_a_document_that_is_not_there(kind):
    """Or that has no fingerprint: told apart."""

    class Absent(kind):
        def search(self, body, index=None, scroll=None):
            answer = super().search(body, index, scroll)
            if isinstance(answer, dict):
                answer["hits"]["hits"] = []
            return answer

    with pytest.raises(InvalidInputError, match="no document 'x'"):
        drive(find_of(Context(), "i", "x", Options()), Absent([]))
    index = kind([0])
    del index.hits[0]["fields"]
    with pytest.raises(InvalidInputError, match="no fingerprint"):
        drive(find_of(Context(), "i", "0", Options()), index)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"max_distance": -1}, InvalidInputError),
        ({"max_distance": 65}, InvalidInputError),
        ({"max_distance": 3.0}, TypeError),
        ({"size": 0}, InvalidInputError),
        ({"size": True}, TypeError),
        ({"filter": "lang:en"}, TypeError),
        ({"filter": [1]}, TypeError),
        ({"filter": {"term": {}, "range": {}}}, InvalidInputError),
        ({"exclude_ids": "7"}, TypeError),
        ({"exclude_ids": 7}, TypeError),
        ({"source": 1}, TypeError),
        ({"source": [1]}, TypeError),
        ({"on_incomplete": "ignore"}, InvalidInputError),
    ],
)
def test_wrong_options_are_refused(options, error):
    """Before any request."""
    with pytest.raises(error):
        Options(**options)


@pytest.mark.parametrize("plan", ["scan", 0, {}, []])
def test_what_is_no_plan_is_refused(plan):
    """It is neither ignored nor an error from inside."""
    with pytest.raises(TypeError, match="plan must be a LookupPlan"):
        drive(find(Context(), "news", None, 0, Options(max_distance=3, plan=plan)), Candidates([]))


@pytest.mark.parametrize(
    ("index", "error"), [("", InvalidInputError), ([], InvalidInputError), ("a,,b", InvalidInputError), (3, TypeError)]
)
def test_an_empty_name_is_not_every_index(index, error):
    """A server takes an empty name for all there are."""
    with pytest.raises(error):
        drive(find(Context(), index, None, 0, Options()), Candidates([]))


@pytest.mark.parametrize(
    ("text", "fingerprint", "error"),
    [("a", 1, TypeError), (None, None, TypeError), (3, None, TypeError), (None, 2**64, InvalidInputError)],
)
def test_exactly_one_question(text, fingerprint, error):
    """A text or a fingerprint."""
    with pytest.raises(error):
        drive(find(Context(), "i", text, fingerprint, Options()), Candidates([]))
