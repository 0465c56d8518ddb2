"""Golden terms of passages, and results as tables."""

import json
from pathlib import Path

import pytest

from es_simhash import InvalidInputError, MappingError, Overlap, Overlaps, Passage, document_fields, fingerprint_fields
from es_simhash.hashing import get_scheme
from es_simhash.hashing.batches import NO_LETTERS
from es_simhash.hashing.pool import FingerprintPool
from es_simhash.hashing.winnowing import passage_terms
from es_simhash.mapping.meta import IndexSettings, build_settings, marker_name

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
    from es_simhash import get_scheme

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
