"""
Keeps of what a lookup found the documents that the rule of their index accepts.

A near-duplicate whose text is not available is kept, without a similarity, and says why. The nearest that the rule
rejects are noted. :func:`decide` says why two documents are near-duplicates or not; ``content`` compares their texts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from es_simhash.errors import SchemeError
from es_simhash.hashing import Scheme, fingerprints
from es_simhash.lookup.content import Content, compare_contents, prepare_together, read_content, why_apart
from es_simhash.lookup.fetch import FETCH, NoText, fetch_hits
from es_simhash.lookup.near_dups import REJECTED, NearDup, NearDups, Reason, Rejected
from es_simhash.lookup.rules import Rules
from es_simhash.mapping.port import Port
from es_simhash.mapping.rule import PairRule
from es_simhash.texts.measures import Score, TextMeasure
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


class Asked:
    """What is looked up: a *text*, or the *hit* of a document of the index, as each rule compares it."""

    def __init__(self, rules: Rules, text: str | None = None, hit: Mapping[str, Any] | None = None) -> None:
        self._rules = rules
        self._hit = hit
        self._text = text
        self._known: dict[PairRule, Content] = {}

    def content(self, rule: PairRule) -> Content:
        """Return what *rule* compares of it."""
        if rule not in self._known:
            if self._hit is None:
                self._known[rule] = Content(self._text)
            else:
                self._known[rule] = read_content(self._hit, rule, self._rules.text_fields)
        return self._known[rule]


@dataclass(slots=True)
class Read:
    """What documents are compared by, as far as it was read; *missing*: why it was not."""

    rules: Rules
    contents: dict[Key, Content] = field(default_factory=dict)
    texts: dict[Key, str] = field(default_factory=dict)
    missing: dict[Key, NoText] = field(default_factory=dict)

    def add(self, hit: Mapping[str, Any]) -> None:
        """Take the document of *hit*, which has its texts and the values of the rules."""
        content = read_content(hit, self.rules.of(hit["_index"]), self.rules.text_fields)
        self.contents[key := document_key(hit)] = content
        if content.pending_text is not None:
            self.texts[key] = content.pending_text

    async def fetch(self, server: Port, index: Index, wanted: Sequence[NearDup], *, page: int = FETCH) -> None:
        """Read those *wanted*, unless they were read. Cost: one search for every *page* of documents."""
        keys = [each.key for each in wanted if each.key not in self.contents and each.key not in self.missing]
        fields = self.rules.text_fields.all if self.rules.compares_texts else ()
        values = self.rules.docvalue_fields
        gone = await fetch_hits(server, index, keys, self.add, text_fields=fields, docvalue_fields=values, page=page)
        for key, gap in gone.items():
            self.missing[key] = NoText("deleted") if gap is None else NoText("not_read", str(gap))


@dataclass(slots=True)
class _Case:
    """An answer that is judged: what of it is *left*, nearest first, and what became of the rest."""

    answer: NearDups
    asked: Asked
    left: list[NearDup]
    kept: list[NearDup] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)

    def may_note(self, each: NearDup) -> bool:
        """Return whether *each* is among the nearest that were rejected."""
        return len(self.rejected) < REJECTED or each.order < self.rejected[-1].near_dup.order

    def note(self, rejected: Rejected) -> None:
        self.rejected = sorted([*self.rejected, rejected], key=lambda each: each.near_dup.order)[:REJECTED]

    def result(self, rules: Rules, size: int | None) -> NearDups:
        # The nearest are kept; what could not be compared comes last.
        kept = self.kept if size is None else self.kept[:size]
        ordered = sorted(kept, key=lambda each: (1.0 if each.similarity is None else -each.similarity, *each.order))
        return replace(self.answer, items=tuple(ordered), rule=rules.used, rejected=tuple(self.rejected))


async def judge(
    server: Port,
    index: Index,
    found: Sequence[NearDups],
    asked: Sequence[Asked],
    *,
    rules: Rules,
    scheme: Scheme,
    size: int | None = None,
    read: Read | None = None,
    page: int = FETCH,
) -> list[NearDups]:
    """
    Return the answers *found*, one for each *asked*, with what the rules accept.
    The nearest in bits are read first, until *size* of each answer are kept. Where texts were compared, the order is by
    similarity, largest first. *read*: what was read before. Cost: one search for every *page* different documents.
    """
    cases = [_case(answer, each, rules) for answer, each in zip(found, asked, strict=True)]
    if rules.is_by_distance_alone:
        return [
            replace(each.answer, items=tuple(each.left[:size]), rule=rules.used, rejected=tuple(each.rejected))
            for each in cases
        ]
    read = read or Read(rules)
    step = None if size is None else min(page, max(2 * size, 20))
    while open_cases := [each for each in cases if each.left and (size is None or len(each.kept) < size)]:
        parts = [(each, each.left[:step]) for each in open_cases]
        for case, part in parts:
            case.left = case.left[len(part) :]
        wanted = {one.key: one for _, part in parts for one in part if not rules.of(one.index).is_by_distance_alone}
        await read.fetch(server, index, list(wanted.values()), page=page)
        await server.compute(_compare, parts, rules, read, scheme)
        step = None if size is None else page
    return [each.result(rules, size) for each in cases]


def _case(answer: NearDups, asked: Asked, rules: Rules) -> _Case:
    """Return the case of *answer* with what is within the distance of the rule of its own index."""
    case = _Case(answer, asked, [])
    for each in sorted(answer.items, key=lambda one: one.order):
        rule = rules.of(each.index)
        if each.distance <= rule.max_distance:
            case.left.append(each)
        elif case.may_note(each):
            case.note(Rejected(each, "distance", rule))
    return case


def _compare(parts: Sequence[tuple[_Case, Sequence[NearDup]]], rules: Rules, read: Read, scheme: Scheme) -> None:
    """Put each document of *parts* with what its case keeps or rejects."""
    by_measure: dict[TextMeasure, list[Content]] = {}
    for case, part in parts:
        for rule in {rules.of(each.index) for each in part}:
            by_measure.setdefault(rule.measure, []).append(case.asked.content(rule))
        for each in part:
            if each.key in read.contents:
                by_measure.setdefault(rules.of(each.index).measure, []).append(read.contents[each.key])
    for measure, contents in by_measure.items():
        prepare_together(contents, measure)
    doubted = [(case, each) for case, part in parts for each in part if not _is_settled(case, each, rules, read)]
    present = _present([read.texts.get(each.key, "") for _, each in doubted], scheme)
    for number, (case, each) in enumerate(doubted):
        if present is not None and present[number] != each.fingerprint:
            case.kept.append(CHANGED.put_on(each))
        elif case.may_note(each):
            case.note(_rejected(case, each, rules.of(each.index), read))


def _present(texts: Sequence[str], scheme: Scheme) -> Sequence[int | None] | None:
    """Return the fingerprints of *texts*, which may have been changed, redacted or cut since; ``None`` if not known."""
    try:
        return list(fingerprints(texts, scheme=scheme))
    except SchemeError as error:
        if not error.missing_file:
            raise
        return None  # a lookup by id needs no dictionary, and without it nothing says so either


def _is_settled(case: _Case, each: NearDup, rules: Rules, read: Read) -> bool:
    """Keep *each*, or reject it for its values; return ``False`` if its text is not similar, and may have changed."""
    rule = rules.of(each.index)
    if rule.is_by_distance_alone:
        case.kept.append(each)
        return True
    other = read.contents.get(each.key)
    if other is None:
        verdict = Verdict(unverified=str(read.missing[each.key]))
    else:
        verdict = decide(each.distance, case.asked.content(rule), other, rule)
    if verdict.because == "texts":
        return False
    if verdict.because is None:
        case.kept.append(verdict.put_on(each))
    elif case.may_note(each):
        case.note(Rejected(each, verdict.because, rule))
    return True


def _rejected(case: _Case, each: NearDup, rule: PairRule, read: Read) -> Rejected:
    mine, other = case.asked.content(rule), read.contents[each.key]
    because, share = why_apart(mine, other, rule)
    return Rejected(replace(each, similarity=share), because, rule)
