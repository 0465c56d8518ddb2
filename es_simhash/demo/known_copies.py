"""The documents of the demo: originals, and copies with a known edit; and the judgement of what a search found."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from importlib.resources import files
from types import MappingProxyType
from typing import Any, NamedTuple

from es_simhash.errors import InvalidInputError, shorten
from es_simhash.hashing import hamming_distance


@dataclass(frozen=True, slots=True)
class EditKind:
    """
    One way to make a copy from an original.
    *is_same_text*: whether a person would call the copy the same text. A translation is not: a search that compares
    characters is right not to report it.
    """

    label: str
    is_same_text: bool


EDIT_KINDS: Mapping[str, EditKind] = MappingProxyType(
    {
        "punctuation": EditKind("punctuation, width or case changed", is_same_text=True),
        "typo": EditKind("characters mistyped", is_same_text=True),
        "numbers": EditKind("dates or figures changed", is_same_text=True),
        "quoting": EditKind("quoted in a reply", is_same_text=True),
        "reordering": EditKind("sentences in another order", is_same_text=True),
        "boilerplate": EditKind("header, source line or notice added", is_same_text=True),
        "revision": EditKind("articles revised", is_same_text=True),
        "truncation": EditKind("end cut off", is_same_text=True),
        "script": EditKind("traditional and simplified exchanged", is_same_text=True),
        "paraphrase": EditKind("told in other words", is_same_text=False),
        "translation": EditKind("translated", is_same_text=False),
    }
)
"""The kinds of edit in the corpus, from small to large."""


@dataclass(frozen=True, slots=True)
class Document:
    """
    One document of the corpus.
    *id*: stable: `news-zh-01`, and `news-zh-01-typo` for a copy of it. *title*: empty for posts. *edit_of*: id of the
    original, never of another copy; `None` for an original, as is *edit*, a key of `EDIT_KINDS`. *expect*: a sentence
    that says why a search should find the document, or should not.
    """

    id: str
    lang: str
    kind: str
    title: str
    text: str
    edit_of: str | None
    edit: str | None
    expect: str

    @property
    def family(self) -> str:
        """Id of the original: of this document itself, or of the one that it is a copy of."""
        return self.edit_of or self.id

    @property
    def source(self) -> dict[str, Any]:
        fields = asdict(self)
        del fields["id"]
        return fields


def load_corpus() -> tuple[Document, ...]:
    lines = files("es_simhash.demo").joinpath("corpus.jsonl").read_text(encoding="utf-8")
    # Split at "\n" only: str.splitlines would also split a text at U+2028 or U+0085.
    return tuple(Document(**json.loads(line)) for line in lines.split("\n") if line)


class FoundPair(NamedTuple):
    """Two documents that a search reported as near-duplicates, and their distance in bits."""

    id: str
    near_dup_id: str
    distance: int


class Status(StrEnum):
    FOUND = "found"
    """Reported as a near-duplicate of its original."""
    LINKED = "linked"
    """Too far from its original, but in the same group through another copy."""
    MISSED = "missed"
    """The same text to a person, but farther than max_distance."""
    APART = "rightly apart"
    """Not the same text, and not reported."""
    SURPRISE = "surprise"
    """Not the same text, but reported, or in the group of its original."""
    LOST = "LOST"
    """Within max_distance, but not reported: a fault of the search, never of the corpus."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome for one edited copy; *distance*: to its original, in bits; `None` if one has no fingerprint."""

    document: Document
    original: Document
    status: Status
    distance: int | None
    reason: str


class Member(NamedTuple):
    """A document of a group; its distance from the canonical may be above max_distance (joined through another)."""

    document: Document
    distance: int | None


@dataclass(frozen=True, slots=True)
class Group:
    """Near-duplicates, directly or through one another; *canonical* is the first of the corpus, *members* the rest."""

    canonical: Document
    members: tuple[Member, ...]


@dataclass(frozen=True, slots=True)
class EditSummary:
    """One kind of edit: number of copies, number of copies found, and the range of their distances in bits."""

    edit: str
    copies: int
    found: int
    nearest: int | None
    farthest: int | None


@dataclass(frozen=True, slots=True)
class Report:
    """
    The judgement of one search of the whole corpus, in its order.

    *unexpected*: reported pairs of documents with different originals, the nearest first: each is a false positive,
    or a similarity that the corpus does not record.
    """

    max_distance: int
    documents: int
    groups: tuple[Group, ...]
    verdicts: tuple[Verdict, ...]
    unexpected: tuple[FoundPair, ...]

    def count(self, *statuses: Status) -> int:
        return sum(verdict.status in statuses for verdict in self.verdicts)

    def by_edit(self) -> tuple[EditSummary, ...]:
        """Return one summary for each kind of edit that occurs, in the order of `EDIT_KINDS`."""
        summaries = []
        for edit in EDIT_KINDS:
            verdicts = [verdict for verdict in self.verdicts if verdict.document.edit == edit]
            distances = [verdict.distance for verdict in verdicts if verdict.distance is not None]
            if verdicts:
                reported = sum(verdict.status in {Status.FOUND, Status.SURPRISE} for verdict in verdicts)
                nearest, farthest = min(distances, default=None), max(distances, default=None)
                summaries.append(EditSummary(edit, len(verdicts), reported, nearest, farthest))
        return tuple(summaries)


