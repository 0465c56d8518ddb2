"""
The review page: one HTML file with its style, its script and every removal, which loads nothing.

Removals stand in classes, by how their texts differ. Its words are English; ``review_words.zh.json`` has the Chinese
ones.

A long page keeps removals as text in script elements that hold no script, which a browser reads a hundred
times faster than elements; the page's script inserts a part when it is opened. The page is made in pieces, so
a plan may have any length. ``review.html.jinja`` is the page; here are the values for it.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import islice
from typing import TYPE_CHECKING, Any

from es_simhash.removal.decisions import LONGEST_NAME, LONGEST_REASON
from es_simhash.removal.review import (
    BANDS,
    MOST_VALUES,
    Band,
    FieldPair,
    Portion,
    Summary,
    band_name,
    compare_fields,
    percent_similar,
)
from es_simhash.removal.take_decisions import decisions_name
from es_simhash.tables.notebook import Html
from es_simhash.tables.page_frame import template
from es_simhash.tables.tabular import percent
from es_simhash.texts.differences import SAID, Difference

if TYPE_CHECKING:
    from es_simhash.removal.decisions import Decisions
    from es_simhash.removal.records import PlannedRemoval


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
    """
    What a page shows of the plan with the digest *sha256*.
    *facts* are terms and texts; *lines* returns the removals of a class, smallest similarity first. *log*: what was
    decided so far.
    """

    title: str
    sha256: str
    facts: Mapping[str, str]
    summary: Summary
    lines: Callable[[Difference | None], Iterable[PlannedRemoval]]
    log: Sequence[Decisions] = ()


class Words:
    """Sentences of the page in a language; the English ones are their keys."""

    def __init__(self, language: str) -> None:
        self.all: dict[str, str] = {}
        if language != "en":
            text = files("es_simhash").joinpath(f"removal/review_words.{language}.json").read_text(encoding="utf-8")
            self.all = json.loads(text)

    def __call__(self, sentence: str, **values: object) -> str:
        return self.all.get(sentence, sentence).format(**values) if values else self.all.get(sentence, sentence)


def write_page(page: Page, language: str = "en") -> Iterator[str]:
    total = page.summary.total.removals
    decisions = str(decisions_name(page.title))
    say = Words(language)
    return template("removal/review.html.jinja").generate(
        language=language,
        _=say,
        words=Html(json.dumps(say.all, ensure_ascii=False).translate(_ESCAPED)),
        name=page.title,
        summary=page.summary,
        facts=_facts(page.summary, say),
        heads=[
            say("In {number} of {total} the field {name} differs.", number=f"{number:,}", total=f"{total:,}", name=name)
            for name, number in page.summary.differing.items()
        ],
        tables=_tables(page.summary, say),
        said=page.facts,
        log=page.log,
        is_long=total > STATIC,
        classes=_classes(page, total, say),
        longest=max(SHORTEST_TEXT, min(LONGEST_TEXT, TEXT_BUDGET // max(1, 2 * total))),
        notes=lambda pair: _notes(pair, say),
        sha256=page.sha256,
        decisions=decisions,
        commands=[
            [shlex.quote(word) for word in ["es-simhash", *words]]
            for words in (["decide", page.title, decisions], ["apply", page.title, "--yes"])
        ],
        longest_name=LONGEST_NAME,
        longest_reason=LONGEST_REASON,
    )


def _classes(page: Page, total: int, say: Words) -> Iterator[tuple[str, int, Iterator[dict[str, Any]]]]:
    """Yield each class of removals: what it is, its number, and its parts."""
    done = 0

    def parts(removals: Iterator[PlannedRemoval]) -> Iterator[dict[str, Any]]:
        nonlocal done
        while part := list(islice(removals, PART)):
            is_open = done < OPEN
            yield {
                "is_open": is_open,
                "waits": total > STATIC and not is_open,
                "summary": _places(part, done, say),
                "lines": (_line(each, say) if total <= DETAILED else _short_line(each, say) for each in part),
                "number": len(part),
                "removals": _keys(part),
            }
            done += len(part)

    for difference, number in page.summary.classes.items():
        yield _class_name(difference, say), number, parts(iter(page.lines(difference)))


def _class_name(difference: Difference | None, say: Words) -> str:
    return say("Texts not compared" if difference is None else SAID[difference].capitalize())


def _band_name(band: Band, say: Words) -> str:
    if band is None or band >= 1:
        return say(band_name(band))
    return say("{low} to {high} % similar", low=f"{band * 100:.0f}", high=f"{(band + 1 / BANDS) * 100:.0f}")


# In JSON they stand only inside strings, and in an attribute they would have to be escaped once more, or be seen.
_ESCAPED = {ord(sign): f"\\u{ord(sign):04x}" for sign in "&'<>\x7f"}


def _keys(part: Sequence[PlannedRemoval]) -> Html:
    """Return for each removal its key and that of what stays, which are known while the part itself still waits."""
    keys = [[each.document.key, each.canonical.key] for each in part]
    return Html(json.dumps(keys, separators=(",", ":")).translate(_ESCAPED))


def _places(part: Sequence[PlannedRemoval], before: int, say: Words) -> str:
    number = len(part)
    places = say("Removals {first} to {last}", first=f"{before + 1:,}", last=f"{before + number:,}")
    if number == 1:
        places = say("Removal {number}", number=f"{before + 1:,}")
    first, last = (percent_similar(each.similarity) for each in (part[0], part[-1]))
    return places if part[0].similarity is None or first == last else f"{places}, {first} – {last}"


def _line(removal: PlannedRemoval, say: Words) -> dict[str, Any]:
    pairs = compare_fields(removal)
    texts = [pair for pair in pairs if pair.diff is not None]
    read = say("Read the text" if all(pair.is_equal for pair in texts) else "Read both texts")
    return _heading(removal, pairs, say) | {
        "short": [pair for pair in pairs if pair.diff is None],
        "texts": texts,
        "read": read,
    }


def _short_line(removal: PlannedRemoval, say: Words) -> dict[str, Any]:
    pairs = compare_fields(removal, max_changes=3)
    short = [pair for pair in pairs if pair.diff is None]
    opening = next((pair.goes for pair in pairs if pair.diff is not None and pair.goes), "")[:SHORTEST_TEXT]
    return _heading(removal, pairs, say) | {
        "same": [pair for pair in short if pair.is_equal and pair.goes],
        "short": [pair for pair in short if not pair.is_equal],
        "opening": f"{' '.join(opening.split())} …" if opening else "",
    }


def _heading(removal: PlannedRemoval, pairs: Sequence[FieldPair], say: Words) -> dict[str, Any]:
    apart = say("{bits} bits apart" if removal.distance != 1 else "{bits} bit apart", bits=removal.distance)
    relation = say("contains it") if removal.reason == "contained" else apart
    how = say("contained" if removal.reason == "contained" else "similar")
    return {
        "goes": removal.document,
        "stays": removal.canonical,
        "similar": say("not compared") if removal.similarity is None else percent_similar(removal.similarity),
        "how": ": " if removal.similarity is None else f" {how}: ",
        "relation": relation,
        "long": [pair for pair in pairs if pair.diff is not None],
        "same": (),
        "opening": "",
        "texts": (),
    }


def _notes(pair: FieldPair, say: Words) -> str:
    notes, diff = [], pair.diff
    if diff is not None and diff.omitted:
        more = "and {number} more places" if diff.omitted > 1 else "and {number} more place"
        notes.append(say(more, number=f"{diff.omitted:,}"))
    if pair.is_cut or (diff is not None and diff.is_cut):
        notes.append(say("the texts are long: only their beginnings were compared here"))
    return "; ".join(notes)


def _facts(summary: Summary, say: Words) -> Iterator[tuple[str, str, str]]:
    """Yield the few numbers that matter most: name, number, and what stands behind it."""
    total = summary.total
    documents, share = f"{total.documents or 0:,}", percent(total.share)
    of = "" if total.documents is None else say(" of {documents} ({share})", documents=documents, share=share)
    yield say("documents would go"), f"{total.removals:,}", of
    yield say("documents stay for them"), f"{summary.canonicals:,}", ""
    same = sum(number for band, number in summary.bands.items() if band is not None and band >= 1)
    yield say("have the same words"), f"{same:,}", ""
    if summary.lowest is not None:
        yield say("the least similar"), percent_similar(summary.lowest), ""
    if unread := summary.bands.get(None, 0):
        yield say("texts were not compared"), f"{unread:,}", ""


# Title, head, and for each row its words, its numbers and how full its bar is.
_Table = tuple[str, list[str], list[tuple[list[str], list[str], float]]]


def _tables(summary: Summary, say: Words) -> Iterator[_Table]:
    """Yield the tables by similarity, by index, by field, and of the largest groups."""
    total, removals = summary.total.removals, say("removals")
    classes = {_class_name(difference, say): number for difference, number in summary.classes.items()}
    bands = {_band_name(band, say): number for band, number in summary.bands.items()}
    for title, name, counts in (("By class", "class", classes), ("By similarity", "similarity", bands)):
        most = max(counts.values(), default=1)
        rows = [([each], [f"{number:,}", percent(number / total)], number / most) for each, number in counts.items()]
        if rows:
            yield say(title), [say(name), removals, say("share")], rows
    if summary.indices:
        yield _shares(say("By index"), say("index"), summary.indices, total, say)
    for name, shares in summary.fields.items():
        if shares:
            yield _shares(say("By {name}", name=name), name, shares, total, say)
    if groups := summary.groups:
        rows = [([id_, index], [f"{number:,}"], number / groups[0][2]) for index, id_, number in groups]
        title = say("What stays for most removals")
        yield f"{title} ({summary.groups_shown})", [say("document that stays"), say("index"), removals], rows


def _shares(title: str, name: str, shares: Sequence[Portion], total: int, say: Words) -> _Table:
    is_known = any(each.documents is not None for each in shares)
    rows = []
    for each in shares:
        numbers = [f"{each.removals:,}"]
        if is_known:
            numbers += ["" if each.documents is None else f"{each.documents:,}", percent(each.share)]
        share = each.share if is_known and each.share is not None else each.removals / total
        rows.append(([each.name if each.name is not None else say("(none)")], numbers, share))
    more = say(" (the {number} with most removals)", number=MOST_VALUES) if len(shares) == MOST_VALUES else ""
    return title + more, [name, say("would go"), *([say("of"), say("share")] if is_known else [])], rows
