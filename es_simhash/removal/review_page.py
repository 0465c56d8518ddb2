"""
The review page: one HTML file with its style, its script and every removal, which loads nothing.

Lines stand in classes, by what is lost; those that are held back have a tick: they stay. Its words are English;
``review_words.zh.json`` has the Chinese ones.

A long page keeps removals as text in script elements that hold no script, which a browser reads a hundred
times faster than elements; the page's script inserts a part when it is opened. The page is made in pieces, so
a plan may have any length. ``review.html.jinja`` is the page; here are the values for it.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from es_simhash.removal.classes import SAID, Loss
from es_simhash.removal.decisions import LONGEST_NAME, LONGEST_REASON
from es_simhash.removal.review import Summary, band_name, compare_fields, percent_similar
from es_simhash.removal.take_decisions import decisions_name
from es_simhash.tables.notebook import Html, percent, template
from es_simhash.tables.words import Words

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
class ReviewPage:
    """
    What a page shows of the plan with the digest *sha256*.
    *facts* are terms and texts; *lines* returns the lines of a class, smallest similarity first. *allowed*: the classes
    that go. *log*: what was decided so far.
    """

    title: str
    sha256: str
    facts: Mapping[str, str]
    summary: Summary
    lines: Callable[[Loss], Iterable[PlannedRemoval]]
    allowed: Collection[Loss]
    log: Sequence[Decisions] = ()


CATALOGUE = "removal/review_words"
"""Where the Chinese sentences of the page are."""


def write_page(page: ReviewPage, say: Words) -> Iterator[str]:
    total = sum(page.summary.losses.values())
    decisions = str(decisions_name(page.title))
    is_detailed = total <= DETAILED
    return template("removal/review.html.jinja").generate(
        language=say.language,
        _=say,
        words=Html(json.dumps(say.all, ensure_ascii=False).translate(_ESCAPED)),
        page=page,
        summary=page.summary,
        total=total,
        tables=_tables(page.summary, total, say),
        classes=_classes(page, say),
        compare=partial(compare_fields, max_changes=6 if is_detailed else 3),
        keys=_keys,
        percent=lambda share: say.in_percent(percent(share)),
        similar=lambda similarity: say.in_percent(percent_similar(similarity)),
        is_detailed=is_detailed,
        is_long=total > STATIC,
        first_open=OPEN,
        longest=max(SHORTEST_TEXT, min(LONGEST_TEXT, TEXT_BUDGET // max(1, 2 * total))),
        shortest=SHORTEST_TEXT,
        decisions=decisions,
        commands=[
            [shlex.quote(word) for word in ["es-simhash", *words]]
            for words in [["apply", page.title, "--decisions", decisions, "--yes"]]
        ],
        longest_name=LONGEST_NAME,
        longest_reason=LONGEST_REASON,
    )


def _classes(
    page: ReviewPage, say: Words
) -> Iterator[tuple[str, bool, int, Iterator[tuple[int, list[PlannedRemoval]]]]]:
    """Yield each class: what it is, whether it is held back, its number, and its lines, some at a time."""
    before = 0
    for loss, number in page.summary.losses.items():
        yield _class_name(loss, say), loss not in page.allowed, number, _parts(page.lines(loss), before)
        before += number


def _parts(removals: Iterable[PlannedRemoval], before: int) -> Iterator[tuple[int, list[PlannedRemoval]]]:
    """Yield removals, some at a time, and before each part how many of the page stand before it."""
    rest = iter(removals)
    while part := list(islice(rest, PART)):
        yield before, part
        before += len(part)


def _class_name(loss: Loss, say: Words) -> str:
    return say(SAID[loss].capitalize())


# In JSON they stand only inside strings, and in an attribute they would have to be escaped once more, or be seen.
_ESCAPED = {ord(sign): f"\\u{ord(sign):04x}" for sign in "&'<>\x7f"}


def _keys(part: Sequence[PlannedRemoval]) -> Html:
    """Return for each removal its key and that of what stays, which are known while the part itself still waits."""
    keys = [[line.document.key, line.canonical.key] for line in part]
    return Html(json.dumps(keys, separators=(",", ":")).translate(_ESCAPED))


# Title, head, and for each row its words, its numbers and how full its bar is.
_Table = tuple[str, list[str], list[tuple[list[str], list[str], float]]]


def _tables(summary: Summary, total: int, say: Words) -> Iterator[_Table]:
    """Yield the tables by class, by similarity, and of the largest groups."""
    removals = say("removals")
    classes = {_class_name(loss, say): number for loss, number in summary.losses.items()}
    bands = {band_name(band, say): number for band, number in summary.bands.items()}
    for title, name, counts in (("By class", "class", classes), ("By similarity", "similarity", bands)):
        most = max(counts.values(), default=1)
        rows = [
            ([label], [f"{number:,}", say.in_percent(percent(number / total))], number / most)
            for label, number in counts.items()
        ]
        if rows:
            yield say(title), [say(name), removals, say("share")], rows
    if groups := summary.groups:
        rows = [([id_, index], [f"{number:,}"], number / groups[0][2]) for index, id_, number in groups]
        title = say("What stays for most removals ({number} of {total})", number=len(groups), total=summary.canonicals)
        yield title, [say("document that stays"), say("index"), removals], rows
