"""Finds the words that differ between two texts, as a few short excerpts, by rapidfuzz; bounded in time and memory."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby
from typing import TYPE_CHECKING

from rapidfuzz.distance import Indel

from es_simhash.arguments import check_count
from es_simhash.errors import count
from es_simhash.record import Record
from es_simhash.tables.notebook import Marked

if TYPE_CHECKING:
    from collections.abc import Iterator


MAX_CHARACTERS = 200_000
"""Characters of each text that are compared; the rest is left out and the result marked as cut."""

MAX_TOKENS = 20_000
"""Words of each text that are compared, from the first to the last that differs: 50 MB."""

LONGEST_CHANGE = 60
"""Characters of a removed or added passage that an excerpt shows; a longer one loses its middle."""

# Scripts written without spaces: each character is a word of its own, and runs of them are joined again below.
_UNSPACED = r"\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
_PUNCTUATION = (
    r"!-/:-@\[-`{-~\u00a1-\u00bf\u2000-\u206f\u3000-\u3020\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65"
)
_TOKEN = re.compile(rf"\d+(?:[.,:]\d+)+|[^\s{_UNSPACED}{_PUNCTUATION}]+|\s+|.", re.DOTALL)


class Change(StrEnum):
    """How a passage of the first text changed in the second text."""

    SAME = "same"
    REMOVED = "removed"
    ADDED = "added"


@dataclass(frozen=True, slots=True)
class Segment(Record):
    """A passage of an excerpt, and how it changed."""

    change: Change
    text: str


@dataclass(frozen=True, slots=True)
class WordDiff(Record):
    """Where two texts differ, without *omitted* further changes; *is_cut*: not compared to their ends."""

    excerpts: tuple[tuple[Segment, ...], ...]
    omitted: int
    is_cut: bool

    def marked(self) -> list[Marked]:
        """Return the excerpts for people, and what is not in them."""
        found = [Marked([(part.change.value, part.text) for part in excerpt]) for excerpt in self.excerpts]
        notes = [] if found else ["no words differ"]
        notes += [f"and {count(self.omitted, 'more change')}"] if self.omitted else []
        notes += ["(long texts: only a part was compared)"] if self.is_cut else []
        return found + [Marked([("note", note)]) for note in notes]


def word_diff(before: str, after: str, *, max_changes: int = 4, context: int = 12) -> WordDiff:
    """
    Return the first places where *after* differs from *before*, never the whole texts.
    Bounded in time and memory for any text. *context*: unchanged words on each side; a Chinese or Japanese character, a
    space and a punctuation mark count as one each. There are no excerpts if the texts are equal as far as they were
    compared, but for blanks and line breaks.
    """
    check_count("max_changes", max_changes)
    if before == after:
        return WordDiff((), 0, is_cut=False)
    segments, is_rest_left_out = _compared(*(_TOKEN.findall(text[:MAX_CHARACTERS]) for text in (before, after)))
    is_cut = is_rest_left_out or max(len(before), len(after)) > MAX_CHARACTERS
    places = list(_places(_joined(segments)))
    omitted = max(0, len(places) // 2 - max_changes)
    excerpts = tuple(_excerpts(places[: 2 * max_changes + 1], context, is_last_cut=omitted > 0 or is_cut))
    return WordDiff(excerpts, omitted, is_cut=is_cut)


def _compared(a: list[str], b: list[str]) -> tuple[list[Segment], bool]:
    """Return the passages of *a* and *b* in order, and whether a rest was left out."""
    shorter = min(len(a), len(b))
    start = next((i for i in range(shorter) if a[i] != b[i]), shorter)
    end = next((i for i in range(shorter - start) if a[-1 - i] != b[-1 - i]), shorter - start)
    old, new = a[start : len(a) - end], b[start : len(b) - end]
    has_rest = max(len(old), len(new)) > MAX_TOKENS
    old, new = old[:MAX_TOKENS], new[:MAX_TOKENS]
    found = [Segment(Change.SAME, "".join(a[:start]))]
    for part in Indel.opcodes(old, new):
        found += _segments("".join(old[part.src_start : part.src_end]), "".join(new[part.dest_start : part.dest_end]))
    # After a rest that was left out, the common end would seem to follow directly: leave it out as well.
    if not has_rest:
        found.append(Segment(Change.SAME, "".join(a[len(a) - end :])))
    return found, has_rest


def _segments(removed: str, added: str) -> list[Segment]:
    if removed == added or not (removed + added).strip():
        return [Segment(Change.SAME, removed or added)]
    return [Segment(change, text) for change, text in ((Change.REMOVED, removed), (Change.ADDED, added)) if text]


def _joined(segments: list[Segment]) -> list[Segment]:
    """Return *segments* with neighbours of the same kind made one."""
    return [
        Segment(change, "".join(segment.text for segment in run))
        for change, run in groupby(segments, key=lambda segment: segment.change)
    ]


def _places(segments: list[Segment]) -> Iterator[list[Segment]]:
    """
    Yield unchanged passages and changes in turn; the first and the last are unchanged, perhaps empty. Fewer than three
    characters between two changes belong to the change.
    """
    same, removed, added = "", "", ""
    for index, segment in enumerate(segments):
        is_island = len(segment.text.strip()) < 3 and 0 < index < len(segments) - 1
        if segment.change is Change.SAME and not ((removed or added) and is_island):
            if removed or added:
                yield [Segment(Change.SAME, same)]
                yield _segments(removed, added)
                same, removed, added = "", "", ""
            same += segment.text
        else:
            removed += segment.text if segment.change is not Change.ADDED else ""
            added += segment.text if segment.change is not Change.REMOVED else ""
    yield [Segment(Change.SAME, same)]
    if removed or added:
        yield _segments(removed, added)
        yield [Segment(Change.SAME, "")]


def _excerpts(places: list[list[Segment]], context: int, *, is_last_cut: bool) -> Iterator[tuple[Segment, ...]]:
    """Yield excerpts of *places*: unchanged passages longer than two contexts part one excerpt from the next."""
    excerpt: list[Segment] = []
    last = len(places) - 1
    for index, place in enumerate(places):
        if index % 2:
            excerpt += [Segment(segment.change, _without_middle(segment.text)) for segment in place]
            continue
        words = _TOKEN.findall(place[0].text)
        before, after = _cut(words[:context]), _cut(words[max(0, len(words) - context) :], is_end=True)
        if 0 < index < last and len(words) <= 2 * context:
            excerpt.append(Segment(Change.SAME, _without_middle(place[0].text, limit=2 * LONGEST_CHANGE)))
            continue
        if index > 0:
            goes_on = len(words) > context or (index == last and is_last_cut)
            excerpt.append(Segment(Change.SAME, before + ("…" if goes_on else "")))
            yield tuple(segment for segment in excerpt if segment.text)
        excerpt = [Segment(Change.SAME, ("…" if len(words) > context else "") + after)]


def _cut(words: list[str], *, is_end: bool = False) -> str:
    text = "".join(words)
    return text[-LONGEST_CHANGE:] if is_end else text[:LONGEST_CHANGE]


def _without_middle(text: str, *, limit: int = LONGEST_CHANGE) -> str:
    half = limit // 2 - 1
    return text if len(text) <= limit else f"{text[:half]} … {text[-half:]}"
