"""A lookup: which pages it reads, what it makes of answers that are not whole, what is refused before it searches."""

import copy
import random

import pytest

from es_simhash import (
    DEFAULT_SCHEME,
    IncompleteSearchError,
    InvalidInputError,
    MappingError,
    NearDup,
    NearDups,
    build_mapping,
    fingerprint_fields,
    get_scheme,
    rescore,
    to_hex,
)
from es_simhash.lookup.documents import COPIES_OF_ID, read_fingerprint_of
from es_simhash.lookup.find import find
from es_simhash.lookup.find_many import find_many
from es_simhash.lookup.lookup_options import LookupOptions, Sizes
from es_simhash.lookup.near_dups import cells_of
from es_simhash.lookup.plan import SAMPLE_DOCUMENTS, LookupPlan, index_stats
from es_simhash.mapping.context import Context, IndexStats
from tests.lookup.looking import look, planned
from tests.servers.support import planted
from tests.transport.by_hand import ServerError, carry_out, drive, scripted
from tests.transport.fake_server import WHOLE, Candidates, FakeServer

PAGES = Sizes(first_page=20, next_page=25, largest_page=30)
# More candidates than the first page, and than one page of those that follow.
MANY = 78
FAR = 2**64 - 1
SCAN = {"max_distance": 8, "plan": LookupPlan(8)}  # of a million documents, as far as anyone knows


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


@pytest.mark.parametrize("options", [{}, {"has_shard_doc": False}])
def test_every_candidate_is_read_whatever_the_page(options):
    """Past one page, in the order of shards, or of operations as of OpenSearch before 3.3: the last hit is found."""
    index = Candidates([0] * MANY, **options)
    found, _, _ = look(index, sizes=PAGES)
    assert len(found) == found.candidates == MANY
    assert found.complete
    assert not index.open


def test_the_nearest_are_kept_when_fewer_are_wanted():
    """``size`` cuts after all candidates were rescored."""
    index = Candidates([3] * MANY + [0])
    found, _, _ = look(index, size=1, sizes=PAGES)
    assert [each.distance for each in found] == [0]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({"_shards": {"total": 2, "failed": 1}}, "1 of 2 shards failed"),
        ({"_shards": {"total": 0, "failed": 0}}, "no shard was searched"),
        ({"_shards": {}}, "does not say which shards it covers"),
        ({"_shards": WHOLE, "timed_out": True}, "timed out"),
        ({"_shards": WHOLE, "terminated_early": True}, "terminated early"),
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
    index = Candidates([0] * MANY)
    index.shards = [WHOLE, WHOLE, {"total": 2, "failed": 1}, WHOLE]
    with pytest.raises(IncompleteSearchError, match="1 of 2 shards failed"):
        look(index, sizes=PAGES)


def stats_of(fingerprints):
    store = FakeServer({f"{n:05d}": fingerprint_fields(each) for n, each in enumerate(fingerprints)})
    return carry_out(index_stats(scripted(), "i"), store).result


def test_a_term_of_a_tenth_of_the_index_is_seen():
    """Whether the sample has many of its documents or two."""
    for hot in (range(0, 2_000, 10), [0, 1, *range(1_000, 1_198)]):
        fingerprints = planted(2_000)
        for n in hot:
            fingerprints[n] = fingerprints[n] >> 16 | 0xABCD << 48
        found = stats_of(fingerprints)
        share = sum(n < SAMPLE_DOCUMENTS for n in hot) / SAMPLE_DOCUMENTS
        assert found.density == pytest.approx((3 + share * 200 + 1 - share) / 4, rel=0.2)


def test_a_candidate_without_a_fingerprint_is_named():
    """It is read again, to be named, whatever the plan: its block terms say that it is near."""
    index = Candidates([0, 0])
    index.hits[1]["fields"] = {f"simhash.block{number}": ["0000"] for number in range(4)}
    for how in ({"max_distance": 12, "plan": LookupPlan(12, 16)}, SCAN):
        with pytest.raises(IncompleteSearchError, match=r"document '1' of 'i' .* no simhash.fingerprint") as caught:
            look(index, **how)
        assert [each.id for each in caught.value.results] == ["0"]


