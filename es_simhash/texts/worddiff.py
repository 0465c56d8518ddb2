"""Finds the words that differ between two texts, as a few short excerpts, by rapidfuzz; bounded in time and memory."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

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

# Characters, blanks apart, that stand between two changes that are told as two.
_ISLAND = 3

# Scripts written without spaces: each character is a word of its own,.
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
    old, new = (_TOKEN.findall(text[:MAX_CHARACTERS]) for text in (before, after))
    changes, compared, has_rest = _changes(old, new)
    is_cut = has_rest or max(len(before), len(after)) > MAX_CHARACTERS
    excerpts = tuple(_excerpts(compared, new, changes, max_changes, context, is_cut=is_cut))
    return WordDiff(excerpts, max(0, len(changes) - max_changes), is_cut=is_cut)


class _Change(NamedTuple):
    """The words from *start* to before *stop* became those from *new_start* to before *new_stop*."""

    start: int
    stop: int
    new_start: int
    new_stop: int

    def segments(self, old: list[str], new: list[str]) -> list[Segment]:
        removed, added = "".join(old[self.start : self.stop]), "".join(new[self.new_start : self.new_stop])
        return [Segment(change, text) for change, text in ((Change.REMOVED, removed), (Change.ADDED, added)) if text]


def _changes(old: list[str], new: list[str]) -> tuple[list[_Change], list[str], bool]:
    """Return where *new* differs from *old* in more than blanks, what of *old* was compared, and if a rest was left."""
    shorter = min(len(old), len(new))
    start = next((i for i in range(shorter) if old[i] != new[i]), shorter)
    end = next((i for i in range(shorter - start) if old[-1 - i] != new[-1 - i]), shorter - start)
    middles = old[start : len(old) - end], new[start : len(new) - end]
    found: list[_Change] = []
    for part in Indel.opcodes(*(middle[:MAX_TOKENS] for middle in middles)):
        change = _Change(*(start + place for place in (part.src_start, part.src_end, part.dest_start, part.dest_end)))
        if part.tag == "equal" or not "".join(segment.text for segment in change.segments(old, new)).strip():
            continue
        # Fewer than three characters between two changes belong to the change.
        if found and len("".join(old[found[-1].stop : change.start]).strip()) < _ISLAND:
            last = found.pop()
            change = change._replace(start=last.start, new_start=last.new_start)
        found.append(change)
    # After a rest that was left out, the common end would seem to follow directly: leave it out as well.
    has_rest = max(map(len, middles)) > MAX_TOKENS
    return found, old[: start + MAX_TOKENS] if has_rest else old, has_rest


def _excerpts(
    old: list[str], new: list[str], changes: list[_Change], most: int, context: int, *, is_cut: bool
) -> Iterator[tuple[Segment, ...]]:
    """Yield excerpts with *most* of *changes*: unchanged passages longer than two contexts part one from the next."""
    excerpt: list[Segment] = []
    stop = 0
    for change in changes[:most]:
        between = old[stop : change.start]
        if excerpt and len(between) <= 2 * context:
            excerpt.append(Segment(Change.SAME, _without_middle("".join(between), limit=2 * LONGEST_CHANGE)))
        else:
            if excerpt:
                yield _ended(excerpt, between, context, goes_on=False)
            before = "".join(between[max(0, len(between) - context) :])[-LONGEST_CHANGE:]
            excerpt = [Segment(Change.SAME, ("…" if len(between) > context else "") + before)]
        excerpt += [Segment(part.change, _without_middle(part.text)) for part in change.segments(old, new)]
        stop = change.stop
    if excerpt:
        rest = old[stop : changes[most].start if len(changes) > most else len(old)]
        yield _ended(excerpt, rest, context, goes_on=is_cut or len(changes) > most)


def _ended(excerpt: list[Segment], behind: list[str], context: int, *, goes_on: bool) -> tuple[Segment, ...]:
    dots = "…" if goes_on or len(behind) > context else ""
    last = Segment(Change.SAME, "".join(behind[:context])[:LONGEST_CHANGE] + dots)
    return tuple(segment for segment in [*excerpt, last] if segment.text)


def _without_middle(text: str, *, limit: int = LONGEST_CHANGE) -> str:
    half = limit // 2 - 1
    return text if len(text) <= limit else f"{text[:half]} … {text[-half:]}"
