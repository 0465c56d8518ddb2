"""The report: one page that loads nothing, in two languages, in which no text of a user is anything but text."""

from __future__ import annotations

import re
from functools import partial
from string import Formatter

import pytest

from es_simhash.quality.health import SENTENCES, Diagnosis, Finding
from es_simhash.quality.report.report_page import IndexReport
from es_simhash.quality.searches import Searched, Searches
from es_simhash.quality.shown import Member, ShownGroup
from es_simhash.quality.stats import GroupCounts, GroupSize, Stats
from es_simhash.tables.words import LANGUAGES, Words
from tests.pages import CONTROL, HOSTILE, Page

Checked = partial(Page, links=True)
CATALOGUE = "quality/report/words"
BY_LETTERS = {"at_least": 0.8, "measure": "edit", "unit": "characters"}
PLAIN = Diagnosis("i")


def values_of(kind, word):
    """Return a value for each placeholder of what is said of a *kind* of finding: numbers, and *word*."""
    numbers = {"part": 3, "whole": 1_200, "least": 10, "documents": 900, "groups": 40, "titles": 7}
    return {name: numbers.get(name, word) for name in _placeholders(SENTENCES[kind].message + SENTENCES[kind].advice)}


def _placeholders(words):
    return {name for _, name, _, _ in Formatter().parse(words) if name}


def full(words=("a text", "another text"), **more):
    """Return a report with every part, in which each text of a user is one of *words*."""
    name, other = words[0], words[-1]
    stats = Stats(
        name,
        documents=1_234,
        fingerprinted=1_230,
        ungrouped=3,
        duplicates=234,
        groups=GroupCounts({2: 100, 3: 20, 95: 1}, (GroupSize(name, 95),), 2),
        distances={0: 200, 4: 34},
        scheme="shingles-3",
        grouping=(
            {"rule": "star", "max_distance": 8, "canonical": [name], "similarity": BY_LETTERS, "within": [name, "7d"]},
        ),
    )
    members = tuple(
        Member(each, each, f"{each} text", 10_000, 4, 0.87, source=each, time=each, title=each, url=each)
        for each in words
    )
    groups = (ShownGroup(name, 95, members[0], members[1:]), ShownGroup(other, 3, None, members[:1]))
    findings = tuple(Finding("error", kind, values_of(kind, name)) for kind in SENTENCES)
    return IndexReport(
        stats,
        Diagnosis(name, 1_234, 1_230, 50, findings, (name,)),
        groups,
        "2026-01-02T03:04:05.678Z",
        "1.2.3",
        searches=Searches.of([Searched(each, 10, 4, 1, 3, *members[:2]) for each in words], ""),
        **more,
    )


def every_report():
    """Yield reports that together say everything."""
    member = Member("a", "i", "word " * 4_000, 10_000_000, has_other_numbers=True, similarity=0.9)
    yield full(filter=({"match_all": {}},))
    yield IndexReport(Stats("i"), PLAIN, searches=Searches.of([Searched("a")], "never grouped"))
    yield IndexReport(Stats("i"), PLAIN)
    yield IndexReport(Stats("i", documents=1), PLAIN)
    yield IndexReport(Stats("i", documents=2, fingerprinted=2, ungrouped=2), PLAIN)
    yield IndexReport(Stats("i", documents=2, duplicates=2, groups=GroupCounts({3: 2}, several_canonicals=2)), PLAIN)
    for severity in ("note", "warning"):
        found = Finding(severity, "short", values_of("short", "a"))
        yield IndexReport(Stats("i"), Diagnosis("i", findings=(found,)))
    for text in ("", None, "word " * 8_000, " ".join(f"other {n} word" for n in range(99))):
        other = Member("b", "i", text, len(text or ""))
        groups = (ShownGroup("a", 3, member, (member, other)), ShownGroup("b", 3, None, (member,)))
        yield IndexReport(Stats("i"), PLAIN, groups)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_page_says_everything_and_loads_nothing(language):
    """Numbers with bars, groups, health, and how it was measured; a filter where it counts."""
    page = Checked(full().html(language=language))
    assert page.ids == ["groups", "searches", "health", "numbers", "measured"]
    # One for each row of the tables.
    assert page.tags.count("svg") == 9
    assert re.search(r"(another one|重复的标准)[:：] ?(within|最多相差) [0-9]+", page.text)
    for words in ("1,234", "234", "95", "shingles-3", "star", "87.0", "es_simhash 1.2.3"):
        assert words in page.text
    say = Words(language, CATALOGUE)
    for sentence in ("words only in this document", "The canonical of this group could not be read."):
        assert say(sentence) in page.text
    assert "{" not in page.text
    about_all = say("This part is about all fingerprints, also of documents that do not match the filter.")
    filtered = Checked(full(filter=({"term": {HOSTILE[2]: HOSTILE[0]}},)).html(language=language))
    assert (about_all in page.text, about_all in filtered.text) == (False, True)
    assert filtered.text.count(HOSTILE[0]) == 2


