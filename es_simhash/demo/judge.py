"""
The judgement of the near-duplicates that a search found: groups, hits and misses.

Pure: the search happens in `es_simhash.cli`, and `render` shows the result.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from es_simhash.demo.corpus import EDIT_KINDS
from es_simhash.errors import InvalidInputError, shorten
from es_simhash.hashing import hamming_distance

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from es_simhash.demo.corpus import Document


class FoundPair(NamedTuple):
    """Two documents that a search reported as near-duplicates, and their distance in bits."""

    id: str
    near_dup_id: str
    distance: int


class Status(StrEnum):
    """The outcome for an edited copy."""

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
    """
    The outcome for one edited copy, and the reason.

    *distance*: of the copy and its original, in bits; `None` if one of them has no fingerprint.
    """

    document: Document
    original: Document
    status: Status
    distance: int | None
    reason: str


class Member(NamedTuple):
    """
    A document of a group, and its distance in bits from the canonical.

    The distance is more than max_distance if the two are joined through another document.
    """

    document: Document
    distance: int | None


@dataclass(frozen=True, slots=True)
class Group:
    """
    Two or more documents that are near-duplicates, directly or through one another.

    Attributes:
        canonical:
            The document that stands for the group: the first in the corpus.
        members:
            The others, in the order of the corpus.
    """

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
    The judgement of one search of the whole corpus.

    Attributes:
        groups:
            In the order of their canonical documents.
        verdicts:
            One for every edited copy, in the order of the corpus.
        unexpected:
            Reported pairs of documents with different originals, the nearest first: each is a false positive, or a
            similarity that the corpus does not record.
    """

    max_distance: int
    documents: int
    groups: tuple[Group, ...]
    verdicts: tuple[Verdict, ...]
    unexpected: tuple[FoundPair, ...]

    def count(self, *statuses: Status) -> int:
        """Return the number of copies that have one of *statuses*."""
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

    *pairs*: (id, id of the near-duplicate, distance in bits), in either or both directions; a document with
    itself is ignored.
    *fingerprints*: by id; `None` for a text without features. They give the distance of a copy that was not
    reported.
    *max_distance*: inclusive. A copy within it that was not reported is `Status.LOST`.
    """
    by_id = {document.id: document for document in documents}
    found = _unordered(pairs, by_id)
    group_of = _groups(by_id, found)
    verdicts = tuple(
        _verdict(
            document,
            by_id[document.edit_of],
            found=found,
            group_of=group_of,
            fingerprints=fingerprints,
            max_distance=max_distance,
        )
        for document in by_id.values()
        if document.edit_of is not None
    )
    members: dict[str, list[Document]] = {}
    for document_id, canonical in group_of.items():
        members.setdefault(canonical, []).append(by_id[document_id])
    groups = tuple(
        Group(first, tuple(Member(other, _distance(first, other, found, fingerprints)) for other in others))
        for first, *others in members.values()
        if others
    )
    strangers = [FoundPair(a, b, distance) for (a, b), distance in found.items() if by_id[a].family != by_id[b].family]
    unexpected = tuple(sorted(strangers, key=lambda pair: (pair.distance, pair.id, pair.near_dup_id)))
    return Report(max_distance, len(by_id), groups, verdicts, unexpected)


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


def _distance(
    first: Document, second: Document, found: Mapping[tuple[str, str], int], fingerprints: Mapping[str, int | None]
) -> int | None:
    """Return the distance as found, else that of the fingerprints. *first* is before *second* in the corpus."""
    if (first.id, second.id) in found:
        return found[first.id, second.id]
    a, b = fingerprints.get(first.id), fingerprints.get(second.id)
    return None if a is None or b is None else hamming_distance(a, b)


def _verdict(
    copy: Document,
    original: Document,
    *,
    found: Mapping[tuple[str, str], int],
    group_of: Mapping[str, str],
    fingerprints: Mapping[str, int | None],
    max_distance: int,
) -> Verdict:
    """Return the verdict on *copy*."""
    is_same_text = EDIT_KINDS[copy.edit or ""].is_same_text
    distance = _distance(original, copy, found, fingerprints)
    if (original.id, copy.id) in found:
        status = Status.FOUND if is_same_text else Status.SURPRISE
        return Verdict(copy, original, status, distance, f"within max_distance {max_distance}")
    if distance is None:
        reason = "a text without features has no fingerprint, so it matches nothing"
        return Verdict(copy, original, Status.MISSED if is_same_text else Status.APART, None, reason)
    if distance <= max_distance:
        reason = f"within max_distance {max_distance}, but not reported"
        return Verdict(copy, original, Status.LOST, distance, reason)
    reason = f"farther than max_distance {max_distance}"
    if group_of[copy.id] == group_of[original.id]:
        status = Status.LINKED if is_same_text else Status.SURPRISE
        return Verdict(copy, original, status, distance, f"{reason}, in its group through another document")
    status = Status.MISSED if is_same_text else Status.APART
    return Verdict(copy, original, status, distance, f"{reason}. {copy.expect}")
