"""
The review page: one HTML file with its style, its script and every removal, which loads nothing.

A long page keeps removals as text in script elements that hold no script, which a browser reads a hundred
times faster than elements; the page's script inserts a part when it is opened. The page is made in pieces, so
a plan may have any length. ``review.html.jinja`` is the page; here are the values for it.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any

from es_simhash.removal.decisions import LONGEST_NAME, LONGEST_REASON, apply_command, decisions_name
from es_simhash.removal.review import (
    MOST_VALUES,
    Band,
    FieldPair,
    Portion,
    Summary,
    band_name,
    band_of,
    compare_fields,
    percent_similar,
    relation,
)
from es_simhash.tables.notebook import Html
from es_simhash.tables.page_frame import template
from es_simhash.tables.tabular import percent

if TYPE_CHECKING:
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
    *facts* are terms and texts; *lines* returns the removals, smallest similarity first.
    """

    title: str
    sha256: str
    facts: Mapping[str, str]
    summary: Summary
    lines: Callable[[], Iterable[PlannedRemoval]]


def write_page(page: Page) -> Iterator[str]:
    total = page.summary.total.removals
    decisions = str(decisions_name(page.title))
    return template("removal/review.html.jinja").generate(
        name=page.title,
        summary=page.summary,
        facts=_facts(page.summary),
        tables=_tables(page.summary),
        said=page.facts,
        is_long=total > STATIC,
        bands=_bands(page, total),
        longest=max(SHORTEST_TEXT, min(LONGEST_TEXT, TEXT_BUDGET // max(1, 2 * total))),
        notes=_notes,
        sha256=page.sha256,
        decisions=decisions,
        command=[shlex.quote(word) for word in apply_command(page.title)],
        longest_name=LONGEST_NAME,
        longest_reason=LONGEST_REASON,
    )


def _bands(page: Page, total: int) -> Iterator[tuple[str, Iterator[dict[str, Any]]]]:
    done = 0

    def parts(band: Band, removals: Iterator[PlannedRemoval]) -> Iterator[dict[str, Any]]:
        nonlocal done
        while part := list(islice(removals, PART)):
            is_open = done < OPEN
            yield {
                "is_open": is_open,
                "waits": total > STATIC and not is_open,
                "summary": _places(band, part, done),
                "lines": map(_line if total <= DETAILED else _short_line, part),
                "number": len(part),
                "removals": _keys(part),
            }
            done += len(part)

    for band, removals in groupby(page.lines(), key=lambda each: band_of(each.similarity)):
        number = page.summary.bands.get(band, 0)
        yield f"{band_name(band)}: {number:,} removal{'' if number == 1 else 's'}", parts(band, removals)


# In JSON they stand only inside strings, and in an attribute they would have to be escaped once more, or be seen.
_ESCAPED = {ord(sign): f"\\u{ord(sign):04x}" for sign in "&'<>\x7f"}


def _keys(part: Sequence[PlannedRemoval]) -> Html:
    """Return for each removal its key and that of what stays, which are known while the part itself still waits."""
    keys = [[each.document.key, each.canonical.key] for each in part]
    return Html(json.dumps(keys, separators=(",", ":")).translate(_ESCAPED))


def _places(band: Band, part: Sequence[PlannedRemoval], before: int) -> str:
    number = len(part)
    places = f"Removals {before + 1:,} to {before + number:,}" if number > 1 else f"Removal {before + 1:,}"
    first, last = (percent_similar(each.similarity) for each in (part[0], part[-1]))
    return places if band is None or first == last else f"{places}, {first} to {last}"


def _line(removal: PlannedRemoval) -> dict[str, Any]:
    pairs = compare_fields(removal)
    texts = [pair for pair in pairs if pair.diff is not None]
    read = "Read the text" if all(pair.is_equal for pair in texts) else "Read both texts"
    return _heading(removal, pairs) | {
        "short": [pair for pair in pairs if pair.diff is None],
        "texts": texts,
        "read": read,
    }


def _short_line(removal: PlannedRemoval) -> dict[str, Any]:
    pairs = compare_fields(removal, max_changes=3)
    short = [pair for pair in pairs if pair.diff is None]
    opening = next((pair.goes for pair in pairs if pair.diff is not None and pair.goes), "")[:SHORTEST_TEXT]
    return _heading(removal, pairs) | {
        "same": [pair for pair in short if pair.is_equal and pair.goes],
        "short": [pair for pair in short if not pair.is_equal],
        "opening": f"{' '.join(opening.split())} …" if opening else "",
    }


def _heading(removal: PlannedRemoval, pairs: Sequence[FieldPair]) -> dict[str, Any]:
    how = "contained" if removal.reason == "contained" else "similar"
    return {
        "goes": removal.document,
        "stays": removal.canonical,
        "similar": percent_similar(removal.similarity),
        "how": ": " if removal.similarity is None else f" {how}: ",
        "relation": relation(removal),
        "long": [pair for pair in pairs if pair.diff is not None],
        "same": (),
        "opening": "",
        "texts": (),
    }


def _notes(pair: FieldPair) -> str:
    notes, diff = [], pair.diff
    if diff is not None and diff.omitted:
        notes.append(f"and {diff.omitted:,} more place{'' if diff.omitted == 1 else 's'}")
    if pair.is_cut or (diff is not None and diff.is_cut):
        notes.append("the texts are long: only their beginnings were compared here")
    return "; ".join(notes)


def _facts(summary: Summary) -> Iterator[tuple[str, str, str]]:
    """Yield the few numbers that matter most: name, number, and what stands behind it."""
    total = summary.total
    of = "" if total.documents is None else f" of {total.documents:,} ({percent(total.share)})"
    yield "documents would go", f"{total.removals:,}", of
    yield "documents stay for them", f"{summary.canonicals:,}", ""
    same = sum(number for band, number in summary.bands.items() if band is not None and band >= 1)
    yield "have the same words", f"{same:,}", ""
    if summary.lowest is not None:
        yield "the least similar", percent_similar(summary.lowest), ""
    if unread := summary.bands.get(None, 0):
        yield "texts were not compared", f"{unread:,}", ""


# Title, head, and for each row its words, its numbers and how full its bar is.
_Table = tuple[str, list[str], list[tuple[list[str], list[str], float]]]


def _tables(summary: Summary) -> Iterator[_Table]:
    """Yield the tables by similarity, by index, by field, and of the largest groups."""
    total = summary.total.removals
    if bands := summary.bands:
        most = max(bands.values())
        rows = [
            ([band_name(band)], [f"{number:,}", percent(number / total)], number / most)
            for band, number in bands.items()
        ]
        yield "By similarity", ["similarity", "removals", "share"], rows
    if summary.indices:
        yield _shares("By index", "index", summary.indices, total)
    for name, shares in summary.fields.items():
        if shares:
            yield _shares(f"By {name}", name, shares, total)
    if groups := summary.groups:
        rows = [([id_, index], [f"{number:,}"], number / groups[0][2]) for index, id_, number in groups]
        yield (
            f"What stays for most removals ({summary.groups_shown})",
            ["document that stays", "index", "removals"],
            rows,
        )


def _shares(title: str, name: str, shares: Sequence[Portion], total: int) -> _Table:
    is_known = any(each.documents is not None for each in shares)
    rows = []
    for each in shares:
        numbers = [f"{each.removals:,}"]
        if is_known:
            numbers += ["" if each.documents is None else f"{each.documents:,}", percent(each.share)]
        share = each.share if is_known and each.share is not None else each.removals / total
        rows.append(([each.name if each.name is not None else "(none)"], numbers, share))
    more = f" (the {MOST_VALUES} with most removals)" if len(shares) == MOST_VALUES else ""
    return title + more, [name, "would go", *(["of", "share"] if is_known else [])], rows
