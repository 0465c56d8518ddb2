"""
The rule of an index, as its ``_meta`` records it so that all who look something up or write agree: plain values.

What makes two documents near-duplicates is a :class:`PairRule`; a :class:`Grouping` also says how they are grouped.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from es_simhash.arguments import check_field, check_sendable
from es_simhash.errors import InvalidInputError, MappingError, WrongTypeError, shorten
from es_simhash.mapping.meta import (
    DEFAULT_MAX_DISTANCE,
    GROUPING_KEY,
    REGROUPING_KEY,
    IndexSettings,
    check_max_distance,
    unreadable,
)
from es_simhash.texts.measures import DEFAULT_PRESET, WORD_SHINGLES, Measure, TextMeasure, Unit, check_bound

BY_ID = "id"
LONGEST = "longest"
OTHERS = "*"
Canonical: TypeAlias = str | Sequence[str]
"""What a caller gives: one key, or a list of them."""


@dataclass(frozen=True, slots=True)
class OrderKey:
    """
    One key of a canonical order.
    *kind*: ``"preference"`` compares values of a keyword field, ``"field"`` a date or number. *values* has the
    preferred one first; ``"*"`` stands for all that are not named.
    """

    kind: Literal["id", "longest", "preference", "field"]
    field: str = ""
    is_descending: bool = False
    values: tuple[str, ...] = ()

    def words(self, say: Callable[..., str]) -> str:
        """Return which document stays by this key, for people."""
        if self.kind in ("id", "longest"):
            return say(f"order_{self.kind}")
        if self.kind == "preference":
            values = (say("order_others") if value == OTHERS else value for value in self.values)
            return say("order_preference", field=self.field, values=say("order_before").join(values))
        return say("order_latest" if self.is_descending else "order_earliest", field=self.field)

    def rank(self, values: Iterable[Any]) -> float:
        """Return the rank of a document, as a double: the smallest is preferred, no value is last."""
        if self.kind == "preference":
            return min(map(self._place, values), default=inf)
        return min((-float(value) if self.is_descending else float(value) for value in values), default=inf)

    def _place(self, value: str) -> int:
        for named in (value, OTHERS):
            if named in self.values:
                return self.values.index(named)
        return len(self.values)


def parse_key(text: str) -> OrderKey:
    """
    Return the key that *text* names.

    >>> parse_key("source:xinhua>reuters>*").values
    ('xinhua', 'reuters', '*')
    >>> parse_key("-views").is_descending
    True
    """
    if not isinstance(text, str):
        raise WrongTypeError(f"canonical must be a string or a list of strings, not {type(text).__name__}")
    if text in (BY_ID, LONGEST):
        return OrderKey("id" if text == BY_ID else "longest")
    if ":" in text:
        field, _, listed = text.partition(":")
        values = tuple(listed.split(">"))
        if not field or field.startswith("-") or not all(values) or len(set(values)) < len(values):
            raise InvalidInputError(
                f"canonical {shorten(text)} is no preference: give FIELD:VALUE>VALUE>*, each value once"
            )
        check_sendable("canonical", text)
        check_field("canonical", field)
        return OrderKey("preference", field, values=values)
    field = text.removeprefix("-")
    check_field("canonical", field)
    return OrderKey("field", field, is_descending=text.startswith("-"))


def check_order(canonical: Canonical) -> tuple[str, ...]:
    """Return the keys of *canonical* as recorded, without a last ``"id"``: the id always decides last."""
    if not isinstance(canonical, (str, list, tuple)):
        raise WrongTypeError(f"canonical must be a string or a list of strings, not {type(canonical).__name__}")
    keys = (canonical,) if isinstance(canonical, str) else tuple(canonical)
    subjects = [(key.kind, key.field) for key in map(parse_key, keys)]
    if not keys or len(set(subjects)) < len(subjects) or BY_ID in keys[:-1]:
        raise InvalidInputError(
            f"canonical {shorten(list(keys))} is no order: give one key or more, each once, and none after 'id'"
        )
    return keys[:-1] if len(keys) > 1 and keys[-1] == BY_ID else keys


# Largest first: a span is written in the largest unit that divides it.
_UNIT_MILLISECONDS = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1_000, "ms": 1}
_SPAN = re.compile(r"([0-9]{1,15})(d|h|m|s|ms)")


@dataclass(frozen=True, slots=True)
class Within:
    """A date field, and the largest difference of dates between neighbours, inclusive."""

    field: str
    milliseconds: int

    @property
    def span(self) -> str:
        """The difference as text, such as ``7d``."""
        unit = next(unit for unit, size in _UNIT_MILLISECONDS.items() if self.milliseconds % size == 0)
        return f"{self.milliseconds // _UNIT_MILLISECONDS[unit]}{unit}"

    def __str__(self) -> str:
        return f"{self.field}:{self.span}"


def parse_within(value: Within | Sequence[str]) -> Within:
    """
    Return field and span of a pair such as ``("published", "7d")``, with the units d, h, m, s and ms.

    >>> parse_within(("published", "168h")).span
    '7d'
    """
    if isinstance(value, Within):
        return value
    pair: Any = value
    if not isinstance(pair, (list, tuple)) or len(pair) != 2 or not all(isinstance(part, str) for part in pair):
        raise WrongTypeError(f'within must be a pair such as ("published", "7d"), not {shorten(value)}')
    field, span = pair
    match = _SPAN.fullmatch(span)
    if match is None:
        raise InvalidInputError(
            f"within {shorten(list(pair))} cannot be used: give a date field and a span, such as 7d, 12h or 30m"
        )
    return Within(check_field("within", field), int(match[1]) * _UNIT_MILLISECONDS[match[2]])


RULE_WORDS = {
    "rule_bit": "within {bits} bit",
    "rule_bits": "within {bits} bits",
    "rule_and": ", ",
    "rule_no_texts": "texts not compared",
    "rule_texts": "at least {share} % {of_what} are the same",
    "rule_numbers_most": "most numbers the same",
    "rule_numbers_same": "the same numbers",
    "rule_per": "the same {field}",
    "rule_within": "at most {span} apart by {field}",
    "rule_groups": "{rule} groups",
    "rule_order": "stays: {order}",
    "order_id": "the smallest id",
    "order_longest": "the longest text",
    "order_preference": "by {field}, {values}",
    "order_before": " before ",
    "order_others": "others",
    "order_latest": "the latest by {field}",
    "order_earliest": "the earliest by {field}",
    "order_then": ", then ",
    **{f"rule_{name}_{unit}": TextMeasure(name, unit).of_what for name in get_args(Measure) for unit in get_args(Unit)},
}
"""How a rule is said in English; ``rule_words.zh.json`` has the same keys."""


def rule_words(language: str) -> Mapping[str, str]:
    """Return how a rule is said in *language*."""
    if language == "en":
        return RULE_WORDS
    found: Mapping[str, str] = json.loads((Path(__file__).parent / f"rule_words.{language}.json").read_text("utf-8"))
    return found


def _in_english(key: str, **values: object) -> str:
    return RULE_WORDS[key].format(**values)


@dataclass(frozen=True, slots=True)
class PairRule:
    """
    What makes two documents near-duplicates.
    Their distance is at most *max_distance* and, where these are given, both present texts were read and have at least
    *similarity* by *measure*, both have the same value of *per*, and both have dates *within* a span.
    """

    max_distance: int = DEFAULT_MAX_DISTANCE
    similarity: float | None = None
    measure: TextMeasure = WORD_SHINGLES
    per: str | None = None
    within: Within | None = None

    def __post_init__(self) -> None:
        check_max_distance(self.max_distance)
        if self.similarity is None:
            object.__setattr__(self, "measure", WORD_SHINGLES)  # so that equal rules are equal
        elif check_bound("verify", self.similarity) == 0 and (numbers := self.measure.numbers) != "any":
            raise InvalidInputError(f"a similarity of 0 accepts every text, and {numbers=} does not: give more")
        else:
            object.__setattr__(self, "measure", self.measure.for_bound(self.similarity))
        if self.per is not None:
            check_field("per", self.per)
        if self.within is not None:
            object.__setattr__(self, "within", parse_within(self.within))

    @property
    def is_by_distance_alone(self) -> bool:
        """Whether nothing but the distance decides which documents are neighbours."""
        return self.similarity is None and self.per is None and self.within is None

    @property
    def words(self) -> str:
        """
        The rule for people, as every command, page and message says it.
        >>> PairRule(12, 0.8).words
        'within 12 bits, at least 80 % of the 7-letter shingles are the same'
        """
        return ", ".join(self.parts())

    @property
    def misses(self) -> str:
        """What the rule, where it is narrower than the default, leaves apart that the default finds; else nothing."""
        usual = DEFAULT_PRESET
        is_stricter = self.measure == WORD_SHINGLES and (self.similarity or 0.0) > usual.similarity
        if self.max_distance >= usual.max_distance and not is_stricter:
            return ""
        default = PairRule(usual.max_distance, usual.similarity)
        return (
            f"it is narrower than the default ({default.words}), and misses reposts: an agency's line added is 5 bits, "
            "another weekday 6, a sentence more 9"
        )

    def parts(self, say: Callable[..., str] = _in_english) -> list[str]:
        """Return the parts of :attr:`words`, each a key of ``RULE_WORDS`` as *say* words it."""
        parts = [say("rule_bit" if self.max_distance == 1 else "rule_bits", bits=self.max_distance)]
        if self.similarity is None:
            parts.append(say("rule_no_texts"))
        else:
            of_what = say(f"rule_{self.measure.measure}_{self.measure.unit}")
            parts.append(say("rule_texts", share=f"{100 * self.similarity:g}", of_what=of_what))
            parts += [] if self.measure.numbers == "any" else [say(f"rule_numbers_{self.measure.numbers}")]
        if self.per is not None:
            parts.append(say("rule_per", field=self.per))
        if self.within is not None:
            parts.append(say("rule_within", span=self.within.span, field=self.within.field))
        return parts

    def to_dict(self) -> dict[str, Any]:
        """Return the plain JSON values for ``_meta``."""
        is_usual = self.measure == WORD_SHINGLES
        # A similarity of another measure than the usual one is an object.
        return {
            "max_distance": self.max_distance,
            "similarity": self.similarity if is_usual else {"at_least": self.similarity, **self.measure.to_dict()},
            **({} if self.per is None else {"per": self.per}),
            **({} if self.within is None else {"within": [self.within.field, self.within.span]}),
        }


STAR = "star"
"""How documents are grouped: every member is a neighbour of its canonical."""


@dataclass(frozen=True, slots=True)
class Grouping(PairRule):
    """
    How the documents of an index are grouped: what makes two of them neighbours, and which of them stays.
    Every member is a neighbour of its canonical. *order*: keys for :func:`parse_key` that choose the canonical; the id
    decides last.
    """

    order: tuple[str, ...] = (BY_ID,)

    def __post_init__(self) -> None:
        PairRule.__post_init__(self)
        object.__setattr__(self, "order", check_order(self.order))

    def __str__(self) -> str:
        return "; ".join(self.sentences())

    def sentences(self, say: Callable[..., str] = _in_english) -> list[str]:
        """Return the words for people, in parts: what near-duplicates are, what stays, how they are grouped."""
        stays = say("order_then").join(parse_key(key).words(say) for key in self.order)
        words = say("rule_and").join(self.parts(say))
        return [words, say("rule_order", order=stays), say("rule_groups", rule=STAR)]

    @property
    def pair_rule(self) -> PairRule:
        """What makes two of its documents neighbours."""
        return PairRule(self.max_distance, self.similarity, self.measure, self.per, self.within)

    @property
    def order_keys(self) -> tuple[OrderKey, ...]:
        """The keys of the order that compare something else than the id."""
        return tuple(parse_key(key) for key in self.order if key != BY_ID)

    def to_dict(self) -> dict[str, Any]:
        """Return the plain JSON values for ``_meta``."""
        return {"rule": STAR, "canonical": list(self.order), **PairRule.to_dict(self)}

    @classmethod
    def from_dict(cls, recorded: Mapping[str, Any]) -> Grouping:
        """Return what :meth:`to_dict` wrote."""
        try:
            if recorded["rule"] != STAR or recorded.get("key"):  # of a version that grouped otherwise
                raise ValueError("by another rule")
            similarity, measure = recorded["similarity"], WORD_SHINGLES
            if isinstance(similarity, Mapping):
                similarity, measure = similarity["at_least"], TextMeasure.from_dict(similarity)
            per, within = recorded.get("per"), recorded.get("within")
            return cls(recorded["max_distance"], similarity, measure, per, within, recorded["canonical"])
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise MappingError(unreadable("grouping", recorded, error)) from error

    @classmethod
    def read(cls, settings: IndexSettings) -> Grouping | None:
        """Return the grouping that *settings* of an index record; ``None`` where none is."""
        recorded = settings.extra.get(GROUPING_KEY)
        return None if recorded is None else cls.from_dict(recorded)

    def put(self, extra: Mapping[str, Any]) -> dict[str, Any]:
        return {**extra, GROUPING_KEY: self.to_dict()}


def take_out(extra: Mapping[str, Any]) -> dict[str, Any]:
    """Return *extra* without a grouping."""
    return {name: value for name, value in extra.items() if name not in (GROUPING_KEY, REGROUPING_KEY)}


def default_rule(settings: IndexSettings, *, has_texts: bool | None = None) -> PairRule:
    """
    Return what counts where no grouping is recorded: the one default, with the distance that is recorded.
    Texts that nobody can read are not compared: *has_texts*, by default whether *settings* name their fields.
    """
    if not (bool(settings.text_fields) if has_texts is None else has_texts):
        return PairRule(DEFAULT_MAX_DISTANCE if settings.max_distance is None else settings.max_distance)
    usual = DEFAULT_PRESET
    distance = usual.max_distance if settings.max_distance is None else settings.max_distance
    return PairRule(distance, usual.similarity, usual.text_measure())


def rule_of(settings: IndexSettings) -> PairRule:
    """Return what makes two documents of an index with *settings* near-duplicates: its record, else the default."""
    grouping = Grouping.read(settings)
    return default_rule(settings) if grouping is None else grouping.pair_rule
