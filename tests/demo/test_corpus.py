"""The demo's corpus: its documents, its edits, and the distances between them."""

import json
import re
import unicodedata
from collections import Counter
from dataclasses import asdict
from difflib import SequenceMatcher
from importlib.resources import files

import opencc
import pytest

from es_simhash.demo.judge import EDIT_KINDS, Status, judge, load_corpus
from es_simhash.hashing import fingerprints, get_scheme, hamming_distance
from es_simhash.texts.worddiff import Change, word_diff

CORPUS = load_corpus()
BY_ID = {document.id: document for document in CORPUS}
COPIES = [document for document in CORPUS if document.edit_of]


def copies(edit):
    """Return pairs of copy and original for one kind of edit."""
    return [(copy, BY_ID[copy.edit_of]) for copy in COPIES if copy.edit == edit]


def stripped(text):
    """Return the word characters of a text, folded for width and case."""
    return re.sub(r"[\W_]", "", unicodedata.normalize("NFKC", text).casefold())


class TestCorpus:
    """The corpus is well-formed and holds what it should."""

    def test_ids(self):
        """The corpus holds about a hundred documents with unique, readable ids."""
        assert 70 <= len(CORPUS) <= 110
        assert len(BY_ID) == len(CORPUS)
        for document in CORPUS:
            assert re.fullmatch(r"(news|listing|law|mail|post)-(zh|tw|ja|en|mixed)-\d\d(-[a-z0-9]+)?", document.id)

    def test_copies_and_originals(self):
        """Every copy names an original of its kind, and stands after it."""
        position = {document.id: index for index, document in enumerate(CORPUS)}
        for copy in COPIES:
            original = BY_ID[copy.edit_of]
            assert original.edit_of is None
            assert original.kind == copy.kind
            assert original.text != copy.text
            assert copy.id.startswith(f"{original.id}-")
            assert position[original.id] < position[copy.id]

    def test_coverage(self):
        """Every kind of edit, every language and every kind of document occurs."""
        assert {copy.edit for copy in COPIES} == set(EDIT_KINDS)
        assert {document.edit for document in CORPUS if not document.edit_of} == {None}
        assert {document.lang for document in CORPUS} == {"en", "ja", "zh-Hans", "zh-Hant", "mixed"}
        assert {document.kind for document in CORPUS} == {"law", "listing", "mail", "news", "post"}

    def test_expectations(self):
        """Every document says in one sentence what to expect of it."""
        for document in CORPUS:
            assert document.expect.endswith(".")
            assert len(document.expect) <= 200

    def test_lengths(self):
        """Originals are as long as texts of their kind are."""
        for document in CORPUS:
            if document.edit_of is None and document.lang != "en":
                shortest, longest = {
                    "news": (300, 900),
                    "law": (700, 3000),
                    "listing": (150, 550),
                    "mail": (150, 400),
                    "post": (10, 65),
                }[document.kind]
                assert shortest <= len(document.text) <= longest, document.id
            if document.lang == "en" and document.kind == "news" and document.edit_of is None:
                assert 150 <= len(document.text.split()) <= 350, document.id
        assert len(BY_ID["law-zh-01"].text) >= 1200

    def test_lines(self):
        """Lines are plain JSON objects with the documented fields, ended by a line feed alone."""
        raw = files("es_simhash.demo").joinpath("corpus.jsonl").read_bytes()
        assert b"\r" not in raw
        assert raw.endswith(b"}\n")
        lines = [json.loads(line) for line in raw.decode().split("\n") if line]
        assert lines == [asdict(document) for document in CORPUS]

    def test_source(self):
        """What goes into an index is the document without its id."""
        document = CORPUS[1]
        assert {"id": document.id, **document.source} == asdict(document)


