"""
The demo: a small corpus with known near-duplicates, and a judgement of what a search found in it.

Pure: no server, no printing. Only `es_simhash.cli` may import it.
"""

from es_simhash.demo.corpus import EDIT_KINDS, Document, EditKind, load_corpus
from es_simhash.demo.judge import EditSummary, FoundPair, Group, Member, Report, Status, Verdict, judge
from es_simhash.demo.render import (
    diff_panel,
    edits_table,
    groups_table,
    summary_text,
    unexpected_table,
    verdicts_table,
)
from es_simhash.texts.worddiff import Change, Segment, WordDiff, word_diff

__all__ = [
    "EDIT_KINDS",
    "Change",
    "Document",
    "EditKind",
    "EditSummary",
    "FoundPair",
    "Group",
    "Member",
    "Report",
    "Segment",
    "Status",
    "Verdict",
    "WordDiff",
    "diff_panel",
    "edits_table",
    "groups_table",
    "judge",
    "load_corpus",
    "summary_text",
    "unexpected_table",
    "verdicts_table",
    "word_diff",
]
