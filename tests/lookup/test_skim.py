"""Many candidates: their fingerprints are read first, and then, in the same view, the documents that are near."""

import pytest

from es_simhash import IncompleteSearchError
from es_simhash.lookup.find_many import find_many
from es_simhash.lookup.lookup_options import LookupOptions, Sizes
from es_simhash.lookup.plan import make_plan
from es_simhash.mapping.context import Context, IndexStats
from tests.lookup.looking import look, planned
from tests.transport.by_hand import ServerError, drive, scripted
from tests.transport.fake_server import WHOLE, Candidates

FAR = 2**64 - 1
SCAN = {"max_distance": 8, "plan": make_plan(8, ())}  # of a million documents, as far as anyone knows


def searches(calls):
    """Return the bodies of the searches among *calls*."""
    return [call.arguments["body"] for call in calls if call.api == "search"]


def test_only_what_is_near_is_read_whole():
    """Candidates come without ids, what is near a second time with them, out of one view."""
    index = Candidates([0, FAR, 3, 3, FAR])
    found, calls, _ = look(index, source=["title"], filter={"term": {"lang": "zh"}}, exclude_ids=["9"], **SCAN)
    assert [(each.id, each.distance) for each in found] == [("0", 0), ("2", 2), ("3", 2)]
    assert (found.candidates, found.complete) == (5, True)
    assert not index.open
    first, second = searches(calls)
    assert first["stored_fields"] == "_none_"
    assert "_source" not in first
    assert second["_source"] == ["title"]
    assert {"terms": {"simhash.fingerprint": ["0" * 16, "0" * 15 + "3"]}} in second["query"]["bool"]["filter"]
    for body in (first, second):
        assert {"term": {"lang": "zh"}} in body["query"]["bool"]["filter"]
        assert body["query"]["bool"]["must_not"] == [{"ids": {"values": ["9"]}}]
        assert body["pit"]["id"] == "pit1"


def test_nothing_near_is_one_search():
    """There is nothing to read a second time."""
    found, calls, _ = look(Candidates([FAR] * 7), **SCAN)
    assert (len(found), found.candidates, len(searches(calls))) == (0, 7, 1)


def test_without_a_view_candidates_are_read_whole():
    """A scroll answers one search only."""
    index = Candidates([0, FAR, 3], has_pit=False)
    found, _, _ = look(index, **SCAN)
    assert [each.id for each in found] == ["0", "2"]
    assert (found.candidates, found.complete) == (3, True)
    assert not index.open


def test_a_view_without_the_order_of_shards():
    """As of OpenSearch before 3.3: it is read in the order of operations."""
    fingerprints = [*range(40), *[FAR ^ 1] * 10] + [2**40 - 1] * 6_000
    index = Candidates(fingerprints, has_shard_doc=False)
    context = Context()
    context.learn_stats("i", IndexStats(4_500))
    found, calls, _ = look(index, context=context, max_distance=40, plan=make_plan(40, ()))
    assert found.candidates == len(fingerprints)
    assert len(found) == len({each.id for each in found}) == 6_040
    assert "stored_fields" in searches(calls)[0]
    assert not index.open


def test_who_may_not_keep_anything_on_the_server_gets_what_one_page_holds():
    """And is told where that is not enough."""

    class SearchOnly(Candidates):
        def open_point_in_time(self, index, keep_alive):
            return ServerError(403, "no permissions")

        def search(self, body, index=None, scroll=None):
            return ServerError(403, "no permissions") if scroll else super().search(body, index, scroll)

    found, _, _ = look(SearchOnly([0, FAR]), **SCAN)
    assert ([each.id for each in found], found.complete) == (["0"], True)
    with pytest.raises(ServerError, match="no permissions"):
        look(SearchOnly([0] * 12_000), **SCAN)


@pytest.mark.parametrize("candidates", [700, 4_500])
def test_one_page_needs_no_order(candidates):
    """Servers find hits faster in no order; where one page does not hold them after all, they are read in order."""
    found, calls, _ = look(Candidates([FAR] * candidates + [0]), max_distance=12, plan=make_plan(12, (0, 3)))
    assert [each.id for each in found] == [str(candidates)]
    assert found.candidates == candidates + 1
    skimming = [body for body in searches(calls) if "stored_fields" in body]
    assert [("sort" in body, body["size"]) for body in skimming] == (
        [(False, 4_000)] if candidates < 4_000 else [(False, 4_000), (True, 4_000), (True, 4_000)]
    )


def test_of_the_nearest_few_no_more_is_read_than_is_wanted():
    """Of those at the same distance any will do: a hundred copies of a text are not read for one."""
    found, calls, _ = look(Candidates([0, 4] + [1] * 100 + [3, 7]), size=2, **SCAN)
    assert [(each.id, each.distance) for each in found] == [("0", 0), ("1", 1)]
    nearest, next_nearest = searches(calls)[1:]
    assert nearest["query"]["bool"]["filter"] == [{"terms": {"simhash.fingerprint": ["0" * 16]}}]
    assert next_nearest["query"]["bool"]["filter"] == [
        {"terms": {"simhash.fingerprint": ["0" * 15 + "1", "0" * 15 + "4"]}}
    ]
    assert next_nearest["size"] == 2
    found, calls, _ = look(Candidates([0, 1, 2, 3]), size=3, **SCAN)
    assert [each.distance for each in found] == [0, 1, 1]
    assert len(searches(calls)) == 2


