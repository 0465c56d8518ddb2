"""The report: one page that loads nothing, in two languages, in which no text of a user is anything but text."""

from __future__ import annotations

import re
import shutil
import subprocess
from functools import partial
from string import Formatter

import pytest

from es_simhash import InvalidInputError
from es_simhash.quality.health import SENTENCES, Diagnosis, Finding
from es_simhash.quality.report.report_page import LANGUAGES, WORDS, IndexReport, Member, ShownGroup, WhyShown
from es_simhash.quality.stats import Count, GroupCounts, GroupSize, SourceCounts, Stats, TimeCounts
from tests.pages import CONTROL, HOSTILE, Page

IMAGE = "<img src='http://report.invalid/a.png'>"
# What a fresh Chromium asks for, whatever page it shows.
CHROMIUMS_OWN = (".google.com", ".googleapis.com", ".gvt1.com")
Checked = partial(Page, links=True)
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")


BY_LETTERS = {"at_least": 0.8, "measure": "edit", "unit": "characters"}


def values_of(kind, word):
    """Return a value for each placeholder of what is said of a *kind* of finding: numbers, and *word*."""
    words = SENTENCES[kind].message + SENTENCES[kind].advice
    numbers = {"part": 3, "whole": 1_200, "least": 10, "missing": 17, "documents": 900, "chance": 1.5, "copies": 800}
    numbers["groups"] = 40
    return {name: numbers.get(name, word) for name in _placeholders(words)}


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
        time=TimeCounts(
            name,
            "month",
            {1_704_067_200_000: Count(700, 200), 1_706_745_600_000: Count(500, 34)},
            Count(20, 0),
            Count(4, 0),
            Count(10, 0),
        ),
        sources=SourceCounts(name, {each: Count(300, 100) for each in words}, Count(34, 0), 60, Count(1, 0)),
        scheme="shingles-3",
        grouping=(
            {"rule": "star", "max_distance": 8, "canonical": [name], "similarity": BY_LETTERS, "within": [name, "7d"]},
        ),
    )
    members = tuple(
        Member(each, each, f"{each} text", 10_000, 4, 0.87, source=each, time=each, title=each, url=each)
        for each in words
    )
    why = (WhyShown("largest", 95), WhyShown("farthest", 4))
    groups = (ShownGroup(name, 95, why, members[0], members[1:]), ShownGroup(other, 3, why[:1], None, members[:1]))
    return IndexReport(
        stats,
        Diagnosis(
            name, 1_234, 1_230, 50, tuple(Finding("error", kind, values_of(kind, name)) for kind in SENTENCES), (name,)
        ),
        groups,
        "2026-01-02T03:04:05.678Z",
        "1.2.3",
        **more,
    )


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_page_says_everything_and_loads_nothing(language):
    """Numbers with bars, groups, health, and how it was measured."""
    page = Checked(full().html(language=language))
    assert page.ids == ["numbers", "groups", "health", "measured"]
    # One for each row of the four tables.
    assert page.tags.count("svg") > 10
    assert re.search(r"(another one|重复的标准)[:：] ?(within|最多相差) [0-9]+", page.text)
    for words in ("1,234", "234", "95", "shingles-3", "2024-02-01", "star", "87.0", "es_simhash 1.2.3"):
        assert words in page.text
    for key in ("why_largest", "legend_goes", "exact_words", "complete", "canonical_missing"):
        assert WORDS[language][key] in page.text
    assert "{" not in page.text


@pytest.mark.parametrize("language", LANGUAGES)
def test_hostile_texts_stay_texts(language):
    """Names of indices, fields and groups, sources, texts and findings."""
    html = full(HOSTILE).html(language=language)
    assert not CONTROL.search(html)
    page = Checked(html)
    assert page.text.count(HOSTILE[0]) > 5
    assert html.count("<style>") == 1


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("kind", SENTENCES)
def test_each_finding_is_said_in_the_language(language, kind):
    """With its values, as check_sample says it; in Chinese none of the English sentence is left."""
    finding = Finding("note", kind, values_of(kind, "a<b"))
    page = IndexReport(Stats("i"), Diagnosis("i", findings=(finding,)))
    text = Checked(page.html(language=language)).text
    for value in finding.values.values():
        assert (value if isinstance(value, str) else f"{value:,}") in text
    says_it = "".join(finding.advice.split()) in "".join(text.split())
    assert says_it == (language == "en" or kind == "not_ready")
    assert finding.topic in ("mapping", "missing", "stale", "broken", "short", "hot", "numbers", "texts", "groups")


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_filter_is_said(language):
    """Above the numbers, beside the health, and where it says how all was measured; a hostile one stays text."""
    query = {"term": {HOSTILE[2]: HOSTILE[0]}}
    html = full(filter=(query,)).html(language=language)
    page = Checked(html)
    assert not CONTROL.search(html)
    assert page.text.count(HOSTILE[0]) == 2
    assert WORDS[language]["health_of_all"] in page.text
    assert WORDS[language]["health_of_all"] not in Checked(full().html(language=language)).text


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_card_begins_with_the_title(language):
    """It links to an address of the web, and to nothing else; where there is no title, the id is the name."""
    urls = [
        "https://a.example/x?q='\"<b>",
        "HTTP://b.example",
        "javascript:alert(1)",
        "data:text/html,x",
        "//c.example",
        "",
    ]
    members = [Member(f"id{n}", "i", "text", 4, title=f"Title {n}" if n else "", url=url) for n, url in enumerate(urls)]
    group = ShownGroup("g", 9, (WhyShown("largest", 9), WhyShown("farthest", 1)), members[0], tuple(members[1:]))
    page = Checked(IndexReport(Stats("i"), Diagnosis("i"), groups=(group,)).html(language=language))
    assert page.links == urls[:2]
    assert all(f"Title {n} id{n}" in page.text for n in range(1, 6))
    assert WORDS[language]["why_farthest_1"] in page.text


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_name_of_several_groups_is_said(language):
    """With their number."""
    stats = Stats("i", documents=9, groups=GroupCounts({3: 2}, several_canonicals=2))
    said = WORDS[language]["several_canonicals"].format(number=2)
    assert said in Checked(IndexReport(stats, Diagnosis("i")).html(language=language)).text
    assert "2 with several canonicals" in stats._repr_html_()


