"""
The review page: one HTML file with its style, its script and every removal, which loads nothing.

Lines stand in classes, what loses most first; those that are held back have a tick: they stay. The first lines are
there in full, the others as one line each, so that a browser opens the page of any plan. It is made in pieces. Its
words are English; ``review_words.zh.json`` has the Chinese ones. ``review.html.jinja`` is the page; here are the values
for it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

from es_simhash.removal.decisions import LONGEST_NAME, LONGEST_REASON
from es_simhash.removal.losses import LOSSLESS, SAID
from es_simhash.removal.review import (
    LONGEST_VALUE,
    FieldPair,
    Summary,
    compare_fields,
    field_text,
    percent_similar,
)
from es_simhash.removal.take_decisions import decisions_name
from es_simhash.tables.notebook import Html, template
from es_simhash.tables.words import Words

if TYPE_CHECKING:
    from es_simhash.removal.plan_options import PlanHeader
    from es_simhash.removal.records import PlannedDocument, PlannedRemoval
    from es_simhash.removal.removal_file import RemovalFile

FULL = 2_000
"""Lines that are shown in full."""

LONGEST_TEXT, LONGEST_TITLE = 4_000, 300
"""Characters of a text, and of a title."""

CATALOGUE = "removal/review_words"
"""Where the Chinese sentences of the page are."""


@dataclass(frozen=True, slots=True)
class Side:
    """
    A document of a line for people: its *title*, or how its text begins; what tells it apart (*origin*: such as its
    index, date and address).
    """

    id: str
    title: str
    origin: tuple[str, ...]


def write_page(removal: RemovalFile, summary: Summary, facts: Mapping[str, str], say: Words) -> Iterator[str]:
    """Yield the page of a plan; *facts* are terms and texts."""
    header = removal.header
    return template("removal/review.html.jinja").generate(
        language=say.language,
        _=say,
        words=Html(json.dumps(say.all, ensure_ascii=False).translate(_ESCAPED)),
        plan=removal,
        facts=facts,
        summary=summary,
        who_stays=header.who_stays(say.language) or say("the one that was grouped first"),
        date=header.date,
        differing={name: number for name, number in summary.differing.items() if not header.shown.get(name)},
        removals=sum(summary.losses.values()),
        classes=_classes(removal, summary, say),
        sides=lambda line: _sides(line, header),
        pairs=lambda line: [pair for pair in compare_fields(line) if not _is_in_head(pair, header)],
        key=_key,
        percent=say.percent,
        similar=lambda similarity: say.in_percent(percent_similar(similarity)),
        longest=LONGEST_TEXT,
        decisions=str(decisions_name(removal.path.name)),
        longest_name=LONGEST_NAME,
        longest_reason=LONGEST_REASON,
    )


def _classes(
    removal: RemovalFile, summary: Summary, say: Words
) -> Iterator[tuple[str, bool, bool, int, Iterator[tuple[PlannedRemoval, bool]]]]:
    """Yield each class: what it is, if it is held back, if it is folded, its number, and its lines: those in full."""
    places = count()
    for loss, number in summary.losses.items():
        lines = ((line, next(places) < FULL) for line in removal.removals(loss))
        yield say(SAID[loss].capitalize()), loss not in removal.allowed, loss in LOSSLESS, number, lines


def _sides(line: PlannedRemoval, header: PlanHeader) -> tuple[Side, Side]:
    goes, stays = line.document, line.canonical
    return _side(goes, header), _side(stays, header)


def _side(document: PlannedDocument, header: PlanHeader) -> Side:
    titles = filter(None, [*header.titles, *header.text_fields.get(document.index, ())])
    title = next((text for name in titles if (text := _value(document, name, LONGEST_TITLE))), "")
    index = [document.index] if len(header.index_uuids) > 1 else []
    values = (_value(document, name, LONGEST_VALUE) for name, kind in header.shown.items() if kind and kind != "title")
    return Side(document.id, title, (*index, *filter(None, values)))


def _value(document: PlannedDocument, name: str, longest: int) -> str:
    """Return a value on one line, or how it begins; it may have megabytes."""
    text = field_text(document.fields.get(name)) or ""
    begin = " ".join(text[: 2 * longest].split())
    return begin if len(begin) <= longest and len(text) <= 2 * longest else f"{begin[:longest]}…"


def _is_in_head(pair: FieldPair, header: PlanHeader) -> bool:
    kind = header.shown.get(pair.name)
    return bool(kind) and (kind != "title" or pair.diff is None or pair.is_equal)


# In JSON they stand only inside strings, and in an attribute they would have to be escaped once more, or be seen.
_ESCAPED = {ord(sign): f"\\u{ord(sign):04x}" for sign in "&'<>\x7f"}


def _key(line: PlannedRemoval) -> Html:
    """Return the keys of the document that goes, and of the one that stays."""
    return Html(json.dumps([line.document.key, line.canonical.key], separators=(",", ":")).translate(_ESCAPED))
