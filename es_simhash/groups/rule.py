"""How an index is grouped, as its ``_meta`` records it so that all writers agree: plain values."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from math import inf
from typing import IO, Any, Literal, TypeAlias, get_args

from es_simhash.arguments import Count, check_choice, check_field, check_options, check_sendable, option
from es_simhash.errors import InvalidInputError, MappingError, WrongTypeError, shorten
from es_simhash.hashing import get_scheme
from es_simhash.lookup.options import Verification, Verified, measure_of, verification_of
from es_simhash.mapping.meta import DEFAULT_MAX_DISTANCE, IndexSettings, check_max_distance, no_text_field
from es_simhash.texts.measures import DEFAULT_SIMILARITY, WORD_SHINGLES, Preset, TextMeasure, check_bound, get_preset

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

    @property
    def words(self) -> str:
        """Which document stays by this key, for people."""
        match self.kind:
            case "id":
                return "the smallest id"
            case "longest":
                return "the longest text"
            case "preference":
                return (
                    f"by {self.field}, {' before '.join('others' if each == OTHERS else each for each in self.values)}"
                )
        return f"the {'latest' if self.is_descending else 'earliest'} by {self.field}"

    def rank(self, values: Iterable[Any]) -> tuple[float, float]:
        """
        Return the rank of a document, and what a double leaves out of it: smallest is preferred, no value is last.
        Dates are in milliseconds; the nanoseconds of one, and the last digits of a long number, need the second part.
        """
        if self.kind == "preference":
            return float(min(map(self._place, values), default=inf)), 0.0
        numbers = sorted(map(Decimal, values))
        if not numbers:
            return inf, 0.0
        best = numbers[-1].copy_negate() if self.is_descending else numbers[0]
        return float(best), float(best - Decimal(float(best)))

    def _place(self, value: str) -> int:
        for each in (value, OTHERS):
            if each in self.values:
                return self.values.index(each)
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
    if not field:
        raise InvalidInputError(
            "canonical names no order: give 'id', 'longest', a field, '-field' or 'field:value>value>*'"
        )
    check_field("canonical", field)
    return OrderKey("field", field, is_descending=text.startswith("-"))


def check_order(canonical: Canonical) -> tuple[str, ...]:
    """Return the keys of *canonical* as recorded, without a last ``"id"``: the id always decides last."""
    if not isinstance(canonical, (str, list, tuple)):
        raise WrongTypeError(f"canonical must be a string or a list of strings, not {type(canonical).__name__}")
    keys = (canonical,) if isinstance(canonical, str) else tuple(canonical)
    parsed = [parse_key(each) for each in keys]
    if not keys:
        raise InvalidInputError("canonical names no order: give 'id', 'longest' or a field")
    subjects = [(each.kind, each.field) for each in parsed]
    if len(set(subjects)) < len(subjects):
        raise InvalidInputError(f"canonical {shorten(list(keys))} names a key twice: name each once")
    if BY_ID in keys[:-1]:
        raise InvalidInputError(f"canonical {shorten(list(keys))} names a key after 'id': no two ids are equal")
    return keys[:-1] if len(keys) > 1 and keys[-1] == BY_ID else keys


# Largest first: a span is written in the largest unit that divides it.
_UNITS = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1_000, "ms": 1}
_SPAN = re.compile(r"([0-9]{1,15})(d|h|m|s|ms)")


@dataclass(frozen=True, slots=True)
class Within:
    """A date field, and the largest difference of dates between neighbours, inclusive."""

    field: str
    milliseconds: int

    @property
    def span(self) -> str:
        """The difference as text, such as ``7d``."""
        unit = next(unit for unit, size in _UNITS.items() if self.milliseconds % size == 0)
        return f"{self.milliseconds // _UNITS[unit]}{unit}"

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
    if not isinstance(pair, (list, tuple)) or len(pair) != 2 or not all(isinstance(each, str) for each in pair):
        raise WrongTypeError(f'within must be a pair such as ("published", "7d"), not {shorten(value)}')
    field, span = pair
    match = _SPAN.fullmatch(span)
    if not field or match is None:
        raise InvalidInputError(
            f"within {shorten(list(pair))} cannot be used: give a date field and a span, such as 7d, 12h or 30m"
        )
    return Within(check_field("within", field), int(match[1]) * _UNITS[match[2]])


Rule = Literal["star", "connected"]
RULES: tuple[str, ...] = get_args(Rule)
GROUPING_KEY = "grouping"


@dataclass(frozen=True, slots=True)
class Grouping:
    """
    How the documents of an index are grouped.
    Two documents are neighbours if their distance is at most max_distance and, where these are given, both present
    texts were read and have at least *similarity* by *measure*, both have the same value of *per*, and both have dates
    *within* a span. *rule*: under ``"star"`` every member is a neighbour of its canonical; under ``"connected"`` chains
    count. *order*: keys for :func:`~es_simhash.groups.rule.parse_key` that choose the canonical; the id decides last.
    """

    rule: Rule = "star"
    max_distance: int = DEFAULT_MAX_DISTANCE
    order: tuple[str, ...] = (BY_ID,)
    similarity: float | None = None
    per: str | None = None
    within: Within | None = None
    measure: TextMeasure = WORD_SHINGLES

    def __post_init__(self) -> None:
        check_choice("rule", self.rule, RULES)
        check_max_distance(self.max_distance)
        object.__setattr__(self, "order", check_order(self.order))
        if self.similarity is not None:
            object.__setattr__(self, "similarity", check_bound("verify", self.similarity))
        else:
            object.__setattr__(self, "measure", WORD_SHINGLES)  # so that equal groupings are equal
        if self.per is not None:
            check_field("per", self.per)
        if self.within is not None:
            object.__setattr__(self, "within", parse_within(self.within))

    def __str__(self) -> str:
        texts = "texts not compared" if self.similarity is None else f"similarity {self.similarity:g}"
        texts += "" if self.measure == WORD_SHINGLES else f" ({self.measure})"
        more = [f"per {self.per}"] if self.per else []
        more += [f"within {self.within}"] if self.within else []
        limits = ", ".join([f"max_distance {self.max_distance}", texts, *more])
        return f"rule {self.rule}, {limits} and canonical {', '.join(self.order)}"

    @property
    def keys(self) -> tuple[OrderKey, ...]:
        """The keys of the order that compare something else than the id."""
        return tuple(parse_key(each) for each in self.order if each != BY_ID)

    @property
    def is_by_distance_alone(self) -> bool:
        """Whether nothing but the distance decides which documents are neighbours."""
        return self.similarity is None and self.per is None and self.within is None

    def to_dict(self) -> dict[str, Any]:
        """
        Return the plain JSON values for ``_meta``.
        A similarity of another measure than the usual one is an object: versions that know of no other measure expect a
        number there, and refuse the index.
        """
        is_usual = self.measure == WORD_SHINGLES
        return {
            "rule": self.rule,
            "max_distance": self.max_distance,
            "canonical": list(self.order),
            "similarity": self.similarity if is_usual else {"at_least": self.similarity, **self.measure.to_dict()},
            **({} if self.per is None else {"per": self.per}),
            **({} if self.within is None else {"within": [self.within.field, self.within.span]}),
        }

    @classmethod
    def from_dict(cls, recorded: Mapping[str, Any]) -> Grouping:
        """Return what :meth:`to_dict` wrote; earlier versions wrote no ``similarity``: by distance alone."""
        try:
            similarity, measure = recorded.get("similarity"), WORD_SHINGLES
            if isinstance(similarity, Mapping):
                similarity, measure = similarity["at_least"], TextMeasure.from_dict(similarity)
            return cls(
                recorded["rule"],
                recorded["max_distance"],
                recorded["canonical"],
                similarity,
                recorded.get("per"),
                recorded.get("within"),
                measure,
            )
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise MappingError(
                f"the grouping recorded in the mapping, {shorten(recorded)}, cannot be read ({error}): "
                "it was written by another version of this library"
            ) from error

    @classmethod
    def read(cls, settings: IndexSettings) -> Grouping | None:
        """Return the grouping that *settings* of an index record; ``None`` where it was never grouped."""
        recorded = (settings.extra or {}).get(GROUPING_KEY)
        return None if recorded is None else cls.from_dict(recorded)

    def put(self, extra: Mapping[str, Any] | None) -> dict[str, Any]:
        return {**(extra or {}), GROUPING_KEY: self.to_dict()}


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupingRequest:
    """
    The grouping that a caller asks for; ``None`` means what is recorded, else the default.

    ``False`` switches *verify*, *per* or *within* off. *default_order* counts where none is asked for or
    recorded. What is given beside *preset* goes before it.

    Args:
        preset:
            ``"identical"``, ``"near"``, ``"similar"``, ``"edited"`` or ``"noisy"``: a max_distance and a similarity
            that were measured together. An explicit max_distance or verify overrides the preset.
        verify:
            Smallest similarity of the texts of duplicates (shingle Jaccard, 0 to 1); ``True`` for that of the
            preset, else .8; ``False`` to go by distance alone. A :class:`Verification` for another measure, such
            as the edit similarity of characters. By default what the index records.
        max_distance:
            Largest distance of a duplicate in bits, inclusive, 0 to 64; by default what the index records, else
            3. The first ingest that groups records these settings in the mapping.
        rule:
            ``"star"``, the default: each duplicate is a near-duplicate of its canonical. ``"connected"``: chains
            count.
        canonical:
            Which document :meth:`reconcile` prefers as canonical; a list of keys, or one: ``"id"`` (the smallest,
            the default), a date or number field (the earliest or smallest; ``"-field"`` for the latest),
            ``"longest"``, or ``"field:a>b>*"``, values of a keyword field, the preferred one first.
        per:
            A keyword field; only documents with the same value are duplicates of each other. ``False`` for none.
        within:
            A date field and a span, as in ``("published", "7d")``; only documents whose dates differ by at most
            that are duplicates of each other. ``False`` for none.
    """

    preset: str | Preset | None = None
    verify: Verified | None = None
    max_distance: int | None = None
    rule: Rule | None = None
    canonical: Canonical | None = None
    per: str | Literal[False] | None = None
    within: tuple[str, str] | Literal[False] | None = None
    default_order: str = BY_ID

    def __post_init__(self) -> None:
        self.put_on(Grouping())  # refuses what cannot be used before a server is asked

    def check_scheme(self, settings: IndexSettings) -> None:
        """Raise if the preset was measured with another scheme than that of an index with *settings*."""
        if self.preset is None:
            return
        preset = get_preset(self.preset)
        if get_scheme(preset.scheme) != settings.scheme:
            raise InvalidInputError(
                f"preset {preset.name!r} is for scheme {preset.scheme}, and the index has {settings.scheme}: "
                "give max_distance and verify instead"
            )

    def put_on(self, grouping: Grouping) -> Grouping:
        """Return *grouping* with everything that is asked for in its place."""
        preset = None if self.preset is None else get_preset(self.preset)
        changed: dict[str, Any] = {}
        if self.rule is not None:
            changed["rule"] = self.rule
        if preset is not None:
            changed |= {"max_distance": preset.max_distance, "similarity": preset.similarity}
            changed["measure"] = measure_of(preset)
        if self.max_distance is not None:
            changed["max_distance"] = self.max_distance
        if self.verify is not None:
            verification = verification_of(self.verify, preset=preset)
            changed["similarity"] = None if verification is None else verification.similarity
            if verification is not None:
                verification.check_recordable()
            if isinstance(self.verify, Verification):
                changed["measure"] = self.verify.text_measure
        if self.canonical is not None:
            changed["order"] = self.canonical
        if self.per is not None:
            changed["per"] = None if self.per is False else self.per
        if self.within is not None:
            changed["within"] = None if self.within is False else self.within
        return replace(grouping, **changed)


def choose_grouping(
    settings: IndexSettings, request: GroupingRequest, *, has_texts: bool | None = None, may_differ: bool = False
) -> Grouping:
    """
    Return the grouping that applies: the recorded one, else the request completed by the defaults.
    *has_texts*: whether every index concerned records its text fields; then texts are compared by default. *may_differ*
    allows a request other than the record: for a dry run, which writes nothing, and to group an index anew.
    """
    has_texts = bool(settings.text_fields) if has_texts is None else has_texts
    request.check_scheme(settings)
    recorded = Grouping.read(settings)
    if recorded is None:
        distance = DEFAULT_MAX_DISTANCE if settings.max_distance is None else settings.max_distance
        similarity = DEFAULT_SIMILARITY if has_texts else None
        chosen = request.put_on(Grouping("star", distance, check_order(request.default_order), similarity))
    else:
        chosen = request.put_on(recorded)
        if chosen != recorded and not may_differ:
            raise InvalidInputError(
                f"the index is grouped by {recorded}, not by {chosen}: leave these options out, change the grouping "
                "with reconcile(regroup=True), or group by another rule under a second prefix"
            )
    if chosen.similarity is not None and not has_texts:
        raise no_text_field("texts cannot be compared", "compare none (verify=False, --no-verify)")
    if not has_texts and any(key.kind == LONGEST for key in chosen.keys):
        raise no_text_field("the longest text is not known", "choose another canonical order")
    return replace(chosen, measure=chosen.measure.after(settings.scheme))


LEAST_BYTES = 1 << 20
MOST_BYTES = 1 << 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """
    What finding all pairs may use; ``None``: one thread a core, 2 GiB, no file.

    *memory_bytes* is what all threads together sort at once; fingerprints, ids and the pairs of a grouping need
    memory in addition. *spill* opens an empty temporary file for the pairs that memory cannot keep.

    Args:
        threads:
            How many threads search for pairs; by default one for each core.
        memory_bytes:
            How much these sort at once, in bytes, 1 MiB or more; by default 2 GiB. What is read of the documents,
            some 100 bytes each, comes on top.
    """

    threads: int | None = option(None, Count(1, 1_024), "N", "Search for pairs in N threads. Default: all cores.")
    memory_bytes: int | None = option(
        None,
        Count(LEAST_BYTES, MOST_BYTES),
        "SIZE",
        "What the search sorts at once, such as 512MiB. Default: 2GiB. Ids and fingerprints need more.",
        "--memory",
    )
    spill: Callable[[], IO[bytes]] | None = None

    def __post_init__(self) -> None:
        check_options(self)