@pytest.mark.parametrize("language", LANGUAGES)
def test_hostile_texts_stay_texts(language):
    """Names of indices, fields and groups, sources, texts and findings."""
    html = full(HOSTILE, filter=({"term": {HOSTILE[2]: HOSTILE[0]}},)).html(language=language)
    assert not CONTROL.search(html)
    assert Checked(html).text.count(HOSTILE[0]) > 5
    assert html.count("<style>") == 1


@pytest.mark.parametrize("kind", SENTENCES)
def test_each_finding_is_said_in_the_language(kind):
    """With its values, as check_sample says it; in Chinese none of the English sentence is left."""
    finding = Finding("note", kind, values_of(kind, "a<b"))
    page = IndexReport(Stats("i"), Diagnosis("i", findings=(finding,)))
    for language in LANGUAGES:
        text = Checked(page.html(language=language)).text
        for value in finding.values.values():
            assert (value if isinstance(value, str) else f"{value:,}") in text
        says_it = "".join(finding.advice.split()) in "".join(text.split())
        assert says_it == (language == "en" or kind == "mapping")


def test_a_card_begins_with_the_title():
    """It links to an address of the web, and to nothing else; of a long text it has the beginning."""
    urls = [
        "https://a.example/x?q='\"<b>",
        "HTTP://b.example",
        "javascript:alert(1)",
        "data:text/html,x",
        "//c.example",
    ]
    members = [Member(f"id{n}", "i", "text", 4, title=f"Title {n}" if n else "", url=url) for n, url in enumerate(urls)]
    long = Member("long", "i", "word " * 4_000, 10_000_000)
    groups = ShownGroup("g", 9, members[0], tuple(members[1:])), ShownGroup("h", 2, long, (long,))
    html = IndexReport(Stats("i"), PLAIN, groups).html()
    page = Checked(html)
    assert page.links == urls[:2]
    assert all(f"Title {n} id{n}" in page.text for n in range(1, 5))
    assert "The text has 10,000,000 characters; its beginning is shown." in page.text
    assert len(html) < 60_000


@pytest.mark.parametrize(
    ("numbers", "sentence"),
    [
        ({}, "The index has no documents."),
        ({"documents": 1, "fingerprinted": 1}, "No document repeats another one."),
        ({"documents": 2, "fingerprinted": 2, "ungrouped": 2}, "No document is grouped yet: run es-simhash reconcile"),
    ],
)
def test_an_index_without_anything(numbers, sentence):
    page = Checked(IndexReport(Stats("i", **numbers), PLAIN).html())
    for said in (sentence, "There is no group of two or more documents.", "never grouped"):
        assert said in page.text
    assert "svg" not in page.tags


def test_each_sentence_of_the_page_has_its_chinese_one(monkeypatch):
    """With the same values to fill in; no sentence waits that the page never says."""
    said = set()

    def recorded(method):
        def say(self, sentence, **values):
            said.add(sentence)
            return method(self, sentence, **values)

        return say

    for name in ("__call__", "html"):
        monkeypatch.setattr(Words, name, recorded(getattr(Words, name)))
    for report in every_report():
        report.html(language="zh")
    known = Words("zh", CATALOGUE).all
    assert said - known.keys() == {"{index}: {fault}", "{advice}"}
    assert known.keys() - said == set()
    for sentence, words in known.items():
        assert _placeholders(words) == _placeholders(sentence), sentence


def test_the_advice_of_a_finding_can_be_pasted():
    """A pattern is quoted for the shell, in both languages."""
    finding = Finding("warning", "large_group", {"index": "news-*", "group": "a", "documents": 9})
    assert "es-simhash groups 'news-*' --min-size 9" in finding.advice
    assert "'news-*'" in Words("zh", CATALOGUE)(SENTENCES["large_group"].advice, **finding.advice_values)
