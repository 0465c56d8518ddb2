"""
What becomes of each document of a batch: alone, or a duplicate of which other one. No requests.

Documents are decided in the order of writing, and the first is the canonical; ``groups.reconcile`` makes
groups that do not depend on that order.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set as AbstractSet
from dataclasses import dataclass, field
from heapq import merge
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal

from es_simhash.errors import shorten
from es_simhash.hashing import Scheme, fingerprints, hamming_distance
from es_simhash.lookup.content import Comparison, Content, Unread, compare_contents, prepare_together
from es_simhash.mapping.rule import Grouping

if TYPE_CHECKING:
    from es_simhash.lookup.fingerprint_table import FingerprintTable, Near


Verdict = Literal["tag", "skip", "write"]
OnDuplicate = Literal["tag", "skip"]
# The first neighbour decides, so those after it are seldom compared.
FIRST_COMPARED = 3


@dataclass(slots=True, eq=False)
class Document:
    """
    A document that is decided about, or that another may duplicate: in the index, or written and not shown yet.
    *fingerprint*: ``None``, nothing is near it. *group*: its name; empty before the decision. *is_member*: another
    document is the canonical; *canonicals* are those of its group in the index, ``None`` where nobody asked for them.
    *position*: among the documents given, from 0; ``None`` for one that a search showed. *content*: ``None`` where only
    distances count. *at*: when it was grouped, in milliseconds since 1970; 0 if never.
    *must_write*: an update, or its id is in the index: never skipped. *is_deletion*: there is no document after it.
    """

    id: str
    fingerprint: int | None
    group: str = ""
    index: str | None = None
    routing: str | None = None
    position: int | None = None
    content: Content | None = None
    at: int = 0
    must_write: bool = False
    is_deletion: bool = False
    is_member: bool = False
    canonicals: Sequence[Document] | None = None

    def distance_to(self, fingerprint: int | None) -> int | None:
        """Return the distance in bits; ``None`` where one of the two has no fingerprint."""
        if self.fingerprint is None or fingerprint is None:
            return None
        return hamming_distance(self.fingerprint, fingerprint)


_shown_order = attrgetter("at", "id")


class Documents:
    """
    The newest document of each id. *by_fingerprint*: those that others may duplicate, in the order of a search.
    *copies*: the last duplicate of each fingerprint. *elsewhere*: older ones of an id with other routing values: they
    stand, unless theirs is the shard of the newest.
    """

    def __init__(self) -> None:
        self.by_id: dict[str, Document] = {}
        self.elsewhere: dict[str, list[Document]] = {}
        self.by_fingerprint: dict[int | None, list[Document]] = {}
        self.members: dict[str, list[Document]] = {}
        self.copies: dict[int | None, Document] = {}

    def add(self, document: Document) -> None:
        """Add *document* in place of that of its id and routing; the copies of this may not be near it any more."""
        if document.id in self.by_id:
            there, before = self.of_id(document.id), self.find(document.id, document.routing)
            if before is not None:
                there.remove(before)
                for others in (self.by_fingerprint.get(before.fingerprint, []), self.members.get(before.group, [])):
                    if before in others:
                        others.remove(before)
            if there:
                self.elsewhere[document.id] = there
        self.by_id[document.id] = document
        # Only canonicals attract other documents, and what stands for one.
        if document.is_member and document.canonicals is None:
            self.members.setdefault(document.group, []).append(document)
            self.copies[document.fingerprint] = document
        else:
            self.attract(document)
        for member in self.members.pop(document.id, ()):
            self.attract(member)

    def of_id(self, id_: str) -> list[Document]:
        """Return the newest document of that id for each routing value, the newest of all first."""
        newest = self.by_id.get(id_)
        return [] if newest is None else [newest, *self.elsewhere.get(id_, ())]

    def find(self, id_: str, routing: str | None) -> Document | None:
        """Return the newest document of that id and routing value."""
        return next((one for one in self.of_id(id_) if str(one.routing) == str(routing)), None)

    def attract(self, document: Document) -> None:
        """Let others be duplicates of *document*."""
        if document.fingerprint is None:
            return
        if others := self.by_fingerprint.get(document.fingerprint):
            insort(others, document, key=_shown_order)
        else:
            self.by_fingerprint[document.fingerprint] = [document]


class Unshown(Documents):
    """
    Documents that were written, and that searches may not show yet. One enters when its outcome is known.
    *latest*: when the last of them was grouped, in milliseconds since 1970.
    """

    def __init__(self, max_distance: int) -> None:
        super().__init__()
        self.latest = 0
        self._max_distance = max_distance
        self._characters = 0
        # Every fingerprint here is in the table or waits for it.
        self._table: FingerprintTable | None = None
        self._waiting: list[int] = []

    def add(self, document: Document) -> None:
        super().add(document)
        self.latest = max(self.latest, document.at)
        if document.content is not None:
            self._characters += document.content.characters

    def attract(self, document: Document) -> None:
        super().attract(document)
        if document.fingerprint is not None:
            self._waiting.append(document.fingerprint)

    def clear(self) -> None:
        """Forget all, which a refresh has made visible to searches."""
        for documents in (self.by_id, self.elsewhere, self.by_fingerprint, self.members, self.copies):
            documents.clear()
        self._characters, self._table, self._waiting = 0, None, []

    def occupies(self, most: int) -> bool:
        """Return whether the texts of the documents, prepared or not, occupy about *most* bytes or more."""
        # A prepared text has 8 bytes a shingle, and no more shingles than characters: most are never asked.
        contents = (one.content for one in self.by_id.values() if one.content is not None)
        return 8 * self._characters >= most and sum(content.size for content in contents) >= most

    def near(self, fingerprints: Sequence[int]) -> Near:
        """Return the other fingerprints near each of *fingerprints*, of these and of what is here."""
        if not fingerprints:
            return {}
        import numpy as np  # noqa: PLC0415 -- takes longer to load than all the rest

        from es_simhash.lookup.fingerprint_table import FingerprintTable  # noqa: PLC0415 -- loads numpy

        if self._table is None:
            self._table = FingerprintTable(self._max_distance)
        self._table.add(np.array(self._waiting, np.uint64))
        self._waiting.clear()
        return self._table.near_others(list(dict.fromkeys(fingerprints)))


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
    The decision about a document.
    *group*: its name; the id of the document if it is the canonical. *distance*: to the canonical, in bits; ``None`` if
    its fingerprint is not known. *similarity*: to that one, if computed. *leader*: the document that it duplicates: the
    canonical, a copy of which that is gone or has another text (*is_stale*), or a copy of the same letters and numbers.
    *at*: milliseconds since 1970. *is_short*: another document is near, and its own text is too short to compare.
    """

    verdict: Verdict
    group: str
    distance: int | None = 0
    leader: Document | None = None
    similarity: float | None = None
    uncompared: Sequence[Uncompared] = ()
    at: int = 0
    is_short: bool = False
    is_stale: bool = False