def test_many_lookups_of_many_candidates_do_not_fill_the_memory():
    """Each is read in a view of its own, and one that fails does not sink the others."""

    class Failing(Candidates):
        failures = 1

        def search(self, body, index=None):
            if self.failures:
                self.failures = 0
                return ServerError(500, "no")
            return super().search(body, index)

    def flow():
        context = Context()
        context.stats.learn("i", IndexStats(1_000_000))
        return find_many(scripted(context), "i", None, [0, 1], LookupOptions(max_distance=8))

    with planned(SCAN["plan"]):
        found, calls, _ = drive(flow(), Failing([0, FAR]))
    assert isinstance(found[0], ServerError)
    assert [each.id for each in found[1]] == ["0"]
    assert "msearch" not in [call.api for call in calls]
    with planned(SCAN["plan"]), pytest.raises(ConnectionError):  # no matter of one lookup
        drive(flow(), Candidates([0]), fail_at=1, failure=ConnectionError())


class ById(Candidates):
    """Also finds documents by id."""

    def search(self, body, index=None):
        answer = super().search(body, index)
        if wanted := body["query"].get("ids", {}).get("values"):
            answer["hits"]["hits"] = [each for each in self.hits if each["_id"] in wanted]
        return answer


def test_of_a_document_leaves_it_out():
    """In two searches, also where fewer are wanted than there are."""
    context = Context()
    context.stats.learn("i", IndexStats())
    found, calls, _ = drive(find(scripted(context), "i", LookupOptions(size=1), id="0"), ById([0, 1, 3]))
    assert [(each.id, each.distance) for each in found] == [("1", 1)]
    assert [call.api for call in calls] == ["get_mapping", "search", "search"]
    assert found.plan.max_distance == 3


def test_a_text_without_features_finds_nothing():
    """Not even other texts without any; the answer is whole."""
    for text in ("…!?", "\ud800"):
        found, calls, _ = drive(find(scripted(), "i", LookupOptions(), text=text), Candidates([0]))
        assert (len(found), found.complete, [call.api for call in calls]) == (0, True, ["get_mapping"])


def test_an_id_of_very_many_documents_is_refused():
    """Nobody knows whether the others have the same fingerprint."""
    index = ById([0])
    index.hits = [{**index.hits[0], "_index": f"i{number}"} for number in range(COPIES_OF_ID)]
    with pytest.raises(InvalidInputError, match="1000 documents or more have the id '0': name one index"):
        drive(find(scripted(), "i", LookupOptions(), id="0"), index)


@pytest.mark.parametrize("missing", [{"total": 2, "failed": 1}, {"total": 2, "successful": 1, "failed": 0}])
def test_of_a_document_whose_other_copies_may_differ(missing):
    """Copies of the document may be on shards that did not answer, even where one copy was found."""
    index = ById([0, 1])
    index.shards = [missing, WHOLE]
    with pytest.raises(IncompleteSearchError) as caught:
        drive(find(scripted(), "i", LookupOptions(), id="0"), index)
    assert [each.id for each in caught.value.results] == ["1"]
    for hits in (index.hits, []):
        index.hits, index.shards = hits, [missing, WHOLE]
        with pytest.raises(IncompleteSearchError):
            drive(read_fingerprint_of(scripted(), "i", "0"), index)
    index.shards = [missing, WHOLE]
    with pytest.raises(IncompleteSearchError):
        drive(find(scripted(), "i", LookupOptions(), id="0"), index)


def hit(id_, *fingerprints, index="i", **more):
    return {"_index": index, "_id": id_, "fields": {"simhash.fingerprint": [to_hex(f) for f in fingerprints]}, **more}


RESCORED = [
    ([hit("2", 1), hit("10", 1), hit("3", 1, index="a"), hit("9", 0), hit("4", 15)], {}, "9 3 10 2"),
    ([hit("a", 0), hit("b", FAR)], {"max_distance": 64}, "a b"),
    ([hit("a", 0), hit("b", FAR)], {"max_distance": 63}, "a"),
    ([hit("a", 1), hit("a", 1), hit("a", 1, index="j")], {}, "a a"),
    ([hit(str(n), 2**n - 1) for n in range(4)], {"size": 2}, "0 1"),
    ([hit("a", FAR, 1, 7)], {"max_distance": 1}, "a"),
]


@pytest.mark.parametrize(("hits", "how", "ids"), RESCORED)
def test_rescore(hits, how, ids):
    """Each document once, the nearest first, then by index and id; the hits are not changed."""
    before = copy.deepcopy(hits)
    for seed in range(3):
        random.Random(seed).shuffle(hits)
        assert " ".join(found.id for found in rescore(hits, 0, **how)) == ids
    assert sorted(hits, key=str) == sorted(before, key=str)


