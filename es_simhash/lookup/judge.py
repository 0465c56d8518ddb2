"""
What a lookup accepts: the rule of its indices, the texts and values of what it found, and the documents that the rule
accepts of these.

A near-duplicate that could not be compared is kept, without a similarity, and says why. The nearest that the rule
rejects are noted. ``content`` compares two documents.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

from es_simhash.errors import InvalidInputError, SchemeError
from es_simhash.hashing import Scheme, fingerprints
from es_simhash.lookup.content import (
    Content,
    PairReason,
    Unread,
    compare_contents,
    docvalue_fields,
    prepare_together,
    read_content,
    why_apart,
)
from es_simhash.lookup.documents import FETCH_DOCUMENTS, fetch_hits
from es_simhash.lookup.lookup_options import LookupOptions
from es_simhash.lookup.near_dups import MOST_REJECTED, NearDup, NearDups, Rejected
from es_simhash.mapping.context import TextFields
from es_simhash.mapping.meta import IndexSettings, no_text_field
from es_simhash.mapping.port import Port
from es_simhash.mapping.rule import Grouping, PairRule, default_rule
from es_simhash.transport.protocol import Key

if TYPE_CHECKING:
    from es_simhash.lookup.find import Scope

Origin = Literal["given", "recorded", "default"]
Asker = Literal["text", "document", "fingerprint"]
"""What is looked up: a text has no values of fields, a fingerprint no text either."""


@dataclass(frozen=True, slots=True)
class LookupRule(PairRule):
    """
    The rule by which an answer was made.

    Attributes:
        max_distance, similarity, measure, per, within:
            What near-duplicates are: the largest distance in bits, the smallest similarity of the texts by a measure
            (``None``: texts were not compared), a keyword field of equal values, a date field and a span.
        origin:
            ``"recorded"`` in an index, the ``"default"`` where none is recorded, or ``"given"`` by the caller, in whole
            or in part.
        not_applied:
            Which of ``"texts"``, ``"per"`` and ``"within"`` of the recorded rule do not count, because a fingerprint
            has no text, and a text no values.
    """

    origin: Origin = "default"
    not_applied: tuple[str, ...] = ()

    def __str__(self) -> str:
        said = {
            "recorded": ", as the index records",
            "default": ", the default",
            "given": "",
        }[self.origin]
        why = {
            "texts": "a fingerprint has no text to compare",
            "per": "a text has no value of per",
            "within": "a text has no date",
        }
        return "; ".join([self.words + said, *(why[name] for name in self.not_applied)])

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values; ``words`` says the rule for people."""
        plain = {**PairRule.to_dict(self), "origin": self.origin, "not_applied": list(self.not_applied)}
        return {"words": str(self), **plain}


def choose_rule(
    settings: IndexSettings, settings_by_index: Mapping[str, IndexSettings], options: LookupOptions, asker: Asker
) -> tuple[LookupRule, TextFields]:
    """
    Return the rule of a lookup in indices that agree on *settings*, and where the texts are that it compares.
    Raises InvalidInputError if their rules differ, or texts are to be compared and an index does not say where they
    are.
    """
    if asker == "fingerprint" and options.verify is not False and (options.preset is not None or options.verify):
        raise InvalidInputError("verify compares texts: ask with a text, not with a fingerprint")
    # A login that may not read mappings sees none.
    known = settings_by_index or {"": settings}
    rules = {name: _rule_of(of_index, options, asker) for name, of_index in known.items()}
    different = {replace(rule, origin="default", not_applied=()): name for name, rule in reversed(rules.items())}
    if len(different) > 1:
        said = "; ".join(sorted(f"{name}: {rule.words}" for rule, name in different.items()))
        raise InvalidInputError(
            f"the indices have different rules ({said}): name indices of one rule, or give one for all"
        )
    [rule] = different
    text_fields = TextFields(
        {name: of_index.text_fields for name, of_index in settings_by_index.items()}, settings.text_fields
    )
    for name in rules:
        if rule.similarity is not None and not text_fields[name]:
            raise no_text_field("texts cannot be compared", "leave preset and verify out", index=name)
    origin = min((rule.origin for rule in rules.values()), key=get_args(Origin).index)
    left_out = {name for rule in rules.values() for name in rule.not_applied}
    not_applied = tuple(name for name in ("texts", "per", "within") if name in left_out)
    return replace(rule, origin=origin, not_applied=not_applied), text_fields


def _rule_of(settings: IndexSettings, options: LookupOptions, asker: Asker) -> LookupRule:
    """Return the rule of one index, with what the caller gives in its place, as far as it applies to *asker*."""
    grouping = Grouping.read(settings)
    if grouping is not None:
        recorded = grouping.pair_rule
    else:
        is_bits_alone = options.is_bits_alone or asker == "fingerprint"
        recorded = default_rule(settings, has_texts=False if is_bits_alone else None)
    rule = options.put_on(recorded)
    origin: Origin = "default"
    if rule != recorded or options.is_bits_alone:
        origin = "given"
    elif grouping is not None or settings.max_distance is not None:
        origin = "recorded"
    not_applied: list[str] = []
    if asker == "fingerprint":
        if not options.is_bits_alone:
            not_applied.append("texts")
        rule = replace(rule, similarity=None)
    if asker != "document":
        not_applied += [name for name in ("per", "within") if getattr(rule, name) is not None]
        rule = replace(rule, per=None, within=None)
    measure = rule.measure.after(settings.scheme).noting_numbers()
    return LookupRule(
        rule.max_distance,
        rule.similarity,
        measure,
        rule.per,
        rule.within,
        origin=origin,
        not_applied=tuple(not_applied),
    )


