"""
By which rule a lookup judges what it finds: what the indices record, with what the caller asks for in its place.

All indices of a lookup have one rule. No request is made here, and no text is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, get_args

from es_simhash.errors import Advice, InvalidInputError
from es_simhash.lookup.content import Content, docvalue_fields, read_content
from es_simhash.lookup.lookup_options import LookupOptions
from es_simhash.mapping.context import TextFields
from es_simhash.mapping.meta import IndexSettings, no_text_field
from es_simhash.mapping.rule import PairRule, default_rule, target_of

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
            "default": ", the default: the index records no rule",
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


@dataclass(frozen=True, slots=True)
class Judging:
    """
    How the documents of a lookup are judged: by the *rule*, which its answer says was *used*.
    *text_fields*: where the texts are of which the fingerprints are.
    """

    used: LookupRule
    rule: PairRule
    text_fields: TextFields

    @property
    def docvalue_fields(self) -> list[Any]:
        """What a search returns so that documents can be compared by more than their texts."""
        return docvalue_fields(self.rule)

    def content(self, hit: Mapping[str, Any]) -> Content:
        """Return what the document of *hit* is compared by."""
        return read_content(hit, self.rule, self.text_fields)


def judging_for(
    settings: IndexSettings, each: Mapping[str, IndexSettings], options: LookupOptions, asker: Asker
) -> Judging:
    """
    Return how a lookup in indices with settings *each*, which agree on *settings*, judges.
    Raises InvalidInputError if their rules differ, or texts are to be compared and an index does not say where they
    are.
    """
    if asker == "fingerprint" and (options.preset is not None or options.verify) and options.verify is not False:
        raise InvalidInputError("verify compares texts: ask with a text, not with a fingerprint")
    is_bits_alone = options.is_bits_alone or asker == "fingerprint"
    left_out: set[str] = set()
    origins: set[Origin] = set()

    def decide(own: IndexSettings) -> PairRule:
        grouping = target_of(own)
        rule = default_rule(own, has_texts=False if is_bits_alone else None) if grouping is None else grouping.pair_rule
        asked = options.put_on(rule)
        is_recorded = grouping is not None or own.max_distance is not None
        origins.add("given" if asked != rule or options.is_bits_alone else "recorded" if is_recorded else "default")
        rule = asked
        if asker == "fingerprint":
            left_out.update([] if options.is_bits_alone else ["texts"])
            rule = replace(rule, similarity=None)
        if asker != "document":
            left_out.update(name for name in ("per", "within") if getattr(rule, name) is not None)
            rule = replace(rule, per=None, within=None)
        return replace(rule, measure=rule.measure.after(own.scheme).noting_numbers())

    # A login that may not read mappings sees none.
    decided = {name: decide(own) for name, own in each.items()} or {"": decide(settings)}
    first = {rule: name for name, rule in reversed(decided.items())}
    if len(first) > 1:
        said = "; ".join(sorted(f"{name}: {rule.words}" for rule, name in first.items()))
        raise InvalidInputError(
            f"the indices have different rules ({said}): name indices of one rule, or give one for all"
        )
    [rule] = first
    text_fields = TextFields({name: own.text_fields for name, own in each.items()}, settings.text_fields)
    for name in decided:
        if rule.similarity is not None and not text_fields[name]:
            instead = Advice("leave preset and verify out", typed="leave --preset and --verify out")
            raise no_text_field("texts cannot be compared", instead, index=name)
    origin: Origin = next(name for name in get_args(Origin) if name in origins)
    not_applied = tuple(name for name in ("texts", "per", "within") if name in left_out)
    values = {part.name: getattr(rule, part.name) for part in fields(rule)}
    return Judging(LookupRule(**values, origin=origin, not_applied=not_applied), rule, text_fields)
