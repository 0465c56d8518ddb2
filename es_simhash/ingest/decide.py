"""
What becomes of a document that has near-duplicates: the policy, its exceptions, and the decision. No requests.

Documents are decided in the order of writing, and the first is the canonical; ``groups.reconcile`` makes
groups that do not depend on that order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set as AbstractSet
from dataclasses import dataclass, field, replace
from heapq import merge
from typing import TYPE_CHECKING, Any, Literal

from es_simhash.errors import shorten
from es_simhash.hashing import Scheme
from es_simhash.ingest.in_flight import Document, InFlight, Straight
from es_simhash.lookup.content import Comparison, Unread, compare_contents
from es_simhash.mapping.rule import Grouping

if TYPE_CHECKING:
    from es_simhash.texts.measures import Score


Verdict = Literal["tag", "skip", "write"]
OnDuplicate = Literal["tag", "skip"]


@dataclass(frozen=True, slots=True)
class Uncompared:
    """A near document, or ``None`` for all, with which a new document could not be compared, and why."""

    id: str | None
    why: Unread

    def __str__(self) -> str:
        if self.id is None:
            return f"it was not compared with other documents: {self.why}"
        return f"document {shorten(self.id)} is near and was not compared: {self.why}"


_STALE = Unread("text", str(Unread("changed")))


@dataclass(slots=True)
class Decision:
    """
    The decision about a draft.
    *group*: its name; the id of the draft if it is the canonical. *distance*: to the canonical, in bits; ``None`` if
    its fingerprint is not known. *leader*: the document that it duplicates; *similarity* is to that one, if computed.
    *blockers*: positions of documents in flight that hide a near one: the decision stands
    only if they are written. *at*: milliseconds since 1970.
    """

    verdict: Verdict
    group: str
    distance: int | None = 0
    leader: Document | None = None
    similarity: float | None = None
    uncompared: tuple[Uncompared, ...] = ()
    blockers: frozenset[int] = frozenset()
    at: int = 0


@dataclass(frozen=True, slots=True)
class Existing:
    """
    The documents near those of one batch, as searches show them.
    *near*: for each fingerprint, the documents within max_distance, the one grouped first comes first. *gaps*: why a
    lookup is incomplete. *unseen*: fingerprints whose near copies were not read yet; with each, the fingerprints of the
    table that are near it. *held*: the hits of what the index has under the ids of the batch, with ``_source``;
    ``None`` if that is not known. *lost*: canonicals that these name, and that are gone.
    """

    near: Mapping[int, Sequence[Document]] = field(default_factory=dict)
    gaps: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    is_compared: bool = False
    unseen: Mapping[int, Sequence[int]] = field(default_factory=dict)
    held: Mapping[str, Sequence[Mapping[str, Any]]] | None = None
    lost: AbstractSet[str] = frozenset()

    def of(self, draft: Document) -> Sequence[Document]:
        """Return the documents near *draft*, the one grouped first comes first."""
        return () if draft.fingerprint is None else self.near.get(draft.fingerprint, ())

    def without(self, ids: AbstractSet[str]) -> Existing:
        """Return it without the documents with these *ids*."""
        near = {value: [each for each in some if each.id not in ids] for value, some in self.near.items()}
        return replace(self, near=near)


@dataclass(frozen=True, slots=True)
class _Neighbour:
    """A neighbour of a draft, with the distance in bits, and the similarity of the texts where it was computed."""

    distance: int | None
    document: Document
    score: Score | None

    @property
    def similarity(self) -> float | None:
        """How similar the texts are."""
        return None if self.score is None else self.score.similarity


class Decider:
    """The maker of decisions, in the order of writing; it adds drafts to the memory of those in flight."""

    def __init__(self, grouping: Grouping, policy: OnDuplicate, scheme: Scheme | None = None) -> None:
        """*scheme*: by which the texts of the index were fingerprinted; ``None`` if that is not known."""
        self.grouping = grouping
        self._scheme = scheme
        self._policy = policy
        self.in_flight = InFlight(grouping.max_distance)
        self._moment = 0
        # The moments of duplicates of this batch that are after its own, by fingerprint.
        self._later: dict[int, int] = {}

    def begin(self, now: int) -> None:
        """Begin a batch: *now*, in milliseconds since 1970, is its moment, unless a document has a later one."""
        self._moment = max(now, self._moment, *self._later.values())
        self._later.clear()

    def decide(self, draft: Document, found: Sequence[Document]) -> Decision:
        """
        Return the decision about *draft*, and remember the draft as in flight unless it is skipped.
        *found*: documents within max_distance that a search shows, the preferred one first.
        """
        decision = self._judge(draft, found)
        if decision.verdict != "skip":
            draft.group, draft.at, draft.is_member = decision.group, decision.at, decision.group != draft.id
            if draft.is_member and decision.leader is not None and decision.leader.is_member:
                draft.canonicals = decision.leader.canonicals or ()
            # Only canonicals attract other documents, and what stands for one.
            self.in_flight.add(draft, may_have_duplicates=not draft.is_member or draft.canonicals is not None)
        return decision

    def add_straight(self, document: Straight) -> None:
        """Remember *document*, which nothing is near, as a canonical."""
        document.at = self._moment
        self.in_flight.add_straight(document)

    def _at(self, draft: Document, found: Sequence[Document], leader: Document | None) -> int:
        """
        Return when *draft* is grouped, so that the order of moments, then of ids, says what was decided.
        A duplicate comes after its *leader*; a canonical no earlier than the duplicates near it that belong to others,
        and before its own. A document that is given again with its text keeps its moment.
        """
        moments = [document.at for document in found if document.is_member and document.group == draft.id]
        at = min([self._moment, *(moment - 1 for moment in moments if moment)])
        before = self.in_flight.get(draft.id) or next((document for document in found if document.id == draft.id), None)
        if before is not None and before.at and before.fingerprint == draft.fingerprint:
            at = before.at
        if leader is None:
            others = (document.at for document in found if document.is_member and document.group != draft.id)
            return max(at, self._later_near(draft), *others)
        at = max(at, leader.at + 1)
        if at > self._moment:
            self._later[draft.fingerprint or 0] = at
        return at

    def _later_near(self, draft: Document) -> int:
        """Return the last moment of the duplicates of this batch that may be near *draft*."""
        if not self._later or draft.fingerprint is None:
            return 0
        near = self.in_flight.foreseen_near(draft.fingerprint, self._later)
        return max((self._later.get(each, 0) for each in near), default=0)

    def _judge(self, draft: Document, found: Sequence[Document]) -> Decision:
        is_readable = draft.content is None or draft.content.unread is None
        if not found and is_readable and not self.in_flight.has_near(draft.fingerprint):
            return Decision("write", draft.id, at=self._at(draft, (), None))  # most documents, without detours
        uncompared: list[Uncompared] = []
        blockers: set[int] = set()
        first = next(self._neighbours(draft, self._candidates(draft, found, blockers), uncompared), None)
        at = self._at(draft, found, None if first is None else first.document)
        missed, hiding = tuple(uncompared), frozenset(blockers)
        if first is None:
            return Decision("write", draft.id, uncompared=missed, blockers=hiding, at=at)
        leader = first.document
        distance, verdict = leader.distance_to(draft.fingerprint), self._verdict(draft)
        return Decision(verdict, leader.group, distance, leader, first.similarity, missed, hiding, at)

    def _neighbours(
        self, draft: Document, candidates: Iterable[tuple[int | None, Document]], uncompared: list[Uncompared]
    ) -> Iterator[_Neighbour]:
        """Yield the neighbours of *draft* among *candidates*; add to *uncompared* what could not be compared."""
        unread = None if draft.content is None else draft.content.unread
        if unread is not None:
            uncompared.append(Uncompared(None, unread))
            return
        for distance, each in candidates:
            comparison = compare_contents(draft.content, each.content, self.grouping, distance=distance)
            if comparison.unread is not None:
                uncompared.append(Uncompared(each.id, comparison.unread))
            elif self._is_stale(each, comparison):
                uncompared.append(Uncompared(each.id, _STALE))
            if comparison.accepts:
                yield _Neighbour(distance, each, comparison.score)

    def _is_stale(self, found: Document, comparison: Comparison) -> bool:
        """Return whether the text of *found* counts for nothing, so that its rejection does not either."""
        if comparison.because != "texts" or found.content is None or self._scheme is None:
            return False
        return not found.content.fits(found.fingerprint, self._scheme)

    def _candidates(
        self, draft: Document, found: Iterable[Document], blockers: set[int]
    ) -> Iterator[tuple[int | None, Document]]:
        """Yield the documents near *draft*, with distances, the one grouped first comes first; note *blockers*."""
        if draft.fingerprint is None:
            return
        shown = (
            (document.distance_to(draft.fingerprint), document) for document in self._shown(draft, found, blockers)
        )
        flying = self.in_flight.find(draft.fingerprint, blockers=blockers, apart_from=draft.id)
        for distance, document in merge(shown, flying, key=lambda pair: (pair[1].at, pair[1].id)):
            if not self._is_led(document):
                yield distance, document

    def _shown(self, draft: Document, found: Iterable[Document], blockers: set[int]) -> Iterator[Document]:
        """Yield those of *found* that no document in flight is newer than: such a one is in flight, or a blocker."""
        for document in found:
            # A document does not duplicate its own group.
            if draft.id in (document.id, document.group):
                continue
            if not self.in_flight.hides(document.id):
                yield document
            elif not self._is_led(document):
                blockers.update(self.in_flight.blockers(document.id))

    def _is_led(self, copy: Document) -> bool:
        """Return whether the canonical of *copy* is there, and the two are neighbours as they are now."""
        if not copy.is_member or (copy.position is None and copy.canonicals is None):
            return copy.is_member
        newer = self.in_flight.get(copy.group)
        if newer is not None:
            return not newer.is_member and self.accepts(copy, (newer,))
        return copy.canonicals is None or self.accepts(copy, copy.canonicals)

    def accepts(self, draft: Document, found: Iterable[Document]) -> bool:
        """Return whether *draft* has a neighbour among the documents *found*; what is in flight is newer than these."""
        for other in found:
            if other.position is None and self.in_flight.hides(other.id):
                continue
            distance = other.distance_to(draft.fingerprint)
            if compare_contents(draft.content, other.content, self.grouping, distance=distance).accepts:
                return True
        return False

    def _verdict(self, draft: Document) -> Verdict:
        return "tag" if draft.must_write or self._is_written(draft.id) else self._policy

    def _is_written(self, id_: str) -> bool:
        """Return whether this ingest wrote a document under *id_*, which skipping would leave with its old text."""
        known = self.in_flight.get(id_)
        # A deletion also has no fingerprint, and it must be written.
        return known is not None and (known.fingerprint is not None or not known.must_write)
