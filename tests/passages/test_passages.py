"""Golden terms of passages, results as tables, and lookups by hand: their requests, and answers that are not whole."""

import json
from pathlib import Path

import pytest

from es_simhash import (
    IncompleteSearchError,
    InvalidInputError,
    MappingError,
    Overlap,
    Overlaps,
    Passage,
    build_mapping,
    document_fields,
    fingerprint_fields,
)
from es_simhash.hashing import get_scheme
from es_simhash.hashing.batches import NO_LETTERS
from es_simhash.hashing.pool import FingerprintPool
from es_simhash.hashing.winnowing import passage_terms
from es_simhash.mapping.context import Context
from es_simhash.mapping.meta import IndexSettings, build_settings, marker_name
from es_simhash.mapping.resolve import begin_anew
from es_simhash.passages.find_passages import find
from es_simhash.passages.lookup import PassageOptions
from tests.transport.by_hand import drive, scripted
from tests.transport.fake_server import WHOLE, FakeServer

VECTORS = json.loads((Path(__file__).parents[1] / "passage_vectors.json").read_text(encoding="utf-8"))


def test_golden_terms():
    """The terms of version 1 never change: a change here is a new version, never a new vector."""
    assert dict(zip(VECTORS["texts"], passage_terms(list(VECTORS["texts"].values())), strict=True)) == VECTORS["terms"]


def test_the_record_of_passages():
    """The mapping records the parameters; a record that this version does not know is refused."""
    settings = build_settings(text_field="body", passages=True)
    recorded = settings.to_dict()
    assert recorded["passages"] == {
        "scheme": "passages-2",
        "guarantee": 100,
        "gram": 25,
        "hash": "polynomial-64",
        "bits": 36,
        "state": "complete",
    }
    assert IndexSettings.from_dict(recorded) == settings
    assert marker_name(settings) != marker_name(build_settings(text_field="body"))
    for wrong in ({**recorded["passages"], "gram": 30}, {**recorded["passages"], "state": "new"}, {}):
        with pytest.raises(MappingError, match="cannot read"):
            IndexSettings.from_dict({**recorded, "passages": wrong})


def test_a_scheme_that_changes_texts_has_no_passages():
    """Passages are places in the original text."""
    pytest.importorskip("opencc")
    with pytest.raises(InvalidInputError, match="passages are places in the original text"):
        build_settings(scheme=get_scheme("shingles", preprocess=("t2s",)), passages=True)


def test_fields_of_a_document():
    """A text without features in its scheme has passages too."""
    assert document_fields("...", passages=True) == {}
    assert set(document_fields("bridge", passages=True)["simhash"]) > {"fingerprint", "passages"}
    assert fingerprint_fields(None, passages=["------"]) == {"simhash": {"passages": ["------"]}}


def test_a_fingerprint_without_letters():
    """A text may have a fingerprint and no terms: its document must not look unfilled, or lookups are refused."""
    made = document_fields("___", scheme="keywords", passages=True)
    assert made["simhash"]["passages"] == [NO_LETTERS]
    with FingerprintPool(get_scheme("keywords"), passages=True) as pool:
        terms = [each.passages for each in pool.compute(["___", "\u3002", "台风登陆"])]
    assert terms[:2] == [[NO_LETTERS], []]
    assert NO_LETTERS not in terms[2]


def test_terms_are_a_list():
    """One string is not taken for its characters."""
    with pytest.raises(InvalidInputError, match="passages"):
        fingerprint_fields(7, passages="------")


def test_rows():
    """A document has one row for each passage, or one without."""
    passages = Passage(0, 9, 4, 13, "a passage"), Passage(20, 30, 40, 50, "a longer one")
    one = Overlap("a", "i", 1.0, 0.5, 0.5, passages, source={"title": "A title"})
    rows = Overlaps((one, Overlap("b", "i", 0.9, 0.1, 0.1))).to_dicts()
    assert [(row["id"], row["start"], row["other_end"], row["text"], row.get("source.title")) for row in rows] == [
        ("a", 0, 13, "a passage", "A title"),
        ("a", 20, 50, "a longer one", "A title"),
        ("b", None, None, None, None),
    ]
    places = {"start": 20, "end": 30, "other_start": 40, "other_end": 50}
    assert one.to_dict()["passages"][1] == places | {"text": "a longer one"}
    assert (one.to_dict()["source"], "source" in Overlap("b", "i", 0.9, 0.1, 0.1).to_dict()) == (
        {"title": "A title"},
        False,
    )
    shown = Overlaps((one,))._repr_html_()
    assert "A title" in shown
    assert "a longer one" in shown


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