def test_sources_of_any_name_keep_their_numbers():
    """A source may be named like our row for the documents without one, or be shown like another source."""
    names = ["(none)", "(8 other sources)", "\u202e", "\\u202e", "x", "x\n", "x (2)"]
    counted = {name: Count(100 + place, place) for place, name in enumerate(names)}
    stats = Stats("news", 999, sources=SourceCounts("agency", counted, Count(9, 1), len(names) + 8, Count(7, 2)))
    page = IndexReport(stats, Diagnosis("news", 999, 0, 0), (), "2026-01-02T03:04:05.678Z", "1").html()
    body = page.partition("<caption>By source</caption>")[2].partition("</tbody>")[0]
    rows = re.findall(r"</th>\s*<td[^>]*>(\d+)</td>\s*<td[^>]*>(\d+)</td>", body)
    assert rows == [*((str(each.documents), str(each.duplicates)) for each in counted.values()), ("9", "1"), ("7", "2")]


def test_an_index_without_anything():
    """Empty, not grouped, without a duplicate, with one document: a page that says so."""
    for stats, key in (
        (Stats("i"), "sentence_empty"),
        (Stats("i", documents=1, fingerprinted=1), "sentence_none"),
        (Stats("i", documents=2, fingerprinted=2, ungrouped=2), "sentence_ungrouped"),
    ):
        page = Checked(IndexReport(stats, Diagnosis("i")).html())
        for each in (key, "no_groups", "never_grouped"):
            assert WORDS["en"][each] in page.text
        assert "svg" not in page.tags


def test_long_texts_are_cut():
    """A member of ten million characters adds no more than its beginning."""
    long = Member("a", "i", "word " * 4_000, 10_000_000)
    group = ShownGroup("a", 2, (WhyShown("largest", 2),), long, (long,))
    html = IndexReport(Stats("i"), Diagnosis("i"), groups=(group,)).html()
    assert len(html) < 60_000
    assert WORDS["en"]["cut"].format(length="10,000,000") in Checked(html).text


def test_the_languages_have_the_same_words():
    """The same keys, and the same values to fill in."""
    for language in LANGUAGES:
        assert {key: _placeholders(words) for key, words in WORDS[language].items()} == {
            key: _placeholders(words) for key, words in WORDS["en"].items()
        }


def _placeholders(words):
    return {name for _, name, _, _ in Formatter().parse(words) if name}


def test_another_language_is_refused():
    with pytest.raises(InvalidInputError, match="fr"):
        full().html(language="fr")


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")
def test_chromium_opens_the_page_without_an_error_or_a_request(tmp_path):
    """The console stays empty, no text runs, and no address is asked for but those of Chromium itself."""
    html = full([*HOSTILE, IMAGE]).html()
    dom, console, hosts = open_page(tmp_path / "report", html)
    assert "CONSOLE" not in console
    assert "<title>Near-duplicates in &lt;/script" in dom
    assert {each for each in hosts if not each.endswith(CHROMIUMS_OWN)} == set()
    # What is looked for here would be seen: a page that has the image, and a script with an error.
    dom, console, hosts = open_page(tmp_path / "other", f"<body>{IMAGE}<script>console.error(1)</script>")
    assert "CONSOLE" in console
    assert "report.invalid" in hosts


def open_page(folder, html):
    """Return the document of a page as Chromium has it, its log, and the hosts that it asked for."""
    folder.mkdir()
    page, log = folder / "page.html", folder / "net.json"
    page.write_text(html, encoding="utf-8")
    options = ("--headless=new", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--no-first-run")
    files = (f"--user-data-dir={folder / 'profile'}", f"--log-net-log={log}")
    done = subprocess.run(
        [CHROMIUM, *options, *files, "--dump-dom", page.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return done.stdout, done.stderr, set(re.findall(r'"url":\s*"https?://([^/:"]*)', log.read_text(encoding="utf-8")))
