"""
What people's own searches show of copies: how many of the first hits repeat an earlier one. No request is made here.

A hit repeats an earlier one of its group; where one of the two has no group, one that the rule takes for its
near-duplicate.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from es_simhash.arguments import FilePath
from es_simhash.errors import InvalidInputError, shorten
from es_simhash.hashing import from_hex, hamming_distance
from es_simhash.lookup.content import compare_contents, read_content
from es_simhash.lookup.find import Scope
from es_simhash.lookup.near_dups import hit_fingerprints
from es_simhash.quality.shown import Member
from es_simhash.record import Record
from es_simhash.tables.notebook import Part, Sheet
from es_simhash.tables.tabular import Tabular
from es_simhash.transport.raw_json import why_unreadable

HITS = 10
"""Hits of a search that are looked at: the first page."""

WORST = 20
"""Searches that are named: those with the most repeats."""

_LONGEST_TEXT = 300
# What a search returns beside its hits, or shows of them: which hits come first does not depend on it.
_SHOWS = {"size", "from", "_source", "fields", "stored_fields", "docvalue_fields", "highlight", "aggs", "aggregations"}
_SHOWS |= {"suggest", "track_total_hits", "explain", "profile", "timeout", "version", "seq_no_primary_term"}


@dataclass(frozen=True, slots=True)
class Query:
    """A line of a file of searches: its *place*, *words* as they stand there, and the *body*; ``None`` for words."""

    place: str
    words: str
    body: Mapping[str, Any] | None = None


def read_queries(path: FilePath) -> list[Query]:
    """Return the searches in the file *path*, one a line: words, or the JSON of a search body."""
    try:
        lines = Path(path).read_text(encoding="utf-8-sig").split("\n")  # a text may have other marks of lines
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"queries {shorten(str(path))} is not in UTF-8: convert it") from error
    places = [(f"line {number} of {shorten(Path(path).name)}", line.strip()) for number, line in enumerate(lines, 1)]
    found = [_read_query(place, line) for place, line in places if line]
    if not found:
        raise InvalidInputError(f"queries {shorten(str(path))} has no search: give one a line")
    return found


def _read_query(place: str, line: str) -> Query:
    if not line.startswith("{"):
        return Query(place, line)
    try:
        body = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(f"{place} is no JSON: {why_unreadable(error)}; give words, or a search body") from error
    return Query(place, line, {name: value for name, value in body.items() if name not in _SHOWS})


@dataclass(frozen=True, slots=True)
class Searched(Record):
    """
    What one search shows.
    *hits*: of its first ten. *repeats*: those that repeat an earlier one. *unseen*: those without a group and a
    fingerprint, or whose text could not be compared: none of them counts as a repeat. *new*: hits that a search without
    copies shows in place of the repeats; ``None`` where the index is not grouped. *earlier*, *repeat*: the first two
    that repeat each other.
    """

    _NAMES = "search hits repeats unseen new earlier repeat texts"

    search: str
    hits: int = 0
    repeats: int = 0
    unseen: int = 0
    new: int | None = None
    earlier: Member | None = None
    repeat: Member | None = None

    @property
    def texts(self) -> list[str | None]:
        """The beginnings of the texts of these two."""
        both = (self.earlier, self.repeat)
        texts = [None if member is None else member.text or member.title or member.id for member in both]
        return [None if text is None else " ".join(text[:_LONGEST_TEXT].split()) for text in texts]


@dataclass(frozen=True, slots=True)
class Searches(Tabular, Record):
    """
    What searches show of copies, all together.
    *searches*: how many. *hits*, *repeats*, *unseen*, *new*: as of each :class:`Searched`, summed. *worst*: the twenty
    with the most repeats. *reason*: why *new* is ``None``.
    """

    _NAMES = "searches hits repeats share unseen new reason worst"

    searches: int
    hits: int
    repeats: int
    unseen: int
    new: int | None
    worst: tuple[Searched, ...] = ()
    reason: str = ""

    @classmethod
    def of(cls, searched: Sequence[Searched], reason: str) -> Searches:
        worst = sorted(searched, key=lambda search: -search.repeats)[:WORST]
        return cls(
            len(searched),
            sum(search.hits for search in searched),
            sum(search.repeats for search in searched),
            sum(search.unseen for search in searched),
            None if reason else sum(search.new or 0 for search in searched),
            tuple(search for search in worst if search.repeats),
            reason,
        )

    @property
    def share(self) -> float | None:
        """The part of the hits that repeat an earlier one, 0 to 1; ``None`` without hits."""
        return self.repeats / self.hits if self.hits else None

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return a row for each of the worst searches."""
        return [search.to_dict() for search in self.worst]

    def _title(self) -> str:
        return f"{self.repeats:,} of the first {self.hits:,} hits of {self.searches:,} searches repeat an earlier hit"

    def _sheets(self) -> Sequence[Part]:
        numbers: list[dict[str, Any]] = [
            {"": "hits that repeat an earlier hit", "number": self.repeats, "share": self.share},
            {"": "new hits that a search without copies shows", "number": self.new},
            {"": "hits that could not be judged", "number": self.unseen},
        ]
        worst = []
        for search in self.worst:
            earlier, repeat = search.texts
            counts = {"hits": search.hits, "repeats": search.repeats, "new": search.new}
            worst.append({"search": search.search, **counts, "a hit": earlier, "repeats it": repeat})
        return [Sheet("Searches", numbers), Sheet("Searches with the most repeats", worst)]

    def _notes(self) -> Mapping[str, Sequence[str]]:
        return {"new hits were not counted": [self.reason] if self.reason else []}


def find_repeats(
    hits: Sequence[Mapping[str, Any]], *, scope: Scope, group_field: str
) -> tuple[list[tuple[int, int]], int]:
    """Return the places of *hits* that repeat an earlier one, each after that one, and how many cannot be judged."""
    repeats: list[tuple[int, int]] = []
    unseen = 0
    for place, hit in enumerate(hits):
        verdicts = [_is_repeat(earlier, hit, scope, group_field) for earlier in hits[:place]]
        if True in verdicts:
            repeats.append((verdicts.index(True), place))
        elif None in verdicts or not (_group(hit, group_field) or hit_fingerprints(hit, scope.fingerprint_field)):
            unseen += 1
    return repeats, unseen


def _is_repeat(earlier: Mapping[str, Any], hit: Mapping[str, Any], scope: Scope, group_field: str) -> bool | None:
    """Return whether two hits are of one group, or near-duplicates; ``None`` if their texts could not be compared."""
    groups = {_group(earlier, group_field), _group(hit, group_field)}
    if None not in groups:
        return len(groups) == 1
    digits = [hit_fingerprints(found, scope.fingerprint_field) for found in (earlier, hit)]
    if not all(digits):
        return False
    distance = hamming_distance(from_hex(digits[0][0]), from_hex(digits[1][0]))
    one, other = (read_content(found, scope.rule, scope.text_fields) for found in (earlier, hit))
    compared = compare_contents(one, other, scope.rule, distance=distance)
    return None if compared.unread is not None else compared.because is None


def _group(hit: Mapping[str, Any], group_field: str) -> str | None:
    return next(iter((hit.get("fields") or {}).get(group_field) or ()), None)