@pytest.mark.parametrize(("documents", "skimmed"), [(50_000, True), (2_000_000, False)])
def test_few_of_very_many_are_read_in_order_of_clauses_matched(documents, skimmed):
    """Reading can then stop early, which skimming cannot."""
    context = Context()
    context.learn_stats("i", IndexStats(documents))
    plan = make_plan(12, ((0, 3),) * 3 + ((4,),))  # lets through 2 and 70 thousand of these

    class Ranking(Candidates):
        def search(self, body, index=None, scroll=None):
            return super().search({**body, "query": {"bool": {}}}, index, scroll)

    index = Ranking([0])
    index.hits[0]["_score"] = 8.0
    found, calls, _ = look(index, context=context, size=1, max_distance=12, plan=plan)
    assert [each.id for each in found] == ["0"]
    assert any("stored_fields" in body for body in searches(calls)) == skimmed
    assert ("must" in searches(calls)[0]["query"]["bool"]) != skimmed


def test_near_fingerprints_are_asked_for_in_parts():
    """A list of terms may be too long for a server."""
    found, calls, _ = look(Candidates([0, 1, 2, 4, 3, 3]), sizes=Sizes(fingerprints=2), **SCAN)
    assert sorted(each.id for each in found) == ["0", "1", "2", "3", "4", "5"]
    assert len(searches(calls)) == 1 + 3


class Losing(Candidates):
    """Does not find by their fingerprints what *lost* says, as where that field is not searchable."""

    lost = ("1",)

    def search(self, body, index=None, scroll=None):
        answer = super().search(body, index, scroll)
        if "'terms'" in str(body):
            answer["hits"]["hits"] = [each for each in answer["hits"]["hits"] if each["_id"] not in self.lost]
        return answer


def test_what_the_second_pass_does_not_find_is_read_all_the_same():
    """The first pass has counted it."""
    found, calls, _ = look(Losing([0, 0, FAR]), **SCAN)
    assert [each.id for each in found] == ["0", "1"]
    assert (found.candidates, found.complete) == (3, True)
    assert len(searches(calls)) == 3
    nearest, _, _ = look(Losing([0, 0, 1]), size=2, **SCAN)
    assert [each.id for each in nearest] == ["0", "1"]


def test_a_candidate_without_a_fingerprint_is_named():
    """It is read again, to be named, whatever the plan: its block terms say that it is near."""
    index = Candidates([0, 0])
    index.hits[1]["fields"] = {f"simhash.block{number}": ["0000"] for number in range(4)}
    for how in ({"max_distance": 12, "plan": make_plan(12, (0, 3))}, SCAN):
        with pytest.raises(IncompleteSearchError, match=r"document '1' of 'i' .* no simhash.fingerprint") as caught:
            look(index, **how)
        assert [each.id for each in caught.value.results] == ["0"]


def test_a_document_with_several_fingerprints_counts_with_the_nearest():
    """As it does on a single page."""
    index = Candidates([FAR])
    index.hits[0]["fields"]["simhash.fingerprint"] += ["0" * 15 + "3", "0" * 15 + "1"]

    class Several(Candidates):
        def search(self, body, index=None, scroll=None):
            return super().search({**body, "query": {}}, index, scroll)

    several = Several([])
    several.hits = index.hits
    found, _, _ = look(several, **SCAN)
    assert [(each.id, each.distance) for each in found] == [("0", 1)]


def test_many_lookups_of_many_candidates_do_not_fill_the_memory():
    """Each is read in a view of its own, and one that fails does not sink the others."""

    class Failing(Candidates):
        failures = 1

        def search(self, body, index=None, scroll=None):
            if self.failures:
                self.failures = 0
                return ServerError(500, "no")
            return super().search(body, index, scroll)

    def flow():
        context = Context()
        context.learn_stats("i", IndexStats(1_000_000))
        return find_many(scripted(context), "i", None, [0, 1], LookupOptions(max_distance=8))

    with planned(SCAN["plan"]):
        found, calls, _ = drive(flow(), Failing([0, FAR]))
    assert isinstance(found[0], ServerError)
    assert [each.id for each in found[1]] == ["0"]
    assert "msearch" not in [call.api for call in calls]
    with planned(SCAN["plan"]), pytest.raises(ConnectionError):  # no matter of one lookup
        drive(flow(), Candidates([0]), fail_at=1, failure=ConnectionError())


@pytest.mark.parametrize("failure", [ServerError(500, "no"), KeyboardInterrupt()], ids=["server", "ctrl-c"])
def test_a_failure_at_any_request_leaves_nothing_open(failure):
    """The view is closed whatever happens in it."""
    for fail_at in range(1, 5):
        index = Candidates([0, 3, FAR])
        try:
            found, _, _ = look(index, fail_at=fail_at, failure=failure, **SCAN)
        except (ServerError, KeyboardInterrupt):
            pass
        else:
            assert len(found) == 2  # a view that could not be closed expires
        assert not index.open or fail_at == 4


def test_a_shard_that_fails_in_the_second_pass_is_noticed():
    """Some of what is near may not have been read."""
    index = Candidates([0, 3])
    index.shards = [WHOLE, {"total": 2, "failed": 1, "failures": [{"reason": {"type": "x", "reason": "y"}}]}]
    with pytest.raises(IncompleteSearchError, match="1 of 2 shards failed"):
        look(index, **SCAN)
