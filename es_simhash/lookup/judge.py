"""
Keeps of what a lookup found the documents that the rule accepts.

A near-duplicate whose text is not available is kept, without a similarity, and says why. The nearest that the rule
rejects are noted. :func:`decide` says why two documents are near-duplicates or not; ``content`` compares their texts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from es_simhash.errors import SchemeError
from es_simhash.hashing import Scheme, fingerprints
from es_simhash.lookup.content import Content, compare_contents, prepare_together, why_apart
from es_simhash.lookup.fetch import FETCH, NoText, fetch_hits
from es_simhash.lookup.near_dups import REJECTED, NearDup, NearDups, Reason, Rejected
from es_simhash.lookup.rules import Judging, LookupRule
from es_simhash.mapping.port import Port
from es_simhash.mapping.rule import PairRule
from es_simhash.texts.measures import Score
from es_simhash.transport.protocol import Index, Key, document_key


@dataclass(frozen=True, slots=True)
class Verdict:
    """
    What a rule says of two documents: near-duplicates, unless *because* of something.
    *unverified*: why their texts do not count.
    """

    because: Reason | None = None
    score: Score | None = None
    unverified: str | None = None

    def put_on(self, near_dup: NearDup) -> NearDup:
        """Return *near_dup*, which is one, as its texts say."""
        if self.score is None:
            return replace(near_dup, unverified=self.unverified)
        score = self.score
        return replace(near_dup, similarity=score.similarity, containment=score.containment, numbers=score.numbers)


def decide(distance: int, asked: Content, found: Content, rule: PairRule) -> Verdict:
    """Return what *rule* says: the distance decides first, then ``per``, ``within`` and the texts."""
    if distance > rule.max_distance:
        return Verdict("distance")
    compared = compare_contents(asked, found, rule)
    if compared.unread is not None:
        whose = "the document asked for: " if compared.unread is asked.unread else ""
        return Verdict(unverified=f"{whose}{compared.unread}")
    if not compared.are_neighbours:
        return Verdict(compared.because)
    return Verdict() if rule.similarity is None else Verdict(score=compared.similarity or Score(0.0))


# A text that was changed, redacted or cut after its fingerprint was made rejects nothing.
CHANGED = Verdict(unverified=str(NoText("changed")))


@dataclass(slots=True)
class Read:
    """What documents are compared by, as far as it was read; *missing*: why it was not."""

    judging: Judging
    contents: dict[Key, Content] = field(default_factory=dict)
    texts: dict[Key, str] = field(default_factory=dict)
    missing: dict[Key, NoText] = field(default_factory=dict)

    def add(self, hit: Mapping[str, Any]) -> None:
        """Take the document of *hit*, which has its texts and the values of the rule."""
        content = self.judging.content(hit)
        self.contents[key := document_key(hit)] = content
        if content.pending_text is not None:
            self.texts[key] = content.pending_text

    async def fetch(self, server: Port, index: Index, wanted: Sequence[NearDup], *, page: int = FETCH) -> None:
        """Read those *wanted*, unless they were read. Cost: one search for every *page* of documents."""
        keys = [each.key for each in wanted if each.key not in self.contents and each.key not in self.missing]
        judging = self.judging
        fields = judging.text_fields.all if judging.rule.similarity is not None else ()
        values = judging.docvalue_fields
        gone = await fetch_hits(server, index, keys, self.add, text_fields=fields, docvalue_fields=values, page=page)
        for key, gap in gone.items():
            self.missing[key] = NoText("deleted") if gap is None else NoText("not_read", str(gap))


@dataclass(slots=True)
class _Case:
    """An answer that is judged: what of it is *left*, nearest first, and what became of the rest."""

    answer: NearDups
    asked: Content
    left: list[NearDup]
    kept: list[NearDup] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)

    def may_note(self, each: NearDup) -> bool:
        """Return whether *each* is among the nearest that were rejected."""
        return len(self.rejected) < REJECTED or each.order < self.rejected[-1].near_dup.order

    def note(self, rejected: Rejected) -> None:
        self.rejected = sorted([*self.rejected, rejected], key=lambda each: each.near_dup.order)[:REJECTED]

    def result(self, used: LookupRule, size: int | None) -> NearDups:
        # The nearest are kept; what could not be compared comes last.
        kept = self.kept if size is None else self.kept[:size]
        ordered = sorted(kept, key=lambda each: (1.0 if each.similarity is None else -each.similarity, *each.order))
        return replace(self.answer, items=tuple(ordered), rule=used, rejected=tuple(self.rejected))


async def judge(
    server: Port,
    index: Index,
    found: Sequence[NearDups],
    asked: Sequence[Content],
    *,
    judging: Judging,
    scheme: Scheme,
    size: int | None = None,
    read: Read | None = None,
    page: int = FETCH,
) -> list[NearDups]:
    """
    Return the answers *found*, one for each *asked*, with what the rule accepts.
    The nearest in bits are read first, until *size* of each answer are kept. Where texts were compared, the order is by
    similarity, largest first. *read*: what was read before. Cost: one search for every *page* different documents.
    """
    if judging.rule.is_by_distance_alone:
        return [replace(answer, items=answer.items[:size], rule=judging.used) for answer in found]
    cases = [_Case(answer, content, list(answer.items)) for answer, content in zip(found, asked, strict=True)]
    read = read or Read(judging)
    step = None if size is None else min(page, max(2 * size, 20))
    while open_cases := [each for each in cases if each.left and (size is None or len(each.kept) < size)]:
        parts = [(each, each.left[:step]) for each in open_cases]
        for case, part in parts:
            case.left = case.left[len(part) :]
        wanted = {one.key: one for _, part in parts for one in part}
        await read.fetch(server, index, list(wanted.values()), page=page)
        await server.compute(_compare, parts, read, scheme)
        step = None if size is None else page
    return [case.result(judging.used, size) for case in cases]


def _compare(parts: Sequence[tuple[_Case, Sequence[NearDup]]], read: Read, scheme: Scheme) -> None:
    """Put each document of *parts* with what its case keeps or rejects."""
    rule = read.judging.rule
    contents = [case.asked for case, _ in parts]
    contents += [read.contents[near.key] for _, part in parts for near in part if near.key in read.contents]
    prepare_together(contents, rule.measure)
    doubted = [(case, near) for case, part in parts for near in part if not _is_settled(case, near, rule, read)]
    present = _present([read.texts.get(near.key, "") for _, near in doubted], scheme)
    for number, (case, near) in enumerate(doubted):
        if present is not None and present[number] != near.fingerprint:
            case.kept.append(CHANGED.put_on(near))
        elif case.may_note(near):
            because, share = why_apart(case.asked, read.contents[near.key], rule)
            case.note(Rejected(replace(near, similarity=share), because, rule))


def _present(texts: Sequence[str], scheme: Scheme) -> Sequence[int | None] | None:
    """Return the fingerprints of *texts*, which may have been changed, redacted or cut since; ``None`` if not known."""
    try:
        return list(fingerprints(texts, scheme=scheme))
    except SchemeError as error:
        if not error.missing_file:
            raise
        return None  # a lookup by id needs no dictionary, and without it nothing says so either


def _is_settled(case: _Case, near: NearDup, rule: PairRule, read: Read) -> bool:
    """Keep *near*, or reject it for its values; return ``False`` if its text is not similar, and may have changed."""
    other = read.contents.get(near.key)
    if other is None:
        verdict = Verdict(unverified=str(read.missing[near.key]))
    else:
        verdict = decide(near.distance, case.asked, other, rule)
    if verdict.because == "texts":
        return False
    if verdict.because is None:
        case.kept.append(verdict.put_on(near))
    elif case.may_note(near):
        case.note(Rejected(near, verdict.because, rule))
    return True