def judge(
    documents: Iterable[Document],
    pairs: Iterable[tuple[str, str, int]],
    *,
    fingerprints: Mapping[str, int | None],
    max_distance: int,
) -> Report:
    """
    Return the report on near-duplicates found among *documents*, where copies follow their originals.
    *pairs*: (id, id of the near-duplicate, distance in bits), in either or both directions; a document with itself is
    ignored. *fingerprints*: by id; `None` for a text without features. They give the distance of a copy that was not
    reported. *max_distance*: inclusive. A copy within it that was not reported is `Status.LOST`.
    """
    by_id = {document.id: document for document in documents}
    found = _unordered(pairs, by_id)
    group_of = _groups(by_id, found)

    def distance_of(first: Document, second: Document) -> int | None:
        """Return the distance as found, else that of the fingerprints. *first* is before *second* in the corpus."""
        if (first.id, second.id) in found:
            return found[first.id, second.id]
        a, b = fingerprints.get(first.id), fingerprints.get(second.id)
        return None if a is None or b is None else hamming_distance(a, b)

    verdicts = []
    for copy in by_id.values():
        if copy.edit_of is not None:
            original = by_id[copy.edit_of]
            is_found, is_linked = (original.id, copy.id) in found, group_of[copy.id] == group_of[original.id]
            distance = distance_of(original, copy)
            status, reason = _judge_copy(copy, distance, max_distance, is_found=is_found, is_linked=is_linked)
            verdicts.append(Verdict(copy, original, status, distance, reason))
    members: dict[str, list[Document]] = {}
    for document_id, canonical in group_of.items():
        members.setdefault(canonical, []).append(by_id[document_id])
    groups = tuple(
        Group(first, tuple(Member(other, distance_of(first, other)) for other in others))
        for first, *others in members.values()
        if others
    )
    strangers = [FoundPair(a, b, distance) for (a, b), distance in found.items() if by_id[a].family != by_id[b].family]
    unexpected = tuple(sorted(strangers, key=lambda pair: (pair.distance, pair.id, pair.near_dup_id)))
    return Report(max_distance, len(by_id), groups, tuple(verdicts), unexpected)


def _unordered(pairs: Iterable[tuple[str, str, int]], by_id: Mapping[str, Document]) -> dict[tuple[str, str], int]:
    """Return the distance of each pair, with its ids in the order of the corpus."""
    position = {document_id: index for index, document_id in enumerate(by_id)}
    found: dict[tuple[str, str], int] = {}
    for a, b, distance in pairs:
        for document_id in (a, b):
            if document_id not in position:
                raise InvalidInputError(
                    f"Document {shorten(document_id)} is not in the demo's corpus: search an index of the corpus"
                )
        if a != b:
            found[(a, b) if position[a] < position[b] else (b, a)] = distance
    return found


def _groups(by_id: Mapping[str, Document], found: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the id of the canonical of each document, in the order of the corpus. A single document is its own."""
    neighbours: dict[str, list[str]] = {document_id: [] for document_id in by_id}
    for a, b in found:
        neighbours[a].append(b)
        neighbours[b].append(a)
    canonical_of: dict[str, str] = {}
    for start in by_id:
        waiting = [start] if start not in canonical_of else []
        while waiting:
            document_id = waiting.pop()
            if document_id not in canonical_of:
                canonical_of[document_id] = start
                waiting += neighbours[document_id]
    return {document_id: canonical_of[document_id] for document_id in by_id}


def _judge_copy(
    copy: Document, distance: int | None, max_distance: int, *, is_found: bool, is_linked: bool
) -> tuple[Status, str]:
    is_same_text = EDIT_KINDS[copy.edit or ""].is_same_text
    if is_found:
        return Status.FOUND if is_same_text else Status.SURPRISE, f"within max_distance {max_distance}"
    apart = Status.MISSED if is_same_text else Status.APART
    if distance is None:
        return apart, "a text without features has no fingerprint, so it matches nothing"
    if distance <= max_distance:
        return Status.LOST, f"within max_distance {max_distance}, but not reported"
    reason = f"farther than max_distance {max_distance}"
    if is_linked:
        status = Status.LINKED if is_same_text else Status.SURPRISE
        return status, f"{reason}, in its group through another document"
    return apart, f"{reason}. {copy.expect}"
