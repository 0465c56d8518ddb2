"""The demo: its corpus and the edits in it, what the report says of any outcome of a search, and how it is shown."""

import io
import json
import re
import unicodedata
from collections import Counter
from dataclasses import asdict, replace
from difflib import SequenceMatcher
from importlib.resources import files

import opencc
import pytest
from rich.console import Console

from es_simhash.demo.known_copies import EDIT_KINDS, FoundPair, Member, Status, judge, load_corpus
from es_simhash.demo.render import diff_panel, edits_table, groups_table, summary_text, verdicts_table
from es_simhash.errors import InvalidInputError
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


def rendered(renderable, *, width=100):
    """Return a renderable as the plain text that a terminal without colour would show."""
    console = Console(file=io.StringIO(), width=width, color_system=None)
    console.print(renderable)
    return console.file.getvalue()


def far_fingerprints(distance):
    """Return fingerprints with every copy *distance* bits from its original, and families far from one another."""
    originals = [document.id for document in CORPUS if document.edit_of is None]
    base = {document_id: (index * 0x9E3779B97F4A7C15) % 2**64 for index, document_id in enumerate(originals)}
    return {
        document.id: base[document.family] ^ ((1 << distance) - 1 if document.edit_of else 0) for document in CORPUS
    }


def only_verdict(report, document_id):
    """Return the verdict on one copy."""
    (verdict,) = [verdict for verdict in report.verdicts if verdict.document.id == document_id]
    return verdict


class TestJudge:
    """Any outcome of a search is told for what it is."""

    def test_far_copies_are_missed_or_apart(self):
        """A copy that is far away and not reported is missed, or rightly apart, never lost."""
        report = judge(CORPUS, [], fingerprints=far_fingerprints(9), max_distance=8)
        assert len(report.verdicts) == len(COPIES)
        assert report.groups == report.unexpected == ()
        for verdict in report.verdicts:
            assert verdict.status == (Status.MISSED if EDIT_KINDS[verdict.document.edit].is_same_text else Status.APART)
            assert verdict.distance == 9
            assert verdict.reason == f"farther than max_distance 8. {verdict.document.expect}"

    def test_near_copies_not_reported_are_lost(self):
        """A copy within max_distance that was not reported is a fault of the search, and is called so."""
        report = judge(CORPUS, [], fingerprints=far_fingerprints(8), max_distance=8)
        assert {verdict.status for verdict in report.verdicts} == {Status.LOST}
        assert "LOST" in summary_text(report).plain

    @pytest.mark.parametrize("turned", [False, True])
    def test_a_pair_makes_a_group(self, turned):
        """A pair counts in either direction and makes a group."""
        pair = ("news-zh-01", "news-zh-01-typo", 3)
        pairs = [(pair[1], pair[0], 3)] if turned else [pair]
        report = judge(CORPUS, pairs, fingerprints=far_fingerprints(9), max_distance=8)
        verdict = only_verdict(report, "news-zh-01-typo")
        assert (verdict.status, verdict.distance) == (Status.FOUND, 3)
        (group,) = report.groups
        assert group.canonical is BY_ID["news-zh-01"]
        assert group.members == (Member(BY_ID["news-zh-01-typo"], 3),)
        assert report.unexpected == ()

    def test_a_document_is_not_its_own_near_duplicate(self):
        """A document found by its own text is passed over."""
        pairs = [(document.id, document.id, 0) for document in CORPUS]
        report = judge(CORPUS, pairs, fingerprints=far_fingerprints(9), max_distance=8)
        assert report.groups == report.unexpected == ()

    def test_a_copy_joined_through_another_is_linked(self):
        """A copy in its original's group through another copy is linked, not missed."""
        pairs = [("news-zh-01", "news-zh-01-typo", 3), ("news-zh-01-reprint", "news-zh-01-typo", 4)]
        report = judge(CORPUS, pairs, fingerprints=far_fingerprints(9), max_distance=8)
        assert only_verdict(report, "news-zh-01-reprint").status is Status.LINKED
        members = [(member.document.id, member.distance) for member in report.groups[0].members]
        assert members == [("news-zh-01-typo", 3), ("news-zh-01-reprint", 9)]

    def test_a_group_without_its_original(self):
        """The first copy stands for a group that the original is not in, and distances are counted from it."""
        pairs = [("mail-en-01-thread", "mail-en-01-reply", 2)]
        (group,) = judge(CORPUS, pairs, fingerprints=far_fingerprints(9), max_distance=8).groups
        assert group.canonical is BY_ID["mail-en-01-reply"]
        assert group.members == (Member(BY_ID["mail-en-01-thread"], 2),)

    def test_a_translation_reported_is_a_surprise(self):
        """A translation or paraphrase that is reported, or grouped, is a surprise."""
        pairs = [
            ("news-zh-01", "news-zh-01-english", 3),
            ("news-zh-01-retold", "news-zh-01-typo", 3),
            ("news-zh-01-typo", "news-zh-01", 3),
        ]
        report = judge(CORPUS, pairs, fingerprints=far_fingerprints(9), max_distance=8)
        assert only_verdict(report, "news-zh-01-english").status is Status.SURPRISE
        assert only_verdict(report, "news-zh-01-retold").status is Status.SURPRISE

    def test_pairs_across_originals_are_unexpected(self):
        """Pairs across originals are listed once, the nearest first."""
        pairs = [("news-ja-01", "news-en-01", 5), ("news-en-01", "news-ja-01", 5), ("law-zh-02", "law-zh-01-typo", 2)]
        report = judge(CORPUS, pairs, fingerprints=far_fingerprints(9), max_distance=8)
        assert report.unexpected == (
            FoundPair("law-zh-01-typo", "law-zh-02", 2),
            FoundPair("news-ja-01", "news-en-01", 5),
        )

    def test_a_text_without_fingerprint(self):
        """A text without fingerprint is missed, and the reason says why."""
        prints = far_fingerprints(9) | {"news-zh-01": None}
        verdict = only_verdict(judge(CORPUS, [], fingerprints=prints, max_distance=8), "news-zh-01-typo")
        assert (verdict.status, verdict.distance) == (Status.MISSED, None)
        assert "no fingerprint" in verdict.reason

    def test_a_document_outside_the_corpus(self):
        """A document that is not in the corpus is refused by name."""
        with pytest.raises(InvalidInputError, match=r"'stranger' is not in the demo's corpus"):
            judge(CORPUS, [("news-zh-01", "stranger", 1)], fingerprints={}, max_distance=8)

    def test_summary_by_edit(self):
        """The summaries by kind of edit add up to the copies."""
        pairs = [(copy.edit_of, copy.id, 4) for copy in COPIES if copy.edit == "typo"]
        summaries = judge(CORPUS, pairs, fingerprints=far_fingerprints(9), max_distance=8).by_edit()
        assert [summary.edit for summary in summaries] == list(EDIT_KINDS)
        assert sum(summary.copies for summary in summaries) == len(COPIES)
        for summary in summaries:
            is_typo = summary.edit == "typo"
            assert summary.found == (summary.copies if is_typo else 0)
            assert (summary.nearest, summary.farthest) == ((4, 4) if is_typo else (9, 9))


