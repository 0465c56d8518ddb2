"""
The review page: one HTML file with its style, its script and every removal, which loads nothing.

A long page keeps removals as text in script elements that hold no script, which a browser reads a hundred
times faster than elements; the page's script inserts a part when it is opened. The page is made in pieces, so
a plan may have any length.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files
from itertools import groupby, islice
from typing import TYPE_CHECKING

from es_simhash.removal.review import (
    MOST_VALUES,
    Band,
    FieldPair,
    Portion,
    Summary,
    band_name,
    band_of,
    compare_fields,
    percent,
    percent_similar,
    relation,
)
from es_simhash.tables.notebook import Child, Html, bar, element, join, user_text
from es_simhash.texts.worddiff import Change, Segment, WordDiff

if TYPE_CHECKING:
    from es_simhash.removal.records import PlannedRemoval


_MARKS = {Change.REMOVED: "del", Change.ADDED: "ins"}


def excerpt(segments: Iterable[Segment]) -> Html:
    parts = [
        element(_MARKS[part.change], part.text) if part.change in _MARKS else part.text
        for part in segments
        if part.text
    ]
    return element("blockquote", *parts, dir="auto")


PART = 200
STATIC = 2_000

DETAILED = 10_000
"""Removals of a page that shows each of them in full; in a longer one each takes as little as it can."""

OPEN = 100
"""Removals that are shown without a click."""

# All texts of a page together, in characters, so that a browser can open it; and what one text may take of that.
TEXT_BUDGET = 24_000_000
LONGEST_TEXT, SHORTEST_TEXT = 4_000, 120


@dataclass(frozen=True, slots=True)
class Page:
    """What a page shows; *facts* are terms and texts, *lines* returns the removals, smallest similarity first."""

    title: str
    facts: Mapping[str, str]
    summary: Summary
    lines: Callable[[], Iterable[PlannedRemoval]]


def write_page(page: Page) -> Iterator[str]:
    total = page.summary.total.removals
    yield from _opening(page)
    yield element(
        "header",
        element("h1", "What would be removed, and what stays"),
        element("p", user_text(page.title), class_="quiet"),
    )
    yield facts(page.summary)
    yield element(
        "noscript",
        element("p", "Without JavaScript this page shows its numbers and its first removals only.", class_="warn")
        if total > STATIC
        else "",
    )
    yield tables(page.summary, page.facts)
    yield '<section aria-labelledby="removals"><h2 id="removals">Every removal, least similar first</h2>'
    yield _legend(total)
    yield from _bands(page, total)
    yield "</section>"
    yield element("footer", element("p", "This page is complete in itself: it loads nothing and sends nothing."))
    yield join(Html("</main>"), element("script", Html(_asset("review.js"))), Html("</body></html>\n"))


@cache
def _asset(name: str) -> str:
    return files("es_simhash.removal").joinpath(name).read_text(encoding="utf-8")


def _digest(name: str) -> str:
    return "'sha256-" + b64encode(sha256(_asset(name).encode()).digest()).decode() + "'"


def _opening(page: Page) -> Iterator[str]:
    # Only this script and this style may be used: markup that got past the escaping could still do nothing.
    policy = (
        f"default-src 'none'; script-src {_digest('review.js')}; style-src {_digest('review.css')}; "
        "base-uri 'none'; form-action 'none'"
    )
    yield '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
    yield element("meta", http_equiv="Content-Security-Policy", content=policy)
    yield element("meta", name="viewport", content="width=device-width, initial-scale=1")
    yield element("meta", name="referrer", content="no-referrer")
    yield element("title", f"Review of {page.title}")
    yield element("style", Html(_asset("review.css")))
    yield join(
        Html(f'</head><body data-removals="{page.summary.total.removals}">'),
        element("a", "To the removals", class_="skip", href="#removals"),
        Html("<main>"),
    )


def _legend(total: int) -> Html:
    goes = join(element("del", "Words like these"), " are only in the document that would go, ")
    stays = join(element("ins", "words like these"), " only in the one that stays.")
    find = element(
        "form",
        element("label", "Find an id or a word", for_="query"),
        element("input", id="query", type="search", autocomplete="off", spellcheck="false"),
        element("button", "Find", type="submit"),
        element("span", id="found", role="status", class_="quiet"),
        id="find",
        class_="find",
        role="search",
    )
    return join(element("p", goes, stays), find) if total else element("p", "Nothing would be removed.")


def _bands(page: Page, total: int) -> Iterator[str]:
    longest = max(SHORTEST_TEXT, min(LONGEST_TEXT, TEXT_BUDGET // max(1, 2 * total)))
    done = 0
    for band, lines in groupby(page.lines(), key=lambda line: band_of(line.similarity)):
        number = page.summary.bands.get(band, 0)
        heading = element("h3", f"{band_name(band)}: {number:,} removal{'' if number == 1 else 's'}")
        yield join(Html('<section class="band">'), heading)
        while part := list(islice(lines, PART)):
            first, last = part[0], part[-1]
            is_open = done < OPEN
            yield _part_opening(band, first, last, done, len(part), is_open=is_open)
            waits = total > STATIC and not is_open
            if waits:
                # Nothing in it can end it: each "<" of a text is escaped, and no element of ours is a script.
                yield f'<script type="text/plain" data-removals="{len(part)}">'
            for line in part:
                yield _removal(line, longest) if total <= DETAILED else _short_removal(line)
            yield "</script></details>" if waits else "</details>"
            done += len(part)
        yield "</section>"


def _part_opening(
    band: Band, first: PlannedRemoval, last: PlannedRemoval, before: int, number: int, *, is_open: bool
) -> Html:
    places = f"Removals {before + 1:,} to {before + number:,}" if number > 1 else f"Removal {before + 1:,}"
    range_ = ""
    if band is not None and (one := percent_similar(first.similarity)) != (other := percent_similar(last.similarity)):
        range_ = f", {one} to {other}"
    opening = Html('<details class="part" open>' if is_open else '<details class="part">')
    return join(opening, element("summary", places + range_))


def _removal(removal: PlannedRemoval, longest: int) -> Html:
    pairs = compare_fields(removal)
    long = [pair for pair in pairs if pair.diff is not None]
    return element(
        "article",
        _heading(removal),
        _stays(removal),
        _short_fields([pair for pair in pairs if pair.diff is None]),
        *(_difference(pair) for pair in long),
        _whole_texts(long, longest),
        class_="removal",
    )


def _short_removal(removal: PlannedRemoval) -> Html:
    pairs = compare_fields(removal, max_changes=3)
    equal = [pair for pair in pairs if pair.diff is None and pair.is_equal and pair.goes]
    same = [join(pair.name, ": ", user_text(pair.goes or "")) for pair in equal]
    long = [pair for pair in pairs if pair.diff is not None]
    opening = next((pair.goes for pair in long if pair.goes), "")[:SHORTEST_TEXT]
    return element(
        "article",
        _heading(removal),
        _stays(removal),
        element("p", *(join(each, " ") for each in same), class_="quiet") if same else "",
        _short_fields([pair for pair in pairs if pair.diff is None and not pair.is_equal]),
        *(_difference(pair) for pair in long),
        element("p", user_text(f"{' '.join(opening.split())} …"), class_="quiet") if opening else "",
        class_="removal",
    )


def _heading(removal: PlannedRemoval) -> Html:
    is_compared = removal.similarity is not None
    return element(
        "h4",
        element("span", percent_similar(removal.similarity), class_="share"),
        ": " if not is_compared else " contained: " if removal.reason == "contained" else " similar: ",
        user_text(removal.document.id),
        " would go",
        element("span", " from ", user_text(removal.document.index), class_="quiet"),
    )


def _stays(removal: PlannedRemoval) -> Html:
    canonical = removal.canonical
    return element(
        "p",
        user_text(canonical.id),
        " stays",
        "" if canonical.index == removal.document.index else join(" in ", user_text(canonical.index)),
        element("span", f" · {relation(removal)}", class_="quiet"),
        class_="stays",
    )


@cache
def _fields_head() -> Html:
    return element(
        "thead",
        element(
            "tr",
            element("th", "field", scope="col"),
            element("th", "goes", scope="col", class_="goes"),
            element("th", "stays", scope="col", class_="stays"),
        ),
    )


def _short_fields(pairs: list[FieldPair]) -> Html:
    if not pairs:
        return Html("")
    rows = [
        element(
            "tr",
            element("th", user_text(pair.name), scope="row"),
            *([_cell(pair.goes, colspan=2)] if pair.is_equal else [_cell(pair.goes), _cell(pair.stays)]),
            class_=None if pair.is_equal else "differs",
        )
        for pair in pairs
    ]
    return element("table", _fields_head(), element("tbody", *rows), class_="fields")


def _cell(value: str | None, *, colspan: int | None = None) -> Html:
    content = element("span", "none", class_="quiet") if value is None else user_text(value)
    return element("td", content, element("span", " in both", class_="quiet") if colspan else "", colspan=colspan)


def _difference(pair: FieldPair) -> Html:
    diff = pair.diff
    if diff is None:
        return Html("")
    name = user_text(pair.name)
    if not diff.excerpts and not diff.is_cut:
        words = ("both documents have the same text" if pair.is_equal else "only white space differs") + (
            ", as far as the plan has them" if pair.is_cut else ""
        )
        return element("p", name, f": {words}", class_="quiet")
    notes = _notes(diff, is_cut=pair.is_cut)
    return element(
        "div",
        element("h5", name, " differs"),
        *(excerpt(each) for each in diff.excerpts),
        element("p", notes, class_="quiet") if notes else "",
        class_="diff",
    )


def _notes(diff: WordDiff, *, is_cut: bool) -> str:
    notes = []
    if diff.omitted:
        notes.append(f"and {diff.omitted:,} more place{'' if diff.omitted == 1 else 's'}")
    if diff.is_cut or is_cut:
        notes.append("the texts are long: only their beginnings were compared here")
    return "; ".join(notes)


def _whole_texts(pairs: list[FieldPair], longest: int) -> Html:
    if not pairs:
        return Html("")
    return element(
        "details",
        element("summary", "Read the text" if all(pair.is_equal for pair in pairs) else "Read both texts"),
        *(_both(pair, longest) for pair in pairs),
    )


def _both(pair: FieldPair, longest: int) -> Html:
    texts = [("", pair.goes)] if pair.is_equal else [(" that goes", pair.goes), (" that stays", pair.stays)]
    shown = []
    for which, text in texts:
        body = element("p", "none", class_="quiet")
        if text is not None:
            end = " …" if pair.is_cut or len(text) > longest else ""
            body = user_text(text[:longest] + end, within="div", class_="text", tabindex="0")
        shown.append(element("div", element("h5", user_text(pair.name), which), body))
    return shown[0] if pair.is_equal else element("div", *shown, class_="two")


def facts(summary: Summary) -> Html:
    """Return the few numbers that matter most."""
    total = summary.total
    same = sum(number for band, number in summary.bands.items() if band is not None and band >= 1)
    unread = summary.bands.get(None, 0)
    of = "" if total.documents is None else f" of {total.documents:,} ({percent(total.share)})"
    shown = [
        ("documents would go", f"{total.removals:,}", of),
        ("documents stay for them", f"{summary.canonicals:,}", ""),
        ("have the same words", f"{same:,}", ""),
    ]
    if summary.lowest is not None:
        shown.append(("the least similar", percent_similar(summary.lowest), ""))
    if unread:
        shown.append(("texts were not compared", f"{unread:,}", ""))
    return element(
        "dl",
        *(
            element("div", element("dt", name), element("dd", number, element("small", rest)))
            for name, number, rest in shown
        ),
        class_="facts",
    )


def tables(summary: Summary, said: Mapping[str, str]) -> Html:
    """Return all tables: by similarity, by index, by field, the largest groups, and what the plan says of itself."""
    most = max(summary.bands.values(), default=1)
    total = summary.total.removals
    bands = [
        ([band_name(band)], [f"{number:,}", percent(number / total)], number / most)
        for band, number in summary.bands.items()
    ]
    found = [_html_table("By similarity", ["similarity", "removals", "share"], bands)] if bands else []
    if summary.indices:
        found.append(_shares("By index", "index", summary.indices, total))
    found += [_shares(f"By {name}", name, shares, total) for name, shares in summary.fields.items() if shares]
    if summary.groups:
        largest = summary.groups[0][2]
        rows = [([id_, index], [f"{number:,}"], number / largest) for index, id_, number in summary.groups]
        found.append(_html_table("What stays for most removals", ["document that stays", "index", "removals"], rows))
    if said:
        rows_said = [
            element("tr", element("th", name, scope="row"), element("td", user_text(text)))
            for name, text in said.items()
        ]
        found.append(element("table", element("caption", "The plan"), element("tbody", *rows_said), class_="said"))
    return element(
        "section",
        element("h2", "In numbers", id="numbers"),
        element("div", *(element("div", each) for each in found), class_="tables"),
        aria_labelledby="numbers",
    )


def _shares(title: str, name: str, shares: Sequence[Portion], total: int) -> Html:
    is_known = any(each.documents is not None for each in shares)
    rows = []
    for each in shares:
        numbers = [f"{each.removals:,}"]
        if is_known:
            numbers += ["" if each.documents is None else f"{each.documents:,}", percent(each.share)]
        share = each.share if is_known and each.share is not None else each.removals / total
        rows.append(([each.name if each.name is not None else "(none)"], numbers, share))
    head = [name, "would go", "of", "share"] if is_known else [name, "would go"]
    more = f" (the {MOST_VALUES} with most removals)" if len(shares) == MOST_VALUES else ""
    return _html_table(title + more, head, rows)


def _html_table(title: str, head: Sequence[str], rows: Sequence[tuple[Sequence[str], Sequence[str], float]]) -> Html:
    names = len(rows[0][0])
    cells: list[Child] = [
        element("th", user_text(each), scope="col", class_="number" if place >= names else None)
        for place, each in enumerate(head)
    ]
    body = [
        element(
            "tr",
            *(element("th", user_text(each), scope="row") for each in words[:1]),
            *(element("td", user_text(each)) for each in words[1:]),
            *(element("td", each, class_="number") for each in numbers),
            element("td", bar(share), class_="bar"),
        )
        for words, numbers, share in rows
    ]
    return element(
        "table",
        element("caption", user_text(title)),
        element("thead", element("tr", *cells, element("td"))),
        element("tbody", *body),
    )
