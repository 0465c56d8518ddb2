"""Lookups of a document that the index has."""

import pytest

from es_simhash import IncompleteSearchError
from es_simhash.lookup.find import find, read_fingerprint_of
from es_simhash.lookup.lookup_options import LookupOptions
from es_simhash.mapping.context import Context, IndexStats
from tests.transport.by_hand import drive, scripted
from tests.transport.fake_server import WHOLE, Candidates


class ById(Candidates):
    """Also finds documents by id."""

    def search(self, body, index=None, scroll=None):
        answer = super().search(body, index, scroll)
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


def test_of_a_document_an_incomplete_answer_leaves_it_out():
    """Also from what the error carries."""
    index = ById([0, 1])
    index.shards = [WHOLE, {"total": 2, "failed": 1}]
    with pytest.raises(IncompleteSearchError, match="the 1 found") as caught:
        drive(find(scripted(), "i", LookupOptions(), id="0"), index)
    assert [each.id for each in caught.value.results] == ["1"]


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


def test_of_a_document_at_a_larger_distance():
    found, _, _ = drive(find(scripted(), "i", LookupOptions(max_distance=9), id="0"), ById([0, 2**9 - 1, 2**10 - 1]))
    assert [each.distance for each in found] == [9]
