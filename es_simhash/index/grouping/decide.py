"""
What becomes of a document that is being written: is it a near-duplicate, of what, and what follows from that?

Pure: the near-duplicates in the index come as values, those in flight are remembered here, and nothing is sent. The
rule "first come, first canonical" is applied exactly, in the order of writing; ``flows.reconcile`` makes groups
independent of that order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from es_simhash.errors import InvalidInputError, shorten
from es_simhash.hashing import hamming_distance
from es_simhash.index.grouping.in_memory import Nearby
from es_simhash.index.grouping.rule import Grouping
from es_simhash.index.rescore import NearDup

__all__ = ["Decider", "Draft", "ExistingDocument", "OnDuplicate", "Verdict", "check_policy"]

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


@dataclass(slots=True, eq=False)
class ExistingDocument:
    """
    A document that another may be a duplicate of, in the index or in flight.

    Attributes:
        id:
            Its ``_id``.
        fingerprint:
            Its fingerprint; ``None`` for one that nothing can be near to.
        group:
            The group it belongs to.
        index:
            Name of the index that holds it, where known.
        source:
            The document, where the policy wants to see it.
        routing:
            Its routing value.
        is_gone:
            Whether it no longer stands: refused, replaced, deleted or written anew.
        is_settled:
            Whether its write is done, so that a refresh makes it visible.
        earlier:
            What is in flight under the same id, and stands again should this be refused.
    """

    id: str
    fingerprint: int | None
    group: str
    index: str | None = None
    source: Mapping[str, Any] | None = None
    routing: str | None = None
    is_gone: bool = False
    is_settled: bool = False
    earlier: ExistingDocument | None = None


@dataclass(slots=True, eq=False)
class Draft(ExistingDocument):
    """
    A document on its way into the index, and what was decided about it.

    Attributes:
        must_write:
            Whether it cannot be skipped: an update, or what was written already.
        verdict:
            ``"write"``: no duplicate. ``"tag"``, ``"skip"``, ``"replace"``: as the policy says.
        leader:
            The document it was found to be a duplicate of; for ``"replace"``, the first of those it replaces.
        distance:
            Distance to the canonical, in bits; 0 where it is its own.
        replaced:
            The canonicals that it takes the place of.
    """

    must_write: bool = False
    verdict: Verdict = "write"
    leader: ExistingDocument | None = None
    distance: int | None = 0
    replaced: list[ExistingDocument] = field(default_factory=list)


class Decider:
    """
    Decides about documents in the order of writing, and remembers those that searches do not show yet.

    Args:
        grouping:
            The rule and max_distance.
        policy:
            What to do with a duplicate.
    """

    def __init__(self, grouping: Grouping, policy: OnDuplicate) -> None:
        self._grouping = grouping
        self._policy = policy
        self._in_flight: dict[str, ExistingDocument] = {}
        self._nearby: Nearby[ExistingDocument] = Nearby()

    @property
    def settled(self) -> int:
        """Number of documents in flight whose writes are done."""
        return sum(each.is_settled for each in self._in_flight.values())

    def decide(
        self, draft: Draft, found: Iterable[ExistingDocument], canonicals: Mapping[str, int] | None = None
    ) -> None:
        """
        Decide about *draft*.

        Args:
            draft:
                The document; the decision is put into it.
            found:
                Near-duplicates that the index holds, in the order in which they are preferred.
            canonicals:
                Fingerprints of canonicals that are not among the near-duplicates, by id; for ``connected``.
        """
        draft.verdict, draft.leader, draft.distance, draft.replaced = "write", None, 0, []
        draft.group, draft.is_gone = draft.id, False
        for distance, standing in self._candidates(draft, found):
            verdict = self._verdict(draft, standing, distance)
            if verdict == "write":
                continue
            draft.verdict = verdict
            if verdict == "replace":
                draft.leader = draft.leader or standing
                draft.replaced.append(standing)
            else:
                draft.leader, draft.replaced = standing, []
                self._join(draft, standing, distance, canonicals or {})
                break
        self._remember(draft)

    def _candidates(self, draft: Draft, found: Iterable[ExistingDocument]) -> Sequence[tuple[int, ExistingDocument]]:
        if draft.fingerprint is None:
            return []
        # What is in flight is newer than what a search shows of it.
        shown = [
            (hamming_distance(draft.fingerprint, each.fingerprint), each)
            for each in found
            if each.fingerprint is not None and each.id != draft.id and each.id not in self._in_flight
        ]
        near = self._nearby.find(draft.fingerprint, self._grouping.max_distance)
        return shown + [(d, each) for d, each in near if not each.is_gone and each.id != draft.id]

    def _verdict(self, draft: Draft, standing: ExistingDocument, distance: int) -> Verdict:
        verdict: Verdict
        if isinstance(self._policy, str):
            verdict = self._policy
        else:
            old = NearDup(standing.id, standing.index or "", distance, standing.fingerprint or 0, standing.source)
            verdict = self._policy(draft.source or {}, old)
            if verdict not in VERDICTS:
                raise InvalidInputError(
                    f"on_duplicate returned {shorten(verdict)}: let it return 'tag', 'skip', 'replace' or 'write'"
                )
        return "tag" if verdict == "skip" and draft.must_write else verdict

    def _join(self, draft: Draft, standing: ExistingDocument, distance: int, canonicals: Mapping[str, int]) -> None:
        draft.group = standing.group
        draft.distance = distance
        if standing.group != standing.id and draft.fingerprint is not None:  # a member, under the rule "connected"
            canonical = self._in_flight.get(standing.group)
            known = canonical.fingerprint if canonical else canonicals.get(standing.group)
            draft.distance = None if known is None else hamming_distance(known, draft.fingerprint)

    def _remember(self, draft: Draft) -> None:
        if draft.verdict == "skip":
            return
        self.hide(draft)
        for each in draft.replaced:
            each.is_gone = True
            self._in_flight.setdefault(each.id, each)
        if draft.fingerprint is None:
            return
        # For "star" only canonicals attract; for "connected" a copy of what is there attracts nothing more.
        if self._grouping.rule == "star":
            is_needed = draft.group == draft.id
        else:
            near = self._nearby.find(draft.fingerprint, 0)
            is_needed = not any(each.group == draft.group and not each.is_gone for _, each in near)
        if is_needed:
            self._nearby.add(draft.fingerprint, draft)

    def hide(self, standing: ExistingDocument) -> None:
        """Let *standing* take the place of whatever searches, or this memory, hold under its id."""
        earlier = self._in_flight.get(standing.id)
        if earlier is not None and earlier is not standing:
            earlier.is_gone = True
            standing.earlier = earlier
        self._in_flight[standing.id] = standing

    def refuse(self, draft: Draft) -> None:
        """Forget *draft*, which the server did not take; what it would have replaced stands again."""
        draft.is_gone = True
        if self._in_flight.get(draft.id) is draft:
            del self._in_flight[draft.id]
            if draft.earlier is not None:
                draft.earlier.is_gone = False
                self._in_flight[draft.id] = draft.earlier
        for each in draft.replaced:
            each.is_gone = False
            # What a search showed is to be found by searches again; only what is in flight itself is remembered here.
            if not isinstance(each, Draft) and self._in_flight.get(each.id) is each:
                del self._in_flight[each.id]
        draft.replaced = []

    def forget_settled(self) -> None:
        """Forget what a refresh, begun after its write was done, has made visible to searches."""
        self._in_flight = {id_: each for id_, each in self._in_flight.items() if not each.is_settled}
        self._nearby.keep(self._in_flight.values())