@pytest.mark.parametrize(
    ("given", "how", "error", "words"),
    [
        (hit("1", 0), {"prefix": "h"}, MappingError, r"no h\.fingerprint"),
        ({}, {}, MappingError, "docvalue_fields"),
        ({"fields": {}}, {}, MappingError, "docvalue_fields"),
        ({"fields": {"simhash.fingerprint": []}}, {}, MappingError, "docvalue_fields"),
        ({"fields": {"simhash.fingerprint": ["not hex"]}}, {}, MappingError, "docvalue_fields"),
        (hit("1", 0), {"max_distance": 65}, InvalidInputError, "65"),
        (hit("1", 0), {"max_distance": "3"}, TypeError, "max_distance"),
    ],
)
def test_what_cannot_be_rescored(given, how, error, words):
    """A hit without a fingerprint under this prefix, which must not be lost, and bounds that are none."""
    with pytest.raises(error, match=words):
        rescore([{"_index": "i", "_id": "1", **given}], 0, **how)


def test_near_dups_are_a_frozen_sequence():
    """Indexed, sliced, counted, compared; and plain values for JSON."""
    items = (NearDup("a", "i", 0, 1), NearDup("b", "i", 2, 2, {"t": 1}))
    found = NearDups(items)
    assert (found[0], found[-1], found[:1], list(found), len(found)) == (items[0], items[1], items[:1], [*items], 2)
    assert items[1] in found
    assert found == NearDups(items)
    assert not NearDups()
    with pytest.raises(AttributeError):
        found.complete = False
    assert items[0].to_dict() == {"id": "a", "index": "i", "distance": 0, "fingerprint": "0000000000000001"}
    assert items[1].to_dict()["source"] == {"t": 1}
    assert cells_of(NearDup("a", "i", 0, 1, numbers="only"))["numbers"] == "only these differ"


def test_the_mapping_is_asked_for_again_after_a_minute():
    """Somebody may have replaced the index."""
    now = [0.0]
    context = Context(clock=lambda: now[0])
    look(Candidates([]), context=context)
    now[0] = 61.0
    _, calls, _ = look(Candidates([]), context=context)
    assert calls[0].api == "get_mapping"


def test_a_mapping_without_our_fields_is_refused():
    """With what to do."""
    with pytest.raises(MappingError, match="fill them with setup"):
        look(Candidates([], mapping={"properties": {"body": {"type": "text"}}}))


def test_dynamic_mapping_is_refused():
    """Blocks mapped as text would lose near-duplicates silently."""
    text = {"type": "text", "fields": {"keyword": {"type": "keyword"}}}
    mapping = build_mapping()
    mapping["properties"]["simhash"]["properties"]["block2"] = text
    with pytest.raises(MappingError, match=r"simhash.block2' is mapped as 'text'"):
        look(Candidates([], mapping=mapping))


def test_who_may_not_read_the_mapping_names_the_scheme():
    """And is told so."""

    class Closed(Candidates):
        def get_mapping(self, index):
            return ServerError(403, "not you")

    with pytest.raises(ServerError) as caught:
        look(Closed([0]))
    assert "give scheme" in caught.value.__notes__[0]
    found, _, _ = look(Closed([0]), context=Context(wanted="shingles"))
    assert len(found) == 1


@pytest.mark.parametrize("index", ["far:i", "i,far:i", ["i", "far:i"]])
def test_an_index_on_another_cluster_is_refused(index):
    """Its mapping cannot be read, so nothing says by which rule it is searched."""
    flow = find(scripted(Context(wanted="shingles")), index, LookupOptions(), fingerprint=0)
    with pytest.raises(InvalidInputError, match="'far:i' is on another cluster"):
        drive(flow, Candidates([0]))


@pytest.mark.parametrize(
    ("text", "fingerprint", "error"),
    [("a", 1, TypeError), (None, None, TypeError), (3, None, TypeError), (None, 2**64, InvalidInputError)],
)
def test_exactly_one_question(text, fingerprint, error):
    """A text or a fingerprint."""
    with pytest.raises(error):
        drive(find(scripted(), "i", LookupOptions(), text=text, fingerprint=fingerprint), Candidates([]))