class TestEdits:
    """Each copy is its original, edited as its `edit` says."""

    def test_punctuation(self):
        """A change of punctuation, width or case leaves the word characters alone."""
        for copy, original in copies("punctuation"):
            assert stripped(copy.text) == stripped(original.text)

    def test_typo(self):
        """Typos change a few characters."""
        for copy, original in copies("typo"):
            assert SequenceMatcher(None, original.text, copy.text, autojunk=False).ratio() > 0.95
            assert abs(len(copy.text) - len(original.text)) <= 3

    def test_boilerplate(self):
        """Boilerplate stands around the whole original."""
        for copy, original in copies("boilerplate"):
            assert original.text in copy.text

    def test_reordering(self):
        """Reordering keeps every word character, in another order."""
        for copy, original in copies("reordering"):
            assert Counter(stripped(copy.text)) == Counter(stripped(original.text))
            assert stripped(copy.text) != stripped(original.text)

    def test_truncation(self):
        """Truncation keeps the beginning and nothing else."""
        for copy, original in copies("truncation"):
            kept = SequenceMatcher(None, original.text, copy.text, autojunk=False).get_matching_blocks()[0]
            assert (kept.a, kept.b) == (0, 0)
            assert kept.size > 0.95 * (len(copy.text) - 10)
            assert kept.size < len(original.text)

    def test_script(self):
        """An exchange of scripts changes nothing but the script."""
        to_simplified = opencc.OpenCC("t2s")
        for copy, original in copies("script"):
            assert {copy.lang, original.lang} == {"zh-Hans", "zh-Hant"}
            assert to_simplified.convert(copy.text) == to_simplified.convert(original.text)

    def test_quoting(self):
        """A reply holds lines of the original behind quote marks."""
        for copy, original in copies("quoting"):
            quoted = [line.lstrip("> ") for line in copy.text.split("\n") if line.startswith(">")]
            assert [line for line in quoted if line in original.text.split("\n")]

    def test_numbers(self):
        """A change of numbers touches short places that hold figures."""
        for copy, original in copies("numbers"):
            diff = word_diff(original.text, copy.text, max_changes=20)
            changed = [segment.text for run in diff.excerpts for segment in run if segment.change is not Change.SAME]
            assert changed
            assert max(map(len, changed)) < 12
            assert any(unicodedata.numeric(char, None) is not None for char in "".join(changed))

    def test_revision(self):
        """A revision keeps most of the wording and adds an article."""
        for copy, original in copies("revision"):
            assert SequenceMatcher(None, original.text, copy.text, autojunk=False).ratio() > 0.85
            assert copy.text.count("\n") > original.text.count("\n")

    def test_translation(self):
        """A translation is in another language."""
        assert all(copy.lang != original.lang for copy, original in copies("translation"))

    def test_paraphrase(self):
        """A paraphrase is in the same language and shares no sentence."""
        for copy, original in copies("paraphrase"):
            assert copy.lang == original.lang
            sentences = re.split(r"[。.!?！？\n]", original.text)
            assert not [sentence for sentence in sentences if len(sentence) > 8 and sentence in copy.text]


class TestRealFingerprints:
    """What the demo promises to show holds with the fingerprints that it will be shown with."""

    @pytest.fixture(scope="class")
    @staticmethod
    def prints():
        """Return the fingerprint of each document by id."""
        return dict(zip(BY_ID, fingerprints([document.text for document in CORPUS]), strict=True))

    def report(self, prints, max_distance):
        """Return the report on an exhaustive comparison."""
        ids = list(BY_ID)
        pairs = [
            (a, b, distance)
            for index, a in enumerate(ids)
            for b in ids[:index]
            if (distance := hamming_distance(prints[a], prints[b])) <= max_distance
        ]
        return judge(CORPUS, pairs, fingerprints=prints, max_distance=max_distance)

    @pytest.mark.parametrize("max_distance", [0, 3, 8, 10])
    def test_unrelated_texts_stay_apart(self, prints, max_distance):
        """Neither unrelated texts nor translations come within 10 bits."""
        report = self.report(prints, max_distance)
        assert report.unexpected == ()
        assert report.count(Status.SURPRISE, Status.LOST) == 0

    def test_a_larger_max_distance_finds_more(self, prints):
        """Punctuation costs no bit, typos and reordering a few, another script too many."""
        found = {k: {s.edit: s.found for s in self.report(prints, k).by_edit()} for k in (0, 3, 10)}
        copies_of = Counter(copy.edit for copy in COPIES)
        assert found[0]["punctuation"] == copies_of["punctuation"]
        assert found[3]["typo"] >= 3
        assert found[10]["typo"] >= copies_of["typo"] - 2
        assert found[10]["reordering"] >= copies_of["reordering"] - 2
        assert found[10]["script"] == found[10]["translation"] == found[10]["paraphrase"] == 0

    def test_a_scheme_that_folds_scripts_finds_the_other_script(self):
        """What the corpus says of copies in the other Chinese script is so: `preprocess` t2s brings them to 0 bits."""
        scheme = get_scheme("shingles", preprocess=("t2s",))
        for pair in copies("script"):
            a, b = fingerprints([document.text for document in pair], scheme=scheme)
            assert hamming_distance(a, b) == 0