@dataclass(slots=True)
class Existing:
    """
    The documents near those of one batch, as searches show them; ``near`` fills it in.
    *near*: for each fingerprint, the documents within max_distance, the one grouped first comes first. *gaps*: why a
    lookup is incomplete. *copies_unread*: fingerprints whose near copies were not read yet; with each, the
    fingerprints of the table that are near it. *held*: the hits of what the index has under the ids of the batch, with
    ``_source``; ``None`` if that is not known. *may_stay*: what is held as it is given is not written again. *there*:
    what is held by id, as far as moments need it. *gone*: canonicals that these name, and that are not there.
    """

    near: dict[int, Sequence[Document]] = field(default_factory=dict)
    gaps: dict[int, tuple[str, ...]] = field(default_factory=dict)
    copies_unread: Mapping[int, Sequence[int]] = field(default_factory=dict)
    held: Mapping[str, Sequence[Mapping[str, Any]]] | None = None
    may_stay: bool = False
    there: dict[str, Document] = field(default_factory=dict)
    gone: AbstractSet[str] = frozenset()

    def of(self, fingerprint: int | None) -> Sequence[Document]:
        """Return the documents near *fingerprint*, the one grouped first comes first."""
        return () if fingerprint is None else self.near.get(fingerprint, ())


@dataclass(frozen=True, slots=True)
class DecisionRule:
    """By what documents are decided; *scheme*: of the fingerprints of the index, ``None`` if that is not known."""

    grouping: Grouping
    on_duplicate: OnDuplicate
    scheme: Scheme | None = None


