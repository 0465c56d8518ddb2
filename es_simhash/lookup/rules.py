"""
By which rule a lookup judges what it finds: what each index records, with what the caller asks for in its place.

Each hit is judged by the rule of its own index. No request is made here, and no text is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

from es_simhash.errors import Advice, InvalidInputError
from es_simhash.lookup.content import docvalue_fields
from es_simhash.lookup.lookup_options import LookupOptions
from es_simhash.mapping.context import TextFields
from es_simhash.mapping.meta import IndexSettings, no_text_field
from es_simhash.mapping.rule import PairRule, default_rule, target_of

Origin = Literal["recorded", "default", "mixed", "given"]
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
            ``"recorded"`` in the index, the ``"default"`` where none is recorded, ``"mixed"`` where some of the indices
            record one, or ``"given"`` by the caller, in whole or in part.
        not_applied:
            Which of ``"texts"``, ``"per"`` and ``"within"`` of the recorded rule do not count, because a fingerprint
            has no text, and a text no values.
        each:
            Where indices have different rules, that of each, by name: a document is judged by that of its index, and
            the other attributes have the largest distance alone.
    """

    origin: Origin = "default"
    not_applied: tuple[str, ...] = ()
    each: tuple[tuple[str, PairRule], ...] = ()

    def __str__(self) -> str:
        said = "; ".join(f"{name}: {rule.words}" for name, rule in self.each) if self.each else self.words
        said += {
            "recorded": ", as the index records",
            "default": ", the default: the index records no rule",
            "mixed": ", as the indices record, the default where one records no rule",
        }.get(self.origin, "")
        why = {
            "texts": "a fingerprint has no text to compare",
            "per": "a text has no value of per",
            "within": "a text has no date",
        }
        return "; ".join([said, *(why[each] for each in self.not_applied)])

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values; ``words`` says the rule for people."""
        each = {name: rule.to_dict() for name, rule in self.each}
        plain = {**PairRule.to_dict(self), "origin": self.origin, "not_applied": list(self.not_applied)}
        return {"words": str(self), **plain, **({"indices": each} if each else {})}


@dataclass(frozen=True, slots=True)
class Rules:
    """
    The rules of a lookup: of *each* index by name, of any *other*, and what its answer says was *used*.
    *text_fields*: where the texts are of which the fingerprints are.
    """

    used: LookupRule
    other: PairRule
    each: Mapping[str, PairRule] = field(default_factory=dict)
    text_fields: TextFields = field(default_factory=TextFields)

    def of(self, index: str) -> PairRule:
        """Return the rule by which a document of *index* is judged."""
        return self.each.get(index, self.other)

    @property
    def all(self) -> list[PairRule]:
        return list(dict.fromkeys((*self.each.values(), self.other)))

    @property
    def is_by_distance_alone(self) -> bool:
        return all(each.is_by_distance_alone for each in self.all)

    @property
    def compares_texts(self) -> bool:
        return any(each.similarity is not None for each in self.all)

    @property
    def docvalue_fields(self) -> list[Any]:
        """What a search returns so that documents can be compared by more than their texts."""
        return [name for each in self.all for name in docvalue_fields(each)]


def rules_for(
    settings: IndexSettings, each: Mapping[str, IndexSettings], options: LookupOptions, asker: Asker
) -> Rules:
    """
    Return the rules of a lookup in indices with settings *each*, which agree on *settings*.
    Raises InvalidInputError if texts are to be compared, and an index does not say where they are.
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

    found = {name: decide(own) for name, own in each.items()}
    # A rollover may make an index while this is asked; a login that may not read mappings sees none.
    other = found[max(found)] if found else decide(settings)
    different = set(found.values()) | {other}
    origin: Origin = "given" if "given" in origins else origins.pop() if len(origins) == 1 else "mixed"
    not_applied = tuple(name for name in ("texts", "per", "within") if name in left_out)
    widest = PairRule(max(rule.max_distance for rule in different))
    shown = other if len(different) == 1 else widest
    values = {each.name: getattr(shown, each.name) for each in fields(shown)}
    by_index = tuple(sorted(found.items())) if len(different) > 1 else ()
    used = LookupRule(**values, origin=origin, not_applied=not_applied, each=by_index)
    text_fields = TextFields({name: own.text_fields for name, own in each.items()}, settings.text_fields)
    for name, rule in (*found.items(), ("", other)):
        if rule.similarity is not None and not text_fields[name]:
            instead = Advice("leave preset and verify out", typed="leave --preset and --verify out")
            raise no_text_field("texts cannot be compared", instead, index=name)
    return Rules(used, other, found, text_fields)