def why_unread(unread: Unread, asked: Content) -> str:
    """Return for people why a near-duplicate of what is *asked* was not compared."""
    return f"the document asked for: {unread}" if unread is asked.unread else str(unread)


CHANGED = str(Unread("changed"))
"""Why a text that was changed, redacted or cut after its fingerprint was made rejects nothing."""


@dataclass(slots=True)
class _Case:
    """What one lookup found: what is *left* to compare, nearest first, and what became of the rest."""

    answer: NearDups
    asked: Content
    left: list[NearDup]
    accepted: list[NearDup] = field(default_factory=list)
    rejected: list[tuple[NearDup, PairReason]] = field(default_factory=list)

    def result(self, rule: LookupRule, size: int | None, contents: Mapping[Key, Content]) -> NearDups:
        """Return the nearest that were accepted, what could not be compared last, and the nearest that were not."""
        accepted = self.accepted[:size]
        accepted.sort(key=lambda one: (1.0 if one.similarity is None else -one.similarity, *one.order))
        nearest = sorted(self.rejected, key=lambda one: one[0].order)[:MOST_REJECTED]
        rejected = tuple(self._rejected(near_dup, because, rule, contents) for near_dup, because in nearest)
        return replace(self.answer, items=tuple(accepted), rule=rule, rejected=rejected)

    def _rejected(
        self, near_dup: NearDup, because: PairReason, rule: LookupRule, contents: Mapping[Key, Content]
    ) -> Rejected:
        if because != "texts":
            return Rejected(near_dup, because, rule)
        reason, share = why_apart(self.asked, contents[near_dup.key], rule)
        return Rejected(replace(near_dup, similarity=share), reason, rule)


async def accept(server: Port, scope: Scope, found: Sequence[NearDups], asked: Iterable[Content]) -> list[NearDups]:
    """
    Return the answers *found*, one for each *asked*, with what the rule accepts.
    The nearest in bits are read first, until so many of each answer are accepted as the caller wants. Where texts were
    compared, the order is by similarity, largest first. Cost: one search for every 500 different documents.
    """
    size, rule = scope.options.size, scope.rule
    if rule.is_by_distance_alone:
        return [replace(answer, items=answer.items[:size], rule=rule) for answer in found]
    contents: dict[Key, Content] = {}
    cases = [_Case(answer, content, list(answer.items)) for answer, content in zip(found, asked, strict=True)]
    most = sys.maxsize if size is None else size
    step = min(FETCH_DOCUMENTS, max(2 * most, 20))
    while waiting := [case for case in cases if case.left and len(case.accepted) < most]:
        pairs: list[tuple[_Case, NearDup]] = []
        for case in waiting:
            pairs += [(case, near_dup) for near_dup in case.left[:step]]
            case.left = case.left[step:]
        unread = [key for key in dict.fromkeys(near_dup.key for _, near_dup in pairs) if key not in contents]
        text_fields = () if rule.similarity is None else scope.text_fields.all
        hits, unanswered = await fetch_hits(
            server,
            scope.index,
            unread,
            text_fields=text_fields,
            docvalue_fields=docvalue_fields(rule),
            page=FETCH_DOCUMENTS,
        )
        contents |= {key: read_content(hit, rule, scope.text_fields) for key, hit in hits.items()}
        for key, gap in unanswered.items():
            contents[key] = Content(unread=Unread("deleted") if gap is None else Unread("not_read", str(gap)))
        await server.compute(_compare, pairs, contents, rule, scope.settings.scheme)
        step = FETCH_DOCUMENTS
    return await server.compute(lambda: [case.result(rule, size, contents) for case in cases])


def _compare(
    pairs: Sequence[tuple[_Case, NearDup]], contents: Mapping[Key, Content], rule: LookupRule, scheme: Scheme
) -> None:
    """Put each near-duplicate of *pairs* with what its case accepts or rejects."""
    prepare_together(
        [content for case, near_dup in pairs for content in (case.asked, contents[near_dup.key])], rule.measure
    )
    comparisons = [
        compare_contents(case.asked, contents[near_dup.key], rule, distance=near_dup.distance)
        for case, near_dup in pairs
    ]
    both = list(zip(pairs, comparisons, strict=True))
    rejected = {near_dup.key for (_, near_dup), comparison in both if comparison.because == "texts"}
    present = _fingerprints_now({key: contents[key].found or "" for key in rejected}, scheme)
    for (case, near_dup), comparison in both:
        because, score = comparison.because, comparison.score
        if because == "texts" and present.get(near_dup.key, near_dup.fingerprint) != near_dup.fingerprint:
            case.accepted.append(replace(near_dup, unverified=CHANGED))
        elif because is not None:
            case.rejected.append((near_dup, because))
        elif comparison.unread is not None:
            case.accepted.append(replace(near_dup, unverified=why_unread(comparison.unread, case.asked)))
        elif score is not None:
            compared = replace(
                near_dup, similarity=score.similarity, containment=score.containment, numbers=score.numbers
            )
            case.accepted.append(compared)
        else:
            case.accepted.append(near_dup)


def _fingerprints_now(texts: Mapping[Key, str], scheme: Scheme) -> dict[Key, int | None]:
    """
    Return the fingerprints of *texts*, which may have been changed, redacted or cut since; nothing if that is not
    known. All together take a fraction of the time that one by one takes.
    """
    try:
        return dict(zip(texts, fingerprints(list(texts.values()), scheme=scheme), strict=True))
    except SchemeError as error:
        if not error.missing_file:
            raise
        return {}  # a lookup by id needs no dictionary, and without it nothing says so either