class TestRender:
    """Findings can be shown on any terminal."""

    @pytest.fixture(scope="class")
    @staticmethod
    def report():
        """Return a report with a copy found and two unexpected pairs."""
        pairs = [("news-zh-01", "news-zh-01-typo", 3), ("news-ja-01", "news-en-01", 5), ("post-zh-01", "post-zh-02", 1)]
        return judge(CORPUS, pairs, fingerprints=far_fingerprints(9), max_distance=8)

    @pytest.mark.parametrize("width", [40, 80, 200])
    def test_tables_fit_any_terminal(self, report, width):
        """No line is wider than the terminal."""
        for renderable in (
            summary_text(report),
            edits_table(report),
            groups_table(report),
            verdicts_table(report),
        ):
            lines = rendered(renderable, width=width).splitlines()
            assert lines
            assert max(map(len, lines)) <= width

    def test_tables_hold_the_report(self, report):
        """The tables hold what the report says."""
        assert "2 unrelated pairs were reported" in summary_text(report).plain
        assert "news-zh-01-typo (3)" in rendered(groups_table(report), width=80)
        assert "1 of 8" in rendered(edits_table(report))
        assert verdicts_table(report).row_count == len(COPIES)
        assert verdicts_table(report, statuses=[Status.FOUND]).row_count == 1

    def test_a_diff_panel(self):
        """The panel marks words so that they can be told apart without colour."""
        text = rendered(diff_panel(BY_ID["listing-en-01"], BY_ID["listing-en-01-price"], distance=1))
        assert "listing-en-01 -> listing-en-01-price, 1 bit" in text
        assert "[-1,450-]{+1,395+}" in text
        assert EDIT_KINDS["numbers"].label in text

    def test_a_diff_panel_of_equal_texts(self):
        """The panel of equal texts says that no words differ."""
        assert "no words differ" in rendered(diff_panel(CORPUS[0], CORPUS[0], distance=0))

    def test_hostile_text(self):
        """Markup, control characters and lone surrogates are shown, not obeyed."""
        before = replace(CORPUS[0], id="a", text="[red]x\x1b\ud800\u202e[/red] one")
        after = replace(CORPUS[0], id="b", text="[red]x\x1b\ud800\u202e[/red] two\nlines")
        text = rendered(diff_panel(before, after, distance=2))
        assert r"[red]x\x1b\ud800\u202e[/red]" in text
        assert "two⏎lines" in text
        text.encode("utf-8")
