"""Lookups of passages by hand: which requests they make, and what they make of answers that are not whole."""

import pytest

from es_simhash import IncompleteSearchError, build_mapping, document_fields
from es_simhash.mapping.context import Context
from es_simhash.mapping.resolve import begin_anew
from es_simhash.passages.find_passages import find
from es_simhash.passages.lookup import PassageOptions
from tests.transport.by_hand import drive, scripted
from tests.transport.fake_server import WHOLE, FakeServer

NOTICE = " ".join(f"notice{n * n}" for n in range(40))
RARE = " ".join(f"rare{n * n}" for n in range(60))
SMALL_PAGES = {"FIRST_PAGE_DOCUMENTS": 2, "NEXT_PAGE_DOCUMENTS": 3}


def server_of(texts, **options):
    """Return a server whose documents have these texts, with their passages."""
    documents = {id_: {"body": text, **document_fields(text, passages=True)} for id_, text in texts.items()}
    return FakeServer(documents, mapping=build_mapping(text_field="body", passages=True), **options)


def many(count=29):
    return {f"{n}": f"{NOTICE} number {n}" for n in range(count)} | {"rare": f"{RARE} or not"}


@pytest.fixture
def limit(monkeypatch):
    """Sets the sizes of requests, by the names of the constants."""

    def set_sizes(**sizes):
        for name, size in sizes.items():
            monkeypatch.setattr(f"es_simhash.passages.find_passages.{name}", size)

    return set_sizes


def look(server, text=NOTICE, *, context=None):
    return drive(begin_anew(lambda: find(scripted(context), "i", PassageOptions(), text=text)), server)


def test_one_search_when_candidates_fit():
    """The mapping and the count of documents without passages once, then one search a lookup."""
    context, server = Context(), server_of(many())
    for apis in (["get_mapping", "search", "search"], ["search"]):
        found, calls, _ = look(server, RARE, context=context)
        assert ([each.id for each in found], [call.api for call in calls]) == (["rare"], apis)
    assert look(server, "...", context=context)[0].items == ()


def test_more_candidates_than_a_page(limit):
    """All are read in one view, which is given back; with a document's own text the document is left out."""
    server = server_of(many())
    limit(**SMALL_PAGES)
    found, calls, _ = look(server)
    assert (len(found), found.complete) == (29, True)
    assert [call.api for call in calls].count("open_point_in_time") == 1
    assert not server.open
    others, _, _ = drive(find(scripted(), "i", PassageOptions(size=4), id="3"), server)
    assert (len(others), "3" in {each.id for each in others}) == (4, False)


def test_too_many_candidates_are_counted(limit):
    """They are an error that says how many there are, with those of the first page."""
    server = server_of(many())
    limit(**SMALL_PAGES, MOST_CANDIDATES=20)
    with pytest.raises(
        IncompleteSearchError,
        match="30 documents share parts with the text: narrow the lookup with a filter",
    ) as caught:
        look(server, f"{RARE} {NOTICE}")
    results = caught.value.results
    assert (len(results), results.complete) == (2, False)
    assert not server.open


def test_an_answer_that_is_not_whole_is_an_error():
    """A shard that fails in any of the searches may have had a document; what was found is in the error."""
    searches = sum(call.api == "search" for call in look(server_of(many()))[1])
    for step in range(searches):
        server = server_of(many())
        server.shards = [WHOLE] * step + [{"total": 2, "successful": 1, "failed": 1}, WHOLE]
        with pytest.raises(IncompleteSearchError, match="1 of 2 shards failed"):
            look(server)
