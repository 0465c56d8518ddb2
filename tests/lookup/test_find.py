"""A lookup: which pages it reads, and what it makes of answers that are not whole."""

import pytest

from es_simhash import DEFAULT_SCHEME, IncompleteSearchError, fingerprint_fields, get_scheme
from es_simhash.lookup.find import SAMPLE, index_stats, mean_length
from es_simhash.lookup.lookup_options import Sizes
from es_simhash.lookup.plan import make_plan
from es_simhash.mapping.context import Context
from tests.lookup.looking import look
from tests.servers.support import planted
from tests.transport.by_hand import ServerError, carry_out, scripted
from tests.transport.fake_server import WHOLE, Candidates, FakeServer

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


@pytest.mark.parametrize("options", [{}, {"has_shard_doc": False}, {"has_pit": False}])
def test_every_candidate_is_read_whatever_the_page(options):
    """Past one page, with or without a point in time: the last hit is found."""
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
        ({"_shards": {}}, "does not say which shards it covers"),
        ({"_shards": WHOLE, "timed_out": True}, "timed out"),
        ({"_shards": WHOLE, "terminated_early": True}, "terminated early"),
        ({"_shards": WHOLE, "_clusters": {"total": 2, "skipped": 1}}, "1 of 2 clusters did not answer"),
    ],
)
def test_an_answer_that_is_not_whole_is_an_error(answer, words):
    """It carries what was found, and why that may not be all."""

    class Broken(Candidates):
        def search(self, **arguments):
            return {**super().search(**arguments), **answer}

    with pytest.raises(IncompleteSearchError, match=words) as caught:
        look(Broken([0]))
    found = caught.value.results
    assert (len(found), found.complete) == (1, False)
    assert words in found.reasons[0]
    assert found.reasons == caught.value.reasons


def test_a_shard_that_fails_in_the_middle_of_paging_is_noticed():
    """The first pages were whole, a later one was not."""
    index = Candidates([0] * 12_000)
    index.shards = [WHOLE, WHOLE, {"total": 2, "failed": 1}, WHOLE]
    with pytest.raises(IncompleteSearchError, match="1 of 2 shards failed"):
        look(index)


def test_blocks_without_a_fingerprint_are_told():
    """Such a document cannot be judged, so the answer is not complete."""
    index = Candidates([0, 0])
    index.hits[1]["fields"] = {f"simhash.block{number}": ["0000"] for number in range(4)}
    with pytest.raises(IncompleteSearchError, match="no simhash.fingerprint"):
        look(index)


def stats_of(fingerprints):
    store = FakeServer({f"{n:05d}": fingerprint_fields(each) for n, each in enumerate(fingerprints)})
    return carry_out(index_stats(scripted(), "i"), store).result


def test_two_near_duplicates_in_the_sample_are_no_crowd():
    """Their block terms are in two documents of 40, and in two of the index: there is no skew."""
    fingerprints = planted(2_000)
    fingerprints[SAMPLE // 2] = fingerprints[0] ^ 1
    found = stats_of(fingerprints)
    assert found.documents == 2_000
    assert found.density < 2  # planted fingerprints have neighbours, too


def test_a_term_of_a_tenth_of_the_index_is_seen():
    """Whether the sample has many of its documents or two."""
    for hot in (range(0, 2_000, 10), [0, 1, *range(1_000, 1_198)]):
        fingerprints = planted(2_000)
        for n in hot:
            fingerprints[n] = fingerprints[n] >> 16 | 0xABCD << 48
        found = stats_of(fingerprints)
        share = sum(n < SAMPLE for n in hot) / SAMPLE
        assert found.density == pytest.approx((3 + share * 200 + 1 - share) / 4, rel=0.2)


def test_the_mean_length():
    """Of one list of five documents for two, and of three lists of one together."""
    assert mean_length(["a", "a", "b", "c", "d"], 8, {"a": 5}) == (5 + 5 + 1 + 1 + 1) / 5
    assert mean_length(["a", "a"], 9, {"a": 9}) == 9
