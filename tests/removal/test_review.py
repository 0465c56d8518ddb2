"""
The review of a plan of removal: every removal is in the page, the page is well formed and loads nothing, and no text of
a document is anything but text in it.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from hashlib import sha256
from html import unescape
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from es_simhash.cli.remove import show_records
from es_simhash.errors import InvalidInputError
from es_simhash.removal import review_page as page_module
from es_simhash.removal.classes import LOSSES, LOSSLESS
from es_simhash.removal.guard_rails import Guards
from es_simhash.removal.plan_options import PlanHeader
from es_simhash.removal.records import DuplicateResult, PlannedDocument, PlannedRemoval
from es_simhash.removal.removal_file import PlanWriter, RemovalFile
from es_simhash.removal.review import Review, compare_fields, describe, review_html, summarize
from es_simhash.removal.review_page import CATALOGUE, ReviewPage, write_page
from es_simhash.tables.hidden import shown
from es_simhash.tables.notebook import user_text
from es_simhash.tables.words import Words
from tests.pages import CONTROL, HOSTILE, Page as ReadPage
from tests.servers.command_line import invoke
from tests.servers.removals import decide_file, take

Checked = partial(ReadPage, scripts=True)

BY_LETTERS = {"at_least": 0.8, "measure": "edit", "unit": "characters"}


def document(id_, *, index="news", **fields):
    """Return a document of a plan."""
    return PlannedDocument(id_, index, None, 1, 1, "", fields)


def sendable(name):
    """Return a name without half a character, which no index has."""
    return name.encode("utf-8", "replace").decode()


def removal(
    id_="goes", canonical="stays", *, similarity=0.9, goes="one two three", stays="one two four", loss="same", **fields
):
    """Return a line of a plan."""
    return PlannedRemoval(
        document(id_, body=goes, **fields), document(canonical, body=stays, **fields), 2, similarity, loss
    )


@contextmanager
def written(removals):
    """The lines of a plan that is in no file."""
    with PlanWriter(None) as writer:
        writer.allowed = LOSSLESS
        for line in removals:
            writer.add(line)
        yield writer


def render(removals):
    """Return the page of *removals*."""
    with written(removals) as lines:
        summary = summarize(lines, 10 * len(removals))
        page = ReviewPage("removal.db", "0" * 64, {"made": "today"}, summary, lines.removals, LOSSLESS)
        return "".join(write_page(page, Words("en", CATALOGUE)))


@pytest.fixture
def plan(tmp_path):
    """Return a function that writes a plan and returns its path."""

    def write(removals, **guards):
        path = tmp_path / "removal.db"
        path.unlink(missing_ok=True)
        grouping = {"rule": "star", "max_distance": 3, "canonical": ["published_at", "id"], "similarity": BY_LETTERS}
        with PlanWriter(path) as writer:
            for each in removals:
                writer.add(each)
            names = {"index_uuids": {"news": "uuid"}, "decided_by": {"news": ("body",)}}
            asked = {"prefix": "simhash", "grouping": grouping, "guards": Guards(**guards), "at": "2026-01-01"}
            shown = {"title": "title", "day": "date"}
            writer.finish(PlanHeader(**names, **asked, count=len(removals), shown=shown))
        return path

    return write


def read_text(path):
    """Return the lines of the review of *path*."""
    with Review(path) as review:
        return list(review.text())


LONG = "the ship left the harbour at nine and came back with nothing but salt on the deck. " * 3


def test_every_removal_is_in_the_page_least_similar_first():
    """Ids, what stays, and the words that differ."""
    removals = [
        removal(f"a{n}", f"b{n}", similarity=n / 100, goes=LONG + f"goes{n}", stays=LONG + f"stays{n}")
        for n in range(50, 101)
    ]
    page = Checked(render(removals))
    places = [page.texts.index(f"a{n}") for n in range(50, 101)]
    assert places == sorted(places)
    assert all(f"b{n}" in page.texts for n in range(50, 101))
    assert all(f"goes{n}" in page.texts and f"stays{n}" in page.texts for n in range(50, 101))


def test_the_page_has_the_keys_for_decisions(monkeypatch):
    """Of each removal and of what stays, as they are, also where the part waits; and what needs JavaScript is said."""
    monkeypatch.setattr(page_module, "STATIC", 0)
    monkeypatch.setattr(page_module, "PART", 4)
    ids = [*HOSTILE, "\x7f", "'"]
    keys = [PlannedDocument(each, f"i{sendable(each)}", each or None, 1, 1, "") for each in ids]
    html = render([PlannedRemoval(each, document("stays"), 1, 0.9, "same") for each in keys])
    found = [each for part in re.findall(r"data-removals='([^']*)'", html) for each in json.loads(unescape(part))]
    assert found == [[list(each.key), ["news", "stays", None]] for each in keys]
    assert not CONTROL.search(html)
    assert "This page needs JavaScript for that." in Checked(html).texts
    assert 'data-plan="' + "0" * 64 + '"' in html


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_texts_are_only_text(hostile):
    """In ids, names of indices and fields, short values and long ones."""
    one = PlannedDocument(
        f"1{hostile}", f"i{sendable(hostile)}", None, 1, 1, "", {hostile: hostile, "body": LONG + hostile}
    )
    other = PlannedDocument(
        f"2{hostile}", f"i{sendable(hostile)}", None, 1, 1, "", {hostile: "x", "body": LONG + hostile[::-1]}
    )
    plain = document("1", body=LONG)
    html = render([PlannedRemoval(one, other, 3, 0.9, "same")])
    html.encode()
    assert not CONTROL.search(html)
    usual = set(Checked(render([PlannedRemoval(plain, document("2", body=LONG + "x"), 3, 0.9, "same")])).tags)
    assert set(Checked(html).tags) <= usual | {
        "td",
        "th",
        "thead",
        "del",
        "ins",
        "div",
        "h5",
        "p",
        "span",
        "blockquote",
    }
    assert " ".join(shown(f"1{hostile}").split()) in " ".join(Checked(html).text.split())


@settings(max_examples=60)
@given(st.lists(st.tuples(st.text(), st.text(max_size=400), st.text(max_size=400), st.floats(0, 1)), max_size=8))
def test_any_texts_give_a_well_formed_page(rows):
    """Whatever the documents hold, nothing of it opens or closes an element."""
    removals = [
        removal(id_, goes=goes, stays=stays, similarity=share, **{"a field": goes}) for id_, goes, stays, share in rows
    ]
    removals.sort(key=lambda each: each.similarity)
    html = render(removals)
    html.encode()
    assert not CONTROL.search(html)
    assert Checked(html).tags.count("article") == len(rows)


@given(st.text())
def test_markup_keeps_the_text(text):
    """What a parser reads of an element is the text, with escapes for what cannot be seen."""
    read = Checked(user_text(text)).text
    assert read == shown(text)
    assert not CONTROL.search(read)


def test_the_policy_allows_this_script_and_this_style_alone():
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


def test_a_long_page_keeps_its_removals_as_text(monkeypatch):
    """Only the first ones are laid out; all are there."""
    monkeypatch.setattr(page_module, "STATIC", 10)
    monkeypatch.setattr(page_module, "OPEN", 5)
    monkeypatch.setattr(page_module, "PART", 4)
    page = Checked(render([removal(f"d{n}") for n in range(30)]))
    assert page.tags.count("article") == 8
    assert page.tags.count("details") == 8
    assert "noscript" in page.tags
    parts = [Checked(each) for each in page.waiting]
    assert [each.tags.count("article") for each in parts] == [4, 4, 4, 4, 4, 2]
    assert all(f"d{n}" in [*page.texts, *(text for each in parts for text in each.texts)] for n in range(30))


def test_a_page_is_made_in_pieces():
    """A part is read when its turn comes, so the memory for a page does not grow with the plan."""
    number, read = 50 * page_module.PART, 0

    def lines():
        nonlocal read
        for n in range(number):
            read += 1
            yield removal(f"d{n}")

    with written([removal()]) as one:
        summary = replace(summarize(one, 1), losses={"same": number})
    page = ReviewPage("removal.db", "0" * 64, {}, summary, lambda _: lines(), LOSSLESS)
    for piece in write_page(page, Words("en", CATALOGUE)):
        shown = re.findall(r"<bdi>d(\d+)</bdi> would go", piece)
        assert len(shown) <= 1
        assert all(0 < read - int(n) <= page_module.PART + 1 for n in shown)
    assert read == number


@pytest.mark.parametrize("hostile", HOSTILE)
def test_nothing_ends_a_part_that_waits(hostile, monkeypatch):
    """Its texts are escaped as all others; also where each removal takes as little as it can."""
    for detailed in (0, 100):
        monkeypatch.setattr(page_module, "STATIC", 0)
        monkeypatch.setattr(page_module, "OPEN", 0)
        monkeypatch.setattr(page_module, "DETAILED", detailed)
        page = Checked(render([removal(f"1{hostile}", goes=LONG + hostile, stays=LONG, **{f"f{hostile}": hostile})]))
        assert page.tags.count("script") == 3
        [part] = page.waiting
        assert not CONTROL.search(part)
        assert " ".join(shown(f"1{hostile}").split()) in " ".join(Checked(part).text.split())
        assert Checked(part).tags.count("article") == 1


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
    assert found["losses"] == {"rewritten": 1, "few": 1, "contained": 1, "same": 6}
    assert list(found["losses"]) == ["rewritten", "few", "contained", "same"]
    assert found["similarity"] == [{"from": 0.8, "removals": 1}, {"from": 1.0, "removals": 6}]
    assert first == ["i", "e", "g"]
    assert "news/i is held back, c stays (2 bits apart, more of its own goes, kept is shorter)" in text
    assert "kept is shorter: 1 of these have all that stays for them: --canonical longest" in text
    assert "who stays: in 1 of 7 the newer one by day goes; --canonical -day: the latest stays" in text
    assert found["groups"] == [{"index": "news", "id": "c", "removals": 6}]
    assert (found["canonicals"], found["lowest"]) == (2, 0.83)


def test_what_apply_refuses_is_judged_by_what_people_left(plan):
    """The share of the whole: as ``apply`` does."""
    rows = [removal(f"d{n}", "c", similarity=1.0) for n in range(4)]
    path = plan([*rows, removal("h", "c", loss="few")], documents=9)
    with Review(path) as review:
        sha256 = review.sha256
        assert "allow it with max_share=0.445" in "".join(review.text())
        assert review.to_dict()["excess"] == {"removals": 4, "documents": 9, "max_share": 0.2}
    kept = decide_file(path.with_name("kept"), sha256, [("news", f"d{n}", None) for n in range(3)])
    take(path, kept)
    with Review(path) as review:
        assert review.to_dict()["excess"] is None
        assert "will refuse" not in "".join(review.text())


def test_white_space_is_no_difference():
    """Lines that were wrapped elsewhere."""
    [pair] = compare_fields(removal(goes=LONG, stays=LONG.replace(" ", "\n")))
    assert pair.diff.excerpts == ()
    assert not pair.is_equal


def test_what_is_spaced_otherwise_does_not_differ():
    """As the plan counts it: both say the same number."""
    rows = [removal(f"d{n}", title=["a  b", "a b", "c"][n]) for n in range(3)]
    rows = [replace(each, canonical=replace(each.canonical, fields={"title": "a b"})) for each in rows]
    with written(rows) as lines:
        assert summarize(lines, 3).differing == {"title": 1, "body": 3}
    assert sum(each.differs("title") for each in rows) == 1


def test_a_page_of_nothing():
    """A plan without removals."""
    page = Checked(render([]))
    assert "Nothing would be removed." in page.texts
    assert "article" not in page.tags


def test_the_command(plan, tmp_path):
    """Text, page and numbers; no control character of a document reaches the terminal."""
    path = plan([removal("1\x1b[31m", similarity=0.8, goes=LONG + "red\u202e", stays=LONG + "blue")], documents=10)
    result = invoke(["review", str(path)])
    assert result.exit_code == 0
    assert "[-red\\u202e-]{+blue+}" in result.stdout
    assert not CONTROL.search(result.stdout.replace("\n", ""))
    target = tmp_path / "page.html"
    assert invoke(["review", str(path), "--html", str(target)]).exit_code == 0
    assert target.read_text(encoding="utf-8") == review_html(path)
    assert Checked(target.read_text(encoding="utf-8")).tags.count("article") == 1
    numbers = json.loads(invoke(["review", str(path), "--json"]).stdout)
    assert numbers["total"]["removals"] == 1
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith(".")] == []


def test_limit(plan):
    """The least similar ones, and a word on the rest."""
    path = plan([removal(f"d{n}", similarity=n / 10) for n in range(1, 10)])
    result = invoke(["review", str(path), "--limit", "2"])
    assert [f"news/d{n} would go" in result.stdout for n in range(1, 10)] == [True, True] + [False] * 7
    assert "7 more lines" in result.stderr


def test_a_file_that_is_no_plan(tmp_path, plan):
    """It is refused, and no page is written; the plan is never overwritten."""
    other = tmp_path / "other.jsonl"
    other.write_text('{"id": 1}\n')
    with pytest.raises(InvalidInputError):
        review_html(other)
    target = tmp_path / "page.html"
    assert invoke(["review", str(other), "--html", str(target)]).exit_code == 1
    assert not target.exists()
    path = plan([removal()])
    before = path.read_bytes()
    assert invoke(["review", str(path), "--html", str(path)]).exit_code == 1
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "grouping",
    [
        {},
        {"similarity": "x", "within": 3, "canonical": 7, "per": [1]},
        {"similarity": {"at_least": 0.8}},
        {"similarity": {"at_least": 0.8, "measure": "of tomorrow", "unit": "words"}},
    ],
)
def test_any_grouping_can_be_described(tmp_path, grouping):
    """A plan that another version made is still shown."""
    path = tmp_path / "plan.jsonl"
    with PlanWriter(path) as writer:
        writer.finish(PlanHeader({}, "simhash", grouping))
    Checked(review_html(path))


def test_a_page_in_chinese_has_no_english_sentence(tmp_path, monkeypatch):
    """What the plan says of itself, too: its rule, why it is refused, and what was decided."""
    path = tmp_path / "removal.db"
    grouping = {"rule": "star", "max_distance": 3, "similarity": 0.8, "canonical": ["source:a>*", "id"]}
    removals = [removal(f"d{n}", title=f"t{n}", day="2026-01-02") for n in range(9)]
    removals = [replace(line, canonical=document("stays", title="x", day="2026-01-01")) for line in removals]
    removals = [
        replace(line, loss=loss, is_kept_shorter=True) for line, loss in zip(removals, LOSSES * 2, strict=False)
    ]
    with PlanWriter(path) as writer:
        for line in removals:
            writer.add(line)
        header = PlanHeader({"news": "u"}, "simhash", grouping, len(writer), Guards(0.1, 9), decided=3)
        made = writer.finish(replace(header, decided_by={"news": ()}, shown={"title": "title", "day": "date"}))
    take(path, decide_file(tmp_path / "d.json", made, [("news", "d0", None)]))
    left, call = set(), Words.__call__

    def say(self, sentence, **values):
        left.update({sentence} - self.all.keys())
        return call(self, sentence, **values)

    monkeypatch.setattr(Words, "__call__", say)
    page = Checked(review_html(path, language="zh")).text
    assert "%" in page
    assert not re.search(r"\d\s+%", page)
    assert left == set()
    with RemovalFile(path) as found:
        said = describe(found, Words("zh", CATALOGUE), "zh")
    assert not re.search(
        "[a-z]+ [a-z]+ [a-z]+", " ".join(said.values()).replace("es-simhash review", "").replace("--canonical", "")
    )


def test_what_stays_for_most_says_how_many_are_shown(plan):
    """The table has ten; the others are counted."""
    path = plan([removal(f"d{n}", f"c{n % 12}") for n in range(24)])
    assert "What stays for most removals (10 of 12)" in Checked(review_html(path)).text
    assert "what stays for most removals (10 of 12)" in read_text(path)
    assert "（12 篇中的 10 篇）" in Checked(review_html(path, language="zh")).text


def test_similarities_are_cut_alike(plan, capsys):
    """By the review, its page, and what plan and apply print; only the same words are 100 %."""
    for similarity, share, number in (
        (0.8089, "80.8 %", "0.808"),
        (0.99996, "99.9 %", "0.999"),
        (1.0, "100 %", "1.000"),
    ):
        line = removal(similarity=similarity)
        path = plan([line])
        assert f"\n{share} " in "\n".join(read_text(path))
        assert share in Checked(review_html(path)).text
        show_records([DuplicateResult.of(line, "deleted")])
        assert f" {number}\n" in capsys.readouterr().out
