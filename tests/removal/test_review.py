"""
The review of a plan of removal: every removal is in the page, the page is well formed and loads nothing, and no text of
a document is anything but text in it.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from dataclasses import replace
from functools import partial
from hashlib import sha256
from html import unescape
from pathlib import Path

import pytest

from es_simhash.removal import review_page as page_module
from es_simhash.removal.guard_rails import Guards
from es_simhash.removal.losses import RISKY_FIRST
from es_simhash.removal.records import PlannedDocument, PlannedRemoval
from es_simhash.removal.removal_file import RemovalFile
from es_simhash.removal.review import Review, compare_fields, percent_similar, review_html
from es_simhash.removal.review_page import CATALOGUE, LONGEST_TEXT
from es_simhash.tables.hidden import shown
from es_simhash.tables.words import Words
from tests.pages import CONTROL, HOSTILE, Page as ReadPage
from tests.servers.command_line import invoke
from tests.servers.removals import decide_file, document, take, write_plan

Checked = partial(ReadPage, scripts=True)

BY_LETTERS = {"at_least": 0.8, "measure": "edit", "unit": "characters"}


def sendable(name):
    """Return what an index can have of a name."""
    return re.sub(r'[\s"*,/<>?\\|#:\ud800-\udfff]', "", name).lower()[:50]


def removal(
    id_="goes", canonical="stays", *, similarity=0.9, goes="one two three", stays="one two four", loss="same", **fields
):
    """Return a line of a plan."""
    return PlannedRemoval(
        document(id_, body=goes, **fields), document(canonical, body=stays, **fields), 2, similarity, loss
    )


SHOWN = {"title": "title", "day": "date", "url": "url"}


@pytest.fixture
def plan(tmp_path):
    """Return a function that writes a plan and returns its path."""
    usual = {"rule": "star", "max_distance": 3, "canonical": ["published_at", "id"], "similarity": BY_LETTERS}

    def write(removals, *, grouping=None, **guards):
        header = {"grouping": grouping or usual, "guards": Guards(**guards), "at": "2026-01-01", "shown": SHOWN}
        write_plan(tmp_path / "removal.db", removals, **header)
        return tmp_path / "removal.db"

    return write


@pytest.fixture
def render(plan):
    """Return a function that returns the page of removals."""
    return lambda removals: review_html(plan(removals))


LONG = "the ship left the harbour at nine and came back with nothing but salt on the deck. " * 3


@pytest.mark.parametrize("full", [0, 9])
def test_the_page_has_the_keys_for_decisions(render, monkeypatch, full):
    """Of each removal and of what stays, as they are, in full or not; and what needs JavaScript is said."""
    monkeypatch.setattr(page_module, "FULL", full)
    ids = [f"{n}{text[:99]}" for n, text in enumerate((*HOSTILE, "\x7f", "'"))]
    keys = [PlannedDocument(id_, f"i{sendable(id_)}", id_ or None, 1, 1, "") for id_ in ids]
    html = render([PlannedRemoval(row, document("stays"), 1, 0.9, "same") for row in keys])
    found = [json.loads(unescape(key)) for key in re.findall(r"data-key='([^']*)'", html)]
    assert found == [[list(row.key), ["news", "stays", None]] for row in keys]
    assert not CONTROL.search(html)
    assert "This page needs JavaScript for that." in Checked(html).texts
    assert re.search('data-plan="[0-9a-f]{64}"', html)


def test_hostile_texts_are_only_text(render):
    """In ids, names of indices and fields, short values and long ones."""
    usual = set(Checked(render([removal(goes=LONG, stays=LONG + "x")])).tags)
    usual |= {"table", "thead", "tbody", "tr", "td", "th", "del", "ins", "div", "h4", "p", "span", "blockquote"}
    rows, texts = [], [text[:99] for text in HOSTILE]
    for n, text in enumerate(texts):
        index = f"i{n}{sendable(text)}"
        one = PlannedDocument(f"1{text}", index, None, 1, 1, "", {text: text, "body": LONG + text})
        other = PlannedDocument(f"2{text}", index, None, 1, 1, "", {text: "x", "body": LONG + text[::-1]})
        rows.append(PlannedRemoval(one, other, 3, 0.9, "same"))
    html = render(rows)
    html.encode()
    assert not CONTROL.search(html)
    page = Checked(html)
    assert set(page.tags) <= usual
    assert all(" ".join(shown(f"1{text}").split()) in " ".join(page.text.split()) for text in texts)


def test_the_policy_allows_this_script_and_this_style_alone(render):
    """The hashes are those of what is in the page, and nothing else may be loaded."""
    html = render([removal()])
    policy = Checked(html).policy
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy
    for name in ("review.js", "review.css"):
        content = (Path(page_module.__file__).parent / name).read_text("utf-8")
        assert b64encode(sha256(content.encode()).digest()).decode() in policy
        assert content in html
        assert "</" not in content
    assert not re.search(r"https?:|url\(|@import", html)


def test_of_a_long_page_the_riskiest_are_there_in_full(render, monkeypatch):
    """The others take one line each; what loses nothing is folded."""
    monkeypatch.setattr(page_module, "FULL", 10)
    rows = [removal(f"s{n}") for n in range(20)] + [removal(f"t{n}", loss="title") for n in range(8)]
    html = render(rows)
    page = Checked(html)
    assert (page.tags.count("article"), html.count('<div class="brief"')) == (10, 18)
    assert all(row.document.id in page.texts for row in rows)
    assert re.findall(r'data-class="([^"]*)"( data-held)?( open)?', html) == [
        ("What goes has a title of its own", " data-held", " open"),
        ("The same letters and numbers", "", ""),
    ]


def test_a_page_is_made_in_pieces(plan, monkeypatch):
    """A line is read when its turn comes, so the memory for a page does not grow with the plan."""
    monkeypatch.setattr(page_module, "FULL", 5)
    read = 0

    def lines(self, which):
        nonlocal read
        for n in range(1_000):
            read += 1
            yield removal(f"d{n}")

    with Review(plan([removal()])) as review:
        monkeypatch.setattr(RemovalFile, "removals", lines)
        for piece in review.html():
            shown = re.findall(r'<bdi class="id">d(\d+)</bdi>', piece)
            assert len(shown) <= 1
            assert all(0 < read - int(n) <= 2 for n in shown)
    assert read == 1_000


def test_a_hostile_page_is_as_large_as_its_first_texts(render):
    """Megabytes of a title, an address or a text; of each as much as people read."""
    huge = "</script><img src=x>\u202e" * 20_000
    one = removal("a", goes=huge, stays=huge + "x", title=huge, url=huge, day=huge)
    html = render([one, removal("b", "c", goes=huge, stays="x", loss="title", title=huge)])
    assert len(html) < 40 * 8 * LONGEST_TEXT
    assert not CONTROL.search(html)
    page = Checked(html)
    assert page.tags.count("article") == 2


def test_numbers(plan):
    """Of how many, by what is lost, by similarity, and what stays for most; what is held back does not go."""
    rows = [removal(f"d{n}", "c", similarity=1.0) for n in range(6)]
    rows += [removal("e", "f", similarity=0.99, loss="few"), removal("i", "c", similarity=0.7, loss="rewritten")]
    rows += [removal("g", "h", similarity=0.83, loss="contained", day="2026-01-01")]
    rows[7] = replace(rows[7], is_kept_shorter=True)
    rows[8] = replace(rows[8], document=document("g", body="one two", day="2026-01-02"))
    with Review(plan(rows, documents=40)) as review:
        found, text = review.to_dict(), "\n".join(review.text())
        first = [line.document.id for line in review.removals()][:3]
    assert found["total"] == {"removals": 7, "documents": 40, "share": 0.175}
    assert list(found["losses"].items()) == [("rewritten", 1), ("few", 1), ("contained", 1), ("same", 6)]
    assert first == ["i", "e", "g"]
    assert "news/i is held back, c stays (2 bits apart, more of its own goes, kept is shorter)" in text
    assert "kept is shorter: 1 of these have all that stays for them: --canonical longest" in text
    assert "who stays: in 1 of 7 the newer one by day goes; --canonical -day: the latest stays" in text
    assert found["groups"] == [{"index": "news", "id": "c", "removals": 6}]
    assert (found["canonicals"], found["lowest"]) == (2, 0.83)


def test_white_space_is_no_difference(plan):
    """Lines that were wrapped elsewhere, and a number of spaces."""
    [pair] = compare_fields(removal(goes=LONG, stays=LONG.replace(" ", "\n")))
    assert (pair.diff.excerpts, pair.is_equal) == ((), False)
    rows = [removal(f"d{n}", title=["a  b", "a b", "c"][n]) for n in range(3)]
    rows = [replace(line, canonical=replace(line.canonical, fields={"title": "a b"})) for line in rows]
    with Review(plan(rows)) as review:
        assert review.summary.differing == {"title": 1, "body": 3}


def test_the_command(plan, tmp_path):
    """Text, page and numbers; no control character of a document reaches the terminal; no plan makes no page."""
    texts = {"goes": LONG + "red\u202e", "stays": LONG + "blue"}
    rows = [removal(f"d{n}\x1b[31m", similarity=n / 10, **texts) for n in (1, 2, 3)]
    path, target = plan(rows, documents=10), tmp_path / "page.html"
    result = invoke(["review", str(path), "--limit", "2"])
    assert (result.exit_code, "[-red\\u202e-]{+blue+}" in result.stdout) == (0, True)
    assert not CONTROL.search(result.stdout.replace("\n", ""))
    assert [f"news/d{n}\\x1b[31m would go" in result.stdout for n in (1, 2, 3)] == [True, True, False]
    assert "1 more line" in result.stderr
    assert invoke(["review", str(path), "--html", str(target)]).exit_code == 0
    assert target.read_text(encoding="utf-8") == review_html(path)
    assert json.loads(invoke(["review", str(path), "--json"]).stdout)["total"]["removals"] == 3
    target.unlink()
    path.write_text('{"id": 1}\n')
    assert invoke(["review", str(path), "--html", str(target)]).exit_code == 1
    assert not target.exists()


@pytest.mark.parametrize("grouping", [{"rule": "x"}, {"similarity": {"at_least": 0.8, "measure": "of tomorrow"}}])
def test_any_grouping_can_be_described(plan, grouping):
    """A plan that another version made is still shown."""
    assert "the one that was grouped first" in Checked(review_html(plan([removal()], grouping=grouping))).text


def test_a_page_in_chinese_has_no_english_sentence(plan, tmp_path, monkeypatch):
    """What the plan says of itself, too: its rule, why it is refused, and what was decided."""
    grouping = {"rule": "star", "max_distance": 3, "similarity": 0.8, "canonical": ["source:a>*", "id"]}
    stays = document("stays", title="x", day="2026-01-01")
    removals = [
        replace(removal(f"d{n}", loss=loss, title=f"t{n}", day="2026-01-02"), canonical=stays, is_kept_shorter=True)
        for n, loss in enumerate(RISKY_FIRST)
    ]
    path = plan(removals, grouping=grouping, max_share=0.1, documents=9)
    with Review(path) as found:
        sha256 = found.sha256
    take(path, decide_file(tmp_path / "d.json", sha256, [("news", "d0", None)]))
    left, call = set(), Words.__call__

    def say(self, sentence, **values):
        left.update({sentence} - self.all.keys())
        return call(self, sentence, **values)

    monkeypatch.setattr(Words, "__call__", say)
    page = Checked(review_html(path, language="zh")).text
    assert "%" in page
    assert not re.search(r"\d\s+%", page)
    assert left == set()
    with Review(path) as found:
        said = found.facts(Words("zh", CATALOGUE), is_page=True)
    assert not re.search("[a-z]+ [a-z]+ [a-z]+", " ".join(said.values()).replace("--canonical", ""))


def test_similarities_are_cut():
    """Only texts with the same words are 100 %."""
    assert [percent_similar(number) for number in (0.8089, 0.99996, 1.0)] == ["80.8 %", "99.9 %", "100 %"]


def test_the_first_line_says_who_stays_and_why(plan, tmp_path):
    """How many go, and where the newer one does; no word of the trade, no command, and no table before the lines."""
    rows = [removal(f"d{n}", day="2026-01-02") for n in range(3)] + [removal("h", loss="few")]
    rows = [
        replace(line, canonical=document("stays", body="one", day=f"2026-01-0{n + 1}")) for n, line in enumerate(rows)
    ]
    html = review_html(plan(rows, documents=9))
    head, rest = (" ".join(text.split()) for text in Checked(html).text.split("Find an id or a word"))
    assert "3 of 9 documents (33.3 %) would go. Of two that are alike stays: the earliest by published_at." in head
    assert "In 1 of 3 the newer one goes. 1 more are held back" in head
    assert "will be refused: 3 of 9 documents would be removed, more than the share of 0.2" in head
    assert "<table" not in html.partition("<article")[0]
    lines, _, folded = rest.partition("The plan")
    for word in ("bit", "shingle", "canonical", "es-simhash", "--", "max_share"):
        assert word not in re.sub("published_at|SHA-256", "", head + lines)
    assert "--canonical -day: the latest stays" in folded
    assert Checked(html).texts.count("newer") == 1
    with Review(tmp_path / "removal.db") as review:
        assert "\n".join(review.text()).count("what goes is newer") == 1


def test_a_title_is_large_and_what_always_differs_is_one_line(plan):
    """Date and address are no rows of a table; another field that differs is."""
    line = removal("a", title="Bridge opens", day="2026-01-02", url="u/1", price="1")
    line = replace(line, canonical=document("b", title="Bridge opens", day="2026-01-01", url="u/2", price="2"))
    html = review_html(plan([line]))
    [article] = re.findall("<article.*</article>", html)
    assert article.count("Bridge opens") == 1
    assert re.search("<h3><bdi>Bridge opens</bdi></h3>", article)
    text = " ".join(Checked(article).text.split())
    assert "goes a · 2026-01-02 · u/1" in text
    assert "stays b · 2026-01-01 · u/2" in text
    assert re.findall('<th scope="row"><bdi>(.*?)</bdi>', article) == ["body", "price"]