def decide(
    batch: Sequence[Document], existing: Existing, unshown: Unshown, rule: DecisionRule, *, now: int = 0
) -> list[Decision]:
    """
    Return the decision about each document of *batch*, in order; each has its group then.
    *existing*: what searches show. *unshown* documents are newer than that, and those of the batch, unless they are
    skipped, newer still. *now*: milliseconds since 1970; many documents may share it.
    """
    deciding = _Deciding(batch, existing, unshown, rule, now)
    decisions = list(map(deciding.decide, batch))
    deciding.drop_doubts()
    return decisions


Needed = Literal["none", "same", "near"]
"""Which copies of the index decide about a document: those of its very fingerprint, or all that are near."""


def needs_copies(document: Document, found: Iterable[Document], unshown: Unshown, rule: DecisionRule) -> Needed:
    """Return which copies must be read to decide, beside the canonicals *found* that were not written again."""
    comparisons = (_compare(document, other, rule.grouping) for other in found if other.id not in unshown.by_id)
    accepted = next((comparison for comparison in comparisons if comparison.accepts), None)
    if accepted is None:
        return "near"
    return "same" if rule.on_duplicate == "skip" and rule.grouping.measure.spares(accepted.score) else "none"


def _compare(document: Document, other: Document, grouping: Grouping) -> Comparison:
    distance = other.distance_to(document.fingerprint)
    return compare_contents(document.content, other.content, grouping, distance=distance)


