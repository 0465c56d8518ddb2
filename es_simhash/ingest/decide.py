"""
The decision about a document that is being written: is it a near-duplicate, of which document, and what follows?

Pure. The near-duplicates that the index holds come as values, those in flight from :class:`InFlight`, and nothing is
sent. Documents are decided in the order of writing: the first that comes is the canonical. ``flows.grouping.reconcile``
makes groups that do not depend on that order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from es_simhash.arguments import check_choice, check_function
from es_simhash.errors import InvalidInputError, shorten
from es_simhash.groups.content import Unread, compare_contents
from es_simhash.groups.rule import Grouping
from es_simhash.hashing import hamming_distance
from es_simhash.ingest.in_flight import ExistingDocument, InFlight
from es_simhash.lookup.near_dups import NearDup

if TYPE_CHECKING:
    from es_simhash.groups.content import Content
    from es_simhash.texts.measures import Score


Verdict = Literal["tag", "skip", "replace", "write"]
VERDICTS = ("tag", "skip", "replace", "write")
OnDuplicate = Literal["tag", "skip", "replace"] | Callable[[Mapping[str, Any], NearDup], Verdict]


def check_policy(on_duplicate: OnDuplicate) -> OnDuplicate:
    """
    Return *on_duplicate* if it is a policy.

    Raises:
        TypeError: If it is neither a string nor callable.
        InvalidInputError: If it is another string.
    """
    if isinstance(on_duplicate, str):
        check_choice("on_duplicate", on_duplicate, VERDICTS[:3])
    else:
        check_function("on_duplicate", on_duplicate)
    return on_duplicate


@dataclass(frozen=True, slots=True)
class Draft:
    """
    A document on its way into the index.

    Attributes:
        position:
            Its place among the documents given, from 0.
        id:
            Its ``_id``.
        fingerprint:
            Its fingerprint; ``None`` where it has none, so that nothing is near it.
        index:
            The index, alias or data stream it is sent to.
        source:
            The document, where the policy wants to see it.
        routing:
            Its routing value.
        must_write:
            Whether it cannot be skipped: an update, or a document that was written already.
        content:
            What it is compared by beside the fingerprint; ``None`` where only distances count.
    """

    position: int
    id: str
    fingerprint: int | None
    index: str | None = None
    source: Mapping[str, Any] | None = None
    routing: str | None = None
    must_write: bool = False
    content: Content | None = None


@dataclass(frozen=True, slots=True)
class Uncompared:
    """
    Two documents that are near each other, and could not be compared.

    Attributes:
        id:
            ``_id`` of the other one; ``None`` where the new document cannot be compared with any.
        why:
            Why not.
    """

    id: str | None
    why: Unread

    def __str__(self) -> str:
        """Return the sentence for people."""
        if self.id is None:
            return f"it was not compared with other documents: {self.why}"
        return f"document {shorten(self.id)} is near and was not compared: {self.why}"


@dataclass(frozen=True, slots=True)
class Decision:
    """
    The decision about a draft.

    Attributes:
        verdict:
            ``"write"``: it is no duplicate. ``"tag"``, ``"skip"``, ``"replace"``: as the policy says.
        group:
            Id of the canonical of its group, its own where it is one.
        distance:
            Distance to that canonical, in bits; ``None`` where the canonical's fingerprint is not known.
        leader:
            The document that it duplicates; for ``"replace"``, the first of those it replaces.
        replaced:
            The canonicals that it replaces.
        similarity:
            How similar its text is to that of the leader; ``None`` where that was not computed.
        uncompared:
            What could not be compared before the decision.
        hiders:
            Positions of the documents in flight that hid a near one: the decision stands only if they are written.
        at:
            The moment at which it is grouped, in milliseconds since 1970; later than that of each one it replaces.
    """

    verdict: Verdict
    group: str
    distance: int | None = 0
    leader: ExistingDocument | None = None
    replaced: tuple[ExistingDocument, ...] = ()
    similarity: float | None = None
    uncompared: tuple[Uncompared, ...] = ()
    hiders: frozenset[int] = frozenset()
    at: int = 0


@dataclass(frozen=True, slots=True)
class _Neighbour:
    """A neighbour of a draft, with the distance in bits, and the similarity of the texts where it was computed."""

    distance: int
    document: ExistingDocument
    score: Score | None

    @property
    def similarity(self) -> float | None:
        """How similar the texts are."""
        return None if self.score is None else self.score.similarity

    def to_near_dup(self) -> NearDup:
        """Return it as a policy sees it."""
        document = self.document
        return NearDup(
            document.id,
            document.index or "",
            self.distance,
            document.fingerprint or 0,
            document.source,
            self.similarity,
            None if self.score is None else self.score.containment,
            document.routing,
        )


class Decider:
    """
    Decides about drafts in the order of writing, and puts them into the memory of documents in flight.

    Args:
        grouping:
            Which documents are neighbours, and the rule.
        policy:
            What to do with a duplicate.
    """

    def __init__(self, grouping: Grouping, policy: OnDuplicate) -> None:
        self.grouping = grouping
        self._policy = policy
        self.in_flight = InFlight(grouping.max_distance)
        self._latest = 0

    def decide(
        self,
        draft: Draft,
        found: Sequence[ExistingDocument],
        canonicals: Mapping[str, int] | None = None,
        *,
        now: int = 0,
    ) -> Decision:
        """
        Return the decision about *draft*.

        Args:
            draft:
                The document.
            found:
                Documents within max_distance that a search shows, in the order in which they are preferred.
            canonicals:
                Fingerprints of canonicals that are not among the near-duplicates, by id; for ``connected``.
            now:
                The time, in milliseconds since 1970; many documents may have the same.
        """
        decision = self._judge(draft, found, canonicals or {}, now)
        if decision.verdict != "skip":
            document = ExistingDocument(
                draft.id,
                draft.fingerprint,
                decision.group,
                draft.index,
                draft.source,
                draft.routing,
                draft.position,
                draft.content,
                decision.at,
            )
            # For "star" only canonicals attract other documents; for "connected" members do too.
            is_attracting = self.grouping.rule == "connected" or decision.group == draft.id
            self.in_flight.add(document, replaced=decision.replaced, is_attracting=is_attracting)
        return decision

    def _moment(self, draft: Draft, replaced: Sequence[ExistingDocument], now: int) -> int:
        """
        Return when *draft* is grouped: after what it replaces, so that the order of writing can be read from the index.

        A clock does not tell the documents of one batch apart, and those of two writers differ. It is never before the
        moment of a draft decided earlier: *draft* may be near one that was replaced, and so was given a later moment.
        """
        self._latest = max(now, self._latest)
        for id_ in (draft.id, *(each.group for each in replaced)):
            if (known := self.in_flight.get(id_)) is not None:
                self._latest = max(self._latest, known.at + 1)
        for each in replaced:
            self._latest = max(self._latest, each.at + 1)
        return self._latest

    def _judge(
        self, draft: Draft, found: Sequence[ExistingDocument], canonicals: Mapping[str, int], now: int
    ) -> Decision:
        is_readable = draft.content is None or draft.content.unread is None
        if not found and is_readable and not self.in_flight.has_near(draft.fingerprint):
            return Decision("write", draft.id, at=self._moment(draft, (), now))  # most documents, without detours
        verdict: Verdict
        leader: ExistingDocument | None
        olds: tuple[ExistingDocument, ...]
        replaced: list[_Neighbour] = []
        uncompared: list[Uncompared] = []
        hiders: set[int] = set()
        for each in self._neighbours(draft, self._candidates(draft, found, hiders), uncompared):
            verdict = self._verdict(draft, each)
            if verdict == "replace":
                replaced.append(each)
            elif verdict != "write":
                distance = self._distance_to_canonical(draft, each.document, each.distance, canonicals)
                leader, similarity, olds = each.document, each.similarity, ()
                group = leader.group
                break
        else:
            verdict, group, distance = "replace" if replaced else "write", draft.id, 0
            leader = replaced[0].document if replaced else None
            similarity = replaced[0].similarity if replaced else None
            olds = tuple(each.document for each in replaced)
        at = self._moment(draft, olds, now)
        return Decision(verdict, group, distance, leader, olds, similarity, tuple(uncompared), frozenset(hiders), at)

    def _neighbours(
        self, draft: Draft, candidates: Iterable[tuple[int, ExistingDocument]], uncompared: list[Uncompared]
    ) -> Iterator[_Neighbour]:
        """Yield the neighbours of *draft* among *candidates*; add to *uncompared* what could not be compared."""
        unread = None if draft.content is None else draft.content.unread
        if unread is not None and draft.fingerprint is not None:
            uncompared.append(Uncompared(None, unread))
            return
        for distance, each in candidates:
            comparison = compare_contents(draft.content, each.content, self.grouping)
            if comparison.unread is not None:
                uncompared.append(Uncompared(each.id, comparison.unread))
            if comparison.are_neighbours:
                yield _Neighbour(distance, each, comparison.similarity)

    def _candidates(
        self, draft: Draft, found: Iterable[ExistingDocument], hiders: set[int]
    ) -> Iterator[tuple[int, ExistingDocument]]:
        """Yield the documents near *draft*, with distances, those in the index first; add to *hiders* what hid one."""
        if draft.fingerprint is None:
            return
        # A document in flight is newer than what a search shows of it.
        for each in found:
            # A document does not duplicate its own group, whose members may be near it under "connected".
            if each.fingerprint is None or draft.id in (each.id, each.group):
                continue
            if self.in_flight.hides(each.id):
                hiders.update(self.in_flight.hiders(each.id))
            else:
                yield hamming_distance(draft.fingerprint, each.fingerprint), each
        yield from self.in_flight.find(draft.fingerprint, hiders=hiders, apart_from=draft.id)

    def _verdict(self, draft: Draft, neighbour: _Neighbour) -> Verdict:
        verdict: Verdict
        if isinstance(self._policy, str):
            verdict = self._policy
        else:
            verdict = self._policy(draft.source or {}, neighbour.to_near_dup())
            if verdict not in VERDICTS:
                raise InvalidInputError(
                    f"on_duplicate returned {shorten(verdict)}: let it return 'tag', 'skip', 'replace' or 'write'"
                )
        return "tag" if verdict == "skip" and draft.must_write else verdict

    def _distance_to_canonical(
        self, draft: Draft, existing: ExistingDocument, distance: int, canonicals: Mapping[str, int]
    ) -> int | None:
        if existing.group == existing.id or draft.fingerprint is None:
            return distance
        # *existing* is a member, under the rule "connected".
        canonical = self.in_flight.get(existing.group)
        known = canonical.fingerprint if canonical else canonicals.get(existing.group)
        return None if known is None else hamming_distance(known, draft.fingerprint)
