"""The demo's report: what it says of any outcome of a search, and how a terminal shows it."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

from es_simhash.demo.judge import EDIT_KINDS, FoundPair, Member, Status, judge, load_corpus
from es_simhash.demo.render import diff_panel, edits_table, groups_table, summary_text, verdicts_table
from es_simhash.errors import InvalidInputError

CORPUS = load_corpus()
BY_ID = {document.id: document for document in CORPUS}
COPIES = [document for document in CORPUS if document.edit_of]


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
