"""
The decision about a document that is being written: is it a near-duplicate, of which document, and what follows?

Pure. The near-duplicates that the index holds come as values, those in flight from :class:`InFlight`, and nothing is
sent. Documents are decided in the order of writing: the first that comes is the canonical. ``flows.grouping.reconcile``
makes groups that do not depend on that order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from es_simhash.errors import InvalidInputError, shorten
from es_simhash.hashing import hamming_distance
from es_simhash.index.grouping.in_flight import ExistingDocument, InFlight
from es_simhash.index.grouping.rule import Grouping
from es_simhash.index.rescore import NearDup

__all__ = ["Decider", "Decision", "Draft", "OnDuplicate", "Verdict", "check_policy"]

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
        if on_duplicate not in VERDICTS[:3]:
            raise InvalidInputError(
                f"on_duplicate {shorten(on_duplicate)} is not known: give 'tag', 'skip', 'replace', a function or None"
            )
    elif not callable(on_duplicate):
        raise TypeError(f"on_duplicate must be a string, a function or None, not {type(on_duplicate).__name__}")
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
    """

    position: int
    id: str
    fingerprint: int | None
    index: str | None = None
    source: Mapping[str, Any] | None = None
    routing: str | None = None
    must_write: bool = False


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
    """

    verdict: Verdict
    group: str
    distance: int | None = 0
    leader: ExistingDocument | None = None
    replaced: tuple[ExistingDocument, ...] = ()


class Decider:
    """
    Decides about drafts in the order of writing, and puts them into the memory of documents in flight.

    Args:
        grouping:
            The rule and max_distance.
        policy:
            What to do with a duplicate.
    """

    def __init__(self, grouping: Grouping, policy: OnDuplicate) -> None:
        self._grouping = grouping
        self._policy = policy
        self.in_flight = InFlight()

    def decide(
        self, draft: Draft, found: Iterable[ExistingDocument], canonicals: Mapping[str, int] | None = None
    ) -> Decision:
        """
        Return the decision about *draft*.

        Args:
            draft:
                The document.
            found:
                Near-duplicates that a search shows, in the order in which they are preferred.
            canonicals:
                Fingerprints of canonicals that are not among the near-duplicates, by id; for ``connected``.
        """
        decision = self._judge(draft, found, canonicals or {})
        if decision.verdict != "skip":
            document = ExistingDocument(
                draft.id, draft.fingerprint, decision.group, draft.index, draft.source, draft.routing, draft.position
            )
            # For "star" only canonicals attract other documents; for "connected" members do too.
            is_attracting = self._grouping.rule == "connected" or decision.group == draft.id
            self.in_flight.add(document, replaced=decision.replaced, is_attracting=is_attracting)
        return decision

    def _judge(self, draft: Draft, found: Iterable[ExistingDocument], canonicals: Mapping[str, int]) -> Decision:
        replaced: list[ExistingDocument] = []
        for distance, existing in self._candidates(draft, found):
            verdict = self._verdict(draft, existing, distance)
            if verdict == "replace":
                replaced.append(existing)
            elif verdict != "write":
                distance_to_canonical = self._distance_to_canonical(draft, existing, distance, canonicals)
                return Decision(verdict, existing.group, distance_to_canonical, existing)
        if replaced:
            return Decision("replace", draft.id, 0, replaced[0], tuple(replaced))
        return Decision("write", draft.id)

    def _candidates(self, draft: Draft, found: Iterable[ExistingDocument]) -> Iterator[tuple[int, ExistingDocument]]:
        """Yield the documents that *draft* may duplicate, with their distances."""
        if draft.fingerprint is None:
            return
        # A document in flight is newer than what a search shows of it.
        for each in found:
            if each.fingerprint is not None and each.id != draft.id and not self.in_flight.hides(each.id):
                yield hamming_distance(draft.fingerprint, each.fingerprint), each
        for distance, each in self.in_flight.find(draft.fingerprint, self._grouping.max_distance):
            if each.id != draft.id:
                yield distance, each

    def _verdict(self, draft: Draft, existing: ExistingDocument, distance: int) -> Verdict:
        verdict: Verdict
        if isinstance(self._policy, str):
            verdict = self._policy
        else:
            old = NearDup(existing.id, existing.index or "", distance, existing.fingerprint or 0, existing.source)
            verdict = self._policy(draft.source or {}, old)
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