class _Deciding:
    """The decisions about one batch, one after another; *own*: what was decided to be written."""

    def __init__(
        self, batch: Sequence[Document], existing: Existing, unshown: Unshown, rule: DecisionRule, now: int
    ) -> None:
        self._existing = existing
        self._unshown = unshown
        self._rule = rule
        self._own = Documents()
        self._moment = max(now, unshown.latest)
        # The moments of duplicates of this batch that are after its own, by fingerprint.
        self._later: dict[int | None, int] = {}
        # Rejected by a text of the index, which is said unless it is that of the fingerprint.
        self._doubted: list[tuple[list[Uncompared], Uncompared, str, int | None]] = []
        values = [document.fingerprint for document in batch]
        # Copies attract others, too, from when their canonical is deleted or written again in this batch.
        values += [copy.fingerprint for document in batch for copy in unshown.members.get(document.id, ())]
        self._near = unshown.near([value for value in values if value is not None])
        if rule.grouping.similarity is not None:
            prepare_together(self._compared_soon(batch), rule.grouping.measure)

    def decide(self, document: Document) -> Decision:
        decision = self._judge(document)
        if decision.verdict != "skip":
            leader = decision.leader
            document.group, document.at, document.is_member = decision.group, decision.at, leader is not None
            document.canonicals = (leader.canonicals or ()) if leader is not None and leader.is_member else None
            self._own.add(document)
            for member in self._unshown.members.get(document.id, ()):
                self._own.attract(member)
        return decision

    def _judge(self, document: Document) -> Decision:
        fingerprint, content = document.fingerprint, document.content
        unread = None if content is None else content.unread
        shown, own, unshown = self._existing, self._own, self._unshown
        is_near = (
            fingerprint in self._near or fingerprint in unshown.by_fingerprint or fingerprint in own.by_fingerprint
        )
        is_there = document.id in own.by_id or document.id in unshown.by_id or document.id in (shown.held or ())
        if not (is_near or is_there or shown.of(fingerprint) or unread):  # most documents, without detours
            return Decision("write", document.id, at=document.at or self._moment)
        is_twice = is_there and self._has_other_routing(document)
        uncompared = [] if unread is None else [Uncompared(None, unread)]
        if is_twice:
            uncompared.append(Uncompared(document.id, Unread("routing")))
        candidates, is_short = () if unread is not None else self._candidates(document), False
        for leader in candidates:
            comparison = _compare(document, leader, self._rule.grouping)
            if comparison.unread is not None:
                uncompared.append(Uncompared(leader.id, comparison.unread))
            elif comparison.because == "texts" and leader.content is not None and leader.content.found is not None:
                uncompared.append(doubt := Uncompared(leader.id, _STALE))
                self._doubted.append((uncompared, doubt, leader.content.found, leader.fingerprint))
            if comparison.accepts:
                similarity = None if comparison.score is None else comparison.score.similarity
                distance, at = leader.distance_to(fingerprint), self._at(document, leader)
                verdict, copied = self._verdict(document), leader
                if self._newest(leader.id) not in (None, leader):  # nobody knows whether that is in the same shard
                    verdict = "tag"
                    uncompared.append(Uncompared(leader.id, Unread("routing")))
                if verdict == "skip" and self._rule.grouping.measure.spares(comparison.score):
                    # Skipped, a text that differs in nothing but numbers would be lost, unless it is there already.
                    found = self._find_same(document)
                    verdict, copied = ("tag", leader) if found is None else ("skip", found)
                decision = Decision(verdict, leader.group, distance, copied, similarity, uncompared, at)
                decision.is_stale = leader.is_member
                return decision
            if comparison.because == "texts" and content is not None:
                is_short |= not content.prepared(self._rule.grouping.measure).size
        at = self._at(document, None)
        return Decision("write", document.id, uncompared=uncompared, at=at, is_short=is_short)

    def _at(self, document: Document, leader: Document | None) -> int:
        """
        Return when *document* is grouped, so that the order of moments, then of ids, says what was decided.
        A duplicate comes after its *leader*; a canonical no earlier than the duplicates near it that belong to others,
        and before its own. A document that is given again with its text, or decided again, keeps its moment.
        """
        found, fingerprint = self._existing.of(document.fingerprint), document.fingerprint
        before = self._newest(document.id) or self._existing.there.get(document.id)
        later = [self._later[value] for value in self._values_near(fingerprint) if value in self._later]
        copies = [other for other in found if other.is_member]
        at = min([self._moment, *(copy.at - 1 for copy in copies if copy.group == document.id and copy.at)])
        before = before or next((other for other in found if other.id == document.id), None)
        if before is not None and before.at and before.fingerprint == fingerprint:
            at = before.at
            stood = (other.group == document.id for other in (before, *found) if other.id == document.id)
            if leader is None and not document.at and any(stood):
                return at  # it stays a canonical, and what is near it was decided by that
        at = document.at or at
        if leader is not None:
            at = max(at, leader.at + 1)
            if at > self._moment:
                self._later[fingerprint] = at
            return at
        return max([at, *later, *(copy.at for copy in copies if copy.group != document.id)])

    def drop_doubts(self) -> None:
        """
        Drop the doubts about documents of the index whose text is that of their fingerprint.
        The text of others was changed, redacted or cut since, or is masked for this login: its rejection counts for
        nothing. All are fingerprinted together, which is several times faster than one by one.
        """
        texts = list({text: None for _, _, text, _ in self._doubted})
        scheme = self._rule.scheme
        of_text = {} if scheme is None else dict(zip(texts, fingerprints(texts, scheme=scheme), strict=True))
        for uncompared, doubt, text, fingerprint in self._doubted:
            if scheme is None or of_text[text] == fingerprint:
                uncompared.remove(doubt)

    def _has_other_routing(self, document: Document) -> bool:
        """Return whether another document may have its id, with another routing value."""
        newest = self._newest(document.id)
        held = (self._existing.held or {}).get(document.id, ())
        routings = [hit.get("_routing") for hit in held] if newest is None else [newest.routing]
        return any(str(routing) != str(document.routing) for routing in routings)

    def _find(self, document: Document) -> Document | None:
        """Return :meth:`_newest` of the routing value of *document* alone."""
        key = document.id, document.routing
        return self._own.find(*key) or self._unshown.find(*key)

    def _newest(self, id_: str) -> Document | None:
        """Return what was written, or is to be, under *id_*, and is newer than what a search shows."""
        return self._own.by_id.get(id_) or self._unshown.by_id.get(id_)

    def _candidates(self, document: Document) -> Iterator[Document]:
        """Yield the documents near *document*, the one grouped first comes first; none of its own group, none led."""
        fingerprint = document.fingerprint
        shown = (other for other in self._existing.of(fingerprint) if self._find(other) is None)
        for other in merge(shown, self._written_near(fingerprint), key=_shown_order):
            if document.id not in (other.id, other.group) and not self._is_led(other):
                yield other

    def _written_near(self, fingerprint: int | None) -> Iterator[Document]:
        """Yield the documents near *fingerprint* that searches may not show, in the order in which they will."""
        values, written = self._values_near(fingerprint), (self._unshown.by_fingerprint, self._own.by_fingerprint)
        found = [some for value in values for by_fingerprint in written if (some := by_fingerprint.get(value))]
        for document in found[0] if len(found) == 1 else merge(*found, key=_shown_order):
            if self._find(document) is document:
                yield document

    def _values_near(self, fingerprint: int | None) -> Sequence[int]:
        """Return *fingerprint*, and those of the batch and of unshown documents that are near it."""
        return () if fingerprint is None else (fingerprint, *self._near.get(fingerprint, ()))

    def _is_led(self, copy: Document) -> bool:
        """Return whether the canonical of *copy* is there, and the two are neighbours as they are now."""
        if not copy.is_member or (copy.position is None and copy.canonicals is None):
            return copy.is_member
        newer = self._newest(copy.group)
        if newer is None and copy.canonicals is None:
            return True
        there = [other for other in copy.canonicals or () if self._find(other) is None]
        for written in (self._own, self._unshown):
            there += [other for other in written.of_id(copy.group) if self._find(other) is other]
        return any(not other.is_member and _compare(copy, other, self._rule.grouping).accepts for other in there)

    def _verdict(self, document: Document) -> Verdict:
        """Return what becomes of a duplicate: skipping would leave what has its id with its old text."""
        before = self._newest(document.id)
        is_there = before is not None and not before.is_deletion
        return "tag" if document.must_write or is_there else self._rule.on_duplicate

    def _find_same(self, document: Document) -> Document | None:
        """Return another duplicate that has the same letters and numbers, in its newest state."""
        copies = [written.copies.get(document.fingerprint) for written in (self._own, self._unshown)]
        copies += [
            other for other in self._existing.of(document.fingerprint) if other.fingerprint == document.fingerprint
        ]
        for other in copies:
            if other is not None and self._newest(other.id) in (None, other):
                score = _compare(document, other, self._rule.grouping).score
                if score is not None and (score.similarity, score.numbers) == (1, "same"):
                    return other
        return None

    def _compared_soon(self, batch: Sequence[Document]) -> Iterator[Content]:
        """Yield the contents that will be compared: of new documents near another, in the index or not, and of that."""
        seen: dict[int, Document] = {}
        for document in batch:
            if (fingerprint := document.fingerprint) is None:
                continue
            near = [*self._existing.of(fingerprint)[:FIRST_COMPARED]]
            near += islice(self._written_near(fingerprint), FIRST_COMPARED)
            copied = seen.setdefault(fingerprint, document)
            if near or copied is not document or fingerprint in self._near:
                contents = (one.content for one in (document, copied, *near))
                yield from (content for content in contents if content is not None)
